// Which pod is next (spec 5.3). Every pod without a node and of a scheduler of ours has one record here, from
// when it is first seen until it is bound or gone; it is in one place at a time. Parked pods are grouped by
// class and by who refused them, so that an event is asked about once per group and wakes exactly the pods
// that it can help.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "actors/placement/backoff.hpp"
#include "actors/placement/class_table.hpp"
#include "actors/placement/columns.hpp"
#include "actors/placement/hints.hpp"
#include "actors/placement/lazy_heap.hpp"
#include "actors/placement/uid_table.hpp"
#include "messages/message.hpp"

namespace troupe {

using PodIndex = std::uint32_t;
inline constexpr PodIndex kNoPod = 0xFFFFFFFFU;
using GroupIndex = std::uint32_t;

struct NodeBefore;

enum class Place : std::uint8_t {
  nowhere,        // known, not to be decided (being deleted, or held by someone else's commit)
  gated,          // has scheduling gates
  active,         // may be decided
  backoff,        // refused lately
  error_backoff,  // failed lately
  parked,         // unschedulable, until an event helps
  deciding,       // popped, its attempt not over
  in_flight,      // committed: the in-flight table has it
};
inline constexpr std::size_t kPlaces = 8;

/// A pod that waits for a node.
struct PendingPod {
  PodUid uid;
  Message pod;  // fb::Pod as last seen; its bytes are shared with the mirror
  ClassId cls = kNoClass;
  StringId pinned_node = kNoString;
  std::int32_t priority = 0;
  std::uint16_t profile = 0;
  Place place = Place::nowhere;
  std::uint8_t conflicts = 0;  // commits refused in a row
  std::uint16_t attempts = 0;
  std::uint16_t refused = 0;  // attempts that no node passed
  std::uint16_t errors = 0;   // attempts in a row that ended in an error
  std::uint32_t stamp = 0;    // tells live heap items from stale ones
  GroupIndex group = 0;       // parked: and its neighbours there
  PodIndex previous = kNoPod;
  PodIndex next = kNoPod;
  std::uint32_t flight = 0;                    // in_flight: in the in-flight table
  Millis timestamp = 0;                        // when it entered, or its last attempt ended
  Millis first_active = 0;                     // when it first entered the active queue; 0: not yet
  std::uint64_t sequence = 0;                  // breaks ties of timestamps in order of arrival
  std::uint64_t popped_at = 0;                 // deciding: position in the events
  std::uint64_t reported = 0;                  // hash of the condition that was reported last
  std::shared_ptr<const std::string> message;  // why the last attempt failed; shared by equal pods

  [[nodiscard]] const fb::Pod& wire() const { return pod.as<fb::Pod>(); }
};

/// Parked pods that an event helps all or none.
struct ParkedGroup {
  ClassId cls = kNoClass;
  std::uint16_t profile = 0;
  StringId pinned_node = kNoString;
  PluginSet rejectors;
  PodIndex first = kNoPod;
  PodIndex last = kNoPod;
  std::uint32_t size = 0;
};

/// Something happened to a node, or on it.
struct ClusterEvent {
  EventSet what;
  Slot slot = kNoSlot;
  StringId node = kNoString;
  const NodeBefore* before = nullptr;  // of a node that changed; null: it is new, or not known
};

/// Answers whether an event helps a group; asked only about events that one of its rejectors registered for.
class HintSource {
 public:
  virtual ~HintSource() = default;
  virtual bool helps(const ParkedGroup& group, const ClusterEvent& event) = 0;
};

struct QueueOptions {
  BackoffOptions backoff;
  Millis max_parked_ms = 300'000;  // parked longer: tried again without an event
};

class SchedulingQueue {
 public:
  SchedulingQueue(QueueOptions options, const ClassTable& classes, HintSource& hints)
      : options_(options), classes_(classes), hints_(hints) {}

  [[nodiscard]] PodIndex find(const PodUid& uid) {
    const Ref* ref = by_uid_.find(uid);
    return ref == nullptr ? kNoPod : ref->pod;
  }
  [[nodiscard]] PendingPod& operator[](PodIndex i) { return pods_[i]; }
  [[nodiscard]] const PendingPod& operator[](PodIndex i) const { return pods_[i]; }

  /// A record for a pod that has none; it is nowhere yet.
  PodIndex create(const PodUid& uid, Millis now);
  /// The pod is bound or gone, or not ours any more.
  void erase(PodIndex pod);

  /// From nowhere or gated: to active, or gated if the pod has gates.
  void enqueue(PodIndex pod, bool gated, Millis now);
  /// To nowhere.
  void withhold(PodIndex pod);

  /// The next pod to decide, or kNoPod: the head of active, else the first of the refused backoff. Its
  /// attempt begins.
  PodIndex pop(Millis now);
  /// Something can be popped.
  [[nodiscard]] bool has_next() const { return count(Place::active) + count(Place::backoff) > 0; }

  // How an attempt ends:
  void committed(PodIndex pod, std::uint32_t flight);
  /// No node passed: parked by the plugins that refused, unless an event since the pop helps it; `pending`:
  /// plugins that only wait for something.
  void unschedulable(PodIndex pod, PluginSet rejectors, PluginSet pending, Millis now);
  /// Ended by an API error, or without any plugin to blame.
  void error(PodIndex pod, Millis now);
  /// The node's owner refused the commit: as if the attempt had not been. The pod keeps its place in the
  /// order.
  void conflict(PodIndex pod);
  /// Its wait for a fresh ledger is over.
  void activate(PodIndex pod);

