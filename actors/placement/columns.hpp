// The numbers of all nodes as columns, one entry per slot: what the column pass runs over. Exact amounts are
// 64-bit integers; beside them stand doubles in the form that the pass reads (AVX2 has no 64-bit integer
// multiplication, division or conversion). Columns are padded to whole blocks, so that loops need no tail.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "actors/placement/pod_class.hpp"

namespace troupe {

using Slot = std::uint32_t;
inline constexpr Slot kNoSlot = 0xFFFFFFFFU;

/// Slots that the pass handles at a time; one word of a bitmap.
inline constexpr std::uint32_t kBlock = 64;

/// A set of slots.
class SlotSet {
 public:
  void resize(std::size_t slots) { words_.resize((slots + kBlock - 1) / kBlock, 0); }
  [[nodiscard]] bool contains(Slot s) const { return ((words_[s / kBlock] >> (s % kBlock)) & 1U) != 0; }
  void set(Slot s, bool on) {
    const std::uint64_t bit = std::uint64_t{1} << (s % kBlock);
    std::uint64_t& word = words_[s / kBlock];
    word = on ? word | bit : word & ~bit;
  }
  [[nodiscard]] std::uint64_t word(std::size_t block) const { return words_[block]; }
  [[nodiscard]] std::size_t words() const { return words_.size(); }
  [[nodiscard]] std::size_t count() const;
  [[nodiscard]] bool empty() const;
  /// Calls visit(slot) in ascending order.
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (std::size_t w = 0; w < words_.size(); ++w) {
      for (std::uint64_t rest = words_[w]; rest != 0; rest &= rest - 1) {
        visit(static_cast<Slot>(w * kBlock + static_cast<unsigned>(__builtin_ctzll(rest))));
      }
    }
  }
  [[nodiscard]] std::size_t bytes() const { return words_.capacity() * sizeof(std::uint64_t); }

 private:
  std::vector<std::uint64_t> words_;
};

/// One resource over all slots. cpu in milli-CPU, memory and storage in bytes, others as counts.
struct ResourceColumn {
  std::vector<std::int64_t> allocatable;
  std::vector<std::int64_t> requested;
  std::vector<double> free;  // allocatable - requested; negative on an over-committed node
  // Only of resources that some profile scores:
  std::vector<double> capacity;      // allocatable, 1 where that is 0
  std::vector<double> per_capacity;  // 100 / allocatable, 0 where that is 0
  bool scored = false;
  bool counts_unrequested = false;  // scored for pods that do not request it, too
};

/// The pass is exact where every amount that it compares is below 2^53, and every capacity that it scores at
/// most 2^44: then (capacity - used) * (100 / capacity), with the roundings of both factors, is less than
/// half the distance between a quotient and the next integer off the truth (column_pass.cpp).
inline constexpr std::int64_t kExactCompare = std::int64_t{1} << 53U;
inline constexpr std::int64_t kExactScore = std::int64_t{1} << 44U;

/// What one pod may add to an account, so that no sum of them leaves 64 bits. No node has so much.
inline constexpr std::int64_t kMostAccounted = std::int64_t{1} << 52U;

class Columns {
 public:
  Columns();

  /// Makes room for slots below `slots`; never shrinks.
  void resize(std::size_t slots);
  [[nodiscard]] std::size_t slots() const { return slots_; }
  [[nodiscard]] std::size_t blocks() const { return padded_ / kBlock; }

  /// Some profile scores this resource: its capacity columns are kept. `unrequested`: for pods that do not
  /// request it, too, so that a node without any of it is scored otherwise than the rest (it is `wide`).
  void score(ResourceId resource, bool unrequested);

  void set_allocatable(Slot slot, ResourceId resource, std::int64_t amount);
  void set_allowed_pods(Slot slot, std::int64_t pods);
  /// The pod's requests, non-zero amounts and its place in the pod count, `sign` times (1 or -1).
  void account(Slot slot, const PodClass& cls, int sign);
  /// Nothing allocatable, nothing requested.
  void clear(Slot slot);

  [[nodiscard]] std::int64_t allocatable(Slot slot, ResourceId resource) const {
    return resource < resources_.size() ? resources_[resource].allocatable[slot] : 0;
  }
  [[nodiscard]] std::int64_t requested(Slot slot, ResourceId resource) const {
    return resource < resources_.size() ? resources_[resource].requested[slot] : 0;
  }
  [[nodiscard]] std::int64_t non_zero_cpu(Slot slot) const { return non_zero_[kCpu][slot]; }
  [[nodiscard]] std::int64_t non_zero_memory(Slot slot) const { return non_zero_[kMemory][slot]; }
  [[nodiscard]] std::int64_t pod_count(Slot slot) const { return pod_count_[slot]; }
  [[nodiscard]] std::int64_t allowed_pods(Slot slot) const { return allowed_pods_[slot]; }

  // For the pass. A resource that no node has and no pod requests may have no column.
  [[nodiscard]] const ResourceColumn* resource(ResourceId id) const {
    return id < resources_.size() ? &resources_[id] : nullptr;
  }
  [[nodiscard]] std::size_t resources() const { return resources_.size(); }
  /// Allocatable less the non-zero requests; cpu and memory.
  [[nodiscard]] const std::vector<double>& non_zero_free(ResourceId id) const { return non_zero_free_[id]; }
  /// Fewer pods than allowed.
  [[nodiscard]] const SlotSet& room() const { return room_; }
  /// Amounts beyond what the pass computes exactly, or none of a resource that counts for every pod:
  /// evaluated one by one.
  [[nodiscard]] const SlotSet& wide() const { return wide_; }

 private:
  void pad();
  ResourceColumn& column(ResourceId resource);
  void refresh(Slot slot, ResourceId resource);
  void refresh_room(Slot slot);
  void refresh_wide(Slot slot);
  [[nodiscard]] bool is_wide(Slot slot, ResourceId resource) const;

  std::size_t slots_ = 0;
  std::size_t padded_ = 0;
  std::vector<ResourceColumn> resources_;  // by ResourceId
  std::array<std::vector<std::int64_t>, 2> non_zero_;
  std::array<std::vector<double>, 2> non_zero_free_;
  std::vector<std::int64_t> pod_count_;
  std::vector<std::int64_t> allowed_pods_;
  SlotSet room_;
  SlotSet wide_;
};

}  // namespace troupe
