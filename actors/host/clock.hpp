// The host's clock. Actors do not read it: their Turn tells them the time.
#pragma once

#include <cstdint>

#include "actors/host/turn.hpp"

namespace troupe {

/// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  /// Unix milliseconds.
  [[nodiscard]] virtual Millis wall_ms() const = 0;
  /// Boot-time clock, milliseconds: goes on while the machine sleeps.
  [[nodiscard]] virtual Millis now() const = 0;
  /// Monotonic nanoseconds, for measuring how long things take.
  [[nodiscard]] virtual std::int64_t nanos() const = 0;
};

class SystemClock final : public Clock {
 public:
  [[nodiscard]] Millis wall_ms() const override;
  [[nodiscard]] Millis now() const override;
  [[nodiscard]] std::int64_t nanos() const override;
};

}  // namespace troupe