  /// Wakes the parked pods that the event helps.
  void event(const ClusterEvent& event, Millis now);
  /// Room became free on a node: cpu (milli) and memory (bytes) free there. Like event() with
  /// assigned_pod_delete, and skips groups that ask for more without asking.
  void freed(const ClusterEvent& event, double free_cpu, double free_memory, Millis now);
  /// The parked pod itself changed in a way that helps.
  void wake(PodIndex pod, Millis now);
  /// The pod's class, priority or pinned node changes: it leaves its place for `change()` and takes it again.
  template <class Change>
  void alter(PodIndex pod, Change&& change) {
    const Place place = pods_[pod].place;
    const PluginSet rejectors = place == Place::parked ? groups_[pods_[pod].group].rejectors : PluginSet{};
    leave(pod);
    change(pods_[pod]);
    enter(pod, place, rejectors);
  }
  [[nodiscard]] PluginSet rejectors(PodIndex pod) const {
    return pods_[pod].place == Place::parked ? groups_[pods_[pod].group].rejectors : PluginSet{};
  }

  /// Every whole second: what no longer backs off becomes active.
  void flush_backoff(Millis now);
  /// Every 30 s: what has been parked too long is tried again.
  void flush_parked(Millis now);

  [[nodiscard]] std::size_t count(Place place) const { return counts_[static_cast<std::size_t>(place)]; }
  [[nodiscard]] std::size_t size() const { return by_uid_.size(); }
  [[nodiscard]] std::size_t groups() const { return group_of_.size(); }
  [[nodiscard]] bool any_parked() const { return count(Place::parked) != 0; }

  template <class Visit>
  void for_each(Visit&& visit) {
    by_uid_.for_each([&](const Ref& ref) { visit(ref.pod); });
  }

 private:
  struct Ref {
    PodUid uid;
    PodIndex pod = kNoPod;
  };
  /// What the heaps keep of a pod, so that comparing touches no record.
  struct Item {
    Millis expiry = 0;
    Millis timestamp = 0;
    std::uint64_t sequence = 0;
    std::int32_t priority = 0;
    PodIndex pod = kNoPod;
    std::uint32_t stamp = 0;
  };
  struct ByPriority {
    bool operator()(const Item& a, const Item& b) const;
  };
  struct ByExpiry {
    bool operator()(const Item& a, const Item& b) const;
  };
  struct GroupKey {
    ClassId cls;
    std::uint16_t profile;
    StringId pinned_node;
    PluginSet rejectors;
    friend bool operator==(const GroupKey&, const GroupKey&) = default;
  };
  struct GroupKeyHash {
    std::size_t operator()(const GroupKey& k) const noexcept;
  };
  struct PastEvent {
    EventSet what;
    Slot slot = kNoSlot;
    StringId node = kNoString;
  };

  /// Makes every heap item and list entry of the pod stale.
  void leave(PodIndex pod);
  void enter(PodIndex pod, Place place, PluginSet rejectors = {});
  void refresh_timestamp(PendingPod& pod, Millis now);
  void park(PodIndex pod, PluginSet rejectors);
  void unpark(PodIndex pod);
  void wake_group(GroupIndex group, Millis now);
  void to_backoff_or_active(PodIndex pod, Millis now);
  [[nodiscard]] bool still_backs_off(const PendingPod& pod, Millis now) const;
  [[nodiscard]] bool live(const Item& item) const { return pods_[item.pod].stamp == item.stamp; }
  void remember(const ClusterEvent& event);
  [[nodiscard]] bool helped_since(const PendingPod& pod, PluginSet plugins) const;
  void attempt_over();
  [[nodiscard]] ParkedGroup group_for(const PendingPod& pod, PluginSet rejectors) const {
    return {pod.cls, pod.profile, pod.pinned_node, rejectors, kNoPod, kNoPod, 0};
  }

  QueueOptions options_;
  const ClassTable& classes_;
  HintSource& hints_;
  std::deque<PendingPod> pods_;
  std::vector<PodIndex> free_pods_;
  UidTable<Ref> by_uid_;
  std::array<std::size_t, kPlaces> counts_{};
  std::uint64_t next_sequence_ = 0;

  LazyHeap<Item, ByPriority> active_;
  LazyHeap<Item, ByExpiry> backoff_;
  LazyHeap<Item, ByExpiry> error_backoff_;

  std::vector<ParkedGroup> groups_;
  std::vector<double> group_cpu_;     // by group: what a pod of it requests, for freed()
  std::vector<double> group_memory_;  // infinite for groups that freed() need not ask
  std::vector<GroupIndex> free_groups_;
  std::unordered_map<GroupKey, GroupIndex, GroupKeyHash> group_of_;
  std::unordered_map<StringId, std::vector<GroupIndex>> pinned_groups_;  // by node
  std::vector<GroupIndex> helped_;                                       // scratch

  std::vector<PastEvent> past_;  // events since the oldest attempt that is not over
  std::uint64_t past_begin_ = 0;
};

/// Where a pod goes after an attempt that no node passed (spec 5.3.5), given what the events of the meantime
/// said.
enum class AfterAttempt : std::uint8_t { unschedulable, backoff, active };
constexpr AfterAttempt after_attempt(bool any_rejector, bool rejector_queued, bool pending_queued) {
  if (pending_queued) return AfterAttempt::active;
  if (!any_rejector || rejector_queued) return AfterAttempt::backoff;
  return AfterAttempt::unschedulable;
}

}  // namespace troupe
