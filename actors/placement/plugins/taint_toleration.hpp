// TaintToleration: NoSchedule and NoExecute taints that the pod does not tolerate refuse it; PreferNoSchedule
// ones count against the node (spec 5.5, 5.6).
#pragma once

#include <span>

#include "actors/placement/plugins/plugin.hpp"

namespace troupe {

struct TaintToleration {
  static constexpr std::string_view name = "TaintToleration";
  static constexpr PluginId id = PluginId::taint_toleration;
  static constexpr Points points{Point::filter, Point::pre_score, Point::score};
  static constexpr ReadSet filter_reads{Reads::node_facts};
  static constexpr ReadSet score_reads{Reads::node_facts};
  static constexpr Normalise normalise = Normalise::reversed;
  static constexpr std::int32_t default_weight = 3;
  using State = NoState;

  /// Over a set of taints, for callers that keep taint sets apart from nodes.
  static bool passes_taints(const PodClass& cls, std::span<const Taint> taints) {
    for (const Taint& taint : taints) {
      const bool filters =
          taint.effect == fb::TaintEffect::NoSchedule || taint.effect == fb::TaintEffect::NoExecute;
      if (filters && !tolerated(taint, cls)) return false;
    }
    return true;
  }

  /// Number of PreferNoSchedule taints that no toleration of that effect, or of every effect, tolerates.
  static std::int64_t score_taints(const PodClass& cls, std::span<const Taint> taints) {
    std::int64_t count = 0;
    for (const Taint& taint : taints) {
      if (taint.effect == fb::TaintEffect::PreferNoSchedule && !tolerated(taint, cls)) ++count;
    }
    return count;
  }

  static bool skips_filter(const State& /*state*/, const PodClass& /*cls*/) { return false; }

  template <NodeView V>
  static bool passes(const State& /*state*/, const PodClass& cls, const PodFacts& /*facts*/, const V& view) {
    return passes_taints(cls, view.taints());
  }

  template <NodeView V>
  static Verdict refuse(const State& state, const PodClass& cls, const PodFacts& facts, const V& view) {
    return refuse_if(!passes(state, cls, facts, view), Code::unschedulable_and_unresolvable,
                     Reason::Id::untolerated_taint);
  }

  static bool skips_score(const State& /*state*/, const PodClass& /*cls*/) { return false; }

  template <NodeView V>
  static std::int64_t score(const State& /*state*/, const PodClass& cls, const V& view) {
    return score_taints(cls, view.taints());
  }
};

}  // namespace troupe
