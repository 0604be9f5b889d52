// NodeUnschedulable: a cordoned node takes only pods that tolerate the cordon's taint (spec 5.5).
#pragma once

#include "actors/placement/plugins/profile.hpp"

namespace troupe {

struct NodeUnschedulable {
  static constexpr std::string_view name = "NodeUnschedulable";
  static constexpr PluginId id = PluginId::node_unschedulable;
  static constexpr Points points{Point::filter};
  static constexpr ReadSet filter_reads{Reads::node_facts};

  struct State {
    bool tolerates_cordon = false;
  };
  static State prepare(const PluginContext& context, const PodClass& cls) {
    return {tolerated(context.profile.unschedulable_taint, cls)};
  }

  static bool skips_filter(const State& state, const PodClass& /*cls*/) { return state.tolerates_cordon; }

  template <NodeView V>
  static bool passes(const State& state, const PodClass& /*cls*/, const PodFacts& /*facts*/, const V& view) {
    return !view.unschedulable() || state.tolerates_cordon;
  }

  template <NodeView V>
  static Verdict refuse(const State& state, const PodClass& cls, const PodFacts& facts, const V& view) {
    return refuse_if(!passes(state, cls, facts, view), Code::unschedulable_and_unresolvable,
                     Reason::Id::unschedulable);
  }
};

}  // namespace troupe
