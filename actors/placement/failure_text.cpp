#include "actors/placement/failure_text.hpp"

#include <algorithm>
#include <charconv>
#include <vector>

namespace troupe {
namespace {

bool is_alphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/// RFC 1123: labels of lower-case letters, digits and inner hyphens, joined by dots; at most 253 bytes.
bool is_dns_subdomain(std::string_view name) {
  if (name.empty() || name.size() > 253) return false;
  char before = '.';
  for (std::size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    const bool edge = before == '.' || i + 1 == name.size() || name[i + 1] == '.';
    if (c == '.' ? before == '.' : !is_alphanumeric(c) && (c != '-' || edge)) return false;
    before = c;
  }
  return before != '.';
}

}  // namespace

std::string text(const Reason& reason, const Interner& interner) {
  switch (reason.id) {
    case Reason::Id::none:
      return {};
    case Reason::Id::unschedulable:
      return "node(s) were unschedulable";
    case Reason::Id::node_name:
      return "node(s) didn't match the requested node name";
    case Reason::Id::untolerated_taint:
      return "node(s) had untolerated taint(s)";
    case Reason::Id::node_affinity:
      return "node(s) didn't match Pod's node affinity/selector";
    case Reason::Id::ports:
      return "node(s) didn't have free ports for the requested pod ports";
    case Reason::Id::too_many_pods:
      return "Too many pods";
    case Reason::Id::insufficient:
      return "Insufficient " + std::string(interner.resource_name(reason.resource));
    case Reason::Id::outside_prefilter_nodes:
      return "node(s) didn't satisfy plugin(s) [NodeAffinity]";
    case Reason::Id::enforced_node_affinity:
      return "node(s) didn't match scheduler-enforced node affinity";
    case Reason::Id::affinity_conflict:
      return "pod affinity terms conflict";
  }
  return {};
}

std::string failure_message(std::uint64_t nodes, const ReasonCounts& reasons, std::string_view pre_filter,
                            std::string_view post_filter) {
  std::string message = "0/" + std::to_string(nodes) + " nodes are available:";
  if (!pre_filter.empty()) {
    message.append(" ").append(pre_filter).append(".");
  } else {
    std::vector<std::string> items;
    items.reserve(reasons.size());
    for (const auto& [reason, count] : reasons) items.push_back(std::to_string(count) + ' ' + reason);
    std::sort(items.begin(), items.end());
    for (std::size_t i = 0; i < items.size(); ++i) message.append(i == 0 ? " " : ", ").append(items[i]);
    if (!items.empty()) message += '.';
  }
  if (!post_filter.empty()) message.append(" ").append(post_filter);
  return message;
}

std::string event_note(std::string_view text) {
  constexpr std::size_t limit = 1024;
  constexpr std::string_view ellipsis = " ...";
  if (text.size() <= limit) return std::string(text);
  std::size_t keep = limit - ellipsis.size();
  // Not half a UTF-8 character: back to the first byte of the one that the cut meets.
  while (keep > 0 && (static_cast<unsigned char>(text[keep]) & 0xC0U) == 0x80U) --keep;
  return std::string(text.substr(0, keep)).append(ellipsis);
}

std::string event_name(std::string_view regarding, std::uint64_t time_ns) {
  char hex[16];
  const auto [end, error] = std::to_chars(std::begin(hex), std::end(hex), time_ns, 16);
  std::string name = std::string(regarding) + '.' + std::string(std::begin(hex), end);
  return is_dns_subdomain(name) ? name : std::string();
}

}  // namespace troupe
