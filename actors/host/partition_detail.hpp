// Private parts of Partition, shared by its two source files.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/host/guarded.hpp"
#include "actors/host/partition.hpp"

namespace troupe {

struct Partition::Work {
  Envelope envelope;
  std::vector<std::uint32_t> parts;  // empty: the whole message
  std::uint8_t throws = 0;
  bool refused = false;  // quarantined: only its answer is left
};

struct Partition::Fault {
  std::deque<Work> waiting;
  std::optional<Millis> retry_at;  // set: it could not be restored, and is tried again then
};

struct Partition::Slot {
  std::string_view key;                      // the map's
  std::unique_ptr<HostedInstance> instance;  // null while faulted
  std::unique_ptr<Fault> fault;
  std::uint64_t last_set = 0;     // the last write set that carries something of it
  std::uint64_t incarnation = 0;  // its timers carry it; 0: none fires
  std::uint64_t split = 0;        // the last split message that has parts for it, and its group there
  std::uint32_t group = 0;
  bool maybe_empty = false;  // is in maybe_empty_
};

/// What the store's writer thread shares with the partition; its callbacks keep it alive.
struct Partition::Outbox {
  Outbox(HostServices& host, const Address& address, std::uint64_t partition_epoch)
      : services(host), kind(address.kind), partition(address.partition), epoch(partition_epoch) {}

  void durable(std::vector<Envelope>& messages) {
    if (services.authority().holds(kind, partition, epoch)) return;
    unauthorized.add(messages.size());
    messages.clear();
  }
  void left(std::uint64_t set, std::int64_t since_ns) {
    commit_wait.add(services.clock().nanos() - since_ns);
    // Ordered before the exchange: a partition that asks to be woken either is, or sees the number.
    released.store(set, std::memory_order_seq_cst);
    if (wake_wanted.exchange(false, std::memory_order_seq_cst)) services.wake(kind, partition);
  }

  HostServices& services;
  const ActorKind kind;
  const std::uint32_t partition;
  const std::uint64_t epoch;
  std::atomic<std::uint64_t> released{0};
  std::atomic<bool> wake_wanted{false};
  DurationCounter commit_wait;
  Counter unauthorized;
};

struct Partition::Counters {
  Counter turns;
  Counter messages;
  Counter instances;
  Counter throws;
  Counter restorations;
  Counter quarantined;
  Counter unusable;
  Counter unauthorized;
  Counter unhandled;
  Counter enqueued;
  DurationCounter turn_time;
};

/// Runs one turn's handler. What it asks for stays in turn_, after mark_; after a throw nothing of it does,
/// and the exception's text is returned.
template <class Handler>
std::optional<std::string> Partition::attempt(std::string_view key, const Address& sender,
                                              const Handler& handler) {
  turn_.set_self_key(key);
  turn_.set_sender(sender);
  mark_ = turn_.mark();
  std::optional<std::string> error = guarded(handler);
  if (error) turn_.rollback(mark_);
  const std::int64_t now = services_.clock().nanos();
  ++batch_turns_;
  counters_->turns.add();
  counters_->turn_time.add(now - turn_began_);
  turn_began_ = now;
  return error;
}

}  // namespace troupe
