// One node of the snapshot as a NodeView.
#pragma once

#include <vector>

#include "actors/placement/plugins/node_ports.hpp"
#include "actors/placement/snapshot.hpp"

namespace troupe {

/// The value of `key`, or kNoString.
StringId find_label(const Labels& labels, StringId key);

/// Reads through to the snapshot. `with_nominated`: as if the pods nominated to the node with at least this
/// priority, `self` apart, were on it (spec 5.4.8).
class SnapshotLane {
 public:
  SnapshotLane(const Snapshot& snapshot, Slot slot) : snapshot_(&snapshot), slot_(slot) {}
  SnapshotLane(const Snapshot& snapshot, Slot slot, std::int32_t with_nominated, const PodUid& self)
      : snapshot_(&snapshot), slot_(slot) {
    for (const Nomination& n : snapshot.nominations(slot)) {
      if (n.priority >= with_nominated && n.uid != self) added_.push_back(&snapshot.classes().get(n.cls));
    }
  }

  [[nodiscard]] bool adds_nominated() const { return !added_.empty(); }

  [[nodiscard]] StringId name() const { return snapshot_->facts(slot_).name; }
  [[nodiscard]] bool unschedulable() const { return snapshot_->facts(slot_).unschedulable; }
  [[nodiscard]] std::span<const Taint> taints() const {
    return snapshot_->taints(snapshot_->facts(slot_).taints);
  }
  [[nodiscard]] StringId label(StringId key) const { return find_label(snapshot_->facts(slot_).labels, key); }
  [[nodiscard]] std::int64_t allocatable(ResourceId r) const {
    return snapshot_->columns().allocatable(slot_, r);
  }
  [[nodiscard]] std::int64_t requested(ResourceId r) const {
    std::int64_t sum = snapshot_->columns().requested(slot_, r);
    for (const PodClass* c : added_) sum += c->request(r);
    return sum;
  }
  [[nodiscard]] std::int64_t non_zero_cpu() const {
    std::int64_t sum = snapshot_->columns().non_zero_cpu(slot_);
    for (const PodClass* c : added_) sum += c->non_zero_cpu;
    return sum;
  }
  [[nodiscard]] std::int64_t non_zero_memory() const {
    std::int64_t sum = snapshot_->columns().non_zero_memory(slot_);
    for (const PodClass* c : added_) sum += c->non_zero_memory;
    return sum;
  }
  [[nodiscard]] std::int64_t pod_count() const {
    return snapshot_->columns().pod_count(slot_) + static_cast<std::int64_t>(added_.size());
  }
  [[nodiscard]] std::int64_t allowed_pods() const { return snapshot_->columns().allowed_pods(slot_); }
  [[nodiscard]] bool port_conflicts(const HostPort& port) const;
  [[nodiscard]] std::span<const ImageState> images() const;
  [[nodiscard]] std::uint32_t total_nodes() const { return snapshot_->node_count(); }

 private:
  const Snapshot* snapshot_;
  Slot slot_;
  std::vector<const PodClass*> added_;
  mutable std::vector<ImageState> images_;  // filled when asked for
};
static_assert(NodeView<SnapshotLane>);

/// The facts of a node before an update.
class NodeBeforeView {
 public:
  NodeBeforeView(const Snapshot& snapshot, Slot slot, const NodeBefore& before)
      : snapshot_(&snapshot), slot_(slot), before_(&before) {}

  [[nodiscard]] StringId name() const { return snapshot_->facts(slot_).name; }
  [[nodiscard]] bool unschedulable() const { return before_->unschedulable; }
  [[nodiscard]] std::span<const Taint> taints() const { return snapshot_->taints(before_->taints); }
  [[nodiscard]] StringId label(StringId key) const { return find_label(before_->labels, key); }
  [[nodiscard]] std::int64_t allocatable(ResourceId r) const {
    for (const ResourceRequest& a : before_->allocatable) {
      if (a.resource == r) return a.amount;
    }
    return 0;
  }
  [[nodiscard]] std::int64_t allowed_pods() const { return before_->allowed_pods; }

 private:
  const Snapshot* snapshot_;
  Slot slot_;
  const NodeBefore* before_;
};

}  // namespace troupe
