// Virtual time on one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "k8s-bridge/timers.hpp"

namespace troupe::test {

class SimTimers final : public Timers {
 public:
  static constexpr std::int64_t kWallStartUs = 1'780'000'000'000'000;

  [[nodiscard]] std::int64_t now_ms() const override { return now_ms_; }
  [[nodiscard]] std::int64_t wall_us() const override { return kWallStartUs + now_ms_ * 1000; }
  [[nodiscard]] std::int64_t wall_ms() const { return wall_us() / 1000; }
  void at(std::int64_t due_ms, std::function<void()> run) override {
    due_.push({due_ms < now_ms_ ? now_ms_ : due_ms, next_++, std::move(run)});
  }

  /// Runs what is due first, moving the clock to it; false: nothing is left.
  bool step() {
    if (due_.empty()) return false;
    Entry entry = due_.top();
    due_.pop();
    now_ms_ = entry.due_ms;
    entry.run();
    return true;
  }
  /// Runs everything due until `end_ms`, and stands there.
  void run_until(std::int64_t end_ms) {
    while (!due_.empty() && due_.top().due_ms <= end_ms) step();
    now_ms_ = end_ms;
  }
  /// Runs until `done` or nothing is left or `end_ms` is reached; whether `done`.
  bool run_while_not(const std::function<bool()>& done, std::int64_t end_ms) {
    while (!done()) {
      if (due_.empty() || due_.top().due_ms > end_ms) return false;
      step();
    }
    return true;
  }

 private:
  struct Entry {
    std::int64_t due_ms;
    std::uint64_t n;
    std::function<void()> run;
    bool operator<(const Entry& other) const {
      return std::pair(due_ms, n) > std::pair(other.due_ms, other.n);
    }
  };
  std::int64_t now_ms_ = 0;
  std::uint64_t next_ = 0;
  std::priority_queue<Entry> due_;
};

}  // namespace troupe::test
