// What the host counts, and what it reports as it happens.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "actors/host/turn.hpp"
#include "messages/message.hpp"

namespace troupe {

/// Durations in buckets that double: bucket i counts those below 2^i microseconds, the last one all longer
/// ones.
struct Durations {
  static constexpr std::size_t kBuckets = 24;
  std::uint64_t count = 0;
  std::uint64_t sum_ns = 0;
  std::uint64_t max_ns = 0;
  std::array<std::uint64_t, kBuckets> buckets{};

  Durations& operator+=(const Durations& other);
};

/// Counters of the partitions of one actor kind, or of one follower.
struct HostStats {
  ActorKind kind{};
  std::uint64_t turns = 0;
  std::uint64_t messages = 0;        // envelopes taken from mailboxes
  std::uint64_t queue_depth = 0;     // envelopes in mailboxes
  std::uint64_t instances = 0;       // that exist
  std::uint64_t throws = 0;          // turns lost to an exception
  std::uint64_t restorations = 0;    // instances restored after a throw
  std::uint64_t quarantined = 0;     // messages given up after throwing twice
  std::uint64_t unusable = 0;        // instances that could not be restored
  std::uint64_t unauthorized = 0;    // messages dropped, in or out, because authority had lapsed
  std::uint64_t unhandled = 0;       // messages that nobody takes
  std::uint64_t write_sets = 0;      // handed to the store
  std::uint64_t write_sets_out = 0;  // not durable yet
  Durations turn_time;
  Durations commit_wait;  // from handing a write set to the store until its messages have left

  HostStats& operator+=(const HostStats& other);
};

/// A message that threw twice. The actor goes on without it.
struct Quarantined {
  Millis wall_ms = 0;
  Kind kind{};
  Address from;
  Address to;
  std::string error;
};

/// Something that people should hear of. Delivered on the thread where it happens.
struct HostEvent {
  enum class Type : std::uint8_t {
    threw,         // a handler threw: its turn is lost, the instance will be restored
    quarantined,   // a message threw twice
    restored,      // an instance is in use again
    unusable,      // an instance could not be restored; its messages are refused until it can
    refused,       // a message to an unusable instance
    unhandled,     // a message that its address does not take
    undeliverable  // no such address
  };
  Type type{};
  Kind message{};
  Address address;
  std::string text;  // the exception's, or what is done about it
};

std::string_view to_string(HostEvent::Type type);

/// A counter with one writing thread; any thread reads.
class Counter {
 public:
  void add(std::uint64_t n = 1) {
    value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  void set(std::uint64_t value) { value_.store(value, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t get() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

/// Durations with one writing thread; any thread reads.
class DurationCounter {
 public:
  void add(std::int64_t ns) {
    const auto value = static_cast<std::uint64_t>(ns < 0 ? 0 : ns);
    count_.add();
    sum_.add(value);
    if (value > max_.get()) max_.set(value);
    const auto bucket = static_cast<std::size_t>(std::bit_width(value / 1000));
    buckets_[bucket < Durations::kBuckets ? bucket : Durations::kBuckets - 1].add();
  }
  [[nodiscard]] Durations get() const;

 private:
  Counter count_;
  Counter sum_;
  Counter max_;
  std::array<Counter, Durations::kBuckets> buckets_;
};

}  // namespace troupe
