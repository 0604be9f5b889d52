// NodePorts: host ports are free on the node (spec 5.5).
#pragma once

#include "actors/placement/plugins/plugin.hpp"

namespace troupe {

/// Equal port and protocol, and equal addresses or one of them every address.
inline bool ports_conflict(const HostPort& a, const HostPort& b) {
  return a.port == b.port && a.protocol == b.protocol &&
         (a.ip == b.ip || a.ip == kEmptyString || b.ip == kEmptyString);
}

struct NodePorts {
  static constexpr std::string_view name = "NodePorts";
  static constexpr PluginId id = PluginId::node_ports;
  static constexpr Points points{Point::pre_filter, Point::filter};
  static constexpr ReadSet filter_reads{Reads::ledger};
  using State = NoState;

  static bool skips_filter(const State& /*state*/, const PodClass& cls) { return cls.host_ports.empty(); }

  template <NodeView V>
  static bool passes(const State& /*state*/, const PodClass& cls, const PodFacts& /*facts*/, const V& view) {
    for (const HostPort& port : cls.host_ports) {
      if (view.port_conflicts(port)) return false;
    }
    return true;
  }

  template <NodeView V>
  static Verdict refuse(const State& state, const PodClass& cls, const PodFacts& facts, const V& view) {
    return refuse_if(!passes(state, cls, facts, view), Code::unschedulable, Reason::Id::ports);
  }
};

}  // namespace troupe
