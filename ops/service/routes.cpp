#include "ops/service/routes.hpp"

#include <nlohmann/json.hpp>
#include <string>

#include "messages/fb/intent_generated.h"
#include "messages/fb/node_generated.h"
#include "messages/fb/pod_generated.h"
#include "messages/fb/query_generated.h"

namespace troupe {
namespace {

Address bridge() {
  return {ActorKind::bridge, 0, {}};
}
Address placement() {
  return {ActorKind::placement, 0, "0"};
}

Address node(std::string_view name, std::uint32_t partitions) {
  return {ActorKind::node, partition_of(name, partitions), std::string(name)};
}

std::string_view node_of(const Message& message) {
  switch (message.kind()) {
    case Kind::node:
      return text(message.as<fb::Node>().name());
    case Kind::pod:
      return text(message.as<fb::Pod>().node_name());
    case Kind::gone: {
      const auto& gone = message.as<fb::Gone>();
      return gone.kind() == fb::ObjectKind::Node ? text(gone.name()) : text(gone.node_name());
    }
    default:
      return {};
  }
}

}  // namespace

std::vector<Envelope> route_changes(const std::vector<Message>& changes, std::uint32_t node_partitions) {
  std::vector<Envelope> out;
  out.reserve(changes.size() * 2);
  for (const Message& m : changes) {
    const std::string_view name = node_of(m);
    if (!name.empty()) out.push_back({bridge(), node(name, node_partitions), m});
  }
  for (const Message& m : changes) out.push_back({bridge(), placement(), m});
  return out;
}

std::vector<Envelope> route_results(const std::vector<Message>& results, std::uint32_t node_partitions) {
  std::vector<Envelope> out;
  out.reserve(results.size());
  for (const Message& m : results) {
    const auto& r = m.as<fb::IntentResult>();
    const auto kind = static_cast<ActorKind>(r.owner_kind());
    if (kind == ActorKind::node) {
      out.push_back({bridge(), node(text(r.owner_key()), node_partitions), m});
    } else {
      out.push_back({bridge(), {kind, r.partition(), std::string(text(r.owner_key()))}, m});
    }
  }
  return out;
}

std::vector<Envelope> route_synced(const Message& synced, std::uint32_t node_partitions) {
  std::vector<Envelope> out;
  for (std::uint32_t p = 0; p < node_partitions; ++p)
    out.push_back({bridge(), {ActorKind::node, p, {}}, synced});
  out.push_back({bridge(), placement(), synced});
  return out;
}

Message query_message(std::uint64_t id, std::string_view verb, std::string_view ns, std::string_view name,
                      std::uint32_t limit) {
  flatbuffers::FlatBufferBuilder b;
  const auto verb_at = b.CreateString(verb.data(), verb.size());
  const auto ns_at = b.CreateString(ns.data(), ns.size());
  const auto name_at = b.CreateString(name.data(), name.size());
  b.Finish(fb::CreateQuery(b, id, verb_at, ns_at, name_at, limit));
  return {Kind::query, b};
}

std::string query_error(std::string_view json) {
  const auto parsed = nlohmann::json::parse(json, nullptr, false);
  if (parsed.is_object() && parsed.contains("error") && parsed["error"].is_string())
    return parsed["error"].get<std::string>();
  return std::string(json);
}

}  // namespace troupe
