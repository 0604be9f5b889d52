// actors/host/: runs every owner (and placement) and makes their turns durable, ordered and fenced. This
// header is what an actor class sees of it: a Turn hands it the time and collects what it wants done; nothing
// happens until the host performs it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "messages/message.hpp"
#include "store/family.hpp"
#include "store/writes.hpp"

namespace troupe {

/// Milliseconds. Wall times count from the Unix epoch, monotonic times from an arbitrary start.
using Millis = std::int64_t;

/// Small seeded generator (SplitMix64): the only source of randomness of an actor.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15ULL);
    z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27U)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31U);
  }
  /// Uniform in [0, bound); bound > 0.
  std::uint64_t below(std::uint64_t bound) {
    __extension__ typedef unsigned __int128 Product;
    return static_cast<std::uint64_t>((Product{next()} * bound) >> 64U);
  }

 private:
  std::uint64_t state_;
};

/// Where published events go; a port registered there receives Kind::public_event.
inline Address event_address() {
  return {ActorKind::api, 0, "events"};
}

/// A message that the instance sends itself later. Timers are not stored: `restored` arms them again.
struct Timer {
  Millis delay = 0;
  Message message;
};

/// What a follower's handler may do: read the time, send, ask for a wake-up, publish. Placement gets this
/// one. The host uses one object for many turns, so that their messages lie in one vector.
class FollowerTurn {
 public:
  FollowerTurn(Address self, Millis wall_ms, Millis monotonic_ms, Random& random)
      : self_(std::move(self)), wall_ms_(wall_ms), monotonic_ms_(monotonic_ms), random_(&random) {}

  /// Wall clock, Unix milliseconds: for timestamps that people and other systems read.
  [[nodiscard]] Millis wall_ms() const { return wall_ms_; }
  /// Boot-time clock, milliseconds: for deadlines and backoff.
  [[nodiscard]] Millis now() const { return monotonic_ms_; }
  std::uint64_t random() { return random_->next(); }
  [[nodiscard]] const Address& self() const { return self_; }
  /// Sender of the message in hand.
  [[nodiscard]] const Address& sender() const { return sender_; }

  void send(Address to, Message message) { sent_.push_back({self_, std::move(to), std::move(message)}); }
  void reply(Message message) { send(sender_, std::move(message)); }
  void after(Millis delay, Message message) { timers_.push_back({delay, std::move(message)}); }
  /// A public event (fb::PublicEvent); best effort, after the turn is durable.
  void publish(Message event) { send(event_address(), std::move(event)); }

  // For the host: the next turn on this object, and what the turns so far have asked for.
  struct Mark {
    std::size_t sent = 0;
    std::size_t timers = 0;
  };
  void set_self_key(std::string_view key) { self_.key.assign(key); }
  void set_sender(const Address& sender) { sender_ = sender; }
  void set_time(Millis wall_ms, Millis monotonic_ms) {
    wall_ms_ = wall_ms;
    monotonic_ms_ = monotonic_ms;
  }
  [[nodiscard]] Mark mark() const { return {sent_.size(), timers_.size()}; }
  /// Forgets what was asked for since `mark`.
  void rollback(const Mark& mark) {
    sent_.resize(mark.sent);
    timers_.resize(mark.timers);
  }
  std::vector<Envelope>& sent() { return sent_; }
  std::vector<Timer>& timers() { return timers_; }

 private:
  Address self_;
  Address sender_;
  Millis wall_ms_;
  Millis monotonic_ms_;
  Random* random_;
  std::vector<Envelope> sent_;
  std::vector<Timer> timers_;
};

/// What an owner's handler may do besides: write its state, append to the partition's stream, take an intent
/// id. A handler that throws loses its whole turn: nothing written, nothing sent.
class Turn : public FollowerTurn {
 public:
  Turn(Address self, Millis wall_ms, Millis monotonic_ms, Random& random, std::uint64_t partition_epoch,
       std::uint64_t& next_intent)
      : FollowerTurn(std::move(self), wall_ms, monotonic_ms, random),
        partition_epoch_(partition_epoch),
        next_intent_(&next_intent) {}

  void put(Family family, std::string_view key, std::string_view value) { writes_.put(family, key, value); }
  void put(Family family, std::string_view key, const flatbuffers::FlatBufferBuilder& builder) {
    put(family, key,
        std::string_view{reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize()});
  }
  void erase(Family family, std::string_view key) { writes_.erase(family, key); }

  /// Appends to the partition's delta stream (a finished fb::DeltaEntry); the host numbers and sends it when
  /// durable. Returns the bytes, for `describe` of later copies.
  Bytes delta(const flatbuffers::FlatBufferBuilder& entry) {
    return deltas_.emplace_back(std::span<const std::uint8_t>(entry.GetBufferPointer(), entry.GetSize()));
  }

  /// Epoch of the partition's activation; every grant and intent carries it.
  [[nodiscard]] std::uint64_t partition_epoch() const { return partition_epoch_; }
  /// A journal id that was never used in this store. A lost turn's id is not used again.
  std::uint64_t new_intent_id() { return (*next_intent_)++; }

  // For the host.
  struct Mark : FollowerTurn::Mark {
    Writes::Mark writes;
    std::size_t deltas = 0;
  };
  void set_partition_epoch(std::uint64_t epoch) { partition_epoch_ = epoch; }
  [[nodiscard]] Mark mark() const { return {FollowerTurn::mark(), writes_.mark(), deltas_.size()}; }
  void rollback(const Mark& mark) {
    FollowerTurn::rollback(mark);
    writes_.rollback(mark.writes);
    deltas_.resize(mark.deltas);
  }
  Writes& writes() { return writes_; }
  std::vector<Bytes>& deltas() { return deltas_; }

 private:
  std::uint64_t partition_epoch_;
  std::uint64_t* next_intent_;
  Writes writes_;
  std::vector<Bytes> deltas_;
};

}  // namespace troupe
