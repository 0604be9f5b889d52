// The arithmetic of filters and scores on plain numbers (spec 5.5, 5.6). The row evaluation of a plugin and
// the column loops call the same functions. "Narrow" functions are exact for amounts below kNarrow and are
// written so that a loop over columns vectorises (AVX2 has neither 64-bit division nor int64-to-double
// conversion); the others hold for every non-negative 64-bit amount.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace troupe {

inline constexpr std::int64_t kMaxNodeScore = 100;

/// Amounts below this may use the narrow functions: 100 times the amount stays below 2^53, so every
/// intermediate but the quotient is an exact double, and a quotient that is no integer differs from the next
/// one by at least 1/2^46, the spacing of doubles below 128, so rounding never lifts it to that integer.
inline constexpr std::int64_t kNarrow = std::int64_t{1} << 46;

__extension__ using WideInteger = __int128;

/// The double with the value `v`, for 0 <= v < 2^52: the bits of 2^52 + v, less 2^52.
constexpr double narrow_double(std::int64_t v) {
  return std::bit_cast<double>(v | 0x4330000000000000) - 0x1p52;
}

/// `v`, and 1 in place of 0.
constexpr std::int64_t nonzero(std::int64_t v) {
  return v + static_cast<std::int64_t>(v == 0);
}

/// a + b, at most the largest 64-bit integer. a, b >= 0.
constexpr std::int64_t saturating_add(std::int64_t a, std::int64_t b) {
  return a > std::numeric_limits<std::int64_t>::max() - b ? std::numeric_limits<std::int64_t>::max() : a + b;
}

/// Room for `request` more. All amounts >= 0.
constexpr bool fits(std::int64_t request, std::int64_t allocatable, std::int64_t requested) {
  return request <= allocatable - requested;
}

/// floor(part * 100 / capacity), 0 <= part <= capacity, capacity > 0.
constexpr std::int64_t percent_wide(std::int64_t part, std::int64_t capacity) {
  return static_cast<std::int64_t>(static_cast<WideInteger>(part) * kMaxNodeScore / capacity);
}

/// Likewise, capacity < kNarrow; a capacity of 0 (with part 0) gives 0.
constexpr std::int32_t percent_narrow(std::int64_t part, std::int64_t capacity) {
  return static_cast<std::int32_t>(narrow_double(part) * 100.0 / narrow_double(nonzero(capacity)));
}

constexpr std::int64_t percent(std::int64_t part, std::int64_t capacity) {
  return capacity < kNarrow ? percent_narrow(part, capacity) : percent_wide(part, capacity);
}

/// LeastAllocated of one resource: floor((capacity - used) * 100 / capacity), 0 when used > capacity.
/// `used` counts the pod itself.
constexpr std::int64_t least_allocated(std::int64_t used, std::int64_t capacity) {
  return used > capacity ? 0 : percent(capacity - used, capacity);
}

/// Column form, capacity < kNarrow; 0 where capacity is 0.
constexpr std::int32_t least_allocated_narrow(std::int64_t used, std::int64_t capacity) {
  const std::int64_t left = capacity - used;
  return percent_narrow(left < 0 ? 0 : left, capacity);
}

/// MostAllocated of one resource, and the utilization that RequestedToCapacityRatio looks up:
/// floor(min(used, capacity) * 100 / capacity).
constexpr std::int64_t most_allocated(std::int64_t used, std::int64_t capacity) {
  return percent(std::min(used, capacity), capacity);
}

/// Column form, capacity < kNarrow; 0 where capacity is 0.
constexpr std::int32_t most_allocated_narrow(std::int64_t used, std::int64_t capacity) {
  return percent_narrow(used < capacity ? used : capacity, capacity);
}

/// Weighted mean of resource scores, rounded down; 0 when nothing counts.
constexpr std::int64_t weighted_mean(std::int64_t sum, std::int64_t weights) {
  return weights == 0 ? 0 : sum / weights;
}

/// Column form of the same: exact while sum <= 100 * weights and weights < 2^31 / 100.
constexpr std::int32_t weighted_mean_narrow(std::int32_t sum, std::int32_t weights) {
  const std::int32_t divisor = weights + static_cast<std::int32_t>(weights == 0);
  return static_cast<std::int32_t>(static_cast<double>(sum) / static_cast<double>(divisor));
}

/// Weighted mean of positive scores, rounded half up (RequestedToCapacityRatio).
constexpr std::int64_t weighted_mean_half_up(std::int64_t sum, std::int64_t weights) {
  return weights == 0 ? 0 : (2 * sum + weights) / (2 * weights);
}

/// Share of a capacity in use, at most 1. capacity > 0.
inline double fraction(std::int64_t used, std::int64_t capacity) {
  return used >= capacity ? 1.0 : static_cast<double>(used) / static_cast<double>(capacity);
}

/// BalancedAllocation from the spread of the fractions: floor((1 - std) * 100).
constexpr std::int32_t balanced_from_std(double std) {
  return static_cast<std::int32_t>((1.0 - std) * 100.0);
}

/// The standard deviation of two fractions.
inline double std_of_two(double a, double b) {
  return std::abs((a - b) / 2.0);
}

/// BalancedAllocation of two resources, column form: amounts capped at the capacity, capacities < 2^52. A
/// resource with capacity 0 is left out, and one resource alone is balanced.
inline std::int32_t balanced_narrow(std::int64_t used_a, std::int64_t capacity_a, std::int64_t used_b,
                                    std::int64_t capacity_b) {
  const std::int64_t divisor_a = nonzero(capacity_a);
  const std::int64_t divisor_b = nonzero(capacity_b);
  const double a = narrow_double(used_a < divisor_a ? used_a : divisor_a) / narrow_double(divisor_a);
  const double b = narrow_double(used_b < divisor_b ? used_b : divisor_b) / narrow_double(divisor_b);
  // All bits kept where both count, none (0.0) elsewhere.
  const std::int64_t both =
      -static_cast<std::int64_t>(static_cast<int>(capacity_a != 0) & static_cast<int>(capacity_b != 0));
  return balanced_from_std(std::bit_cast<double>(std::bit_cast<std::int64_t>(std_of_two(a, b)) & both));
}

/// ImageLocality: what one image on the node adds, floor(size * (nodes that have it / all nodes)).
inline std::int64_t image_share(std::int64_t size_bytes, std::uint32_t nodes_with_image,
                                std::uint32_t total_nodes) {
  const double spread = static_cast<double>(nodes_with_image) / static_cast<double>(total_nodes);
  return static_cast<std::int64_t>(static_cast<double>(size_bytes) * spread);
}

/// ImageLocality from the sum of the shares and the number of containers.
constexpr std::int64_t image_locality(std::int64_t sum, std::int64_t containers) {
  constexpr std::int64_t kMiB = 1024 * 1024;
  constexpr std::int64_t low = 23 * kMiB;
  const std::int64_t high = 1000 * kMiB * containers;
  if (sum < low || high <= low) return 0;
  return kMaxNodeScore * (std::min(sum, high) - low) / (high - low);
}

}  // namespace troupe
