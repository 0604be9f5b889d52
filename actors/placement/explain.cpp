#include "actors/placement/explain.hpp"

#include <limits>
#include <set>

#include "messages/json_text.hpp"
#include "messages/quantity.hpp"

namespace troupe {
namespace {

/// "500m", "1536Mi", "2": as people write amounts of that resource.
std::string amount_text(const ResourceRequest& r, const Interner& interner) {
  const bool bytes = r.resource == kMemory || r.resource == kEphemeralStorage ||
                     interner.resource_name(r.resource).starts_with("hugepages-");
  if (r.resource == kCpu) {
    if (const auto q = Quantity::parse(std::to_string(r.amount) + "m")) return q->canonical();
  }
  return Quantity(r.amount, bytes ? QuantityFormat::binary_si : QuantityFormat::decimal_si).canonical();
}

/// "a, b, c" of at most `limit` items, then how many more.
template <class Items, class Text>
std::string join(const Items& items, std::size_t limit, Text&& text) {
  std::string out;
  std::size_t shown = 0;
  for (const auto& item : items) {
    if (shown == limit) return out + " and " + std::to_string(items.size() - shown) + " more";
    if (shown++ > 0) out += ", ";
    out += text(item);
  }
  return out;
}

std::string counted(std::size_t n, std::string_view what) {
  return std::to_string(n) + ' ' + std::string(what) + (n == 1 ? "" : "s");
}

constexpr auto kPlain = [](const auto& item) { return std::string(item); };
constexpr std::size_t kItems = 3;     // items of a list in a sentence
constexpr std::size_t kRemedies = 3;  // sentences

/// Share of its requests that the pod misses on the node: the smaller, the closer.
double distance(const NodeLack& lack, const PodClass& cls) {
  double sum = lack.pods ? 0.01 : 0.0;
  for (const ResourceRequest& r : lack.missing) {
    sum += static_cast<double>(r.amount) /
           static_cast<double>(std::max<std::int64_t>(cls.request(r.resource), 1));
  }
  return lack.never ? sum + 1e6 : sum;
}

std::string fix_resources(const PreparedClass& prepared, std::span<const NodeLack* const> group) {
  const Interner& interner = prepared.interner();
  const NodeLack* closest =
      *std::min_element(group.begin(), group.end(), [&](const NodeLack* a, const NodeLack* b) {
        return distance(*a, prepared.cls()) < distance(*b, prepared.cls());
      });
  const std::string node(closest->node);
  std::string fix = closest->pods ? "make room for one more pod on " + node : std::string();
  if (closest->missing.empty()) return fix;
  if (!fix.empty()) fix += " and ";
  const auto amount = [&](const ResourceRequest& r) {
    return amount_text(r, interner) + ' ' + std::string(interner.resource_name(r.resource));
  };
  if (closest->never) {
    return fix + "request less or add a larger node: even empty, " + node +
           " would not hold the pod, which needs " + join(closest->missing, kItems, amount) +
           " more than is free there";
  }
  return fix + "free " + join(closest->missing, kItems, amount) + " on " + node;
}

std::string taint_text(const Taint& taint, const Interner& interner) {
  std::string out(interner.text(taint.key));
  if (taint.value != kEmptyString) out.append("=").append(interner.text(taint.value));
  return out + ':' + fb::EnumNameTaintEffect(taint.effect);
}

std::string fix_taints(const PreparedClass& prepared, std::span<const NodeLack* const> group) {
  std::set<std::string> taints;
  for (const NodeLack* lack : group) {
    for (const Taint* t : lack->taints) taints.insert(taint_text(*t, prepared.interner()));
  }
  return "tolerate " + join(taints, kItems, kPlain);
}

std::string fix_affinity(const PreparedClass& prepared, const PodFacts& facts,
                         std::span<const NodeLack* const> group) {
  const Interner& interner = prepared.interner();
  if (facts.pinned_node != kNoString) {
    return "let the pod's node affinity name other nodes than " +
           std::string(interner.text(facts.pinned_node));
  }
  std::set<std::string> labels;
  for (const NodeLack* lack : group) {
    for (const auto& [key, value] : lack->labels) {
      labels.insert(std::string(interner.text(key)) + '=' + std::string(interner.text(value)));
    }
  }
  if (!labels.empty())
    return "label them " + join(labels, kItems, kPlain) + ", or drop that from nodeSelector";
  if (prepared.state<NodeAffinity>().conflict)
    return "resolve the conflict between the pod's metadata.name terms";
  return "relax the pod's required node affinity, or label nodes to match it";
}

std::string fix_ports(const PreparedClass& prepared, std::span<const NodeLack* const> group) {
  std::set<std::string> ports;
  for (const NodeLack* lack : group) {
    for (const HostPort& p : lack->ports) {
      ports.insert(std::to_string(p.port) + '/' + std::string(prepared.interner().text(p.protocol)));
    }
  }
  return "free host port " + join(ports, kItems, kPlain);
}

std::string fix(PluginId plugin, const PreparedClass& prepared, const PodFacts& facts,
                std::span<const NodeLack* const> group) {
  switch (plugin) {
    case PluginId::node_unschedulable:
      return "uncordon";
    case PluginId::node_name:
      return "unset the pod's spec.nodeName";
    case PluginId::taint_toleration:
      return fix_taints(prepared, group);
    case PluginId::node_affinity:
      return fix_affinity(prepared, facts, group);
    case PluginId::node_ports:
      return fix_ports(prepared, group);
    case PluginId::node_resources_fit:
      return fix_resources(prepared, group);
    default:
      return "change what " + std::string(plugin_name(plugin)) + " refuses";
  }
}

void json_strings(std::string& out, const std::vector<std::string>& texts) {
  out += '[';
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (i > 0) out += ',';
    append_json_string(out, texts[i]);
  }
  out += ']';
}

/// `"key":`, after a comma unless it is the first member.
void json_key(std::string& out, std::string_view key) {
  if (out.back() != '{') out += ',';
  append_json_string(out, key);
  out += ':';
}

void pad(std::string& out, std::string_view text, std::size_t width) {
  out.append(text);
  out.append(width > text.size() ? width - text.size() : 0, ' ');
  out += "  ";
}

void text_of_scores(std::string& out, const Explanation& e, std::size_t limit) {
  std::size_t width = 4;
  const std::size_t rows = std::min(limit, e.feasible.size());
  for (std::size_t i = 0; i < rows; ++i) width = std::max(width, e.feasible[i].node.size());
  out += "  ";
  pad(out, "NODE", width);
  pad(out, "TOTAL", 5);
  for (const PluginId p : e.scores) pad(out, plugin_name(p), 0);
  while (out.back() == ' ') out.pop_back();
  out += '\n';
  for (std::size_t i = 0; i < rows; ++i) {
    const Explanation::Fit& fit = e.feasible[i];
    out += "  ";
    pad(out, fit.node, width);
    pad(out, std::to_string(fit.total), 5);
    for (std::size_t k = 0; k < e.scores.size(); ++k) {
      pad(out, std::to_string(fit.weighted[k]), plugin_name(e.scores[k]).size());
    }
    while (out.back() == ' ') out.pop_back();
    out += '\n';
  }
  if (rows < e.feasible.size()) out += "  and " + std::to_string(e.feasible.size() - rows) + " more\n";
}

}  // namespace

