// Seeded randomness for pauses, and nothing else.
#pragma once

#include <algorithm>
#include <cstdint>

namespace troupe {

class Jitter {
 public:
  explicit Jitter(std::uint64_t seed) : state_(seed) {}

  /// Uniform in [low, high).
  double between(double low, double high) {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15ULL);  // SplitMix64
    z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27U)) * 0x94D049BB133111EBULL;
    z ^= z >> 31U;
    return low + (high - low) * (static_cast<double>(z >> 11U) * 0x1.0p-53);
  }

  /// Pause before try `n` (0 the first): first_ms doubled n times, at most max_ms, times 0.5 to 1.5.
  std::int64_t backoff_ms(std::int64_t first_ms, std::int64_t max_ms, unsigned n) {
    const std::int64_t full = n >= 20 ? max_ms : std::min(max_ms, first_ms << n);
    return static_cast<std::int64_t>(static_cast<double>(full) * between(0.5, 1.5));
  }

 private:
  std::uint64_t state_;
};

}  // namespace troupe
