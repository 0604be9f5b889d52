#include "actors/node/node_owner.hpp"

#include <xxhash.h>

#include <algorithm>
#include <stdexcept>

#include "actors/placement/evaluate.hpp"
#include "actors/placement/failure_text.hpp"
#include "store/family.hpp"

namespace troupe {
namespace {

using StringOffset = flatbuffers::Offset<flatbuffers::String>;
using Labels = flatbuffers::Vector<flatbuffers::Offset<fb::KeyValue>>;

flatbuffers::Offset<Labels> copy_labels(flatbuffers::FlatBufferBuilder& b, const Labels* labels) {
  if (labels == nullptr || labels->size() == 0) return 0;
  std::vector<flatbuffers::Offset<fb::KeyValue>> copied;
  copied.reserve(labels->size());
  for (const fb::KeyValue* kv : *labels) {
    const auto key = b.CreateString(kv->key());
    const auto value = kv->value() == nullptr ? StringOffset{} : b.CreateString(kv->value());
    copied.push_back(fb::CreateKeyValue(b, key, value));
  }
  return b.CreateVector(copied);
}

StringOffset copy(flatbuffers::FlatBufferBuilder& b, const flatbuffers::String* s) {
  return s == nullptr ? StringOffset{} : b.CreateString(s);
}

StringOffset copy(flatbuffers::FlatBufferBuilder& b, std::string_view s) {
  return b.CreateString(s.data(), s.size());
}

std::uint64_t hash_labels(const Labels* labels) {
  if (labels == nullptr || labels->size() == 0) return 0;
  std::uint64_t h = labels->size();
  for (const fb::KeyValue* kv : *labels) {
    const std::string_view key = text(kv->key());
    const std::string_view value = text(kv->value());
    h = XXH3_64bits_withSeed(key.data(), key.size(), h);
    h = XXH3_64bits_withSeed(value.data(), value.size(), h);
  }
  return h;
}

std::span<const std::uint8_t> bytes_of(const flatbuffers::Vector<std::uint8_t>* v) {
  return v == nullptr ? std::span<const std::uint8_t>{} : std::span<const std::uint8_t>{v->data(), v->size()};
}

Address placement_address(std::uint16_t shard) {
  return {ActorKind::placement, shard, std::to_string(shard)};
}

const Address& bridge_address() {
  static const Address address{ActorKind::bridge, 0, {}};
  return address;
}

std::string shard_epoch_prefix(std::uint32_t partition) {
  return "shard-epoch/node/" + std::to_string(partition) + "/";
}

std::string shard_epoch_key(std::uint32_t partition, std::uint16_t shard) {
  return shard_epoch_prefix(partition) + encode_u64(shard);
}

template <class Table>
const Table& verified_root(std::string_view bytes, std::string_view what, std::string_view key) {
  const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
  flatbuffers::Verifier verifier(data, bytes.size());
  if (!verifier.VerifyBuffer<Table>(nullptr)) {
    throw std::runtime_error("stored " + std::string(what) + " of node " +
                             std::string(key.substr(0, key.find('\0'))) + " does not match its schema");
  }
  return *flatbuffers::GetRoot<Table>(data);
}

/// The fields that LedgerEntry, Commit and Pod share, for building entries and deltas.
struct EntrySource {
  std::string_view node;
  PodUid uid;
  std::string_view uid_text;
  std::string_view ns;
  std::string_view name;
  const Labels* labels = nullptr;
  std::int32_t priority = 0;
  std::int64_t start_ms = 0;
  CommitKey commit;
  fb::EntryState state = fb::EntryState::Bound;
};

/// What only a grant of ours has.
struct GrantFacts {
  std::int64_t decided_ms = 0;
  std::int32_t score = 0;
  std::uint32_t feasible_nodes = 0;
  std::uint64_t intent = 0;
  std::uint16_t shard = 0;
};

void build_entry(flatbuffers::FlatBufferBuilder& b, const EntrySource& s, const GrantFacts& g,
                 const Bytes& class_bytes) {
  const auto node = copy(b, s.node);
  const auto uid_text = copy(b, s.uid_text);
  const auto ns = copy(b, s.ns);
  const auto name = copy(b, s.name);
  const auto labels = copy_labels(b, s.labels);
  b.ForceVectorAlignment(class_bytes.size(), sizeof(std::uint8_t), 8);
  const auto cls = b.CreateVector(class_bytes.data(), class_bytes.size());
  const fb::Uid uid = s.uid.wire();
  const fb::CommitId commit = s.commit.wire();
  fb::LedgerEntryBuilder e(b);
  e.add_node(node);
  e.add_uid(&uid);
  e.add_uid_text(uid_text);
  e.add_namespace_(ns);
  e.add_name(name);
  e.add_state(s.state);
  e.add_commit(&commit);
  e.add_class_bytes(cls);
  e.add_priority(s.priority);
  e.add_labels(labels);
  e.add_start_ms(s.start_ms);
  e.add_decided_ms(g.decided_ms);
  e.add_score(g.score);
  e.add_feasible_nodes(g.feasible_nodes);
  e.add_intent(g.intent);
  e.add_shard(g.shard);
  b.Finish(e.Finish());
}

void build_delta(flatbuffers::FlatBufferBuilder& b, const EntrySource& s, std::uint64_t version,
                 fb::LedgerChange change, const Bytes& class_bytes) {
  const auto node = copy(b, s.node);
  const auto ns = copy(b, s.ns);
  const auto name = copy(b, s.name);
  const auto labels = copy_labels(b, s.labels);
  flatbuffers::Offset<flatbuffers::Vector<std::uint8_t>> cls = 0;
  if (!class_bytes.empty()) {
    b.ForceVectorAlignment(class_bytes.size(), sizeof(std::uint8_t), 8);
    cls = b.CreateVector(class_bytes.data(), class_bytes.size());
  }
  const fb::Uid uid = s.uid.wire();
  const fb::CommitId commit = s.commit.wire();
  fb::DeltaEntryBuilder d(b);
  d.add_node(node);
  d.add_ledger_version(version);
  d.add_change(change);
  d.add_uid(&uid);
  d.add_commit(&commit);
  d.add_state(s.state);
  d.add_priority(s.priority);
  d.add_class_bytes(cls);
  d.add_namespace_(ns);
  d.add_name(name);
  d.add_labels(labels);
  d.add_start_ms(s.start_ms);
  b.Finish(d.Finish());
}

void build_bind(flatbuffers::FlatBufferBuilder& b, const EntrySource& s, const GrantFacts& g,
                const fb::Commit& commit, std::uint32_t partition, std::uint64_t partition_epoch,
                Millis wall_ms) {
  // Two commits of one millisecond differ in n, so names of a pod's events never meet.
  const std::uint64_t event_ns = static_cast<std::uint64_t>(wall_ms) * 1'000'000 + s.commit.n % 1'000'000;
  std::string event = event_name(s.name, event_ns);
  if (event.empty()) event = PodUid{s.uid.hi ^ event_ns, s.uid.lo}.text();
  const auto event_name_at = copy(b, event);
  const auto type = b.CreateSharedString("Normal");
  const auto reason = b.CreateSharedString("Scheduled");
  const auto action = b.CreateSharedString("Binding");
  std::string note = "Successfully assigned ";
  note.append(s.ns).append("/").append(s.name).append(" to ").append(s.node);
  const auto note_at = copy(b, event_note(note));
  const auto controller = copy(b, commit.scheduler_name());
  fb::EventNoteBuilder note_table(b);
  note_table.add_name(event_name_at);
  note_table.add_event_ms(wall_ms);
  note_table.add_type(type);
  note_table.add_reason(reason);
  note_table.add_action(action);
  note_table.add_note(note_at);
  note_table.add_controller(controller);
  const auto event_at = note_table.Finish();

  const auto node = copy(b, s.node);
  const auto uid_text = copy(b, s.uid_text);
  const auto ns = copy(b, s.ns);
  const auto name = copy(b, s.name);
  const auto rv = copy(b, commit.resource_version());
  const fb::Uid uid = s.uid.wire();
  const fb::CommitId commit_id = s.commit.wire();
  fb::IntentBuilder i(b);
  i.add_id(g.intent);
  i.add_kind(fb::IntentKind::Bind);
  i.add_owner_kind(static_cast<std::uint8_t>(ActorKind::node));
  i.add_owner_key(node);
  i.add_partition(partition);
  i.add_partition_epoch(partition_epoch);
  i.add_namespace_(ns);
  i.add_name(name);
  i.add_uid(&uid);
  i.add_uid_text(uid_text);
  i.add_resource_version(rv);
  i.add_node(node);
  i.add_commit(&commit_id);
  i.add_event(event_at);
  i.add_created_ms(wall_ms);
  i.add_generation(commit.generation());
  b.Finish(i.Finish());
}

EntrySource source_of(const fb::Commit& commit, std::string_view node) {
  return {node,
          PodUid::from(&commit.id()->uid()),
          text(commit.uid_text()),
          text(commit.namespace_()),
          text(commit.name()),
          commit.labels(),
          commit.priority(),
          commit.start_ms(),
          CommitKey::from(commit.id()),
          fb::EntryState::Granted};
}

EntrySource source_of(const fb::LedgerEntry& e) {
  return {
      text(e.node()), PodUid::from(e.uid()), text(e.uid_text()), text(e.namespace_()),        text(e.name()),
      e.labels(),     e.priority(),          e.start_ms(),       CommitKey::from(e.commit()), e.state()};
}

}  // namespace

std::string ledger_key(std::string_view node, const PodUid& uid) {
  std::string key;
  key.reserve(node.size() + 17);
  key.append(node).push_back('\0');
  key += encode_u64(uid.hi);
  key += encode_u64(uid.lo);
  return key;
}

std::size_t NodeShared::Hash::operator()(std::string_view s) const noexcept {
  return XXH3_64bits(s.data(), s.size());
}

std::shared_ptr<const LedgerClass> NodeShared::class_of(std::span<const std::uint8_t> bytes) {
  const std::string_view key{reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  if (const auto it = classes_.find(key); it != classes_.end()) return it->second;
  if (classes_.size() >= sweep_at_) {
    std::erase_if(classes_, [](const auto& item) { return item.second.use_count() == 1; });
    sweep_at_ = std::max<std::size_t>(1024, classes_.size() * 2);
  }
  auto cls = std::make_shared<LedgerClass>();
  cls->bytes = Bytes(bytes);
  if (!bytes.empty())
    cls->compiled = compile(*flatbuffers::GetRoot<fb::PodClass>(cls->bytes.data()), interner_);
  cls->prepared.emplace(profile_, cls->compiled, interner_);
  std::shared_ptr<const LedgerClass> shared = std::move(cls);
  classes_.emplace(shared->bytes.view(), shared);
  return shared;
}

std::uint64_t NodeShared::shard_epoch(std::uint16_t shard) const {
  const auto it = shard_epochs_.find(shard);
  return it == shard_epochs_.end() ? 0 : it->second;
}

void NodeShared::on(const Message& message, Turn& turn) {
  if (message.kind() == Kind::synced) {
    synced_ = true;
    return;
  }
  if (message.kind() != Kind::raise_shard_epoch) return;
  const auto& raise = message.as<fb::RaiseShardEpoch>();
  const std::uint64_t epoch = std::max(raise.shard_epoch(), shard_epoch(raise.shard()));
  turn.put(Family::meta, shard_epoch_key(turn.self().partition, raise.shard()), encode_u64(epoch));
  flatbuffers::FlatBufferBuilder& b = builder();
  b.Finish(fb::CreateShardEpochRaised(b, raise.shard(), epoch, turn.self().partition));
  turn.reply(Message(Kind::shard_epoch_raised, b));
  set_shard_epoch(raise.shard(), epoch);
}

void NodeShared::restore(std::uint32_t partition, StateReader& reader) {
  const std::string prefix = shard_epoch_prefix(partition);
  reader.scan(Family::meta, prefix, [&](std::string_view key, std::string_view value) {
    set_shard_epoch(static_cast<std::uint16_t>(decode_u64(key.substr(prefix.size()))), decode_u64(value));
    return true;
  });
}

void NodeOwner::split(const Message& message, PartSink& sink) {
  if (message.kind() == Kind::raise_shard_epoch) return sink.partition();
  if (message.kind() == Kind::synced) {
    sink.every_instance();
    return sink.partition();
  }
  if (message.kind() != Kind::commit_batch) return;
  const auto* commits = message.as<fb::CommitBatch>().commits();
  if (commits == nullptr) return;
  for (std::uint32_t i = 0; i < commits->size(); ++i) sink.part(text(commits->Get(i)->node()), i);
}

void NodeOwner::on(const Message& message, Turn& turn) {
  switch (message.kind()) {
    case Kind::pod:
      return on_pod(message.as<fb::Pod>(), turn);
    case Kind::node:
      return on_node(message.as<fb::Node>());
    case Kind::gone:
      return on_gone(message.as<fb::Gone>(), turn);
    case Kind::intent_result:
      return on_result(message.as<fb::IntentResult>(), turn);
    case Kind::release:
      return on_release(message.as<fb::Release>(), turn);
    case Kind::synced:
      return on_synced(turn);
    default:
      return;
  }
}

void NodeOwner::on_part(const Message& message, std::uint32_t index, Turn& turn) {
  const auto& batch = message.as<fb::CommitBatch>();
  const fb::Commit& commit = *batch.commits()->Get(index);
  if (commit.id() == nullptr) return;
  if (batch.shard_epoch() < shared_->shard_epoch(batch.shard())) {
    return answer(commit, fb::CommitOutcome::Refused, {"decided by an older placement shard epoch"}, turn);
  }
  const CommitKey id = CommitKey::from(commit.id());
  if (const LedgerPod* known = ledger_.find(id.uid)) {
    if (known->commit == id) return answer(commit, fb::CommitOutcome::Granted, {}, turn);
    return answer(commit, fb::CommitOutcome::Refused, {"the pod already holds room on the node"}, turn);
  }
  if (!facts_->present)
    return answer(commit, fb::CommitOutcome::Refused, {"the node is not known to its owner"}, turn);
  const auto* classes = batch.classes();
  if (classes == nullptr || commit.class_index() >= classes->size()) {
    return answer(commit, fb::CommitOutcome::Refused, {"the commit names no class"}, turn);
  }
  auto cls = shared_->class_of(bytes_of(classes->Get(commit.class_index())->bytes()));
  const LedgerView view(*facts_, ledger_);
  if (!passes(*cls->prepared, PodFacts{}, view)) {
    std::vector<std::string> reasons;
    for (const Refusal& refusal : check(*cls->prepared, PodFacts{}, view)) {
      for (const Reason& reason : refusal.verdict.reasons)
        reasons.push_back(text(reason, shared_->interner()));
    }
    return answer(commit, fb::CommitOutcome::Refused, reasons, turn);
  }
  grant(batch, commit, std::move(cls), turn);
}

void NodeOwner::refuse_part(const Message& message, std::uint32_t index, Turn& turn) {
  const fb::Commit& commit = *message.as<fb::CommitBatch>().commits()->Get(index);
  if (commit.id() != nullptr)
    answer(commit, fb::CommitOutcome::Refused, {"the commit was quarantined by the node's owner"}, turn);
}

void NodeOwner::grant(const fb::CommitBatch& batch, const fb::Commit& commit,
                      std::shared_ptr<const LedgerClass> cls, Turn& turn) {
  const EntrySource source = source_of(commit, name_);
  const GrantFacts facts{commit.decided_ms(), commit.score(), commit.feasible_nodes(), turn.new_intent_id(),
                         batch.shard()};
  LedgerPod pod;
  pod.uid = source.uid;
  pod.commit = source.commit;
  pod.state = fb::EntryState::Granted;
  pod.intent = facts.intent;
  pod.shard = facts.shard;
  pod.priority = source.priority;
  pod.labels_hash = hash_labels(source.labels);
  pod.cls = std::move(cls);

  flatbuffers::FlatBufferBuilder& b = shared_->builder();
  build_entry(b, source, facts, pod.cls->bytes);
  turn.put(Family::ledger, ledger_key(name_, pod.uid), b);

  b.Clear();
  build_bind(b, source, facts, commit, turn.self().partition, turn.partition_epoch(), turn.wall_ms());
  turn.put(Family::journal, encode_u64(facts.intent), b);
  turn.send(bridge_address(), Message(Kind::intent, b));

  b.Clear();
  build_delta(b, source, ledger_.version() + 1, fb::LedgerChange::Added, pod.cls->bytes);
  pod.delta = turn.delta(b);
  ledger_.apply(nullptr, &pod);
  answer(commit, fb::CommitOutcome::Granted, {}, turn);
}

void NodeOwner::answer(const fb::Commit& commit, fb::CommitOutcome outcome,
                       const std::vector<std::string>& reasons, Turn& turn) {
  flatbuffers::FlatBufferBuilder& b = shared_->builder();
  const auto node = copy(b, std::string_view(name_));
  flatbuffers::Offset<flatbuffers::Vector<StringOffset>> texts = 0;
  if (!reasons.empty()) texts = b.CreateVectorOfStrings(reasons);
  fb::CommitResultBuilder r(b);
  r.add_id(commit.id());
  r.add_node(node);
  r.add_outcome(outcome);
  r.add_ledger_version(ledger_.version());
  r.add_reasons(texts);
  b.Finish(r.Finish());
  turn.reply(Message(Kind::commit_result, b));
}

void NodeOwner::settled(const LedgerPod& pod, bool bound, bool gone, std::string_view message, Turn& turn) {
  flatbuffers::FlatBufferBuilder& b = shared_->builder();
  const auto node = copy(b, std::string_view(name_));
  const auto why = message.empty() ? StringOffset{} : copy(b, message);
  const fb::CommitId id = pod.commit.wire();
  fb::BindSettledBuilder s(b);
  s.add_id(&id);
  s.add_node(node);
  s.add_bound(bound);
  s.add_gone(gone);
  s.add_message(why);
  b.Finish(s.Finish());
  turn.send(placement_address(pod.shard), Message(Kind::bind_settled, b));
}

void NodeOwner::release(LedgerPod& pod, Turn& turn) {
  turn.erase(Family::ledger, ledger_key(name_, pod.uid));
  EntrySource source;
  source.node = name_;
  source.uid = pod.uid;
  source.commit = pod.commit;
  source.state = pod.state;
  flatbuffers::FlatBufferBuilder& b = shared_->builder();
  build_delta(b, source, ledger_.version() + 1, fb::LedgerChange::Removed, {});
  turn.delta(b);
  ledger_.apply(&pod, nullptr);
}

void NodeOwner::on_result(const fb::IntentResult& result, Turn& turn) {
  // A stopped intent stays in the journal: its next owner, or this one after a restart, issues it again.
  if (result.outcome() == fb::IntentOutcome::Stopped) return;
  LedgerPod* pod = ledger_.find(PodUid::from(result.uid()));
  if (pod != nullptr && pod->intent == result.id() && pod->state == fb::EntryState::Granted) {
    if (result.outcome() == fb::IntentOutcome::Done) {
      pod->state = fb::EntryState::Bound;
      pod->seen = true;
      settled(*pod, true, false, {}, turn);
    } else {
      const bool gone = result.outcome() != fb::IntentOutcome::Refused;
      settled(*pod, false, gone, text(result.message()), turn);
      release(*pod, turn);
      pod = nullptr;
    }
  }
  if (result.stage() == fb::IntentStage::Complete) {
    turn.erase(Family::journal, encode_u64(result.id()));
    if (pod != nullptr && pod->intent == result.id()) pod->intent = 0;
  }
}

void NodeOwner::on_release(const fb::Release& wire, Turn& turn) {
  // The intent stays: the bridge finds the pod gone and settles it.
  if (LedgerPod* pod = ledger_.find(PodUid::from(wire.uid()))) release(*pod, turn);
}

void NodeOwner::on_gone(const fb::Gone& gone, Turn& turn) {
  if (gone.kind() == fb::ObjectKind::Node) {
    // Pods that are still on it keep their account until they go.
    facts_->present = false;
    return;
  }
  if (gone.kind() != fb::ObjectKind::Pod) return;
  if (LedgerPod* pod = ledger_.find(PodUid::from(gone.uid()))) release(*pod, turn);
}

void NodeOwner::on_node(const fb::Node& node) {
  *facts_ = compile(node, shared_->interner());
}

void NodeOwner::on_pod(const fb::Pod& pod, Turn& turn) {
  if (text(pod.node_name()) != name_) {
    // The pod moved in a watch gap (recreated elsewhere under the same uid cannot be; a foreign writer can).
    if (LedgerPod* known = ledger_.find(PodUid::from(pod.uid()));
        known != nullptr && known->state == fb::EntryState::Bound) {
      release(*known, turn);
    }
    return;
  }
  const std::span<const std::uint8_t> bytes = bytes_of(pod.class_bytes());
  LedgerPod* known = ledger_.find(PodUid::from(pod.uid()));
  if (known != nullptr) {
    known->seen = true;
    if (known->priority == pod.priority() && known->labels_hash == hash_labels(pod.labels()) &&
        std::ranges::equal(known->cls->bytes.span(), bytes)) {
      return;
    }
  }
  adopt(pod, known, shared_->class_of(bytes), turn);
}

void NodeOwner::adopt(const fb::Pod& wire, LedgerPod* known, std::shared_ptr<const LedgerClass> cls,
                      Turn& turn) {
  LedgerPod pod;
  if (known != nullptr) pod = *known;
  pod.uid = PodUid::from(wire.uid());
  pod.seen = true;
  pod.priority = wire.priority();
  pod.labels_hash = hash_labels(wire.labels());
  pod.cls = std::move(cls);
  const EntrySource source{name_,
                           pod.uid,
                           text(wire.uid_text()),
                           text(wire.namespace_()),
                           text(wire.name()),
                           wire.labels(),
                           wire.priority(),
                           wire.start_ms(),
                           pod.commit,
                           pod.state};
  flatbuffers::FlatBufferBuilder& b = shared_->builder();
  GrantFacts facts;
  facts.intent = pod.intent;
  facts.shard = pod.shard;
  build_entry(b, source, facts, pod.cls->bytes);
  turn.put(Family::ledger, ledger_key(name_, pod.uid), b);
  b.Clear();
  build_delta(b, source, ledger_.version() + 1,
              known == nullptr ? fb::LedgerChange::Added : fb::LedgerChange::Changed, pod.cls->bytes);
  pod.delta = turn.delta(b);
  ledger_.apply(known, &pod);
}

void NodeOwner::on_synced(Turn& turn) {
  // What the consistent list does not show is gone; grants whose bind is pending are the intent's to decide.
  for (std::size_t i = 0; i < ledger_.pods().size();) {
    LedgerPod& pod = ledger_.pods()[i];
    if (pod.seen || pod.state != fb::EntryState::Bound) {
      ++i;
      continue;
    }
    release(pod, turn);
  }
}

std::string_view NodeOwner::instance_of(Family family, std::string_view key, std::string_view value) {
  if (family == Family::ledger) return key.substr(0, key.find('\0'));
  const auto& intent = verified_root<fb::Intent>(value, "bind intent", key);
  return intent.owner_kind() == static_cast<std::uint8_t>(kind) ? text(intent.owner_key())
                                                                : std::string_view{};
}

std::string NodeOwner::prefix_of(Family family, std::string_view instance) {
  if (family != Family::ledger) return {};
  std::string prefix(instance);
  prefix.push_back('\0');
  return prefix;
}

void NodeOwner::restore_entry(Family family, std::string_view key, std::string_view value) {
  // An aligned copy: FlatBuffers reads through aligned pointers.
  const Bytes owned(
      std::span<const std::uint8_t>(reinterpret_cast<const std::uint8_t*>(value.data()), value.size()));
  if (family == Family::journal) {
    pending_intents_.push_back(owned);
    return;
  }
  const auto& entry = verified_root<fb::LedgerEntry>(owned.view(), "ledger entry", key);
  const EntrySource source = source_of(entry);
  LedgerPod pod;
  pod.uid = source.uid;
  pod.commit = source.commit;
  pod.state = fb::EntryState::Bound;
  pod.seen =
      shared_->synced();  // restored while running: a pod that went meanwhile is told by its own message
  pod.shard = entry.shard();
  pod.priority = source.priority;
  pod.labels_hash = hash_labels(source.labels);
  pod.cls = shared_->class_of(bytes_of(entry.class_bytes()));
  flatbuffers::FlatBufferBuilder& b = shared_->builder();
  build_delta(b, source, ledger_.version() + 1, fb::LedgerChange::Added, pod.cls->bytes);
  pod.delta = Bytes(std::span<const std::uint8_t>(b.GetBufferPointer(), b.GetSize()));
  ledger_.apply(nullptr, &pod);
}

void NodeOwner::restored(Turn& turn) {
  for (const Bytes& bytes : pending_intents_) {
    const auto& intent = *flatbuffers::GetRoot<fb::Intent>(bytes.data());
    if (LedgerPod* pod = ledger_.find(PodUid::from(intent.uid()));
        pod != nullptr && pod->commit == CommitKey::from(intent.commit())) {
      pod->state = fb::EntryState::Granted;
      pod->intent = intent.id();
    }
    turn.send(bridge_address(), Message(Kind::intent, bytes));
  }
  pending_intents_.clear();
}

}  // namespace troupe
