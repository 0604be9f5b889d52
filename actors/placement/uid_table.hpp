// A hash table of small records by pod UID: open addressing, so that a lookup touches one cache line. Several
// records may share a UID (a pod decided again before its old node's entry has left the stream).
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "messages/uid.hpp"

namespace troupe {

/// `Record` is a small value with a member `PodUid uid` that is never zero. Pointers into the table hold
/// until the next insert or erase.
template <class Record>
class UidTable {
 public:
  /// The first record of `uid` for which `match(record)` holds, or null.
  template <class Match>
  Record* find(const PodUid& uid, Match&& match) {
    if (size_ == 0) return nullptr;
    for (std::size_t i = home(uid);; i = next(i)) {
      Record& record = slots_[i];
      if (record.uid.zero()) return nullptr;
      if (record.uid == uid && match(record)) return &record;
    }
  }
  Record* find(const PodUid& uid) {
    return find(uid, [](const Record&) { return true; });
  }

  Record& insert(Record record) {
    if ((size_ + 1) * 4 > slots_.size() * 3) grow();
    std::size_t i = home(record.uid);
    while (!slots_[i].uid.zero()) i = next(i);
    slots_[i] = std::move(record);
    ++size_;
    return slots_[i];
  }

  /// `record` is an element of this table.
  void erase(const Record* record) {
    auto hole = static_cast<std::size_t>(record - slots_.data());
    --size_;
    // Close the gap: whoever was displaced past the hole moves back, so that no search ends too early.
    for (std::size_t i = next(hole);; i = next(i)) {
      if (slots_[i].uid.zero()) break;
      const std::size_t wanted = home(slots_[i].uid);
      const std::size_t displacement = (i - wanted) & mask();
      if (displacement >= ((i - hole) & mask())) {
        slots_[hole] = std::move(slots_[i]);
        hole = i;
      }
    }
    slots_[hole] = Record{};
  }

  template <class Visit>
  void for_each(Visit&& visit) {
    for (Record& record : slots_) {
      if (!record.uid.zero()) visit(record);
    }
  }

  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  [[nodiscard]] std::size_t mask() const { return slots_.size() - 1; }
  [[nodiscard]] std::size_t next(std::size_t i) const { return (i + 1) & mask(); }
  [[nodiscard]] std::size_t home(const PodUid& uid) const {
    return static_cast<std::size_t>((PodUidHash{}(uid)*0x9E3779B97F4A7C15ULL) >> shift_);
  }

  void grow() {
    const std::size_t capacity = slots_.empty() ? 64 : slots_.size() * 2;
    std::vector<Record> old = std::move(slots_);
    slots_ = std::vector<Record>(capacity);
    shift_ = 64;
    for (std::size_t c = capacity; c > 1; c /= 2) --shift_;
    size_ = 0;
    for (Record& record : old) {
      if (!record.uid.zero()) insert(std::move(record));
    }
  }

  std::vector<Record> slots_;  // a power of two; a zero UID marks a free slot
  std::size_t size_ = 0;
  unsigned shift_ = 64;
};

}  // namespace troupe
