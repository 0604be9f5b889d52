// What all nodes look like: facts from the mirror, accounts from the ledger streams plus the overlay of this
// shard's own decisions in flight. Numbers stand in columns (columns.hpp), strings are interned, and every
// change of a node is logged by slot, so that classes catch up with what changed instead of looking at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "actors/placement/class_table.hpp"
#include "actors/placement/columns.hpp"
#include "actors/placement/node_view.hpp"
#include "actors/placement/uid_table.hpp"
#include "messages/fb/ledger_generated.h"
#include "messages/fb/node_generated.h"

namespace troupe {

/// Slots that changed, newest last, as far back as it remembers.
class ChangeLog {
 public:
  void append(Slot slot) {
    ring_[head_ & (ring_.size() - 1)] = slot;
    newest_[slot] = head_++;
  }
  /// Position after the newest entry.
  [[nodiscard]] std::uint64_t head() const { return head_; }
  /// True if every change since `position` is still known.
  [[nodiscard]] bool covers(std::uint64_t position) const { return head_ - position <= ring_.size(); }
  [[nodiscard]] Slot at(std::uint64_t position) const { return ring_[position & (ring_.size() - 1)]; }
  /// True if this entry is its slot's newest: older ones need not be looked at.
  [[nodiscard]] bool is_newest(std::uint64_t position) const { return newest_[at(position)] == position; }
  void resize(std::size_t slots);

 private:
  std::vector<Slot> ring_ = std::vector<Slot>(1024);  // a power of two
  std::vector<std::uint64_t> newest_;                 // by slot
  std::uint64_t head_ = 0;
};

struct SnapshotImage {
  StringId name = 0;
  std::int64_t size_bytes = 0;
};

using Labels = std::vector<std::pair<StringId, StringId>>;  // sorted by key
using TaintSetId = std::uint32_t;                           // 0: no taints

/// What the node object says, apart from the numbers.
struct SnapshotNode {
  StringId name = 0;
  std::uint32_t partition = 0;
  std::uint64_t ledger_version = 0;  // newest change of its ledger that has been applied
  TaintSetId taints = 0;
  bool unschedulable = false;
  Labels labels;
  std::vector<SnapshotImage> images;
  std::vector<HostPort> ports;  // held by pods; one entry per pod and port
  std::uint32_t records = 0;    // ledger entries and overlay on this slot
};

/// A node as it was before an update, for the hints.
struct NodeBefore {
  TaintSetId taints = 0;
  bool unschedulable = false;
  Labels labels;
  std::vector<ResourceRequest> allocatable;  // resources with a positive amount
  std::int64_t allowed_pods = 0;
};

struct NodeUpdate {
  Slot slot = kNoSlot;
  bool added = false;
  bool allocatable_changed = false;
  bool labels_changed = false;
  bool taints_changed = false;
  bool unschedulable_changed = false;
  NodeBefore before;

  [[nodiscard]] bool any() const {
    return added || allocatable_changed || labels_changed || taints_changed || unschedulable_changed;
  }
};

/// A pod that counts on a node.
struct AccountRecord {
  PodUid uid;
  std::uint64_t n = 0;  // of this shard epoch's commit; 0: of someone else
  Slot slot = 0;
  ClassId cls = 0;
  std::int32_t priority = 0;
  fb::EntryState state = fb::EntryState::Granted;
  bool overlay = false;          // decided here, not yet seen in the ledger
  bool doubtful = false;         // overlay: the ledger has been copied since, without it
  std::uint16_t copy_stamp = 0;  // the last copy that contained it
  std::unique_ptr<char[]> name;  // "<namespace>/<name>", zero-terminated; null while overlay
};

/// A held place that counts for pods of equal or lower priority only.
struct Nomination {
  PodUid uid;
  ClassId cls = 0;
  std::int32_t priority = 0;
};

/// What an applied ledger change means to the rest of placement.
struct LedgerEffect {
  enum class What : std::uint8_t { none, added, freed } what = What::none;
  Slot slot = kNoSlot;
  StringId node = kNoString;
  PodUid uid;
  std::uint64_t n = 0;  // commit of this shard epoch; 0: of someone else
};

/// Whether the answer to a commit is still to come.
using KeepOverlay = std::function<bool(const PodUid& uid, std::uint64_t n)>;

struct ImageUse {
  Slot slot = 0;
  std::int64_t size_bytes = 0;
};

class Snapshot {
 public:
  Snapshot(Interner& interner, ClassTable& classes, std::uint32_t node_partitions, std::uint64_t shard_epoch);

  /// Some profile scores this resource (Columns::score).
  void score(ResourceId resource, bool unrequested) { columns_.score(resource, unrequested); }

  // --- nodes, from the mirror ---
  NodeUpdate update(const fb::Node& node);
  /// The node is gone: invisible from here on, but its pods keep their account until their ledger says so.
  /// kNoSlot if it was not known.
  Slot remove(std::string_view name);

