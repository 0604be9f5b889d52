#include "ops/cli/allocation.hpp"

#include <fmt/format.h>

#include "messages/fb/node_generated.h"
#include "messages/fb/pod_generated.h"

namespace troupe::cli {

void count(const Message& object, Allocation& into) {
  if (object.kind() == Kind::node) {
    const auto* amounts = object.as<fb::Node>().allocatable();
    if (amounts == nullptr) return;
    for (const fb::ResourceAmount* a : *amounts)
      into[std::string(text(a->name()))].allocatable += a->amount();
    return;
  }
  if (object.kind() != Kind::pod) return;
  const auto& pod = object.as<fb::Pod>();
  if (text(pod.node_name()).empty()) return;
  ++into["pods"].requested;
  if (pod.class_bytes() == nullptr) return;
  const auto* cls = pod.class_bytes_nested_root();
  if (cls->requests() == nullptr) return;
  for (const fb::ResourceAmount* a : *cls->requests())
    into[std::string(text(a->name()))].requested += a->amount();
}

Allocation allocation(const std::vector<Message>& nodes, const std::vector<Message>& pods) {
  Allocation out;
  for (const Message& m : nodes) count(m, out);
  for (const Message& m : pods) count(m, out);
  return out;
}

std::string human(const std::string& resource, std::int64_t amount) {
  if (resource == "cpu") return human_cpu(amount);
  if (resource == "memory" || resource == "ephemeral-storage" || resource.starts_with("hugepages-"))
    return human_bytes(amount);
  return std::to_string(amount);
}

std::string percent(const Amounts& a) {
  if (a.allocatable <= 0) return "-";
  return fmt::format("{:.1f}%",
                     100.0 * static_cast<double>(a.requested) / static_cast<double>(a.allocatable));
}

Json to_json(const Allocation& allocation) {
  Json out = Json::object();
  for (const auto& [resource, a] : allocation)
    out[resource] = {{"allocatable", a.allocatable}, {"requested", a.requested}};
  return out;
}

}  // namespace troupe::cli
