#include "actors/placement/snapshot.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "actors/placement/snapshot_lane.hpp"
#include "messages/message.hpp"

namespace troupe {
namespace {

constexpr std::string_view kPods = "pods";

std::unique_ptr<char[]> joined_name(std::string_view ns, std::string_view name) {
  auto out = std::make_unique_for_overwrite<char[]>(ns.size() + name.size() + 2);
  std::memcpy(out.get(), ns.data(), ns.size());
  out[ns.size()] = '/';
  std::memcpy(out.get() + ns.size() + 1, name.data(), name.size());
  out[ns.size() + 1 + name.size()] = '\0';
  return out;
}

std::span<const std::uint8_t> class_bytes(const fb::DeltaEntry& entry) {
  const auto* bytes = entry.class_bytes();
  return bytes == nullptr ? std::span<const std::uint8_t>{} : std::span(bytes->data(), bytes->size());
}

bool same_taints(const std::vector<Taint>& a, const std::vector<Taint>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Taint& x, const Taint& y) {
    return x.key == y.key && x.value == y.value && x.effect == y.effect;
  });
}

}  // namespace

void ChangeLog::resize(std::size_t slots) {
  if (slots > newest_.size()) newest_.resize(slots, ~std::uint64_t{0});
  if (slots <= ring_.size()) return;
  std::vector<Slot> ring(std::bit_ceil(slots));
  const std::uint64_t remembered = std::min<std::uint64_t>(head_, ring_.size());
  for (std::uint64_t i = head_ - remembered; i < head_; ++i) ring[i & (ring.size() - 1)] = at(i);
  // Positions older than the old ring are not in the new one either: move on, so that covers() tells so.
  const std::uint64_t lost = head_ - remembered;
  ring_.swap(ring);
  if (lost != 0) {
    // Every reader older than this takes a full pass.
    head_ += ring_.size();
    for (Slot s = 0; s < newest_.size(); ++s) newest_[s] = ~std::uint64_t{0};
  }
}

Snapshot::Snapshot(Interner& interner, ClassTable& classes, std::uint32_t node_partitions,
                   std::uint64_t shard_epoch)
    : interner_(interner), classes_(classes), node_partitions_(node_partitions), shard_epoch_(shard_epoch) {}

Slot Snapshot::find(StringId name) const {
  const auto it = slot_of_.find(name);
  return it == slot_of_.end() ? kNoSlot : it->second;
}

Slot Snapshot::find(std::string_view name) const {
  const StringId id = interner_.find(name);
  return id == kNoString ? kNoSlot : find(id);
}

Slot Snapshot::slot_for(std::string_view name) {
  const StringId id = interner_.id(name);
  const auto [it, created] = slot_of_.try_emplace(id, kNoSlot);
  if (!created) return it->second;
  Slot slot = 0;
  if (free_slots_.empty()) {
    slot = static_cast<Slot>(nodes_.size());
    nodes_.emplace_back();
    columns_.resize(nodes_.size());
    alive_.resize(nodes_.size());
    nominated_.resize(nodes_.size());
    with_ports_.resize(nodes_.size());
    account_log_.resize(nodes_.size());
    facts_log_.resize(nodes_.size());
  } else {
    slot = free_slots_.back();
    free_slots_.pop_back();
  }
  it->second = slot;
  SnapshotNode& node = nodes_[slot];
  node.name = id;
  node.partition = partition_of(name, node_partitions_);
  return slot;
}

void Snapshot::free_if_unused(Slot slot) {
  SnapshotNode& node = nodes_[slot];
  if (alive_.contains(slot) || node.records != 0) return;
  slot_of_.erase(node.name);
  node = SnapshotNode{};
  columns_.clear(slot);
  free_slots_.push_back(slot);
}

void Snapshot::set_alive(Slot slot, bool alive) {
  alive_.set(slot, alive);
  node_count_ = alive ? node_count_ + 1 : node_count_ - 1;
  node_count_changed_ = ++image_clock_;
}

TaintSetId Snapshot::intern_taints(const fb::Node& node) {
  if (node.taints() == nullptr || node.taints()->size() == 0) return 0;
  std::vector<Taint> taints;
  for (const fb::Taint* t : *node.taints()) {
    taints.push_back({interner_.id(text(t->key())), interner_.id(text(t->value())), t->effect()});
  }
  // Few distinct sets exist, and taints change rarely.
  for (TaintSetId id = 0; id < taint_sets_.size(); ++id) {
    if (same_taints(taint_sets_[id], taints)) return id;
  }
  taint_sets_.push_back(std::move(taints));
  return static_cast<TaintSetId>(taint_sets_.size() - 1);
}

