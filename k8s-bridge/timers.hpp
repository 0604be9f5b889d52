// Time as the bridge sees it, so that its logic runs on virtual time in tests.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace troupe {

class Timers {
 public:
  virtual ~Timers() = default;
  /// Boot-time clock, milliseconds: runs on while the machine sleeps, and is never set.
  [[nodiscard]] virtual std::int64_t now_ms() const = 0;
  /// Wall clock, Unix microseconds: for timestamps only.
  [[nodiscard]] virtual std::int64_t wall_us() const = 0;
  /// Calls `run` once, at `due_ms` of now_ms() or a little later, on the timer's thread; at once if that has
  /// passed. What is still to come when the Timers is destroyed is dropped. `run` must not block.
  virtual void at(std::int64_t due_ms, std::function<void()> run) = 0;
};

/// The real clocks and one thread.
std::unique_ptr<Timers> make_timers();

}  // namespace troupe
