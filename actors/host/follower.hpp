// The engine of a follower: a class whose state is derived from messages and that works in cycles
// (placement). It takes every message that waits, then runs one cycle, so that each cycle sees the latest
// facts. Pure.
//
//   struct Placement {
//     void start(FollowerTurn& turn);      // once, before everything else: asks for what it follows
//     void on(const Message& message, FollowerTurn& turn);
//     bool wants_cycle() const;            // there is something to decide
//     void cycle(FollowerTurn& turn);      // a bounded piece of it
//   };
//
// A message at which `on` throws is quarantined at once: there is no stored state to return to, and the
// follower goes on without the message. Cycles that throw one after the other break the follower: the process
// must start again, which rebuilds it.
#pragma once

#include <concepts>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "actors/host/services.hpp"
#include "actors/host/timer_queue.hpp"

namespace troupe {

template <class F>
concept Follower = requires(F follower, const F& seen, const Message& message, FollowerTurn& turn) {
  follower.start(turn);
  follower.on(message, turn);
  follower.cycle(turn);
  { seen.wants_cycle() } -> std::convertible_to<bool>;
};

/// A follower class as the engine sees it.
class HostedFollower {
 public:
  virtual ~HostedFollower() = default;
  virtual void start(FollowerTurn& turn) = 0;
  virtual void on(const Message& message, FollowerTurn& turn) = 0;
  virtual void cycle(FollowerTurn& turn) = 0;
  [[nodiscard]] virtual bool wants_cycle() const = 0;
};

template <Follower F>
class HostedFollowerOf final : public HostedFollower {
 public:
  explicit HostedFollowerOf(std::unique_ptr<F> follower) : follower_(std::move(follower)) {}
  void start(FollowerTurn& turn) override { follower_->start(turn); }
  void on(const Message& message, FollowerTurn& turn) override { follower_->on(message, turn); }
  void cycle(FollowerTurn& turn) override { follower_->cycle(turn); }
  [[nodiscard]] bool wants_cycle() const override { return follower_->wants_cycle(); }

 private:
  std::unique_ptr<F> follower_;
};

/// One thread at a time calls it; `stats` and `quarantined` may be called from any thread.
class FollowerEngine {
 public:
  static constexpr int kMaxCycleThrows = 3;  // in a row
  static constexpr std::size_t kMaxQuarantined = 64;

  FollowerEngine(std::unique_ptr<HostedFollower> follower, Address self, std::uint64_t seed,
                 HostServices& services);

  /// Due timers, then `batch`, in order; what they send leaves together. The first call starts the follower;
  /// if that throws, it is broken.
  void process(std::span<Envelope> batch);
  [[nodiscard]] bool wants_cycle() const { return !broken_ && follower_->wants_cycle(); }
  /// One cycle; what it sends leaves at once.
  void cycle();
  /// When `process` is to be called next without messages (boot-time clock), if ever.
  [[nodiscard]] std::optional<Millis> next_due() const { return timers_.next_due(); }
  /// Why it cannot go on, if so.
  [[nodiscard]] const std::optional<std::string>& broken() const { return broken_; }

  [[nodiscard]] HostStats stats() const;
  [[nodiscard]] std::vector<Quarantined> quarantined() const;

 private:
  void begin();
  void start();
  void take(const Envelope& envelope);
  void release();
  void count_turn();

  std::unique_ptr<HostedFollower> follower_;
  HostServices& services_;
  Random random_;
  FollowerTurn turn_;
  TimerQueue timers_;
  bool started_ = false;
  int cycle_throws_ = 0;
  std::optional<std::string> broken_;
  std::int64_t turn_began_ = 0;  // nanoseconds

  Counter turns_;
  Counter messages_;
  Counter throws_;
  DurationCounter turn_time_;
  mutable std::mutex quarantine_mutex_;
  std::deque<Quarantined> quarantined_;
  Counter quarantined_count_;
};

}  // namespace troupe
