// Which events can help a parked pod (spec 5.3.h). For an event and the plugins that rejected a pod, the
// answer is whether to try again. An event that makes a node pass one of these plugins always wakes the pod;
// an event that cannot is skipped. Pure: the queue asks, once per class and set of rejecting plugins where it
// can.
#pragma once

#include <algorithm>
#include <concepts>

#include "actors/placement/evaluate.hpp"

namespace troupe {

/// What happened, as plugins register for it. One update of an object may be several of these.
enum class Event : std::uint8_t {
  node_add,
  node_allocatable,
  node_label,
  node_taint,           // taints changed, or unschedulable went from true to false
  assigned_pod_delete,  // deleted or finished, or a grant or nomination was given up
  assigned_pod_scale_down,
  own_scale_down,  // own_*: an update of the parked pod itself
  own_toleration,
  own_gates_eliminated,
};
using EventSet = Set<Event>;

/// Events that a plugin has any interest in. An event outside never wakes a pod that only this plugin
/// rejected.
constexpr EventSet registered(PluginId plugin) {
  switch (plugin) {
    case PluginId::scheduling_gates:
      return {Event::own_gates_eliminated};
    case PluginId::node_unschedulable:
    case PluginId::taint_toleration:
      return {Event::node_add, Event::node_taint, Event::own_toleration};
    case PluginId::node_name:
      return {Event::node_add};
    case PluginId::node_affinity:
      return {Event::node_add, Event::node_label};
    case PluginId::node_ports:
      return {Event::node_add, Event::assigned_pod_delete};
    case PluginId::node_resources_fit:
      return {Event::node_add, Event::node_allocatable, Event::assigned_pod_delete,
              Event::assigned_pod_scale_down, Event::own_scale_down};
    case PluginId::priority_sort:
    case PluginId::node_resources_balanced_allocation:
    case PluginId::image_locality:
    case PluginId::default_binder:
      break;
  }
  return {};
}

constexpr EventSet registered(PluginSet plugins) {
  EventSet events;
  plugins.for_each([&](PluginId p) { events |= registered(p); });
  return events;
}

/// What a node is, apart from its account. Every NodeView is one.
template <class V>
concept NodeFactsView = requires(const V& v, ResourceId resource, StringId key) {
  { v.name() } -> std::convertible_to<StringId>;
  { v.unschedulable() } -> std::convertible_to<bool>;
  { v.taints() } -> std::convertible_to<std::span<const Taint>>;
  { v.label(key) } -> std::convertible_to<StringId>;
  { v.allocatable(resource) } -> std::convertible_to<std::int64_t>;
  { v.allowed_pods() } -> std::convertible_to<std::int64_t>;
};

/// The node as if nothing ran on it.
template <NodeFactsView V>
class EmptyNode {
 public:
  explicit EmptyNode(const V& facts) : facts_(&facts) {}

  [[nodiscard]] StringId name() const { return facts_->name(); }
  [[nodiscard]] bool unschedulable() const { return facts_->unschedulable(); }
  [[nodiscard]] std::span<const Taint> taints() const { return facts_->taints(); }
  [[nodiscard]] StringId label(StringId key) const { return facts_->label(key); }
  [[nodiscard]] std::int64_t allocatable(ResourceId r) const { return facts_->allocatable(r); }
  [[nodiscard]] std::int64_t requested(ResourceId /*r*/) const { return 0; }
  [[nodiscard]] std::int64_t non_zero_cpu() const { return 0; }
  [[nodiscard]] std::int64_t non_zero_memory() const { return 0; }
  [[nodiscard]] std::int64_t pod_count() const { return 0; }
  [[nodiscard]] std::int64_t allowed_pods() const { return facts_->allowed_pods(); }
  [[nodiscard]] bool port_conflicts(const HostPort& /*port*/) const { return false; }
  [[nodiscard]] std::span<const ImageState> images() const { return {}; }
  [[nodiscard]] std::uint32_t total_nodes() const { return 1; }

 private:
  const V* facts_;
};

/// One plugin's answer to a node that was added or changed. `before` is null when the node is new.
template <NodeFactsView V, NodeFactsView Before>
bool node_helps(PluginId plugin, const PreparedClass& prepared, const PodFacts& facts, EventSet events,
                const V& now, const Before* before) {
  if (!registered(plugin).intersects(events)) return false;
  const PodClass& cls = prepared.cls();
  const EmptyNode<V> node(now);
  switch (plugin) {
    case PluginId::node_unschedulable: {
      const NodeUnschedulable::State& state = prepared.state<NodeUnschedulable>();
      return NodeUnschedulable::passes(state, cls, facts, node) &&
             (before == nullptr || !NodeUnschedulable::passes(state, cls, facts, EmptyNode<Before>(*before)));
    }
    case PluginId::node_name:
      return true;
    case PluginId::taint_toleration:
      return TaintToleration::passes_taints(cls, now.taints()) &&
             (before == nullptr || !TaintToleration::passes_taints(cls, before->taints()));
    case PluginId::node_affinity: {
      const NodeAffinity::State& state = prepared.state<NodeAffinity>();
      const auto matches = [&](const auto& n) {
        return NodeAffinity::in_node_set(state, facts, n.name()) &&
               NodeAffinity::passes(state, cls, facts, n);
      };
      return matches(node) && (before == nullptr || !matches(EmptyNode<Before>(*before)));
    }
    case PluginId::node_ports:
      return true;
    case PluginId::node_resources_fit: {
      if (!NodeResourcesFit::passes(prepared.state<NodeResourcesFit>(), cls, facts, node)) return false;
      if (before == nullptr || now.allowed_pods() > before->allowed_pods()) return true;
      return std::any_of(cls.requests.begin(), cls.requests.end(), [&](const ResourceRequest& r) {
        return now.allocatable(r.resource) > before->allocatable(r.resource);
      });
    }
    default:
      return false;
  }
}

/// Whether a node that was added or changed can help a pod that these plugins rejected.
template <NodeFactsView V, NodeFactsView Before>
bool node_wakes(PluginSet rejected_by, const PreparedClass& prepared, const PodFacts& facts, EventSet events,
                const V& now, const Before* before) {
  bool wakes = false;
  rejected_by.for_each(
      [&](PluginId p) { wakes = wakes || node_helps(p, prepared, facts, events, now, before); });
  return wakes;
}

template <NodeFactsView V>
bool added_node_wakes(PluginSet rejected_by, const PreparedClass& prepared, const PodFacts& facts,
                      const V& node) {
  return node_wakes<V, V>(rejected_by, prepared, facts, {Event::node_add}, node, nullptr);
}

/// A pod of class `gone` left: deleted or finished, or its grant or nomination was given up. `had_place`: it
/// had a node or a nomination.
bool deleted_pod_wakes(PluginSet rejected_by, const PreparedClass& prepared, bool had_place,
                       const PodClass& gone);

/// A pod shrank from `before` to `now`. `own`: it is the parked pod itself.
bool scaled_down_pod_wakes(PluginSet rejected_by, const PreparedClass& prepared, bool own, bool has_node,
                           const PodClass& before, const PodClass& now);

/// The parked pod itself changed; `prepared` is its class after the change.
bool own_update_wakes(PluginSet rejected_by, const PreparedClass& prepared, EventSet events);

}  // namespace troupe
