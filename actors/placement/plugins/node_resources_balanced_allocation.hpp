// NodeResourcesBalancedAllocation: how evenly the node's resources are used with the pod on it (spec 5.6).
#pragma once

#include <cmath>
#include <vector>

#include "actors/placement/plugins/node_resources_fit.hpp"

namespace troupe {

struct NodeResourcesBalancedAllocation {
  static constexpr std::string_view name = "NodeResourcesBalancedAllocation";
  static constexpr PluginId id = PluginId::node_resources_balanced_allocation;
  static constexpr Points points{Point::pre_score, Point::score};
  static constexpr ReadSet score_reads{Reads::node_facts, Reads::ledger};
  static constexpr Normalise normalise = Normalise::none;
  static constexpr std::int32_t default_weight = 1;

  struct State {
    std::vector<ScoredResource> scored;  // requests are plain, not the non-zero amounts
    bool requests_any = false;
  };
  static State prepare(const PluginContext& context, const PodClass& cls);

  static bool skips_score(const State& state, const PodClass& /*cls*/) { return !state.requests_any; }

  template <NodeView V>
  static std::int64_t score(const State& state, const PodClass& /*cls*/, const V& view) {
    const auto capacity = [&](const ScoredResource& r) { return view.allocatable(r.resource); };
    const auto fraction_of = [&](const ScoredResource& r) {
      return fraction(saturating_add(view.requested(r.resource), r.request), capacity(r));
    };
    int count = 0;
    double total = 0.0;
    double last[2] = {};  // the first two fractions
    for (const ScoredResource& r : state.scored) {
      if (capacity(r) <= 0) continue;
      const double f = fraction_of(r);
      if (count < 2) last[count] = f;
      total += f;
      ++count;
    }
    if (count < 2) return balanced_from_std(0.0);
    if (count == 2) return balanced_from_std(std_of_two(last[0], last[1]));
    const double mean = total / count;
    double squares = 0.0;
    for (const ScoredResource& r : state.scored) {
      if (capacity(r) <= 0) continue;
      const double distance = fraction_of(r) - mean;
      squares += distance * distance;
    }
    return balanced_from_std(std::sqrt(squares / count));
  }
};

}  // namespace troupe
