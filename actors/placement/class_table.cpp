#include "actors/placement/class_table.hpp"

#include <xxhash.h>

#include <algorithm>
#include <cstring>

namespace troupe {

ClassTable::ClassTable(Interner& interner) : interner_(interner), index_(64, kNoClass) {
  flatbuffers::FlatBufferBuilder b(64);
  b.Finish(fb::PodClassBuilder(b).Finish());
  nothing_.assign(b.GetBufferPointer(), b.GetBufferPointer() + b.GetSize());
}

std::size_t ClassTable::probe(std::uint64_t hash, std::span<const std::uint8_t> bytes) const {
  const std::size_t mask = index_.size() - 1;
  for (std::size_t i = hash & mask;; i = (i + 1) & mask) {
    const ClassId id = index_[i];
    if (id == kNoClass) return i;
    const Entry& e = entries_[id];
    if (e.hash == hash && e.size == bytes.size() && std::memcmp(e.bytes.get(), bytes.data(), e.size) == 0)
      return i;
  }
}

ClassId ClassTable::acquire(std::span<const std::uint8_t> bytes) {
  if (bytes.empty()) bytes = nothing_;
  const std::uint64_t hash = XXH3_64bits(bytes.data(), bytes.size());
  std::size_t place = probe(hash, bytes);
  if (index_[place] != kNoClass) {
    const ClassId id = index_[place];
    if (entries_[id].references++ == 0) leave_idle(id);
    return id;
  }
  if ((used_ + 1) * 2 > index_.size()) {
    grow();
    place = probe(hash, bytes);
  }
  ClassId id = 0;
  if (free_.empty()) {
    id = static_cast<ClassId>(entries_.size());
    entries_.emplace_back();
  } else {
    id = free_.back();
    free_.pop_back();
  }
  Entry& e = entries_[id];
  e.bytes = std::make_unique_for_overwrite<std::uint8_t[]>(bytes.size());
  std::memcpy(e.bytes.get(), bytes.data(), bytes.size());
  e.size = static_cast<std::uint32_t>(bytes.size());
  e.references = 1;
  e.hash = hash;
  e.compiled = compile(*flatbuffers::GetRoot<fb::PodClass>(e.bytes.get()), interner_);
  index_[place] = id;
  ++used_;
  return id;
}

void ClassTable::release(ClassId id) {
  if (--entries_[id].references == 0) enter_idle(id);
}

void ClassTable::enter_idle(ClassId id) {
  Entry& e = entries_[id];
  e.idle_previous = idle_last_;
  e.idle_next = kNoClass;
  (idle_last_ == kNoClass ? idle_first_ : entries_[idle_last_].idle_next) = id;
  idle_last_ = id;
  ++idle_count_;
}

void ClassTable::leave_idle(ClassId id) {
  const Entry& e = entries_[id];
  (e.idle_previous == kNoClass ? idle_first_ : entries_[e.idle_previous].idle_next) = e.idle_next;
  (e.idle_next == kNoClass ? idle_last_ : entries_[e.idle_next].idle_previous) = e.idle_previous;
  --idle_count_;
}

void ClassTable::free_entry(ClassId id) {
  leave_idle(id);
  Entry& e = entries_[id];
  const std::size_t mask = index_.size() - 1;
  std::size_t hole = probe(e.hash, {e.bytes.get(), e.size});
  // Close the gap, as linear probing needs it.
  for (std::size_t i = (hole + 1) & mask; index_[i] != kNoClass; i = (i + 1) & mask) {
    const std::size_t wanted = entries_[index_[i]].hash & mask;
    if (((i - wanted) & mask) >= ((i - hole) & mask)) {
      index_[hole] = index_[i];
      hole = i;
    }
  }
  index_[hole] = kNoClass;
  --used_;
  e = Entry{};
  free_.push_back(id);
}

void ClassTable::grow() {
  std::vector<ClassId> old(index_.size() * 2, kNoClass);
  old.swap(index_);
  const std::size_t mask = index_.size() - 1;
  for (const ClassId id : old) {
    if (id == kNoClass) continue;
    std::size_t i = entries_[id].hash & mask;
    while (index_[i] != kNoClass) i = (i + 1) & mask;
    index_[i] = id;
  }
}

}  // namespace troupe
