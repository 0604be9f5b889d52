// The engine of one partition: runs the turns of its instances and performs what they ask for. Pure but for
// the store that it is given: the CAF host and a simulator run the same code.
//
// A batch of envelopes becomes at most one write set. Its messages leave in two ways:
//   at once        a turn without writes, of an instance none of whose earlier writes or messages waits
//   with a set     everything else: released by the store after the sync, in order. What speaks for the
//                  partition (its Shared, deltas, heads, copies) waits for all outstanding sets.
// Write sets are numbered. The store raises `released` when a set's messages have left, so that a turn knows
// without a message of its own what is still outstanding.
//
// A handler that throws loses its turn. Its instance is dropped, and restored from the store once its sets
// are out; messages for it wait in order. The message is tried once more, then quarantined and, if it is a
// part, refused.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "actors/host/delta_stream.hpp"
#include "actors/host/hosted.hpp"
#include "actors/host/services.hpp"
#include "actors/host/timer_queue.hpp"

namespace troupe {

/// One activation of one partition. One thread at a time calls it; `stats` and `quarantined` may be called
/// from any thread.
class Partition {
 public:
  static constexpr Millis kHeadEvery = 1000;
  static constexpr Millis kRestoreRetry = 1000;  // after a failed restoration
  static constexpr std::size_t kMaxQuarantined = 64;

  /// `epoch`: of this activation, larger than every earlier one (next_epoch).
  Partition(std::unique_ptr<HostedOwner> owner, std::uint32_t partition, std::uint64_t epoch,
            std::uint64_t seed, HostServices& services);
  ~Partition();
  Partition(const Partition&) = delete;
  Partition& operator=(const Partition&) = delete;

  /// The epoch after the last one that is durable in `store`.
  static Result<std::uint64_t> next_epoch(Store& store, ActorKind kind, std::uint32_t partition);

  // Activation: prepare, then every stored entry of this partition family by family, then activate; on a
  // store that is empty, activate alone. Nothing leaves before the new epoch is durable. An error means that
  // the store cannot be read.
  Result<void> prepare();
  void restore_entry(Family family, std::string_view instance, std::string_view key, std::string_view value);
  void activate();

  /// Runs due timers, then `batch` in order. Moves the envelopes out.
  void process(std::span<Envelope> batch);
  /// When `process` is to be called next without messages (boot-time clock), if ever.
  [[nodiscard]] std::optional<Millis> next_due() const;

  [[nodiscard]] ActorKind kind() const { return self_.kind; }
  [[nodiscard]] std::uint32_t partition() const { return self_.partition; }
  [[nodiscard]] std::uint64_t epoch() const { return epoch_; }
  [[nodiscard]] HostStats stats() const;
  [[nodiscard]] std::vector<Quarantined> quarantined() const;

 private:
  struct Work;      // a message (or its parts for one instance) that waits for a restoration
  struct Fault;     // an instance without a usable state
  struct Slot;      // an instance
  struct Outbox;    // what the store's writer thread shares with this
  struct Counters;  // statistics
  class Parts;      // what `split` says
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view key) const noexcept;
  };
  struct Part {
    std::uint32_t index = 0;
    std::uint32_t next = 0;  // of the same instance, in parts_
  };
  struct Group {
    Slot* slot = nullptr;
    std::uint32_t first = 0;
    std::uint32_t last = 0;
  };

  // Batches (partition.cpp).
  void begin_batch();
  void end_batch();
  std::uint64_t open_set();
  [[nodiscard]] std::uint64_t released() const;
  [[nodiscard]] bool outstanding() const;
  void flush_deltas();
  void send_for_partition(std::vector<Envelope>& messages);
  void drop_empty();

  // Messages and turns (partition.cpp).
  void fire_timers();
  void dispatch(Envelope& envelope);
  void dispatch_split(Envelope& envelope, bool refused);
  void run(Slot& slot, const Envelope& envelope, std::span<const std::uint32_t> parts);
  void copy(Envelope& envelope);
  Slot& slot_of(std::string_view key);
  template <class Handler>
  std::optional<std::string> attempt(std::string_view key, const Address& sender, const Handler& handler);
  void finish_turn(Slot& slot);
  void finish_partition_turn();
  void arm_timers(std::string_view key, std::uint64_t incarnation);

  // Throws and restorations (partition_faults.cpp).
  void fault(Slot& slot, Work work, const std::string& error);
  void quarantine(const Envelope& envelope, const std::string& error);
  void wait(Slot& slot, Work work);
  void resume_all();
  void resume(Slot& slot);
  void resume_partition();
  std::optional<std::string> restore(Slot& slot);
  void mark_unusable(Slot& slot, const std::string& error);
  void refuse(Slot& slot, const Work& work);
  void refuse_unusable(Slot& slot, const Work& work);
  void report(HostEvent::Type type, Kind message, const Address& address, std::string text);

  std::unique_ptr<HostedOwner> owner_;
  Address self_;
  std::uint64_t epoch_;
  HostServices& services_;
  Random random_;
  std::uint64_t next_intent_;
  std::uint64_t intents_reserved_ = 0;  // ids below this are known to be used, durably
  Turn turn_;
  Turn::Mark mark_;  // where the turn in hand begins

  std::unordered_map<std::string, Slot, Hash, std::equal_to<>> slots_;
  std::deque<Slot*> maybe_empty_;
  std::uint64_t incarnations_ = 0;
  TimerQueue timers_;
  DeltaStream stream_;
  Millis head_due_ = 0;

  std::shared_ptr<Outbox> outbox_;
  std::uint64_t enqueued_ = 0;     // number of the last write set given to the store
  std::uint64_t floor_ = 0;        // set that every message waits for
  bool set_open_ = false;          // the batch in hand has something for set enqueued_ + 1
  std::vector<Envelope> at_once_;  // of the batch in hand

  std::vector<Part> parts_;  // of the message in hand
  std::vector<Group> groups_;
  std::vector<std::uint32_t> indices_;
  std::uint64_t splits_ = 0;

  std::vector<Slot*> faulted_;             // wait for their restoration
  std::unique_ptr<Work> partition_fault_;  // Shared::on threw at this
  std::optional<Millis> partition_retry_;  // Shared could not be read again
  std::vector<Envelope> held_;             // while the partition itself is faulted
  std::vector<Envelope> held_copies_;      // while an instance is faulted
  std::size_t batch_turns_ = 0;            // of the batch in hand
  std::int64_t turn_began_ = 0;            // nanoseconds
  std::unique_ptr<Counters> counters_;
  mutable std::mutex quarantine_mutex_;
  std::deque<Quarantined> quarantined_;
};

}  // namespace troupe
