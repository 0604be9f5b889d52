// Which node a pod goes to: the highest total score among the nodes that pass every filter, any of the best
// with equal chance. Looks at all nodes.
#pragma once

#include <cstdint>
#include <vector>

#include "actors/host/turn.hpp"
#include "actors/placement/class_cache.hpp"

namespace troupe {

/// A pod as plan() sees it.
struct PodDemand {
  ClassId cls = 0;
  ProfileId profile = 0;
  StringId pinned_node = kNoString;
  std::int32_t priority = 0;
  PodUid uid;
};

struct Choice {
  Slot slot = kNoSlot;  // kNoSlot: no node passes
  std::int64_t score = 0;
  std::uint32_t feasible = 0;  // nodes that pass
};

class Planner {
 public:
  Planner(ClassCache& cache, const Snapshot& snapshot, std::uint64_t seed)
      : cache_(cache), snapshot_(snapshot), random_(seed) {}

  Choice plan(const PodDemand& pod);

 private:
  /// A slot with nominations, which count differently for each pod.
  struct Apart {
    Slot slot = 0;
    std::int32_t leaf = 0;
    BucketId bucket = 0;
  };

  Choice plan_pinned(const PodDemand& pod);
  void look_at_nominated(const ClassState& state, const PodDemand& pod);
  /// Fills bucket_score_ from the maxima over the buckets that have a feasible node.
  void normalise_buckets(const ClassState& state);

  ClassCache& cache_;
  const Snapshot& snapshot_;
  Random random_;
  std::vector<Apart> apart_;
  std::vector<ScoreTree::Best> best_;  // by bucket
  std::vector<bool> occupied_;         // by bucket: has a feasible node
  std::vector<std::int64_t> bucket_score_;
};

/// Whether the slot passes with the nominated pods of at least the pod's priority added, and (`leaf` says so)
/// without them (spec 5.4.8).
bool passes_with_nominated(const ClassState& state, const Snapshot& snapshot, Slot slot,
                           const PodDemand& pod);

}  // namespace troupe
