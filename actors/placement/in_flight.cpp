#include "actors/placement/in_flight.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace troupe {
namespace {

using StringOffset = flatbuffers::Offset<flatbuffers::String>;

// A commit that is never answered is asked again less and less often.
constexpr unsigned kMostDoublings = 4;
// A pod refused this often in a row waits before it is decided again: its node's owner knows something that
// has not arrived here, which deciding faster does not change.
constexpr std::uint8_t kConflictsAtOnce = 3;
constexpr Millis kConflictPauseMs = 1000;

StringOffset copy(flatbuffers::FlatBufferBuilder& b, const flatbuffers::String* s) {
  return s == nullptr ? StringOffset{} : b.CreateString(s);
}

flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<fb::KeyValue>>> copy(
    flatbuffers::FlatBufferBuilder& b, const flatbuffers::Vector<flatbuffers::Offset<fb::KeyValue>>* pairs) {
  if (pairs == nullptr || pairs->size() == 0) return 0;
  std::vector<flatbuffers::Offset<fb::KeyValue>> out;
  out.reserve(pairs->size());
  for (const fb::KeyValue* kv : *pairs) {
    const auto key = copy(b, kv->key());
    const auto value = copy(b, kv->value());
    out.push_back(fb::CreateKeyValue(b, key, value));
  }
  return b.CreateVector(out);
}

}  // namespace

InFlight::InFlight(InFlightOptions options, Snapshot& snapshot, ClassTable& classes, SchedulingQueue& queue)
    : options_(options),
      snapshot_(snapshot),
      classes_(classes),
      queue_(queue),
      by_partition_(options.node_partitions) {}

std::uint32_t InFlight::partition(StringId node) const {
  return partition_of(snapshot_.interner().text(node), options_.node_partitions);
}

std::uint32_t InFlight::allocate() {
  if (free_.empty()) {
    flights_.emplace_back();
    return static_cast<std::uint32_t>(flights_.size() - 1);
  }
  const std::uint32_t i = free_.back();
  free_.pop_back();
  return i;
}

void InFlight::set_stage(Flight& flight, Stage stage) {
  const auto count = [this](const Flight& f, std::size_t one) {
    if (f.stage == Stage::asked && f.asks == 1) unanswered_ += one;
    if (f.stage == Stage::granted) granted_ += one;
    if (f.stage == Stage::refused) refused_ += one;
  };
  count(flight, ~std::size_t{0});  // less one
  flight.stage = stage;
  count(flight, 1);
}

void InFlight::free(std::uint32_t index) {
  Flight& f = flights_[index];
  set_stage(f, Stage::free);
  // The ledger was copied without this entry while its answer was on its way: nothing will take it back.
  if (f.n != 0) snapshot_.withdraw_doubtful(queue_[f.pod].uid, f.n);
  if (f.cls != kNoClass) classes_.release(f.cls);
  f = Flight{};
  free_.push_back(index);
}

InFlight::Flight* InFlight::find(const PodUid& uid) {
  const PodIndex pod = queue_.find(uid);
  return pod == kNoPod || queue_[pod].place != Place::in_flight ? nullptr : &flights_[queue_[pod].flight];
}

std::string_view InFlight::node_of(PodIndex pod) const {
  const PendingPod& p = queue_[pod];
  if (p.place != Place::in_flight) return {};
  const Flight& f = flights_[p.flight];
  return f.stage == Stage::refused ? std::string_view{} : snapshot_.interner().text(f.node);
}

void InFlight::commit(PodIndex pod, const Choice& choice, FollowerTurn& turn) {
  const PendingPod& p = queue_[pod];
  const std::uint32_t index = allocate();
  Flight& f = flights_[index];
  f.pod = pod;
  f.node = snapshot_.facts(choice.slot).name;
  f.cls = p.cls;
  f.asks = 1;
  f.feasible = choice.feasible;
  f.n = next_n_++;
  f.score = choice.score;
  f.decided_wall_ms = turn.wall_ms();
  f.deadline = turn.now() + options_.deadline_ms;
  f.ledger_version = snapshot_.facts(choice.slot).ledger_version;
  f.pod_as_decided = p.pod;
  set_stage(f, Stage::asked);
  classes_.retain(f.cls);
  snapshot_.assume(p.uid, f.n, choice.slot, f.cls, p.priority);
  queue_.committed(pod, index);
  to_send_.push_back(index);
}

