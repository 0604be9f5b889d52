// The scores of one class on all nodes, kept so that the best node and the number of its equals are found
// without looking at every node: leaves by slot, and per block of 64 slots and bucket the highest leaf and
// how often it occurs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "actors/placement/columns.hpp"

namespace troupe {

using BucketId = std::uint32_t;
inline constexpr std::int32_t kInfeasible = -1;

class ScoreTree {
 public:
  /// Forgets everything; every leaf is kInfeasible.
  void reset(std::size_t blocks, std::size_t buckets);
  /// One bucket more, empty.
  void add_bucket();
  [[nodiscard]] std::size_t blocks() const { return blocks_; }
  [[nodiscard]] std::size_t buckets() const { return buckets_; }

  /// Leaves by slot, for a full pass to write; rebuild() afterwards. `bucket_of` by slot; empty: all in 0.
  [[nodiscard]] std::span<std::int32_t> leaves() { return leaves_; }
  void rebuild(std::span<const BucketId> bucket_of);

  [[nodiscard]] std::int32_t leaf(Slot slot) const { return leaves_[slot]; }
  /// Changes one leaf; `bucket_of` as it is for this slot before and after.
  void set(Slot slot, std::int32_t value, std::span<const BucketId> bucket_of);

  /// Leaves that are not kInfeasible.
  [[nodiscard]] std::uint32_t feasible() const { return feasible_; }

  struct Best {
    std::int32_t leaf = kInfeasible;
    std::uint32_t count = 0;
  };
  [[nodiscard]] Best best(std::size_t bucket) const;
  /// The k-th slot (from 0, ascending) of the bucket whose leaf is the bucket's best.
  [[nodiscard]] Slot pick(std::size_t bucket, std::int32_t best, std::uint32_t k,
                          std::span<const BucketId> bucket_of) const;

  [[nodiscard]] std::size_t bytes() const {
    return (leaves_.capacity() + max_.capacity() + count_.capacity()) * sizeof(std::int32_t);
  }

 private:
  void summarise(std::size_t block, std::size_t bucket, std::span<const BucketId> bucket_of);

  std::size_t blocks_ = 0;
  std::size_t buckets_ = 0;
  std::uint32_t feasible_ = 0;
  std::vector<std::int32_t> leaves_;
  std::vector<std::int32_t> max_;    // [bucket][block]
  std::vector<std::int32_t> count_;  // how many leaves of the block and bucket are at max_; 0 where none fits
};

}  // namespace troupe
