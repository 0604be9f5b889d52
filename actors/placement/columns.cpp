#include "actors/placement/columns.hpp"

#include <algorithm>
#include <bit>

namespace troupe {

std::size_t SlotSet::count() const {
  std::size_t n = 0;
  for (const std::uint64_t w : words_) n += static_cast<std::size_t>(std::popcount(w));
  return n;
}

bool SlotSet::empty() const {
  return std::all_of(words_.begin(), words_.end(), [](std::uint64_t w) { return w == 0; });
}

Columns::Columns() {
  score(kCpu, true);
  score(kMemory, true);
}

void Columns::resize(std::size_t slots) {
  if (slots <= slots_) return;
  const auto first_added = static_cast<Slot>(slots_);
  slots_ = slots;
  pad();
  for (Slot s = first_added; s < slots_; ++s) refresh_wide(s);
}

void Columns::pad() {
  const std::size_t padded = (slots_ + kBlock - 1) / kBlock * kBlock;
  if (padded == padded_) return;
  padded_ = padded;
  for (ResourceColumn& c : resources_) {
    c.allocatable.resize(padded, 0);
    c.requested.resize(padded, 0);
    c.free.resize(padded, 0.0);
    if (!c.scored) continue;
    c.capacity.resize(padded, 1.0);
    c.per_capacity.resize(padded, 0.0);
  }
  for (auto& c : non_zero_) c.resize(padded, 0);
  for (auto& c : non_zero_free_) c.resize(padded, 0.0);
  pod_count_.resize(padded, 0);
  allowed_pods_.resize(padded, 0);
  room_.resize(padded);
  wide_.resize(padded);
}

ResourceColumn& Columns::column(ResourceId resource) {
  while (resources_.size() <= resource) {
    ResourceColumn& c = resources_.emplace_back();
    c.allocatable.resize(padded_, 0);
    c.requested.resize(padded_, 0);
    c.free.resize(padded_, 0.0);
  }
  return resources_[resource];
}

void Columns::score(ResourceId resource, bool unrequested) {
  ResourceColumn& c = column(resource);
  if (c.scored && c.counts_unrequested >= unrequested) return;
  c.scored = true;
  c.counts_unrequested = c.counts_unrequested || unrequested;
  c.capacity.resize(padded_, 1.0);
  c.per_capacity.resize(padded_, 0.0);
  for (Slot s = 0; s < slots_; ++s) refresh(s, resource);
}

void Columns::refresh(Slot slot, ResourceId resource) {
  ResourceColumn& c = resources_[resource];
  const std::int64_t allocatable = c.allocatable[slot];
  c.free[slot] = static_cast<double>(allocatable - c.requested[slot]);
  if (c.scored) {
    c.capacity[slot] = static_cast<double>(std::max<std::int64_t>(allocatable, 1));
    c.per_capacity[slot] = allocatable > 0 ? 100.0 / static_cast<double>(allocatable) : 0.0;
  }
  if (resource <= kMemory)
    non_zero_free_[resource][slot] = static_cast<double>(allocatable - non_zero_[resource][slot]);
  if (wide_.contains(slot) || is_wide(slot, resource)) refresh_wide(slot);
}

bool Columns::is_wide(Slot slot, ResourceId resource) const {
  const ResourceColumn& c = resources_[resource];
  const std::int64_t allocatable = c.allocatable[slot];
  if (allocatable >= kExactCompare || c.requested[slot] >= kExactCompare) return true;
  if (c.scored && allocatable > kExactScore) return true;
  if (c.counts_unrequested && allocatable == 0) return true;
  return resource <= kMemory && non_zero_[resource][slot] >= kExactCompare;
}

void Columns::refresh_wide(Slot slot) {
  bool wide = false;
  for (ResourceId r = 0; r < resources_.size() && !wide; ++r) wide = is_wide(slot, r);
  wide_.set(slot, wide);
}

void Columns::refresh_room(Slot slot) {
  room_.set(slot, pod_count_[slot] < allowed_pods_[slot]);
}

void Columns::set_allocatable(Slot slot, ResourceId resource, std::int64_t amount) {
  column(resource).allocatable[slot] = std::max<std::int64_t>(amount, 0);
  refresh(slot, resource);
}

void Columns::set_allowed_pods(Slot slot, std::int64_t pods) {
  allowed_pods_[slot] = pods;
  refresh_room(slot);
}

void Columns::account(Slot slot, const PodClass& cls, int sign) {
  const auto add = [sign](std::int64_t& sum, std::int64_t amount) {
    sum += sign * std::min(amount, kMostAccounted);
  };
  add(non_zero_[kCpu][slot], cls.non_zero_cpu);
  add(non_zero_[kMemory][slot], cls.non_zero_memory);
  for (const ResourceRequest& r : cls.requests) {
    ResourceColumn& c = column(r.resource);
    add(c.requested[slot], r.amount);
    const double free = static_cast<double>(c.allocatable[slot] - c.requested[slot]);
    c.free[slot] = free;
    if (r.resource > kMemory && c.requested[slot] >= kExactCompare) refresh_wide(slot);
  }
  bool refresh = wide_.contains(slot);
  for (const ResourceId r : {kCpu, kMemory}) {
    const ResourceColumn& c = resources_[r];
    non_zero_free_[r][slot] = static_cast<double>(c.allocatable[slot] - non_zero_[r][slot]);
    refresh = refresh || c.requested[slot] >= kExactCompare || non_zero_[r][slot] >= kExactCompare;
  }
  if (refresh) refresh_wide(slot);
  pod_count_[slot] += sign;
  refresh_room(slot);
}

void Columns::clear(Slot slot) {
  for (ResourceId r = 0; r < resources_.size(); ++r) {
    resources_[r].allocatable[slot] = 0;
    resources_[r].requested[slot] = 0;
    if (r <= kMemory) non_zero_[r][slot] = 0;
    refresh(slot, r);
  }
  pod_count_[slot] = 0;
  set_allowed_pods(slot, 0);
}

}  // namespace troupe