void InFlight::send(const std::vector<CompiledProfile>& profiles, FollowerTurn& turn) {
  if (to_send_.empty()) return;
  batch(to_send_, profiles, turn);
  to_send_.clear();
}

void InFlight::batch(const std::vector<std::uint32_t>& flights, const std::vector<CompiledProfile>& profiles,
                     FollowerTurn& turn) {
  for (const std::uint32_t i : flights) by_partition_[partition(flights_[i].node)].push_back(i);
  for (std::uint32_t partition = 0; partition < by_partition_.size(); ++partition) {
    std::vector<std::uint32_t>& list = by_partition_[partition];
    if (list.empty()) continue;
    builder_.Clear();
    ++serial_;
    std::vector<flatbuffers::Offset<fb::ClassBytes>> class_list;
    std::vector<flatbuffers::Offset<fb::Commit>> commits;
    commits.reserve(list.size());
    std::vector<StringOffset> schedulers(profiles.size());
    for (const std::uint32_t i : list) {
      const Flight& f = flights_[i];
      if (class_places_.size() <= f.cls) class_places_.resize(classes_.limit());
      ClassPlace& place = class_places_[f.cls];
      if (place.serial != serial_) {
        place = {serial_, static_cast<std::uint16_t>(class_list.size())};
        const std::span<const std::uint8_t> bytes = classes_.bytes(f.cls);
        // Nested tables are read in place: they keep the alignment that they were built with.
        builder_.ForceVectorAlignment(bytes.size(), sizeof(std::uint8_t), sizeof(std::uint64_t));
        class_list.push_back(
            fb::CreateClassBytes(builder_, builder_.CreateVector(bytes.data(), bytes.size())));
      }
      const std::uint16_t profile = queue_[f.pod].profile;
      StringOffset& scheduler = schedulers[profile];
      if (scheduler.IsNull()) scheduler = builder_.CreateString(profiles[profile].scheduler_name);
      const std::string_view name = snapshot_.interner().text(f.node);
      const auto node = builder_.CreateString(name.data(), name.size());
      commits.push_back(write(f, place.index, node, scheduler));
    }
    const auto class_vector = builder_.CreateVector(class_list);
    const auto commit_vector = builder_.CreateVector(commits);
    builder_.Finish(fb::CreateCommitBatch(builder_, options_.shard, options_.shard_epoch, partition,
                                          class_vector, commit_vector));
    turn.send({ActorKind::node, partition, {}}, Message(Kind::commit_batch, builder_));
    list.clear();
  }
}

flatbuffers::Offset<fb::Commit> InFlight::write(const Flight& f, std::uint16_t class_index, StringOffset node,
                                                StringOffset scheduler) {
  const auto& pod = f.pod_as_decided.as<fb::Pod>();
  const auto ns = copy(builder_, pod.namespace_());
  const auto name = copy(builder_, pod.name());
  const auto uid_text = copy(builder_, pod.uid_text());
  const auto version = copy(builder_, pod.resource_version());
  const auto labels = copy(builder_, pod.labels());
  const PendingPod& p = queue_[f.pod];
  const fb::CommitId id = CommitKey{p.uid, options_.shard_epoch, f.n}.wire();
  fb::CommitBuilder c(builder_);
  c.add_id(&id);
  c.add_node(node);
  c.add_class_index(class_index);
  c.add_namespace_(ns);
  c.add_name(name);
  c.add_uid_text(uid_text);
  c.add_resource_version(version);
  c.add_labels(labels);
  c.add_priority(pod.priority());
  c.add_start_ms(pod.start_ms());
  c.add_decided_ms(f.decided_wall_ms);
  c.add_score(static_cast<std::int32_t>(f.score));
  c.add_feasible_nodes(f.feasible);
  c.add_ledger_version(f.ledger_version);
  c.add_scheduler_name(scheduler);
  c.add_generation(pod.generation());
  return c.Finish();
}