  // --- accounts ---
  /// Counts an own decision at once.
  void assume(const PodUid& uid, std::uint64_t n, Slot slot, ClassId cls, std::int32_t priority);
  /// Takes back an own decision that the ledger does not have (yet). False if there is none.
  bool withdraw(const PodUid& uid, std::uint64_t n);
  /// The same for an entry that a copy of the ledger did not have, once its owner has spoken: no change of
  /// the ledger will take it back any more.
  void withdraw_doubtful(const PodUid& uid, std::uint64_t n);
  /// One ledger change. When it is the grant of an overlay entry, nothing numeric changes.
  LedgerEffect apply(const fb::DeltaEntry& entry);
  /// A copy of a partition: begin, apply every entry, end. What the copy lacks is removed; except overlay
  /// that `keep` (pod, commit) names, because its answer is still to come: that turns doubtful. With a new
  /// epoch nothing is kept: a grant lost in a move appears in no delta. Returns the effects.
  void begin_copy(std::uint32_t partition);
  LedgerEffect apply_copied(const fb::DeltaEntry& entry);
  std::vector<LedgerEffect> end_copy(std::uint32_t partition, const KeepOverlay& keep);

  /// Slots on which something stopped counting since the last call, each once.
  std::vector<Slot> take_freed();

  // --- reading ---
  [[nodiscard]] Interner& interner() const { return interner_; }
  [[nodiscard]] const ClassTable& classes() const { return classes_; }
  [[nodiscard]] const Columns& columns() const { return columns_; }
  [[nodiscard]] const SlotSet& alive() const { return alive_; }
  /// Slots that hold nominations: evaluated for each pod.
  [[nodiscard]] const SlotSet& nominated() const { return nominated_; }
  [[nodiscard]] bool any_nominated() const { return !nominations_.empty(); }
  /// Slots with any host port in use.
  [[nodiscard]] const SlotSet& with_ports() const { return with_ports_; }
  [[nodiscard]] const SnapshotNode& facts(Slot slot) const { return nodes_[slot]; }
  [[nodiscard]] std::span<const Taint> taints(TaintSetId id) const { return taint_sets_[id]; }
  [[nodiscard]] std::size_t taint_sets() const { return taint_sets_.size(); }
  [[nodiscard]] std::span<const Nomination> nominations(Slot slot) const;
  [[nodiscard]] std::string_view name(Slot slot) const { return interner_.text(nodes_[slot].name); }
  /// kNoSlot when neither a node nor a pod of that name is known.
  [[nodiscard]] Slot find(std::string_view name) const;
  [[nodiscard]] Slot find(StringId name) const;
  /// Nodes that exist.
  [[nodiscard]] std::uint32_t node_count() const { return node_count_; }
  [[nodiscard]] std::size_t slots() const { return nodes_.size(); }
  [[nodiscard]] std::size_t accounted_pods() const { return records_.size(); }
  [[nodiscard]] AccountRecord* record(const PodUid& uid, Slot slot) {
    return records_.find(uid, [slot](const AccountRecord& r) { return r.slot == slot; });
  }
  /// An entry of this pod that the ledger has, on any node.
  [[nodiscard]] const AccountRecord* ledger_record(const PodUid& uid) {
    return records_.find(uid, [](const AccountRecord& r) { return !r.overlay; });
  }
  template <class Visit>
  void for_each_record(Visit&& visit) {
    records_.for_each(visit);
  }

  /// Changes of accounts, allocatable amounts, ports and nominations.
  [[nodiscard]] const ChangeLog& account_log() const { return account_log_; }
  /// Changes of labels, taints, schedulability and existence.
  [[nodiscard]] const ChangeLog& facts_log() const { return facts_log_; }

  /// Nodes that have the image.
  [[nodiscard]] std::span<const ImageUse> image_uses(StringId image) const;
  /// Moves on whenever an image or the number of nodes changes; image_changed tells when this image did.
  [[nodiscard]] std::uint64_t image_clock() const { return image_clock_; }
  [[nodiscard]] std::uint64_t image_changed(StringId image) const;
  [[nodiscard]] std::uint64_t node_count_changed() const { return node_count_changed_; }

 private:
  struct Image {
    std::vector<ImageUse> uses;
    std::uint64_t changed = 0;
  };

  Slot slot_for(std::string_view name);
  void free_if_unused(Slot slot);
  void set_alive(Slot slot, bool alive);
  TaintSetId intern_taints(const fb::Node& node);
  NodeBefore before(Slot slot) const;
  bool set_allocatable(Slot slot, const fb::Node& node);
  bool set_labels(Slot slot, const fb::Node& node);
  void set_images(Slot slot, const fb::Node* node);
  /// Adds (1) or takes away (-1) what a record counts.
  void account(const AccountRecord& record, int sign);
  LedgerEffect enter(const fb::DeltaEntry& entry, Slot slot);
  LedgerEffect erase(AccountRecord* record);

  Interner& interner_;
  ClassTable& classes_;
  std::uint32_t node_partitions_;
  std::uint64_t shard_epoch_;

  Columns columns_;
  std::vector<SnapshotNode> nodes_;  // by slot
  std::unordered_map<StringId, Slot> slot_of_;
  std::vector<Slot> free_slots_;
  std::vector<std::vector<Taint>> taint_sets_{{}};
  SlotSet alive_;
  SlotSet nominated_;
  SlotSet with_ports_;
  std::uint32_t node_count_ = 0;

  UidTable<AccountRecord> records_;
  std::unordered_map<Slot, std::vector<Nomination>> nominations_;
  std::uint16_t copy_stamp_ = 0;
  std::vector<Slot> freed_;

  ChangeLog account_log_;
  ChangeLog facts_log_;
  std::unordered_map<StringId, Image> images_;
  std::uint64_t image_clock_ = 1;
  std::uint64_t node_count_changed_ = 1;
};

}  // namespace troupe
