// Nodes as rows, and random nodes and pod classes small enough that every plugin refuses and passes often.
#pragma once

#include <map>
#include <random>
#include <string>
#include <vector>

#include "actors/placement/plugins/default_plugins.hpp"

namespace troupe::testing {

/// A node written out: the plainest NodeView.
struct RowNode {
  StringId node_name = kEmptyString;
  bool cordoned = false;
  std::vector<Taint> taint_list;
  std::map<StringId, StringId> labels;
  std::map<ResourceId, std::int64_t> allocatable_amounts;
  std::int64_t pods_allowed = 110;
  std::vector<ImageState> image_list;
  std::uint32_t cluster_nodes = 1;
  // the account
  std::vector<PodClass> pods;

  [[nodiscard]] StringId name() const { return node_name; }
  [[nodiscard]] bool unschedulable() const { return cordoned; }
  [[nodiscard]] std::span<const Taint> taints() const { return taint_list; }
  [[nodiscard]] StringId label(StringId key) const {
    const auto it = labels.find(key);
    return it == labels.end() ? kNoString : it->second;
  }
  [[nodiscard]] std::int64_t allocatable(ResourceId r) const {
    const auto it = allocatable_amounts.find(r);
    return it == allocatable_amounts.end() ? 0 : it->second;
  }
  [[nodiscard]] std::int64_t requested(ResourceId r) const {
    std::int64_t sum = 0;
    for (const PodClass& pod : pods) sum += pod.request(r);
    return sum;
  }
  [[nodiscard]] std::int64_t non_zero_cpu() const {
    std::int64_t sum = 0;
    for (const PodClass& pod : pods) sum += pod.non_zero_cpu;
    return sum;
  }
  [[nodiscard]] std::int64_t non_zero_memory() const {
    std::int64_t sum = 0;
    for (const PodClass& pod : pods) sum += pod.non_zero_memory;
    return sum;
  }
  [[nodiscard]] std::int64_t pod_count() const { return static_cast<std::int64_t>(pods.size()); }
  [[nodiscard]] std::int64_t allowed_pods() const { return pods_allowed; }
  [[nodiscard]] bool port_conflicts(const HostPort& port) const {
    for (const PodClass& pod : pods) {
      for (const HostPort& used : pod.host_ports) {
        if (ports_conflict(used, port)) return true;
      }
    }
    return false;
  }
  [[nodiscard]] std::span<const ImageState> images() const { return image_list; }
  [[nodiscard]] std::uint32_t total_nodes() const { return cluster_nodes; }
};
static_assert(NodeView<RowNode>);

/// Draws nodes and classes from small vocabularies.
class RandomCluster {
 public:
  explicit RandomCluster(std::uint64_t seed) : random_(seed) {}

  Interner interner;

  std::uint64_t below(std::uint64_t n) { return random_() % n; }
  bool chance(int percent) { return below(100) < static_cast<std::uint64_t>(percent); }

  RowNode node(int index, std::uint32_t cluster_nodes);
  PodClass pod_class();
  std::vector<Taint> taints();
  std::map<StringId, StringId> labels();
  std::vector<Toleration> tolerations();
  NodeSelectorTerm term();
  StringId node_name(int index) { return interner.id("node-" + std::to_string(index)); }

 private:
  StringId pick(const std::vector<const char*>& texts) { return interner.id(texts[below(texts.size())]); }
  fb::TaintEffect effect(bool any);
  Requirement requirement();
  std::int64_t request(std::int64_t unit) { return unit * static_cast<std::int64_t>(below(5)); }