void InFlight::send_release(StringId node, const PodUid& uid, FollowerTurn& turn) {
  flatbuffers::FlatBufferBuilder b(128);
  const std::string name(snapshot_.interner().text(node));
  const auto node_at = b.CreateString(name);
  const fb::Uid wire = uid.wire();
  fb::ReleaseBuilder release(b);
  release.add_node(node_at);
  release.add_uid(&wire);
  b.Finish(release.Finish());
  turn.send({ActorKind::node, partition(node), name}, Message(Kind::release, b));
}

FlightEnd InFlight::on_result(const fb::CommitResult& result, FollowerTurn& turn) {
  const CommitKey id = CommitKey::from(result.id());
  if (id.shard_epoch != options_.shard_epoch) return {};
  Flight* f = find(id.uid);
  const bool granted = result.outcome() == fb::CommitOutcome::Granted;
  // A late answer for a pod that is bound, or deleted (its owner sees that, too), changes nothing. It must
  // not release anything: the pod may be running.
  if (f == nullptr || f->n != id.n || f->stage != Stage::asked) return {};
  if (granted) {
    set_stage(*f, Stage::granted);
    return {FlightEnd::How::granted, f->pod};
  }
  const PodIndex pod = f->pod;
  snapshot_.withdraw(id.uid, id.n);
  if (!text(queue_[pod].wire().node_name()).empty()) {
    free(queue_[pod].flight);
    queue_.withhold(pod);
    return {FlightEnd::How::gone, pod};
  }
  refuse(*f, result.ledger_version(), turn.now());
  return {};
}

void InFlight::refuse(Flight& f, std::uint64_t ledger_version, Millis now) {
  ++conflicts_;
  queue_.conflict(f.pod);
  f.ledger_version = ledger_version;
  const bool repeated = queue_[f.pod].conflicts > kConflictsAtOnce;
  f.deadline = now + kConflictPauseMs;
  set_stage(f, Stage::refused);  // counts by how often it was asked, so before that changes
  f.asks = repeated ? 1 : 0;     // refused: 1 waits for the deadline
  if (!repeated && version_seen(f)) retry(queue_[f.pod].flight);
}

bool InFlight::version_seen(const Flight& f) const {
  const Slot slot = snapshot_.find(f.node);
  return slot == kNoSlot || snapshot_.facts(slot).ledger_version >= f.ledger_version;
}

void InFlight::retry(std::uint32_t index) {
  const PodIndex pod = flights_[index].pod;
  const PodUid uid = queue_[pod].uid;
  free(index);
  queue_.activate(pod);
  // The owner may have refused because the pod has room already, by an earlier commit or a foreign bind.
  if (const AccountRecord* r = snapshot_.ledger_record(uid)) hold(pod, r->slot);
}

void InFlight::on_ledger_versions() {
  if (refused_ == 0) return;
  for (std::uint32_t i = 0; i < flights_.size(); ++i) {
    const Flight& f = flights_[i];
    if (f.stage == Stage::refused && f.asks == 0 && version_seen(f)) retry(i);
  }
}

FlightEnd InFlight::on_settled(const fb::BindSettled& settled, FollowerTurn& turn) {
  const CommitKey id = CommitKey::from(settled.id());
  Flight* f = find(id.uid);
  if (f == nullptr || f->stage == Stage::refused) return {};
  if (f->n != 0 && (f->n != id.n || id.shard_epoch != options_.shard_epoch)) return {};
  const PodIndex pod = f->pod;
  const bool failed = !settled.bound() && !settled.gone();
  free(queue_[pod].flight);
  if (failed) {
    queue_.error(pod, turn.now());
    return {FlightEnd::How::failed, pod};
  }
  queue_.withhold(pod);
  return {settled.bound() ? FlightEnd::How::bound : FlightEnd::How::gone, pod};
}

