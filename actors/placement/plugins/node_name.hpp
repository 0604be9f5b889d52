// NodeName: a pod whose spec.nodeName is set runs there and nowhere else (spec 5.5).
#pragma once

#include "actors/placement/plugins/plugin.hpp"

namespace troupe {

struct NodeName {
  static constexpr std::string_view name = "NodeName";
  static constexpr PluginId id = PluginId::node_name;
  static constexpr Points points{Point::filter};
  static constexpr ReadSet filter_reads{Reads::node_facts, Reads::pod_facts};
  using State = NoState;

  static bool skips_filter(const State& /*state*/, const PodClass& /*cls*/) { return false; }

  template <NodeView V>
  static bool passes(const State& /*state*/, const PodClass& /*cls*/, const PodFacts& facts, const V& view) {
    return facts.node_name == kNoString || facts.node_name == view.name();
  }

  template <NodeView V>
  static Verdict refuse(const State& state, const PodClass& cls, const PodFacts& facts, const V& view) {
    return refuse_if(!passes(state, cls, facts, view), Code::unschedulable_and_unresolvable,
                     Reason::Id::node_name);
  }
};

}  // namespace troupe
