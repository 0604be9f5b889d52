// How long a pod waits after an attempt that failed (spec 5.3.4). Times in milliseconds.
#pragma once

#include <algorithm>
#include <cstdint>

#include "actors/host/turn.hpp"

namespace troupe {

struct BackoffOptions {
  Millis initial_ms = 1000;
  Millis max_ms = 10'000;
};

/// initial * 2^(count - 1), at most max; 0 for count 0.
constexpr Millis backoff_duration(const BackoffOptions& options, std::uint32_t count) {
  if (count == 0 || options.max_ms <= 0) return 0;
  Millis d = options.initial_ms;
  for (std::uint32_t i = 1; i < count && d < options.max_ms; ++i) d *= 2;
  return std::min(d, options.max_ms);
}

/// Rounded down to whole seconds.
constexpr Millis whole_second(Millis t) {
  return (t >= 0 ? t : t - 999) / 1000 * 1000;
}

/// When the backoff of an attempt that ended at `timestamp` is over, in whole seconds.
constexpr Millis backoff_expiry(const BackoffOptions& options, Millis timestamp, std::uint32_t count) {
  return whole_second(timestamp + backoff_duration(options, count));
}

/// A pod whose expiry is the present second still backs off.
constexpr bool is_backing_off(const BackoffOptions& options, Millis timestamp, std::uint32_t count,
                              Millis now) {
  if (backoff_duration(options, count) == 0) return false;
  return backoff_expiry(options, timestamp, count) >= whole_second(now);
}

}  // namespace troupe
