#include "actors/placement/plugins/arithmetic.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace troupe {
namespace {

/// The definitions of spec 5.6 in 128-bit integers and IEEE doubles.
std::int64_t least_by_definition(std::int64_t used, std::int64_t capacity) {
  if (used > capacity) return 0;
  return static_cast<std::int64_t>(static_cast<WideInteger>(capacity - used) * 100 / capacity);
}
std::int64_t most_by_definition(std::int64_t used, std::int64_t capacity) {
  return static_cast<std::int64_t>(static_cast<WideInteger>(std::min(used, capacity)) * 100 / capacity);
}
std::int64_t balanced_by_definition(std::int64_t ua, std::int64_t ca, std::int64_t ub, std::int64_t cb) {
  if (ca == 0 || cb == 0) return 100;
  const double a = std::min(1.0, static_cast<double>(ua) / static_cast<double>(ca));
  const double b = std::min(1.0, static_cast<double>(ub) / static_cast<double>(cb));
  return static_cast<std::int64_t>((1 - std::abs((a - b) / 2)) * 100);
}

/// Amounts of every magnitude below 2^bits.
std::int64_t amount(std::mt19937_64& random, int bits) {
  const int width = 1 + static_cast<int>(random() % static_cast<unsigned>(bits));
  return static_cast<std::int64_t>(random() >> (64 - width));
}

void expect_equal(std::int64_t used, std::int64_t capacity) {
  ASSERT_EQ(least_allocated(used, capacity), least_by_definition(used, capacity)) << used << '/' << capacity;
  ASSERT_EQ(most_allocated(used, capacity), most_by_definition(used, capacity)) << used << '/' << capacity;
  if (capacity >= kNarrow) return;
  ASSERT_EQ(least_allocated_narrow(used, capacity), least_by_definition(used, capacity))
      << used << '/' << capacity;
  ASSERT_EQ(most_allocated_narrow(used, capacity), most_by_definition(used, capacity))
      << used << '/' << capacity;
}

TEST(Arithmetic, NarrowDoubleIsExact) {
  for (const std::int64_t v :
       {std::int64_t{0}, std::int64_t{1}, kNarrow - 1, kNarrow, (std::int64_t{1} << 52) - 1}) {
    EXPECT_EQ(narrow_double(v), static_cast<double>(v));
  }
}

TEST(Arithmetic, PercentEqualsItsDefinitionOnRandomAmounts) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 3'000'000; ++i) {
    const std::int64_t capacity = std::max<std::int64_t>(1, amount(random, i % 3 == 0 ? 63 : 46));
    const std::int64_t used =
        i % 2 == 0 ? amount(random, 62)
                   : static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(capacity));
    expect_equal(used, capacity);
    if (HasFatalFailure()) return;
  }
}

// A quotient one part below an integer is where rounding could lift a double to that integer.
TEST(Arithmetic, PercentEqualsItsDefinitionAtTheBoundaries) {
  std::mt19937_64 random(2);
  std::vector<std::int64_t> capacities = {1,
                                          2,
                                          3,
                                          7,
                                          99,
                                          100,
                                          101,
                                          kNarrow - 1,
                                          kNarrow - 2,
                                          kNarrow - 3,
                                          kNarrow,
                                          kNarrow + 1,
                                          (std::int64_t{1} << 62) + 1};
  for (int bits = 2; bits <= 46; ++bits) {
    for (const int offset : {-3, -2, -1}) capacities.push_back((std::int64_t{1} << bits) + offset);
  }
  for (int i = 0; i < 20'000; ++i) capacities.push_back(kNarrow - 1 - amount(random, 45));
  for (const std::int64_t capacity : capacities) {
    if (capacity <= 0) continue;
    for (std::int64_t share = 0; share <= 100; ++share) {
      const auto at = static_cast<std::int64_t>(static_cast<WideInteger>(capacity) * share / 100);
      for (const int offset : {-1, 0, 1}) {
        const std::int64_t used = at + offset;
        if (used < 0) continue;
        expect_equal(used, capacity);
        expect_equal(std::max<std::int64_t>(0, capacity - used), capacity);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(Arithmetic, NarrowFormsLeaveOutAResourceWithoutCapacity) {
  EXPECT_EQ(least_allocated_narrow(5, 0), 0);
  EXPECT_EQ(most_allocated_narrow(5, 0), 0);
  EXPECT_EQ(balanced_narrow(5, 0, 3, 4), 100);
  EXPECT_EQ(balanced_narrow(3, 4, 5, 0), 100);
  EXPECT_EQ(balanced_narrow(0, 0, 0, 0), 100);
}

TEST(Arithmetic, BalancedColumnFormEqualsItsDefinition) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 3'000'000; ++i) {
    const std::int64_t ca = amount(random, 52);
    const std::int64_t cb = amount(random, 52);
    const std::int64_t ua =
        ca > 0 && i % 2 == 0 ? amount(random, 52) % (ca + ca / 8 + 1) : amount(random, 52);
    const std::int64_t ub =
        cb > 0 && i % 2 == 0 ? amount(random, 52) % (cb + cb / 8 + 1) : amount(random, 52);
    ASSERT_EQ(balanced_narrow(ua, ca, ub, cb), balanced_by_definition(ua, ca, ub, cb))
        << ua << '/' << ca << ' ' << ub << '/' << cb;
    if (ca > 0) {
      ASSERT_EQ(fraction(ua, ca), std::min(1.0, static_cast<double>(ua) / static_cast<double>(ca)));
    }
  }
}

TEST(Arithmetic, WeightedMeansRoundAsDefined) {
  std::mt19937_64 random(4);
  for (int i = 0; i < 1'000'000; ++i) {
    const auto weights = static_cast<std::int64_t>(random() % (i % 2 == 0 ? 20'000'000 : 20));
    const auto sum = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(weights * 100 + 1));
    const std::int64_t exact = weights == 0 ? 0 : sum / weights;
    ASSERT_EQ(weighted_mean(sum, weights), exact);
    ASSERT_EQ(weighted_mean_narrow(static_cast<std::int32_t>(sum), static_cast<std::int32_t>(weights)),
              exact);
    const std::int64_t half_up =
        weights == 0
            ? 0
            : static_cast<std::int64_t>(std::round(static_cast<double>(sum) / static_cast<double>(weights)));
    ASSERT_EQ(weighted_mean_half_up(sum, weights), half_up);
  }
}

TEST(Arithmetic, ImageLocalityStaysBetweenItsBounds) {
  constexpr std::int64_t kMiB = 1024 * 1024;
  EXPECT_EQ(image_locality(0, 0), 0);
  EXPECT_EQ(image_locality(23 * kMiB, 1), 0);
  EXPECT_EQ(image_locality(1000 * kMiB, 1), 100);
  EXPECT_EQ(image_locality(std::numeric_limits<std::int64_t>::max(), 4), 100);
  EXPECT_EQ(image_share(3 * kMiB, 1, 3), kMiB);
}

}  // namespace
}  // namespace troupe
