// Pod classes by their bytes: pods whose scheduling-relevant specs are equal share one ClassId. Labels and
// the pinned node are not part of it, so unique labels, StatefulSets and DaemonSets share classes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "actors/placement/pod_class.hpp"

namespace troupe {

using ClassId = std::uint32_t;
inline constexpr ClassId kNoClass = 0xFFFFFFFFU;

class ClassTable {
 public:
  explicit ClassTable(Interner& interner);

  /// The class with these bytes (a finished fb::PodClass; empty: a pod that asks for nothing), one reference
  /// more.
  ClassId acquire(std::span<const std::uint8_t> bytes);
  void retain(ClassId id) { ++entries_[id].references; }
  void release(ClassId id);

  /// Stays at its address until the class is freed.
  [[nodiscard]] const PodClass& get(ClassId id) const { return entries_[id].compiled; }
  [[nodiscard]] std::span<const std::uint8_t> bytes(ClassId id) const {
    const Entry& e = entries_[id];
    return {e.bytes.get(), e.size};
  }
  /// Classes in the table, those without references included.
  [[nodiscard]] std::size_t size() const { return entries_.size() - free_.size(); }
  /// Every id is below it.
  [[nodiscard]] std::size_t limit() const { return entries_.size(); }

  /// Frees classes that nothing refers to, least recently released first, until at most `keep` of them are
  /// left; they are kept a while because their pods tend to come back. Calls `freed(id)` for each.
  template <class Freed>
  void collect(std::size_t keep, Freed&& freed) {
    while (idle_count_ > keep) {
      const ClassId id = idle_first_;
      freed(id);
      free_entry(id);
    }
  }

 private:
  struct Entry {
    std::unique_ptr<std::uint8_t[]> bytes;
    std::uint32_t size = 0;
    std::uint32_t references = 0;
    ClassId idle_previous = kNoClass;  // neighbours in the list of idle classes
    ClassId idle_next = kNoClass;
    std::uint64_t hash = 0;
    PodClass compiled;
  };

  void enter_idle(ClassId id);
  void leave_idle(ClassId id);
  void free_entry(ClassId id);
  void grow();
  /// Place in index_ of the class with these bytes, or the free place where it belongs.
  [[nodiscard]] std::size_t probe(std::uint64_t hash, std::span<const std::uint8_t> bytes) const;

  Interner& interner_;
  std::vector<std::uint8_t> nothing_;  // bytes of an empty class
  std::deque<Entry> entries_;          // a class stays where it is while it lives
  std::vector<ClassId> free_;
  std::vector<ClassId> index_;  // open addressing by hash; kNoClass: free
  std::size_t used_ = 0;        // places taken in index_
  ClassId idle_first_ = kNoClass;
  ClassId idle_last_ = kNoClass;
  std::size_t idle_count_ = 0;
};

}  // namespace troupe
