// One check, three views: every plugin is written once, as a template over a NodeView. A lane of the columnar
// snapshot, the ledger of one node at its owner, and a hypothetical node (pods taken away, reservations
// restored) are views.
#pragma once

#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actors/placement/pod_class.hpp"

namespace troupe {

struct ImageState {
  StringId name = 0;
  std::int64_t size_bytes = 0;
  std::uint32_t nodes_with_image = 0;  // over the whole cluster; 1 where only one node is known
};

/// Read access to one node. Ids are of the interner with which the class was compiled.
template <class V>
concept NodeView = requires(const V& v, ResourceId resource, StringId key, const HostPort& port) {
  { v.name() } -> std::convertible_to<StringId>;
  { v.unschedulable() } -> std::convertible_to<bool>;
  { v.taints() } -> std::convertible_to<std::span<const Taint>>;
  // value of label `key`, or kNoString when the node lacks it
  { v.label(key) } -> std::convertible_to<StringId>;
  { v.allocatable(resource) } -> std::convertible_to<std::int64_t>;
  { v.requested(resource) } -> std::convertible_to<std::int64_t>;
  { v.non_zero_cpu() } -> std::convertible_to<std::int64_t>;
  { v.non_zero_memory() } -> std::convertible_to<std::int64_t>;
  { v.pod_count() } -> std::convertible_to<std::int64_t>;
  { v.allowed_pods() } -> std::convertible_to<std::int64_t>;
  // true if a pod on the node holds a port that conflicts with `port`
  { v.port_conflicts(port) } -> std::convertible_to<bool>;
  { v.images() } -> std::convertible_to<std::span<const ImageState>>;
  // number of nodes in the cluster (ImageLocality)
  { v.total_nodes() } -> std::convertible_to<std::uint32_t>;
};

/// Outcome of a filter (spec 5.5): U may be helped by preemption, UU may not.
enum class Code : std::uint8_t { success, unschedulable, unschedulable_and_unresolvable };

/// Why a node refuses a pod: a fixed reason, or "Insufficient <resource>".
struct Reason {
  enum class Id : std::uint8_t {
    none,
    unschedulable,            // node(s) were unschedulable
    node_name,                // node(s) didn't match the requested node name
    untolerated_taint,        // node(s) had untolerated taint(s)
    node_affinity,            // node(s) didn't match Pod's node affinity/selector
    ports,                    // node(s) didn't have free ports for the requested pod ports
    too_many_pods,            // Too many pods
    insufficient,             // Insufficient <resource>
    outside_prefilter_nodes,  // node(s) didn't satisfy plugin(s) [NodeAffinity]
    enforced_node_affinity,   // node(s) didn't match scheduler-enforced node affinity
    affinity_conflict,        // pod affinity terms conflict
  };
  Id id = Id::none;
  ResourceId resource = 0;

  friend bool operator==(const Reason&, const Reason&) = default;
};

/// Answer of one plugin for one node. At most one reason, but for NodeResourcesFit, which lists every
/// resource that lacks.
struct Verdict {
  Code code = Code::success;
  std::vector<Reason> reasons;

  [[nodiscard]] bool ok() const { return code == Code::success; }
};

/// The reason as kube-scheduler writes it (spec 5.5).
std::string text(const Reason& reason, const Interner& interner);

}  // namespace troupe