std::vector<std::string> remedies(const PreparedClass& prepared, const PodFacts& facts,
                                  std::span<const NodeLack> lacks, std::span<const std::string> gates) {
  std::vector<std::string> out;
  if (!gates.empty()) out.push_back("remove the scheduling gates " + join(gates, kItems, kPlain));
  const StringId only = facts.pinned_node != kNoString ? facts.pinned_node : facts.node_name;
  const auto is_only = [&](const NodeLack& l) { return l.node == prepared.interner().text(only); };
  const bool only_exists = only != kNoString && std::any_of(lacks.begin(), lacks.end(), is_only);
  if (only != kNoString && !only_exists && !lacks.empty()) {
    out.push_back("add node " + std::string(prepared.interner().text(only)) +
                  ", the only one that the pod allows");
  }
  // Nodes that the fewest plugins refuse, by which those are. A pod bound to one node needs that node.
  std::size_t fewest = std::numeric_limits<std::size_t>::max();
  for (const NodeLack& l : lacks) {
    if (!only_exists || is_only(l)) fewest = std::min(fewest, l.by.size());
  }
  std::map<std::vector<PluginId>, std::vector<const NodeLack*>> groups;
  for (const NodeLack& l : lacks) {
    if (l.by.size() == fewest && (!only_exists || is_only(l))) groups[l.by].push_back(&l);
  }
  std::vector<const std::pair<const std::vector<PluginId>, std::vector<const NodeLack*>>*> order;
  for (const auto& group : groups) order.push_back(&group);
  std::stable_sort(order.begin(), order.end(),
                   [](const auto* a, const auto* b) { return a->second.size() > b->second.size(); });
  for (const auto* group : order) {
    if (out.size() == kRemedies) break;
    const auto& [plugins, nodes] = *group;
    std::string line = counted(nodes.size(), "node") + " (" +
                       join(nodes, kItems, [](const NodeLack* l) { return std::string(l->node); }) + "): ";
    for (std::size_t i = 0; i < plugins.size(); ++i) {
      if (i > 0) line += "; and ";
      line += fix(plugins[i], prepared, facts, nodes);
    }
    out.push_back(std::move(line));
  }
  return out;
}