FlightEnd InFlight::on_ledger(const LedgerEffect& effect, FollowerTurn& turn) {
  const PodIndex pod = queue_.find(effect.uid);
  if (pod == kNoPod) return {};
  PendingPod& p = queue_[pod];
  if (p.place != Place::in_flight) {
    const bool waits = p.place != Place::nowhere && p.place != Place::deciding;
    if (effect.what == LedgerEffect::What::added && waits) hold(pod, effect.slot);
    return {};
  }
  Flight& f = flights_[p.flight];
  const bool own = f.n != 0 && f.n == effect.n;
  if (effect.what == LedgerEffect::What::added) {
    if (own && (f.stage == Stage::asked || f.stage == Stage::let_go)) {
      const bool news = f.stage == Stage::asked;
      set_stage(f, Stage::granted);
      return {news ? FlightEnd::How::granted : FlightEnd::How::none, pod};
    }
    return {};
  }
  const bool held_there = f.stage == Stage::held && f.node == effect.node;
  if ((own && f.stage == Stage::granted) || held_there) {
    set_stage(f, Stage::let_go);
    f.deadline = turn.now() + options_.deadline_ms;
  }
  return {};
}

void InFlight::land(PodIndex pod) {
  free(queue_[pod].flight);
  queue_.withhold(pod);
}

void InFlight::hold(PodIndex pod, Slot slot) {
  const std::uint32_t index = allocate();
  Flight& f = flights_[index];
  f.pod = pod;
  f.node = snapshot_.facts(slot).name;
  set_stage(f, Stage::held);
  queue_.committed(pod, index);
}

void InFlight::on_new_epoch(std::uint32_t partition, FollowerTurn& turn) {
  for (Flight& f : flights_) {
    if (f.n == 0 || (f.stage != Stage::asked && f.stage != Stage::let_go)) continue;
    if (this->partition(f.node) != partition) continue;
    set_stage(f, Stage::asked);
    f.deadline = turn.now();  // asked again at the next tick
  }
}

void InFlight::on_node_gone(std::string_view node) {
  const StringId name = snapshot_.interner().find(node);
  for (std::uint32_t i = 0; i < flights_.size(); ++i) {
    Flight& f = flights_[i];
    if (f.stage != Stage::asked || f.node != name) continue;
    const PodIndex pod = f.pod;
    snapshot_.withdraw(queue_[pod].uid, f.n);
    queue_.conflict(pod);
    free(i);
    queue_.activate(pod);
  }
}

void InFlight::on_tick(const std::vector<CompiledProfile>& profiles, FollowerTurn& turn) {
  std::vector<std::uint32_t> overdue;
  for (std::uint32_t i = 0; i < flights_.size(); ++i) {
    Flight& f = flights_[i];
    if (f.stage == Stage::free || f.deadline > turn.now()) continue;
    switch (f.stage) {
      case Stage::asked: {
        set_stage(f, Stage::free);  // leaves the count of fresh ones
        if (f.asks < 255) ++f.asks;
        set_stage(f, Stage::asked);
        f.deadline = turn.now() + (options_.deadline_ms << std::min<unsigned>(f.asks - 1U, kMostDoublings));
        overdue.push_back(i);
        break;
      }
      case Stage::let_go: {
        const PodIndex pod = f.pod;
        free(i);
        queue_.error(pod, turn.now());
        break;
      }
      case Stage::refused:
        retry(i);
        break;
      default:
        break;
    }
  }
  if (overdue.empty()) return;
  asked_again_ += overdue.size();
  batch(overdue, profiles, turn);
}

void InFlight::abandon(PodIndex pod, FollowerTurn& turn) {
  const PendingPod& p = queue_[pod];
  const Flight& f = flights_[p.flight];
  if (f.n != 0 && f.stage != Stage::refused) {
    snapshot_.withdraw(p.uid, f.n);
    send_release(f.node, p.uid, turn);
  }
  std::erase(to_send_, p.flight);
  free(p.flight);
  queue_.withhold(pod);
}

}  // namespace troupe
