#include "actors/placement/queue.hpp"

#include <algorithm>
#include <limits>

namespace troupe {
namespace {

constexpr double kNeverAsk = std::numeric_limits<double>::infinity();

void count_up(std::uint16_t& n) {
  if (n != std::numeric_limits<std::uint16_t>::max()) ++n;
}

std::uint32_t failures(const PendingPod& pod) {
  return pod.errors > 0 ? pod.errors : pod.refused;
}

}  // namespace

bool SchedulingQueue::ByPriority::operator()(const Item& a, const Item& b) const {
  const PrioritySort::Key ka{a.priority, a.timestamp};
  const PrioritySort::Key kb{b.priority, b.timestamp};
  if (PrioritySort::before(ka, kb)) return true;
  return !PrioritySort::before(kb, ka) && a.sequence < b.sequence;
}

bool SchedulingQueue::ByExpiry::operator()(const Item& a, const Item& b) const {
  return a.expiry != b.expiry ? a.expiry < b.expiry : ByPriority{}(a, b);
}

std::size_t SchedulingQueue::GroupKeyHash::operator()(const GroupKey& k) const noexcept {
  std::uint64_t h = (std::uint64_t{k.cls} << 32U | k.pinned_node) * 0x9E3779B97F4A7C15ULL;
  k.rejectors.for_each([&h](PluginId p) { h ^= std::uint64_t{1} << (static_cast<unsigned>(p) + 16U); });
  return (h ^ k.profile) * 0xBF58476D1CE4E5B9ULL >> 7U;
}

PodIndex SchedulingQueue::create(const PodUid& uid, Millis now) {
  PodIndex i = 0;
  if (free_pods_.empty()) {
    i = static_cast<PodIndex>(pods_.size());
    pods_.emplace_back();
  } else {
    i = free_pods_.back();
    free_pods_.pop_back();
  }
  PendingPod& p = pods_[i];
  p.uid = uid;
  refresh_timestamp(p, now);
  by_uid_.insert({uid, i});
  ++counts_[static_cast<std::size_t>(Place::nowhere)];
  return i;
}

void SchedulingQueue::erase(PodIndex pod) {
  const bool was_deciding = pods_[pod].place == Place::deciding;
  leave(pod);
  --counts_[static_cast<std::size_t>(Place::nowhere)];
  by_uid_.erase(by_uid_.find(pods_[pod].uid));
  const std::uint32_t stamp = pods_[pod].stamp;
  pods_[pod] = PendingPod{};
  pods_[pod].stamp = stamp;  // items of the former pod stay stale
  free_pods_.push_back(pod);
  if (was_deciding) attempt_over();
}

void SchedulingQueue::leave(PodIndex pod) {
  PendingPod& p = pods_[pod];
  if (p.place == Place::parked) unpark(pod);
  --counts_[static_cast<std::size_t>(p.place)];
  p.place = Place::nowhere;
  ++counts_[static_cast<std::size_t>(Place::nowhere)];
  ++p.stamp;
}

void SchedulingQueue::enter(PodIndex pod, Place place, PluginSet rejectors) {
  PendingPod& p = pods_[pod];
  --counts_[static_cast<std::size_t>(p.place)];
  p.place = place;
  ++counts_[static_cast<std::size_t>(place)];
  const auto is_live = [this](const Item& item) { return live(item); };
  Item item{0, p.timestamp, p.sequence, p.priority, pod, p.stamp};
  switch (place) {
    case Place::active:
      active_.tidy(count(place), is_live);
      active_.push(item);
      break;
    case Place::backoff:
    case Place::error_backoff: {
      item.expiry = backoff_expiry(options_.backoff, p.timestamp, failures(p));
      auto& heap = place == Place::backoff ? backoff_ : error_backoff_;
      heap.tidy(count(place), is_live);
      heap.push(item);
      break;
    }
    case Place::parked:
      park(pod, rejectors);
      break;
    default:
      break;
  }
}

void SchedulingQueue::refresh_timestamp(PendingPod& pod, Millis now) {
  pod.timestamp = now;
  pod.sequence = next_sequence_++;
}

void SchedulingQueue::enqueue(PodIndex pod, bool gated, Millis now) {
  leave(pod);
  PendingPod& p = pods_[pod];
  if (!gated && p.first_active == 0) p.first_active = now;
  enter(pod, gated ? Place::gated : Place::active);
}

void SchedulingQueue::withhold(PodIndex pod) {
  const bool was_deciding = pods_[pod].place == Place::deciding;
  leave(pod);
  if (was_deciding) attempt_over();
}

PodIndex SchedulingQueue::pop(Millis /*now*/) {
  const auto is_live = [this](const Item& item) { return live(item); };
  const Item* item = active_.front(is_live);
  auto take = [&](auto& heap) {
    const PodIndex pod = item->pod;
    heap.pop();
    leave(pod);
    enter(pod, Place::deciding);
    PendingPod& p = pods_[pod];
    count_up(p.attempts);
    p.popped_at = past_begin_ + past_.size();
    return pod;
  };
  if (item != nullptr) return take(active_);
  item = backoff_.front(is_live);
  return item == nullptr ? kNoPod : take(backoff_);
}

void SchedulingQueue::attempt_over() {
  if (count(Place::deciding) != 0) return;
  past_begin_ += past_.size();
  past_.clear();
}

void SchedulingQueue::committed(PodIndex pod, std::uint32_t flight) {
  leave(pod);
  pods_[pod].flight = flight;
  enter(pod, Place::in_flight);
  attempt_over();
}

void SchedulingQueue::unschedulable(PodIndex pod, PluginSet rejectors, PluginSet pending, Millis now) {
  PendingPod& p = pods_[pod];
  if (rejectors.empty() && pending.empty()) {
    error(pod, now);
    return;
  }
  const AfterAttempt after = after_attempt(true, helped_since(p, rejectors), helped_since(p, pending));
  leave(pod);
  count_up(p.refused);
  p.errors = 0;
  p.conflicts = 0;
  refresh_timestamp(p, now);
  switch (after) {
    case AfterAttempt::active:
      enter(pod, Place::active);
      break;
    case AfterAttempt::backoff:
      to_backoff_or_active(pod, now);
      break;
    case AfterAttempt::unschedulable:
      rejectors |= pending;
      enter(pod, Place::parked, rejectors);
      break;
  }
  attempt_over();
}

void SchedulingQueue::error(PodIndex pod, Millis now) {
  leave(pod);
  PendingPod& p = pods_[pod];
  count_up(p.errors);
  p.conflicts = 0;
  refresh_timestamp(p, now);
  enter(pod, Place::error_backoff);
  attempt_over();
}

void SchedulingQueue::conflict(PodIndex pod) {
  PendingPod& p = pods_[pod];
  if (p.attempts > 0) --p.attempts;
  if (p.conflicts != std::numeric_limits<std::uint8_t>::max()) ++p.conflicts;
}

void SchedulingQueue::activate(PodIndex pod) {
  leave(pod);
  enter(pod, Place::active);
}

bool SchedulingQueue::still_backs_off(const PendingPod& pod, Millis now) const {
  return is_backing_off(options_.backoff, pod.timestamp, failures(pod), now);
}

void SchedulingQueue::to_backoff_or_active(PodIndex pod, Millis now) {
  enter(pod, still_backs_off(pods_[pod], now) ? Place::backoff : Place::active);
}

void SchedulingQueue::park(PodIndex pod, PluginSet rejectors) {
  PendingPod& p = pods_[pod];
  const GroupKey key{p.cls, p.profile, p.pinned_node, rejectors};
  const auto [it, created] = group_of_.try_emplace(key, 0);
  if (created) {
    GroupIndex g = 0;
    if (free_groups_.empty()) {
      g = static_cast<GroupIndex>(groups_.size());
      groups_.emplace_back();
      group_cpu_.push_back(kNeverAsk);
      group_memory_.push_back(kNeverAsk);
    } else {
      g = free_groups_.back();
      free_groups_.pop_back();
    }
    groups_[g] = group_for(p, rejectors);
    it->second = g;
    if (p.pinned_node != kNoString) {
      pinned_groups_[p.pinned_node].push_back(g);
    } else if (registered(rejectors).contains(Event::assigned_pod_delete)) {
      const PodClass& cls = classes_.get(p.cls);
      group_cpu_[g] = static_cast<double>(cls.request(kCpu));
      group_memory_[g] = static_cast<double>(cls.request(kMemory));
    }
  }
  ParkedGroup& group = groups_[it->second];
  p.group = it->second;
  p.previous = group.last;
  p.next = kNoPod;
  (group.last == kNoPod ? group.first : pods_[group.last].next) = pod;
  group.last = pod;
  ++group.size;
}

void SchedulingQueue::unpark(PodIndex pod) {
  PendingPod& p = pods_[pod];
  ParkedGroup& group = groups_[p.group];
  (p.previous == kNoPod ? group.first : pods_[p.previous].next) = p.next;
  (p.next == kNoPod ? group.last : pods_[p.next].previous) = p.previous;
  if (--group.size != 0) return;
  if (group.pinned_node != kNoString) {
    const auto pinned = pinned_groups_.find(group.pinned_node);
    std::erase(pinned->second, p.group);
    if (pinned->second.empty()) pinned_groups_.erase(pinned);
  }
  group_of_.erase({group.cls, group.profile, group.pinned_node, group.rejectors});
  group_cpu_[p.group] = kNeverAsk;
  group_memory_[p.group] = kNeverAsk;
  group = {};
  free_groups_.push_back(p.group);
}

void SchedulingQueue::wake_group(GroupIndex g, Millis now) {
  // The last pod takes the group with it.
  for (std::uint32_t n = groups_[g].size; n > 0; --n) {
    const PodIndex pod = groups_[g].first;
    leave(pod);
    to_backoff_or_active(pod, now);
  }
}

void SchedulingQueue::wake(PodIndex pod, Millis now) {
  if (pods_[pod].place != Place::parked) return;
  leave(pod);
  to_backoff_or_active(pod, now);
}

void SchedulingQueue::remember(const ClusterEvent& event) {
  if (count(Place::deciding) != 0) past_.push_back({event.what, event.slot, event.node});
}

bool SchedulingQueue::helped_since(const PendingPod& pod, PluginSet plugins) const {
  if (plugins.empty()) return false;
  const ParkedGroup group = group_for(pod, plugins);
  const EventSet wanted = registered(plugins);
  for (std::size_t i = pod.popped_at - past_begin_; i < past_.size(); ++i) {
    const PastEvent& past = past_[i];
    if (!wanted.intersects(past.what)) continue;
    if (pod.pinned_node != kNoString && pod.pinned_node != past.node) continue;
    if (hints_.helps(group, {past.what, past.slot, past.node, nullptr})) return true;
  }
  return false;
}

void SchedulingQueue::event(const ClusterEvent& event, Millis now) {
  remember(event);
  if (!any_parked()) return;
  helped_.clear();
  for (GroupIndex g = 0; g < groups_.size(); ++g) {
    const ParkedGroup& group = groups_[g];
    if (group.size == 0 || !registered(group.rejectors).intersects(event.what)) continue;
    if (group.pinned_node != kNoString && group.pinned_node != event.node) continue;
    if (hints_.helps(group, event)) helped_.push_back(g);
  }
  for (const GroupIndex g : helped_) wake_group(g, now);
}

void SchedulingQueue::freed(const ClusterEvent& event, double free_cpu, double free_memory, Millis now) {
  remember(event);
  if (!any_parked()) return;
  helped_.clear();
  const std::size_t n = groups_.size();
  for (std::size_t begin = 0; begin < n; begin += 64) {
    const std::size_t end = std::min(begin + 64, n);
    std::int64_t may = 0;
    for (std::size_t g = begin; g < end; ++g) {
      may += group_cpu_[g] <= free_cpu && group_memory_[g] <= free_memory ? 1 : 0;
    }
    if (may == 0) continue;
    for (std::size_t g = begin; g < end; ++g) {
      // A pod that requests none of a resource fits a node that has less than none of it left.
      if (!(group_cpu_[g] <= free_cpu) || !(group_memory_[g] <= free_memory)) continue;
      if (hints_.helps(groups_[g], event)) helped_.push_back(static_cast<GroupIndex>(g));
    }
  }
  if (const auto pinned = pinned_groups_.find(event.node); pinned != pinned_groups_.end()) {
    for (const GroupIndex g : pinned->second) {
      if (registered(groups_[g].rejectors).intersects(event.what) && hints_.helps(groups_[g], event))
        helped_.push_back(g);
    }
  }
  for (const GroupIndex g : helped_) wake_group(g, now);
}

void SchedulingQueue::flush_backoff(Millis now) {
  const auto is_live = [this](const Item& item) { return live(item); };
  const auto flush = [&](auto& heap) {
    while (const Item* item = heap.front(is_live)) {
      const PodIndex pod = item->pod;
      if (still_backs_off(pods_[pod], now)) break;
      heap.pop();
      leave(pod);
      enter(pod, Place::active);
    }
  };
  flush(backoff_);
  flush(error_backoff_);
}

void SchedulingQueue::flush_parked(Millis now) {
  if (!any_parked()) return;
  std::vector<PodIndex> stale;
  for (const ParkedGroup& group : groups_) {
    for (PodIndex pod = group.first; pod != kNoPod; pod = pods_[pod].next) {
      if (now - pods_[pod].timestamp > options_.max_parked_ms) stale.push_back(pod);
    }
  }
  for (const PodIndex pod : stale) wake(pod, now);
}

}  // namespace troupe
