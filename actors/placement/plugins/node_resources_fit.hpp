// NodeResourcesFit: requests fit what is left, and how full the node gets (spec 5.5 Fit, 5.6).
#pragma once

#include <span>
#include <vector>

#include "actors/placement/plugins/arithmetic.hpp"
#include "actors/placement/plugins/profile.hpp"

namespace troupe {

/// A resource that counts for a class: of the strategy, and requested by the pod if it is a scalar.
struct ScoredResource {
  ResourceId resource = 0;
  std::int32_t weight = 1;
  std::int64_t request = 0;  // of the pod; for cpu and memory of NodeResourcesFit the non-zero amount
};

struct NodeResourcesFit {
  static constexpr std::string_view name = "NodeResourcesFit";
  static constexpr PluginId id = PluginId::node_resources_fit;
  static constexpr Points points{Point::pre_filter, Point::filter, Point::pre_score, Point::score};
  static constexpr ReadSet filter_reads{Reads::node_facts, Reads::ledger};
  static constexpr ReadSet score_reads{Reads::node_facts, Reads::ledger};
  static constexpr Normalise normalise = Normalise::none;
  static constexpr std::int32_t default_weight = 1;

  struct State {
    ScoringType scoring = ScoringType::least_allocated;
    std::vector<ScoredResource> scored;
    const std::int32_t* ratio_score = nullptr;  // 101 entries, of the profile
    // The requests that the filter compares. Where nothing is ignored they are those of the class.
    bool ignores_some = false;
    std::vector<ResourceRequest> compared;
  };
  static State prepare(const PluginContext& context, const PodClass& cls);

  static std::span<const ResourceRequest> compared(const State& state, const PodClass& cls) {
    return state.ignores_some ? state.compared : cls.requests;
  }

  static bool skips_filter(const State& /*state*/, const PodClass& /*cls*/) { return false; }

  /// A pod that requests nothing compares nothing, so it fits an over-committed node; the pod count holds for
  /// every pod.
  template <NodeView V>
  static bool passes(const State& state, const PodClass& cls, const PodFacts& /*facts*/, const V& view) {
    if (view.pod_count() + 1 > view.allowed_pods()) return false;
    for (const ResourceRequest& r : compared(state, cls)) {
      if (!fits(r.amount, view.allocatable(r.resource), view.requested(r.resource))) return false;
    }
    return true;
  }

  /// Every resource that lacks; UU if one request is more than the whole node.
  template <NodeView V>
  static Verdict refuse(const State& state, const PodClass& cls, const PodFacts& /*facts*/, const V& view) {
    Verdict verdict;
    const auto refuse_by = [&verdict](Reason reason) {
      verdict.reasons.push_back(reason);
      if (verdict.code == Code::success) verdict.code = Code::unschedulable;
    };
    if (view.pod_count() + 1 > view.allowed_pods()) refuse_by({Reason::Id::too_many_pods, 0});
    for (const ResourceRequest& r : compared(state, cls)) {
      const std::int64_t allocatable = view.allocatable(r.resource);
      if (fits(r.amount, allocatable, view.requested(r.resource))) continue;
      refuse_by({Reason::Id::insufficient, r.resource});
      if (r.amount > allocatable) verdict.code = Code::unschedulable_and_unresolvable;
    }
    return verdict;
  }

  static bool skips_score(const State& /*state*/, const PodClass& /*cls*/) { return false; }

  /// What the node's account and the pod use of a scored resource together.
  template <NodeView V>
  static std::int64_t used(const ScoredResource& r, const V& view) {
    const std::int64_t account = r.resource == kCpu      ? view.non_zero_cpu()
                                 : r.resource == kMemory ? view.non_zero_memory()
                                                         : view.requested(r.resource);
    return saturating_add(account, r.request);
  }

  template <NodeView V>
  static std::int64_t score(const State& state, const PodClass& /*cls*/, const V& view) {
    std::int64_t sum = 0;
    std::int64_t weights = 0;
    for (const ScoredResource& r : state.scored) {
      const std::int64_t capacity = view.allocatable(r.resource);
      if (capacity <= 0) continue;
      const std::int64_t score = resource_score(state, used(r, view), capacity);
      if (state.scoring == ScoringType::requested_to_capacity_ratio && score == 0) continue;
      sum += score * r.weight;
      weights += r.weight;
    }
    return state.scoring == ScoringType::requested_to_capacity_ratio ? weighted_mean_half_up(sum, weights)
                                                                     : weighted_mean(sum, weights);
  }

 private:
  static std::int64_t resource_score(const State& state, std::int64_t used, std::int64_t capacity) {
    switch (state.scoring) {
      case ScoringType::least_allocated:
        return least_allocated(used, capacity);
      case ScoringType::most_allocated:
        return most_allocated(used, capacity);
      case ScoringType::requested_to_capacity_ratio:
        return state.ratio_score[most_allocated(used, capacity)];
    }
    return 0;
  }
};

}  // namespace troupe
