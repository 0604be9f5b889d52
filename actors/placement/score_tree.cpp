#include "actors/placement/score_tree.hpp"

#include <algorithm>

namespace troupe {

void ScoreTree::reset(std::size_t blocks, std::size_t buckets) {
  blocks_ = blocks;
  buckets_ = buckets;
  feasible_ = 0;
  leaves_.assign(blocks * kBlock, kInfeasible);
  max_.assign(blocks * buckets, kInfeasible);
  count_.assign(blocks * buckets, 0);
}

void ScoreTree::add_bucket() {
  ++buckets_;
  max_.resize(blocks_ * buckets_, kInfeasible);
  count_.resize(blocks_ * buckets_, 0);
}

void ScoreTree::summarise(std::size_t block, std::size_t bucket, std::span<const BucketId> bucket_of) {
  const std::int32_t* leaf = leaves_.data() + block * kBlock;
  std::int32_t highest = kInfeasible;
  std::int32_t count = 0;
  if (bucket_of.empty()) {
    for (std::uint32_t i = 0; i < kBlock; ++i) highest = std::max(highest, leaf[i]);
    for (std::uint32_t i = 0; i < kBlock; ++i) count += leaf[i] == highest ? 1 : 0;
  } else {
    const BucketId* of = bucket_of.data() + block * kBlock;
    std::int32_t own[kBlock];
    for (std::uint32_t i = 0; i < kBlock; ++i) own[i] = of[i] == bucket ? leaf[i] : kInfeasible;
    for (std::uint32_t i = 0; i < kBlock; ++i) highest = std::max(highest, own[i]);
    for (std::uint32_t i = 0; i < kBlock; ++i) count += own[i] == highest ? 1 : 0;
  }
  const std::size_t place = bucket * blocks_ + block;
  max_[place] = highest;
  count_[place] = highest == kInfeasible ? 0 : count;
}

void ScoreTree::rebuild(std::span<const BucketId> bucket_of) {
  std::int32_t feasible = 0;
  for (const std::int32_t leaf : leaves_) feasible += leaf != kInfeasible ? 1 : 0;
  feasible_ = static_cast<std::uint32_t>(feasible);
  for (std::size_t bucket = 0; bucket < buckets_; ++bucket) {
    for (std::size_t block = 0; block < blocks_; ++block) summarise(block, bucket, bucket_of);
  }
}

void ScoreTree::set(Slot slot, std::int32_t value, std::span<const BucketId> bucket_of) {
  std::int32_t& leaf = leaves_[slot];
  const std::int32_t old = leaf;
  if (old == value) return;
  leaf = value;
  feasible_ += (value != kInfeasible ? 1U : 0U) - (old != kInfeasible ? 1U : 0U);
  const std::size_t block = slot / kBlock;
  const std::size_t bucket = bucket_of.empty() ? 0 : bucket_of[slot];
  std::int32_t& highest = max_[bucket * blocks_ + block];
  std::int32_t& count = count_[bucket * blocks_ + block];
  if (value > highest) {
    highest = value;
    count = 1;
  } else if (value == highest) {
    ++count;  // and old was below it
  } else if (old == highest) {
    if (--count == 0) summarise(block, bucket, bucket_of);
  }
}

ScoreTree::Best ScoreTree::best(std::size_t bucket) const {
  const std::int32_t* highest = max_.data() + bucket * blocks_;
  const std::int32_t* count = count_.data() + bucket * blocks_;
  std::int32_t best = kInfeasible;
  for (std::size_t i = 0; i < blocks_; ++i) best = std::max(best, highest[i]);
  if (best == kInfeasible) return {};
  std::int32_t ties = 0;
  for (std::size_t i = 0; i < blocks_; ++i) ties += highest[i] == best ? count[i] : 0;
  return {best, static_cast<std::uint32_t>(ties)};
}

Slot ScoreTree::pick(std::size_t bucket, std::int32_t best, std::uint32_t k,
                     std::span<const BucketId> bucket_of) const {
  for (std::size_t block = 0; block < blocks_; ++block) {
    const std::size_t place = bucket * blocks_ + block;
    if (max_[place] != best) continue;
    const auto count = static_cast<std::uint32_t>(count_[place]);
    if (k >= count) {
      k -= count;
      continue;
    }
    std::uint64_t at_best = 0;
    for (std::uint32_t i = 0; i < kBlock; ++i) {
      const std::size_t slot = block * kBlock + i;
      const bool own = bucket_of.empty() || bucket_of[slot] == bucket;
      at_best |= std::uint64_t{own && leaves_[slot] == best ? 1U : 0U} << i;
    }
    for (; k > 0; --k) at_best &= at_best - 1;
    return static_cast<Slot>(block * kBlock + static_cast<unsigned>(__builtin_ctzll(at_best)));
  }
  return kNoSlot;
}

}  // namespace troupe
