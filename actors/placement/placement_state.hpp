// The inside of Placement, shared by placement.cpp (messages and cycle) and placement_query.cpp (questions).
#pragma once

#include <string>
#include <vector>

#include "actors/placement/class_cache.hpp"
#include "actors/placement/decisions.hpp"
#include "actors/placement/failure.hpp"
#include "actors/placement/in_flight.hpp"
#include "actors/placement/ledger_streams.hpp"
#include "actors/placement/placement.hpp"
#include "actors/placement/plan.hpp"
#include "actors/placement/queue.hpp"
#include "actors/placement/report.hpp"
#include "messages/fb/query_generated.h"

namespace troupe {

struct Placement::State final : HintSource {
  explicit State(PlacementOptions wanted);

  // --- from the mirror ---
  void on_pod(const Message& message, FollowerTurn& turn);
  void on_new_pod(const Message& message, const PodUid& uid, ProfileId profile, FollowerTurn& turn);
  void on_known_pod(PodIndex pod, const Message& message, ProfileId profile, FollowerTurn& turn);
  void on_bound_pod(PodIndex pod, const Message& message, FollowerTurn& turn);
  void on_parked_pod(PodIndex pod, const Message& message, ClassId cls, ProfileId profile,
                     FollowerTurn& turn);
  void on_node(const fb::Node& node, FollowerTurn& turn);
  void on_gone(const fb::Gone& gone, FollowerTurn& turn);

  // --- from the node partitions ---
  void on_effects(std::vector<LedgerEffect>& effects, FollowerTurn& turn);
  void on_copy(const Message& message, FollowerTurn& turn);
  void on_epoch_raised(const fb::ShardEpochRaised& raised);
  void raise_epoch(std::uint32_t partition, FollowerTurn& turn);
  void ended(const FlightEnd& end, std::string_view why, FollowerTurn& turn);
  /// Wakes the pods that fit where room became free since the last call.
  void wake_freed(FollowerTurn& turn);

  void on_tick(FollowerTurn& turn);
  void arm_tick(FollowerTurn& turn);
  void decide(PodIndex pod, FollowerTurn& turn);
  void refuse(PodIndex pod, const PodDemand& demand, FollowerTurn& turn);

  // --- questions (placement_query.cpp) ---
  void on_query(const fb::Query& query, FollowerTurn& turn);
  [[nodiscard]] std::string nodes_json(std::string_view name, std::uint32_t limit) const;
  [[nodiscard]] std::string pods_json(std::string_view ns, std::uint32_t limit);
  [[nodiscard]] std::string pending_json(std::string_view ns, std::uint32_t limit);
  [[nodiscard]] std::string decisions_json(std::string_view ns, std::string_view name,
                                           std::uint32_t limit) const;
  /// Empty when the pod is not pending.
  [[nodiscard]] std::string explain_json(std::string_view ns, std::string_view name, bool as_text);
  [[nodiscard]] std::string stats_json() const;

  bool helps(const ParkedGroup& group, const ClusterEvent& event) override;
  [[nodiscard]] PlacementStats stats() const;
  [[nodiscard]] bool ready() const;
  [[nodiscard]] PodDemand demand(const PendingPod& pod) const {
    return {pod.cls, pod.profile, pod.pinned_node, pod.priority, pod.uid};
  }
  /// Index of the profile with this scheduler name; the number of profiles if there is none.
  [[nodiscard]] ProfileId profile_of(std::string_view scheduler) const;
  [[nodiscard]] bool gated(const PendingPod& pod) const;
  ClassId acquire_class(const fb::Pod& pod);
  void fill(PendingPod& pod, const Message& message, ClassId cls, ProfileId profile);
  void forget(PodIndex pod);
  [[nodiscard]] std::uint64_t clock() const { return options.stopwatch ? options.stopwatch() : 0; }

  PlacementOptions options;
  Interner interner;
  ClassTable classes{interner};
  std::vector<CompiledProfile> profiles;
  Snapshot snapshot;
  ClassCache cache;
  Planner planner;
  SchedulingQueue queue;
  InFlight in_flight;
  LedgerStreams streams;
  Reporter reporter;
  DecisionRing decisions;

  bool synced = false;
  bool superseded = false;   // a later epoch of this shard decides
  std::vector<bool> raised;  // by partition: has answered this epoch
  std::size_t raised_count = 0;
  Millis parked_flushed = 0;
  PlacementStats totals;
  std::vector<LedgerEffect> effects;  // scratch
};

}  // namespace troupe
