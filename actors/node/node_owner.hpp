// The owner of one node's ledger.
//
// Owns      the ledger entries of its node: who holds room there, and the bind intents that its grants
// caused. Persists  ledger (one entry per pod) and journal (one bind intent per grant, until it and its event
// have arrived). Takes     CommitBatch parts and Release from placement, Pod, Node, Gone and Synced from the
// mirror, IntentResult from the bridge. Sends     CommitResult and BindSettled to placement, Intent to the
// bridge, ledger deltas to every follower. Restarts  from its ledger entries and pending intents; an entry
// granted without a pending intent is bound. Pending intents are
//           issued again. After the first consistent list, bound entries that the API server does not show
//           are released.
//
// A commit in each crash point: before the store's sync nothing was said and nothing is known: placement asks
// again and the restored owner decides afresh. After the sync, before the bind left: the intent is in the
// journal and is issued on restart. After the bind, before its result was written: issued again, and the API
// server's answer (already assigned here) settles it.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "actors/host/owner.hpp"
#include "actors/host/turn.hpp"
#include "actors/node/ledger.hpp"
#include "messages/fb/commit_generated.h"
#include "messages/fb/intent_generated.h"
#include "messages/fb/node_generated.h"
#include "messages/fb/pod_generated.h"

namespace troupe {

/// What the node owners of one partition have in common: compiled classes, the nodes as the mirror shows them
/// (an instance that is restored finds its node again), and the shard epochs below which commits are refused
/// (durable, in meta).
class NodeShared : public PartitionShared {
 public:
  NodeShared() : profile_(compile(Profile::standard(), interner_)) {}

  /// RaiseShardEpoch: durable before it is answered; an epoch never falls.
  void on(const Message& message, Turn& turn);
  void restore(std::uint32_t partition, StateReader& reader);

  Interner& interner() { return interner_; }
  /// What an instance must find again after it was restored, but does not store.
  struct Kept {
    NodeFacts facts;                   // as the mirror shows the node; `present` is false until it has
    std::uint64_t ledger_version = 0;  // a named version must not be reached twice
  };
  Kept& kept(const std::string& node) { return kept_[node]; }
  /// The first consistent list has been handed over.
  [[nodiscard]] bool synced() const { return synced_; }
  void set_synced() { synced_ = true; }
  /// The class with exactly these bytes, compiled once. Entries keep it alive; unused ones are dropped now
  /// and then.
  std::shared_ptr<const LedgerClass> class_of(std::span<const std::uint8_t> bytes);
  flatbuffers::FlatBufferBuilder& builder() {
    builder_.Clear();
    return builder_;
  }

  [[nodiscard]] std::uint64_t shard_epoch(std::uint16_t shard) const;
  void set_shard_epoch(std::uint16_t shard, std::uint64_t epoch) { shard_epochs_[shard] = epoch; }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view s) const noexcept;
  };
  Interner interner_;
  CompiledProfile profile_;  // whose filters check commits
  std::unordered_map<std::string_view, std::shared_ptr<const LedgerClass>, Hash>
      classes_;  // keys point into the value
  std::unordered_map<std::uint16_t, std::uint64_t> shard_epochs_;
  std::unordered_map<std::string, Kept> kept_;
  bool synced_ = false;
  std::size_t sweep_at_ = 1024;
  flatbuffers::FlatBufferBuilder builder_{1024};
};

class NodeOwner {
 public:
  static constexpr ActorKind kind = ActorKind::node;
  static constexpr std::array families = {Family::ledger, Family::journal};
  static constexpr bool streams = true;
  using Shared = NodeShared;

  NodeOwner(std::string key, Shared& shared)
      : name_(std::move(key)),
        shared_(&shared),
        facts_(&shared.kept(name_).facts),
        ledger_(shared.kept(name_).ledger_version) {}

  void on(const Message& message, Turn& turn);
  /// One commit of a CommitBatch.
  void on_part(const Message& batch, std::uint32_t index, Turn& turn);
  static void split(const Message& message, PartSink& sink);
  /// The answer to a commit whose turn threw twice.
  void refuse_part(const Message& batch, std::uint32_t index, Turn& turn);

  static std::string_view instance_of(Family family, std::string_view key, std::string_view value);
  static std::string prefix_of(Family family, std::string_view instance);
  /// Ledger entries first, then pending intents; then `restored`. Throws std::runtime_error on bytes that are
  /// not what the schema says.
  void restore_entry(Family family, std::string_view key, std::string_view value);
  void restored(Turn& turn);

  /// Every entry, as fb::DeltaEntry (a copy for a follower).
  void describe(CopySink& sink) const {
    for (const LedgerPod& pod : ledger_.pods()) sink(pod.delta);
  }

  [[nodiscard]] bool empty() const { return !facts_->present && ledger_.pods().empty(); }
  [[nodiscard]] const Ledger& ledger() const { return ledger_; }
  [[nodiscard]] const NodeFacts& facts() const { return *facts_; }

 private:
  void on_pod(const fb::Pod& pod, Turn& turn);
  void on_node(const fb::Node& node);
  void on_gone(const fb::Gone& gone, Turn& turn);
  void on_result(const fb::IntentResult& result, Turn& turn);
  void on_release(const fb::Release& release, Turn& turn);
  void on_synced(Turn& turn);

  void grant(const fb::CommitBatch& batch, const fb::Commit& commit, std::shared_ptr<const LedgerClass> cls,
             Turn& turn);
  void adopt(const fb::Pod& pod, LedgerPod* known, std::shared_ptr<const LedgerClass> cls, Turn& turn);
  void release(LedgerPod& pod, Turn& turn);
  void answer(const fb::Commit& commit, fb::CommitOutcome outcome, const std::vector<std::string>& reasons,
              Turn& turn);
  void settled(const LedgerPod& pod, bool bound, bool gone, std::string_view message, Turn& turn);

  std::string name_;
  Shared* shared_;
  NodeFacts* facts_;  // of shared_
  Ledger ledger_;
  std::vector<Bytes> pending_intents_;  // between restore_entry and restored
};

/// Key of a ledger entry: <node>\0<uid, 16 bytes big-endian>.
std::string ledger_key(std::string_view node, const PodUid& uid);

}  // namespace troupe
