#include "actors/placement/hints.hpp"

namespace troupe {

bool deleted_pod_wakes(PluginSet rejected_by, const PreparedClass& prepared, bool had_place,
                       const PodClass& gone) {
  if (!had_place) return false;
  if (rejected_by.contains(PluginId::node_resources_fit)) return true;
  if (!rejected_by.contains(PluginId::node_ports)) return false;
  for (const HostPort& wanted : prepared.cls().host_ports) {
    for (const HostPort& freed : gone.host_ports) {
      if (ports_conflict(wanted, freed)) return true;
    }
  }
  return false;
}

bool scaled_down_pod_wakes(PluginSet rejected_by, const PreparedClass& prepared, bool own, bool has_node,
                           const PodClass& before, const PodClass& now) {
  if (!rejected_by.contains(PluginId::node_resources_fit)) return false;
  if (own) return true;
  const std::vector<ResourceRequest>& wanted = prepared.cls().requests;
  return has_node && std::any_of(wanted.begin(), wanted.end(), [&](const ResourceRequest& r) {
           return now.request(r.resource) < before.request(r.resource);
         });
}

bool own_update_wakes(PluginSet rejected_by, const PreparedClass& prepared, EventSet events) {
  const auto asks = [&](PluginId plugin, Event event) {
    return rejected_by.contains(plugin) && events.contains(event);
  };
  return asks(PluginId::scheduling_gates, Event::own_gates_eliminated) ||
         asks(PluginId::taint_toleration, Event::own_toleration) ||
         (asks(PluginId::node_unschedulable, Event::own_toleration) &&
          prepared.state<NodeUnschedulable>().tolerates_cordon) ||
         asks(PluginId::node_resources_fit, Event::own_scale_down);
}

}  // namespace troupe