std::string to_json(const Explanation& e) {
  std::string out = "{";
  json_key(out, "pod");
  append_json_string(out, e.pod);
  json_key(out, "feasible");
  out += '{';
  for (const Explanation::Fit& fit : e.feasible) {
    json_key(out, fit.node);
    out += '{';
    for (std::size_t k = 0; k < e.scores.size(); ++k) {
      json_key(out, plugin_name(e.scores[k]));
      out += std::to_string(fit.weighted[k]);
    }
    json_key(out, "total");
    out += std::to_string(fit.total) + '}';
  }
  out += '}';
  json_key(out, "refused");
  out += '{';
  for (const Explanation::Refused& refused : e.refused) {
    json_key(out, refused.node);
    json_strings(out, refused.by.front().reasons);
  }
  out += '}';
  json_key(out, "alsoRefused");
  out += '{';
  for (const Explanation::Refused& refused : e.refused) {
    if (refused.by.size() < 2) continue;
    json_key(out, refused.node);
    out += '{';
    for (std::size_t i = 1; i < refused.by.size(); ++i) {
      json_key(out, plugin_name(refused.by[i].plugin));
      json_strings(out, refused.by[i].reasons);
    }
    out += '}';
  }
  out += '}';
  json_key(out, "message");
  append_json_string(out, e.message);
  return out + '}';
}

std::string to_text(const Explanation& e, std::size_t limit) {
  std::string out = e.pod + '\n';
  const std::size_t nodes = e.feasible.size() + e.refused.size();
  if (!e.message.empty()) out += "  " + e.message + '\n';
  if (!e.feasible.empty()) {
    out += "fits " + std::to_string(e.feasible.size()) + " of " + counted(nodes, "node") + ", best first:\n";
    text_of_scores(out, e, limit);
  }
  std::map<std::string, std::vector<std::string>> by_reason;
  for (const Explanation::Refused& refused : e.refused) {
    for (const std::string& reason : refused.by.front().reasons) by_reason[reason].push_back(refused.node);
  }
  if (!by_reason.empty()) out += "refused by " + counted(e.refused.size(), "node") + ":\n";
  std::vector<std::pair<std::string, std::vector<std::string>>> reasons(by_reason.begin(), by_reason.end());
  std::stable_sort(reasons.begin(), reasons.end(),
                   [](const auto& a, const auto& b) { return a.second.size() > b.second.size(); });
  for (const auto& [reason, names] : reasons) {
    out += "  " + std::to_string(names.size()) + "  " + reason + ": " + join(names, limit, kPlain) + '\n';
  }
  if (!e.remedies.empty()) out += "what would help:\n";
  for (const std::string& remedy : e.remedies) out += "  " + remedy + '\n';
  return out;
}

}  // namespace troupe