NodeBefore Snapshot::before(Slot slot) const {
  const SnapshotNode& node = nodes_[slot];
  NodeBefore b{node.taints, node.unschedulable, node.labels, {}, columns_.allowed_pods(slot)};
  for (ResourceId r = 0; r < columns_.resources(); ++r) {
    if (columns_.allocatable(slot, r) > 0) b.allocatable.push_back({r, columns_.allocatable(slot, r)});
  }
  return b;
}

bool Snapshot::set_allocatable(Slot slot, const fb::Node& node) {
  bool changed = false;
  std::int64_t pods = 0;
  std::vector<ResourceId> named;
  const auto set = [&](ResourceId r, std::int64_t amount) {
    if (columns_.allocatable(slot, r) == amount) return;
    columns_.set_allocatable(slot, r, amount);
    changed = true;
  };
  if (node.allocatable() != nullptr) {
    for (const fb::ResourceAmount* a : *node.allocatable()) {
      if (text(a->name()) == kPods) {
        pods = a->amount();
        continue;
      }
      named.push_back(interner_.resource(text(a->name())));
      set(named.back(), std::max<std::int64_t>(a->amount(), 0));
    }
  }
  for (ResourceId r = 0; r < columns_.resources(); ++r) {
    if (std::find(named.begin(), named.end(), r) == named.end()) set(r, 0);
  }
  if (columns_.allowed_pods(slot) != pods) {
    columns_.set_allowed_pods(slot, pods);
    changed = true;
  }
  return changed;
}

bool Snapshot::set_labels(Slot slot, const fb::Node& node) {
  Labels labels;
  if (node.labels() != nullptr) {
    labels.reserve(node.labels()->size());
    for (const fb::KeyValue* kv : *node.labels()) {
      labels.emplace_back(interner_.id(text(kv->key())), interner_.id(text(kv->value())));
    }
    std::sort(labels.begin(), labels.end());
  }
  if (labels == nodes_[slot].labels) return false;
  nodes_[slot].labels = std::move(labels);
  return true;
}

void Snapshot::set_images(Slot slot, const fb::Node* node) {
  std::vector<SnapshotImage> images;
  if (node != nullptr && node->images() != nullptr) {
    for (const fb::NodeImage* image : *node->images()) {
      if (image->names() == nullptr) continue;
      for (const flatbuffers::String* name : *image->names()) {
        const StringId id = interner_.id(text(name));
        const bool known =
            std::any_of(images.begin(), images.end(), [id](const SnapshotImage& i) { return i.name == id; });
        if (!known) images.push_back({id, image->size_bytes()});
      }
    }
  }
  std::vector<SnapshotImage>& old = nodes_[slot].images;
  const auto same = [](const SnapshotImage& a, const SnapshotImage& b) {
    return a.name == b.name && a.size_bytes == b.size_bytes;
  };
  if (std::equal(old.begin(), old.end(), images.begin(), images.end(), same)) return;
  const std::uint64_t now = ++image_clock_;
  const auto lists = [&same](const std::vector<SnapshotImage>& list, const SnapshotImage& image) {
    return std::any_of(list.begin(), list.end(), [&](const SnapshotImage& i) { return same(i, image); });
  };
  for (const SnapshotImage& gone : old) {
    if (lists(images, gone)) continue;
    Image& image = images_[gone.name];
    const auto use = std::find_if(image.uses.begin(), image.uses.end(),
                                  [slot](const ImageUse& u) { return u.slot == slot; });
    *use = image.uses.back();
    image.uses.pop_back();
    image.changed = now;
  }
  for (const SnapshotImage& fresh : images) {
    if (lists(old, fresh)) continue;
    Image& image = images_[fresh.name];
    image.uses.push_back({slot, fresh.size_bytes});
    image.changed = now;
  }
  old = std::move(images);
}

NodeUpdate Snapshot::update(const fb::Node& node) {
  NodeUpdate u;
  u.slot = slot_for(text(node.name()));
  u.added = !alive_.contains(u.slot);
  if (!u.added) u.before = before(u.slot);
  SnapshotNode& facts = nodes_[u.slot];

  const TaintSetId taints = intern_taints(node);
  u.taints_changed = facts.taints != taints;
  u.unschedulable_changed = facts.unschedulable != node.unschedulable();
  facts.taints = taints;
  facts.unschedulable = node.unschedulable();
  u.labels_changed = set_labels(u.slot, node);
  u.allocatable_changed = set_allocatable(u.slot, node);
  set_images(u.slot, &node);

  if (u.added) set_alive(u.slot, true);
  if (u.added || u.labels_changed || u.taints_changed || u.unschedulable_changed) facts_log_.append(u.slot);
  if (u.added || u.allocatable_changed) account_log_.append(u.slot);
  return u;
}

