// actors/node/: the owner of one node's account. The ledger says which pods hold room on the node; it changes
// only through `apply(before, after)`, which walks a list of allocators with `take` and `give`. A kind of
// resource is an allocator, never a branch in the actor.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "actors/node/node_facts.hpp"
#include "actors/placement/plugins/default_plugins.hpp"
#include "messages/fb/ledger_generated.h"
#include "messages/message.hpp"
#include "messages/uid.hpp"

namespace troupe {

/// A class as a node partition keeps it: compiled once, shared by every entry that has these bytes. Does not
/// move.
struct LedgerClass {
  PodClass compiled;
  Bytes bytes;                            // fb::PodClass
  std::optional<PreparedClass> prepared;  // for the commit check; refers to `compiled`
};

/// One pod on the node. Hold, nomination, grant and bound pod are the same thing at different times.
struct LedgerPod {
  PodUid uid;
  CommitKey commit;  // zero: a foreign bind
  std::shared_ptr<const LedgerClass> cls;
  fb::EntryState state = fb::EntryState::Bound;
  std::uint64_t intent = 0;  // journal id of the pending bind; 0: settled
  std::uint16_t shard = 0;
  bool seen = false;  // the API server showed it bound here since this process started
  std::int32_t priority = 0;
  std::uint64_t labels_hash = 0;
  Bytes delta;  // fb::DeltaEntry as last sent, for copies
};

/// Amounts requested on the node (spec 5.2 rule 5): per resource, the non-zero sums used for scoring, the pod
/// count.
class ResourceAccount {
 public:
  void take(const PodClass& cls) { add(cls, 1); }
  void give(const PodClass& cls) { add(cls, -1); }
  [[nodiscard]] std::int64_t requested(ResourceId r) const {
    return r < requested_.size() ? requested_[r] : 0;
  }
  [[nodiscard]] std::int64_t non_zero_cpu() const { return non_zero_cpu_; }
  [[nodiscard]] std::int64_t non_zero_memory() const { return non_zero_memory_; }
  [[nodiscard]] std::int64_t pods() const { return pods_; }

 private:
  void add(const PodClass& cls, std::int64_t sign);
  std::vector<std::int64_t> requested_;
  std::int64_t non_zero_cpu_ = 0;
  std::int64_t non_zero_memory_ = 0;
  std::int64_t pods_ = 0;
};

/// Host ports in use. Foreign binds may hold one port twice, so each holder counts.
class PortAccount {
 public:
  void take(const PodClass& cls);
  void give(const PodClass& cls);
  /// Equal port and protocol, and equal addresses or one of them every address (spec 5.5 Ports).
  [[nodiscard]] bool conflicts(const HostPort& port) const;

 private:
  std::vector<HostPort> used_;
};

class Ledger {
 public:
  /// `version`: counts changes; outlives the ledger, so that one that is restored goes on counting.
  explicit Ledger(std::uint64_t& version) : version_(&version) {}

  /// The one way to change it: `before` leaves (may be null), `after` enters (may be null). The version
  /// counts changes. `before` must point into this ledger; the pointer is invalid afterwards.
  void apply(const LedgerPod* before, const LedgerPod* after);

  [[nodiscard]] LedgerPod* find(const PodUid& uid);
  [[nodiscard]] std::span<const LedgerPod> pods() const { return pods_; }
  [[nodiscard]] std::span<LedgerPod> pods() { return pods_; }
  [[nodiscard]] std::uint64_t version() const { return *version_; }
  [[nodiscard]] const ResourceAccount& resources() const { return std::get<ResourceAccount>(allocators_); }
  [[nodiscard]] const PortAccount& ports() const { return std::get<PortAccount>(allocators_); }

 private:
  std::vector<LedgerPod> pods_;
  std::tuple<ResourceAccount, PortAccount> allocators_;
  std::uint64_t* version_;
};

/// The ledger of one node as the plugins see it (NodeView).
class LedgerView {
 public:
  LedgerView(const NodeFacts& facts, const Ledger& ledger) : facts_(&facts), ledger_(&ledger) {}

  [[nodiscard]] StringId name() const { return facts_->name; }
  [[nodiscard]] bool unschedulable() const { return facts_->unschedulable; }
  [[nodiscard]] std::span<const Taint> taints() const { return facts_->taints; }
  [[nodiscard]] StringId label(StringId key) const { return facts_->label(key); }
  [[nodiscard]] std::int64_t allocatable(ResourceId r) const { return facts_->allocatable_of(r); }
  [[nodiscard]] std::int64_t requested(ResourceId r) const { return ledger_->resources().requested(r); }
  [[nodiscard]] std::int64_t non_zero_cpu() const { return ledger_->resources().non_zero_cpu(); }
  [[nodiscard]] std::int64_t non_zero_memory() const { return ledger_->resources().non_zero_memory(); }
  [[nodiscard]] std::int64_t pod_count() const { return ledger_->resources().pods(); }
  [[nodiscard]] std::int64_t allowed_pods() const { return facts_->allowed_pods; }
  [[nodiscard]] bool port_conflicts(const HostPort& port) const { return ledger_->ports().conflicts(port); }
  [[nodiscard]] std::span<const ImageState> images() const { return facts_->images; }
  [[nodiscard]] std::uint32_t total_nodes() const { return 1; }

 private:
  const NodeFacts* facts_;
  const Ledger* ledger_;
};

static_assert(NodeView<LedgerView>);

}  // namespace troupe