  std::mt19937_64 random_;
};

inline fb::TaintEffect RandomCluster::effect(bool any) {
  const auto lowest = any ? 0U : 1U;
  return static_cast<fb::TaintEffect>(lowest + below(4U - lowest));
}

inline std::vector<Taint> RandomCluster::taints() {
  std::vector<Taint> out;
  while (out.size() < 3 && chance(30))
    out.push_back({pick({"a", "b", "c"}), pick({"", "x", "y"}), effect(false)});
  return out;
}

inline std::vector<Toleration> RandomCluster::tolerations() {
  std::vector<Toleration> out;
  while (out.size() < 3 && chance(40)) {
    const bool exists = chance(50);
    const StringId key =
        exists && chance(15) ? kEmptyString : pick({"a", "b", "c", "node.kubernetes.io/unschedulable"});
    out.push_back({key, exists, exists ? kEmptyString : pick({"", "x", "y"}), effect(true)});
  }
  return out;
}

inline std::map<StringId, StringId> RandomCluster::labels() {
  std::map<StringId, StringId> out;
  for (const char* key : {"zone", "disk", "cores"}) {
    if (chance(70)) out[interner.id(key)] = pick({"a", "b", "3", "8"});
  }
  return out;
}

inline RowNode RandomCluster::node(int index, std::uint32_t cluster_nodes) {
  RowNode n;
  n.node_name = node_name(index);
  n.cordoned = chance(10);
  n.taint_list = taints();
  n.labels = labels();
  n.allocatable_amounts[kCpu] = request(2000);
  n.allocatable_amounts[kMemory] = request(std::int64_t{4} << 30);
  n.allocatable_amounts[kEphemeralStorage] = request(std::int64_t{10} << 30);
  if (chance(40)) n.allocatable_amounts[interner.resource("example.com/gpu")] = request(2);
  n.pods_allowed = chance(20) ? static_cast<std::int64_t>(below(4)) : 110;
  n.cluster_nodes = cluster_nodes;
  for (const char* image : {"app:1", "db:2"}) {
    if (chance(40)) {
      n.image_list.push_back({interner.id(image), static_cast<std::int64_t>(below(std::uint64_t{2} << 30)),
                              1 + static_cast<std::uint32_t>(below(cluster_nodes))});
    }
  }
  const std::uint64_t pods = below(4);
  for (std::uint64_t i = 0; i < pods; ++i) n.pods.push_back(pod_class());
  return n;
}

inline Requirement RandomCluster::requirement() {
  Requirement r;
  r.key = pick({"zone", "disk", "cores", "absent"});
  r.op = static_cast<fb::SelectorOperator>(below(6));
  const bool number = r.op == fb::SelectorOperator::Gt || r.op == fb::SelectorOperator::Lt;
  if (number) {
    r.number = static_cast<std::int64_t>(below(10));
    r.number_valid = chance(90);
    r.values.push_back(interner.id(std::to_string(r.number)));
  } else if (r.op == fb::SelectorOperator::In || r.op == fb::SelectorOperator::NotIn) {
    do r.values.push_back(pick({"a", "b", "3", "8"}));
    while (chance(40));
  }
  return r;
}

inline NodeSelectorTerm RandomCluster::term() {
  NodeSelectorTerm t;
  while (t.expressions.size() < 2 && chance(60)) t.expressions.push_back(requirement());
  if (chance(15)) {
    Requirement r;
    r.key = kMetadataName;
    r.op = chance(80) ? fb::SelectorOperator::In : fb::SelectorOperator::NotIn;
    r.values.push_back(node_name(static_cast<int>(below(4))));
    t.fields.push_back(r);
  }
  return t;
}

inline PodClass RandomCluster::pod_class() {
  PodClass c;
  const auto add = [&](ResourceId r, std::int64_t amount) {
    if (amount > 0) c.requests.push_back({r, amount});
  };
  if (chance(80)) add(kCpu, request(500));
  if (chance(80)) add(kMemory, request(std::int64_t{1} << 30));
  if (chance(20)) add(kEphemeralStorage, request(std::int64_t{1} << 30));
  if (chance(20)) add(interner.resource("example.com/gpu"), request(1));
  c.non_zero_cpu = c.request(kCpu) > 0 ? c.request(kCpu) : 100;
  c.non_zero_memory = c.request(kMemory) > 0 ? c.request(kMemory) : std::int64_t{200} << 20;
  c.score_cpu = c.non_zero_cpu;
  c.score_memory = c.non_zero_memory;
  c.score_requests = c.requests;
  if (chance(20)) c.node_selector.emplace_back(interner.id("zone"), pick({"a", "b"}));
  c.has_required = chance(30);
  if (c.has_required) {
    do c.required.push_back(term());
    while (chance(40));
  }
  while (c.preferred.size() < 3 && chance(30)) {
    c.preferred.push_back({1 + static_cast<std::int32_t>(below(100)), term()});
  }
  c.tolerations = tolerations();
  while (c.host_ports.size() < 2 && chance(25)) {
    c.host_ports.push_back(
        {pick({"", "10.0.0.1", "10.0.0.2"}), pick({"TCP", "UDP"}), 80 + static_cast<std::int32_t>(below(2))});
  }
  do c.images.push_back(pick({"app:1", "db:2", "other:3"}));
  while (chance(30));
  return c;
}

}  // namespace troupe::testing