Slot Snapshot::remove(std::string_view name) {
  const Slot slot = find(name);
  if (slot == kNoSlot || !alive_.contains(slot)) return kNoSlot;
  set_alive(slot, false);
  set_images(slot, nullptr);
  SnapshotNode& facts = nodes_[slot];
  facts.labels.clear();
  facts.taints = 0;
  facts.unschedulable = false;
  for (ResourceId r = 0; r < columns_.resources(); ++r) columns_.set_allocatable(slot, r, 0);
  columns_.set_allowed_pods(slot, 0);
  facts_log_.append(slot);
  account_log_.append(slot);
  free_if_unused(slot);
  return slot;
}

std::span<const Nomination> Snapshot::nominations(Slot slot) const {
  const auto it = nominations_.find(slot);
  return it == nominations_.end() ? std::span<const Nomination>{} : std::span(it->second);
}

void Snapshot::account(const AccountRecord& record, int sign) {
  const PodClass& cls = classes_.get(record.cls);
  account_log_.append(record.slot);
  if (record.state == fb::EntryState::Nominated) {
    std::vector<Nomination>& held = nominations_[record.slot];
    if (sign > 0) {
      held.push_back({record.uid, record.cls, record.priority});
    } else {
      std::erase_if(held, [&](const Nomination& n) { return n.uid == record.uid; });
    }
    nominated_.set(record.slot, !held.empty());
    if (held.empty()) nominations_.erase(record.slot);
    return;
  }
  columns_.account(record.slot, cls, sign);
  if (cls.host_ports.empty()) return;
  std::vector<HostPort>& ports = nodes_[record.slot].ports;
  for (const HostPort& port : cls.host_ports) {
    if (sign > 0) {
      ports.push_back(port);
    } else if (const auto it = std::find(ports.begin(), ports.end(), port); it != ports.end()) {
      *it = ports.back();
      ports.pop_back();
    }
  }
  with_ports_.set(record.slot, !ports.empty());
}

void Snapshot::assume(const PodUid& uid, std::uint64_t n, Slot slot, ClassId cls, std::int32_t priority) {
  classes_.retain(cls);
  AccountRecord& r =
      records_.insert({uid, n, slot, cls, priority, fb::EntryState::Granted, true, false, 0, nullptr});
  ++nodes_[slot].records;
  account(r, 1);
}

bool Snapshot::withdraw(const PodUid& uid, std::uint64_t n) {
  AccountRecord* r = records_.find(uid, [n](const AccountRecord& x) { return x.overlay && x.n == n; });
  if (r == nullptr) return false;
  erase(r);
  return true;
}

void Snapshot::withdraw_doubtful(const PodUid& uid, std::uint64_t n) {
  AccountRecord* r =
      records_.find(uid, [n](const AccountRecord& x) { return x.overlay && x.doubtful && x.n == n; });
  if (r != nullptr) erase(r);
}

LedgerEffect Snapshot::erase(AccountRecord* record) {
  const Slot slot = record->slot;
  const LedgerEffect effect{LedgerEffect::What::freed, slot, nodes_[slot].name, record->uid, record->n};
  account(*record, -1);
  classes_.release(record->cls);
  --nodes_[slot].records;
  records_.erase(record);
  freed_.push_back(slot);
  free_if_unused(slot);
  return effect;
}

std::vector<Slot> Snapshot::take_freed() {
  std::vector<Slot> slots;
  slots.swap(freed_);
  std::sort(slots.begin(), slots.end());
  slots.erase(std::unique(slots.begin(), slots.end()), slots.end());
  return slots;
}

LedgerEffect Snapshot::apply(const fb::DeltaEntry& entry) {
  const bool removed = entry.change() == fb::LedgerChange::Removed;
  const Slot slot = removed ? find(text(entry.node())) : slot_for(text(entry.node()));
  if (slot == kNoSlot) return {};
  nodes_[slot].ledger_version = entry.ledger_version();
  if (!removed) return enter(entry, slot);
  const PodUid uid = PodUid::from(entry.uid());
  const CommitKey commit = CommitKey::from(entry.commit());
  const auto is_it = [&](const AccountRecord& x) {
    const bool own = commit.shard_epoch == shard_epoch_ && commit.n != 0 && x.n == commit.n;
    return x.slot == slot && (!x.overlay || own);
  };
  AccountRecord* r = records_.find(uid, is_it);
  return r == nullptr ? LedgerEffect{} : erase(r);
}

