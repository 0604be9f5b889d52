// actors/placement/: decides which node each pending pod goes to. A follower: everything it knows comes from
// the mirror and from the ledger streams of the node partitions, nothing is stored, and after a restart it is
// rebuilt. Four parts with one job each: snapshot (what the nodes look like), queue (which pod is next), plan
// (which node is best, over the class cache), in_flight (what was asked of the node owners). This header is
// the actor that puts them together; plugins/ holds the filters and scores.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "actors/host/turn.hpp"
#include "actors/placement/plugins/profile.hpp"
#include "messages/message.hpp"

namespace troupe {

struct PlacementOptions {
  std::uint16_t shard = 0;
  std::uint64_t shard_epoch = 1;  // above every earlier one of this shard; protocol 11
  std::uint32_t node_partitions = 32;
  std::uint64_t seed = 1;  // of the choice among equal best nodes
  // Pods whose (effective) scheduler name is none of these are never queued: they count through the ledgers.
  std::vector<std::string> scheduler_names = {"koord-scheduler"};
  // One per scheduler name, valid (spec 4.2), their weights below 20 million together; empty: the standard
  // profile for each of scheduler_names.
  std::vector<Profile> profiles;

  std::uint32_t batch_pods = 2000;      // most pods that one cycle decides
  std::uint32_t batches_in_flight = 4;  // unanswered commits are kept below batch_pods times this
  Millis commit_deadline_ms = 2000;     // then the same commit is asked again; doubles up to 16 times this

  Millis initial_backoff_ms = 1000;
  Millis max_backoff_ms = 10'000;
  Millis max_unschedulable_ms = 300'000;  // parked longer: tried again without an event

  std::size_t class_cache_bytes = 64U << 20U;
  std::size_t decisions = 4096;  // how many decisions are remembered for `decisions` and `explain`
  bool publish_events = true;    // public events queued, scheduled, unschedulable
  // Nanoseconds of some steady clock: measures how long a decision took, never influences one. Empty:
  // durations read 0.
  std::function<std::uint64_t()> stopwatch;
};

/// Totals since start, and how many pods wait where. Times in nanoseconds (0 without a stopwatch).
struct PlacementStats {
  std::uint64_t scheduled = 0;      // attempts that were granted
  std::uint64_t unschedulable = 0;  // attempts that no node passed
  std::uint64_t errors = 0;         // attempts that ended by an API error
  std::uint64_t conflicts = 0;      // commits refused by their node owner; no attempts
  std::uint64_t asked_again = 0;    // commits sent once more after a deadline
  std::uint64_t bound = 0;          // binds settled as done
  std::uint64_t cycles = 0;
  std::uint64_t decide_ns = 0;  // all cycles together
  std::uint64_t full_passes = 0;
  std::uint64_t incremental_updates = 0;  // nodes evaluated again one by one
  std::uint64_t copies = 0;               // ledger copies taken

  std::size_t active = 0;
  std::size_t backoff = 0;
  std::size_t parked = 0;  // unschedulable
  std::size_t gated = 0;
  std::size_t unanswered = 0;  // commits without a result
  std::size_t granted = 0;     // granted, bind not settled
  std::size_t nodes = 0;
  std::size_t accounted_pods = 0;  // ledger entries and overlay
  std::size_t classes = 0;
  std::size_t class_cache_bytes = 0;
};

/// Takes pod, node, name_space, priority_class, gone, synced (mirror); ledger_delta, ledger_copy,
/// commit_result, bind_settled, shard_epoch_raised (node partitions); query; self (its timers). Sends
/// commit_batch, copy_request, raise_shard_epoch (Address{node, partition, ""}), release (Address{node,
/// partition, node name}), report_request (Address{report, 0, "<namespace>/<name>"}), query_result (reply).
class Placement {
 public:
  explicit Placement(PlacementOptions options);
  ~Placement();
  Placement(const Placement&) = delete;
  Placement& operator=(const Placement&) = delete;

  /// Once, before the first message: raises the shard's epoch at all node partitions, asks for their copies,
  /// arms the timers.
  void start(FollowerTurn& turn);
  void on(const Message& message, FollowerTurn& turn);

  /// Decides one batch. Call while wants_cycle() says so, after the mailbox has been drained into on().
  void cycle(FollowerTurn& turn);
  [[nodiscard]] bool wants_cycle() const;

  /// Every object has been listed, every node partition has answered the shard's epoch and sent a copy.
  [[nodiscard]] bool ready() const;
  [[nodiscard]] PlacementStats stats() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace troupe
