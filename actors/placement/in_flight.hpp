// What was asked of the node owners and is not over: the only place that knows commit ids. A commit is asked
// until its owner answers, always under the same id and for the same node (protocols 12): only the answer, or
// the pod or the node vanishing, frees the pod for another node.
//
// A commit's way: asked -> granted -> bound (the pod is forgotten here), or failed (error backoff), or gone.
//                 asked -> refused -> waits until the ledger version that the refusal names has been seen ->
//                 active again, as if it had not been tried.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "actors/host/turn.hpp"
#include "actors/placement/plan.hpp"
#include "actors/placement/queue.hpp"
#include "actors/placement/snapshot.hpp"
#include "messages/fb/commit_generated.h"

namespace troupe {

struct InFlightOptions {
  std::uint16_t shard = 0;
  std::uint64_t shard_epoch = 1;
  std::uint32_t node_partitions = 32;
  Millis deadline_ms = 2000;
};

/// How a flight ended, for who reports it. The pod's record is the queue's.
struct FlightEnd {
  enum class How : std::uint8_t {
    none,
    granted,  // not an end: the node's owner has agreed
    bound,
    failed,  // the bind failed: in error backoff
    gone,    // the pod is deleted, or bound elsewhere
  } how = How::none;
  PodIndex pod = kNoPod;
};

class InFlight {
 public:
  InFlight(InFlightOptions options, Snapshot& snapshot, ClassTable& classes, SchedulingQueue& queue);

  /// Asks for a node for a pod in deciding; leaves with the next send().
  void commit(PodIndex pod, const Choice& choice, FollowerTurn& turn);
  /// One CommitBatch per partition with everything committed since the last call.
  void send(const std::vector<CompiledProfile>& profiles, FollowerTurn& turn);

  FlightEnd on_result(const fb::CommitResult& result, FollowerTurn& turn);
  FlightEnd on_settled(const fb::BindSettled& settled, FollowerTurn& turn);
  /// The ledger of a node shows a pod, or lets it go.
  FlightEnd on_ledger(const LedgerEffect& effect, FollowerTurn& turn);
  /// The owner of a partition changed: what it does not show is asked again.
  void on_new_epoch(std::uint32_t partition, FollowerTurn& turn);
  /// A node is gone: what was asked of it and not answered is free.
  void on_node_gone(std::string_view node);
  /// Ledgers have moved on: refused pods whose version has been seen are active again.
  void on_ledger_versions();
  /// Asks overdue commits again; pods let go without a word go to error backoff. Once a second.
  void on_tick(const std::vector<CompiledProfile>& profiles, FollowerTurn& turn);

  /// The pod was deleted, or bound by someone else, or is not ours any more: takes back what was asked. The
  /// record is in flight before, nowhere after.
  void abandon(PodIndex pod, FollowerTurn& turn);
  /// The mirror shows the pod bound to the node it was committed to: nothing is left to wait for. The record
  /// is nowhere after.
  void land(PodIndex pod);
  /// The node's owner has not answered yet.
  [[nodiscard]] bool is_asked(PodIndex pod) const {
    return queue_[pod].place == Place::in_flight && flights_[queue_[pod].flight].stage == Stage::asked;
  }
  /// The ledger shows this pod without a commit of ours: it waits for what comes of that.
  void hold(PodIndex pod, Slot slot);

  /// Commits asked for the first time and not answered: what flow control counts. One that had to be asked
  /// again does not count, so that one dead partition does not stop the rest.
  [[nodiscard]] std::size_t unanswered() const { return unanswered_; }
  [[nodiscard]] std::size_t granted() const { return granted_; }
  [[nodiscard]] std::uint64_t conflicts() const { return conflicts_; }
  [[nodiscard]] std::uint64_t asked_again() const { return asked_again_; }
  /// The answer to this commit is still to come.
  [[nodiscard]] bool awaits(const PodUid& uid, std::uint64_t n) {
    const Flight* f = find(uid);
    return f != nullptr && f->n == n && (f->stage == Stage::asked || f->stage == Stage::granted);
  }
  /// Where the pod was committed to; empty if it is not in flight.
  [[nodiscard]] std::string_view node_of(PodIndex pod) const;

 private:
  enum class Stage : std::uint8_t {
    free,
    asked,    // no answer yet
    granted,  // until its bind settles
    held,     // the ledger shows it by another commit
    let_go,   // its ledger entry went: word of why is to come
    refused,  // waits for a ledger version, or for its turn after several conflicts
  };
  struct Flight {
    PodIndex pod = kNoPod;
    StringId node = kNoString;
    ClassId cls = kNoClass;
    Stage stage = Stage::free;
    std::uint8_t asks = 0;
    std::uint32_t feasible = 0;
    std::uint64_t n = 0;  // 0: not ours
    std::int64_t score = 0;
    Millis decided_wall_ms = 0;
    Millis deadline = 0;
    std::uint64_t ledger_version = 0;  // asked: as known at the decision; refused: to wait for
    Message pod_as_decided;
  };

  Flight* find(const PodUid& uid);
  std::uint32_t allocate();
  void free(std::uint32_t flight);
  void set_stage(Flight& flight, Stage stage);
  [[nodiscard]] bool version_seen(const Flight& flight) const;
  void refuse(Flight& flight, std::uint64_t ledger_version, Millis now);
  void retry(std::uint32_t index);
  void batch(const std::vector<std::uint32_t>& flights, const std::vector<CompiledProfile>& profiles,
             FollowerTurn& turn);
  flatbuffers::Offset<fb::Commit> write(const Flight& flight, std::uint16_t class_index,
                                        flatbuffers::Offset<flatbuffers::String> node,
                                        flatbuffers::Offset<flatbuffers::String> scheduler);
  void send_release(StringId node, const PodUid& uid, FollowerTurn& turn);
  [[nodiscard]] std::uint32_t partition(StringId node) const;

  InFlightOptions options_;
  Snapshot& snapshot_;
  ClassTable& classes_;
  SchedulingQueue& queue_;
  std::uint64_t next_n_ = 1;
  std::vector<Flight> flights_;
  std::vector<std::uint32_t> free_;
  std::vector<std::uint32_t> to_send_;
  std::size_t unanswered_ = 0;
  std::size_t granted_ = 0;
  std::size_t refused_ = 0;
  std::uint64_t conflicts_ = 0;
  std::uint64_t asked_again_ = 0;

  // Scratch of batch().
  flatbuffers::FlatBufferBuilder builder_{64U << 10U};
  std::vector<std::vector<std::uint32_t>> by_partition_;
  struct ClassPlace {
    std::uint64_t serial = 0;
    std::uint16_t index = 0;
  };
  std::vector<ClassPlace> class_places_;  // by ClassId
  std::uint64_t serial_ = 0;
};

}  // namespace troupe