LedgerEffect Snapshot::enter(const fb::DeltaEntry& entry, Slot slot) {
  const PodUid uid = PodUid::from(entry.uid());
  const CommitKey commit = CommitKey::from(entry.commit());
  const std::uint64_t n = commit.shard_epoch == shard_epoch_ ? commit.n : 0;
  const auto on_slot = [slot](const AccountRecord& x) { return x.slot == slot; };
  AccountRecord* r = records_.find(uid, [&](const AccountRecord& x) { return on_slot(x) && !x.overlay; });
  if (r == nullptr && n != 0) {
    r = records_.find(uid, [&](const AccountRecord& x) { return on_slot(x) && x.overlay && x.n == n; });
  } else if (r == nullptr && commit.n == 0) {
    // A bind seen at the API server before the answer to our commit: the same pod on the same node.
    r = records_.find(uid, [&](const AccountRecord& x) { return on_slot(x) && x.overlay; });
  }
  const ClassId cls = classes_.acquire(class_bytes(entry));
  if (r == nullptr) {
    r = &records_.insert({uid, n, slot, cls, entry.priority(), entry.state(), false, false, copy_stamp_,
                          joined_name(text(entry.namespace_()), text(entry.name()))});
    ++nodes_[slot].records;
    account(*r, 1);
    return {LedgerEffect::What::added, slot, nodes_[slot].name, uid, n};
  }
  const auto held = [](fb::EntryState s) { return s == fb::EntryState::Nominated; };
  const bool counts_otherwise = r->cls != cls || held(r->state) != held(entry.state()) ||
                                (held(r->state) && r->priority != entry.priority());
  if (counts_otherwise) account(*r, -1);
  r->state = entry.state();
  classes_.release(r->cls);
  r->cls = cls;
  r->priority = entry.priority();
  r->overlay = false;
  r->doubtful = false;
  r->n = n;
  r->copy_stamp = copy_stamp_;
  if (r->name == nullptr) r->name = joined_name(text(entry.namespace_()), text(entry.name()));
  if (counts_otherwise) account(*r, 1);
  return {LedgerEffect::What::added, slot, nodes_[slot].name, uid, n};
}

void Snapshot::begin_copy(std::uint32_t partition) {
  ++copy_stamp_;
  for (SnapshotNode& node : nodes_) {
    if (node.partition == partition) node.ledger_version = 0;
  }
}

LedgerEffect Snapshot::apply_copied(const fb::DeltaEntry& entry) {
  const Slot slot = slot_for(text(entry.node()));
  nodes_[slot].ledger_version = std::max(nodes_[slot].ledger_version, entry.ledger_version());
  return enter(entry, slot);
}

std::vector<LedgerEffect> Snapshot::end_copy(std::uint32_t partition, const KeepOverlay& keep) {
  struct Key {
    PodUid uid;
    Slot slot;
    std::uint64_t n;
    bool overlay;
  };
  std::vector<Key> missing;
  records_.for_each([&](AccountRecord& r) {
    if (nodes_[r.slot].partition != partition || (!r.overlay && r.copy_stamp == copy_stamp_)) return;
    if (r.overlay && keep && keep(r.uid, r.n)) {
      r.doubtful = true;
      return;
    }
    missing.push_back({r.uid, r.slot, r.n, r.overlay});
  });
  std::vector<LedgerEffect> effects;
  effects.reserve(missing.size());
  for (const Key& k : missing) {
    effects.push_back(erase(records_.find(k.uid, [&](const AccountRecord& r) {
      return r.slot == k.slot && r.n == k.n && r.overlay == k.overlay;
    })));
  }
  return effects;
}

std::span<const ImageUse> Snapshot::image_uses(StringId image) const {
  const auto it = images_.find(image);
  return it == images_.end() ? std::span<const ImageUse>{} : std::span(it->second.uses);
}

std::uint64_t Snapshot::image_changed(StringId image) const {
  const auto it = images_.find(image);
  return it == images_.end() ? 0 : it->second.changed;
}

StringId find_label(const Labels& labels, StringId key) {
  const auto it = std::lower_bound(labels.begin(), labels.end(), key,
                                   [](const auto& entry, StringId k) { return entry.first < k; });
  return it != labels.end() && it->first == key ? it->second : kNoString;
}

bool SnapshotLane::port_conflicts(const HostPort& port) const {
  const auto conflicts = [&port](const HostPort& used) { return ports_conflict(used, port); };
  const std::vector<HostPort>& used = snapshot_->facts(slot_).ports;
  if (std::any_of(used.begin(), used.end(), conflicts)) return true;
  return std::any_of(added_.begin(), added_.end(), [&](const PodClass* c) {
    return std::any_of(c->host_ports.begin(), c->host_ports.end(), conflicts);
  });
}

std::span<const ImageState> SnapshotLane::images() const {
  if (images_.empty()) {
    for (const SnapshotImage& image : snapshot_->facts(slot_).images) {
      images_.push_back({image.name, image.size_bytes,
                         static_cast<std::uint32_t>(snapshot_->image_uses(image.name).size())});
    }
  }
  return images_;
}

}  // namespace troupe
