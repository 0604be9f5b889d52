#include "actors/placement/placement.hpp"

#include <algorithm>
#include <utility>

#include "actors/placement/placement_state.hpp"

namespace troupe {
namespace {

constexpr Millis kSecond = 1000;
constexpr Millis kParkedFlushMs = 30'000;
// Classes without pods that are kept for their pods to come back.
constexpr std::size_t kIdleClasses = 1024;

std::vector<CompiledProfile> compile_profiles(const PlacementOptions& options, Interner& interner) {
  std::vector<CompiledProfile> out;
  for (const Profile& p : options.profiles) out.push_back(compile(p, interner));
  if (!out.empty()) return out;
  for (const std::string& name : options.scheduler_names)
    out.push_back(compile(Profile::standard(name), interner));
  return out;
}

PodUid uid_of(const fb::Uid* uid, std::string_view ns, std::string_view name) {
  const PodUid given = PodUid::from(uid);
  if (!given.zero()) return given;
  return PodUid::parse(std::string(ns) + "/" + std::string(name));
}

bool finished(const fb::Pod& pod) {
  return text(pod.phase()) == "Succeeded" || text(pod.phase()) == "Failed";
}

/// What an update of a parked pod may be to the plugins that refused it.
EventSet own_events(const PodClass& before, const PodClass& now) {
  EventSet events;
  const auto same_toleration = [](const Toleration& a, const Toleration& b) {
    return a.key == b.key && a.exists == b.exists && a.value == b.value && a.effect == b.effect;
  };
  if (!std::equal(before.tolerations.begin(), before.tolerations.end(), now.tolerations.begin(),
                  now.tolerations.end(), same_toleration)) {
    events.insert(Event::own_toleration);
  }
  if (std::any_of(before.requests.begin(), before.requests.end(),
                  [&](const ResourceRequest& r) { return now.request(r.resource) < r.amount; })) {
    events.insert(Event::own_scale_down);
  }
  return events;
}

}  // namespace

Placement::State::State(PlacementOptions wanted)
    : options(std::move(wanted)),
      profiles(compile_profiles(options, interner)),
      snapshot(interner, classes, options.node_partitions, options.shard_epoch),
      cache(profiles, snapshot, options.class_cache_bytes),
      planner(cache, snapshot, options.seed),
      queue({{options.initial_backoff_ms, options.max_backoff_ms}, options.max_unschedulable_ms}, classes,
            *this),
      in_flight({options.shard, options.shard_epoch, options.node_partitions, options.commit_deadline_ms},
                snapshot, classes, queue),
      streams(snapshot, options.node_partitions,
              [this](const PodUid& uid, std::uint64_t n) { return in_flight.awaits(uid, n); }),
      reporter(options.publish_events),
      decisions(options.decisions),
      raised(options.node_partitions, false) {
  for (const CompiledProfile& p : profiles) {
    for (const CompiledScoringResource& r : p.fit_resources) snapshot.score(r.resource, !r.scalar);
    for (const CompiledScoringResource& r : p.balanced_resources) snapshot.score(r.resource, !r.scalar);
  }
}

ProfileId Placement::State::profile_of(std::string_view scheduler) const {
  const auto it = std::find_if(profiles.begin(), profiles.end(),
                               [&](const CompiledProfile& p) { return p.scheduler_name == scheduler; });
  return static_cast<ProfileId>(it - profiles.begin());
}

bool Placement::State::gated(const PendingPod& pod) const {
  const auto* gates = pod.wire().scheduling_gates();
  return gates != nullptr && gates->size() != 0 &&
         profiles[pod.profile].pre_enqueue.contains(PluginId::scheduling_gates);
}

ClassId Placement::State::acquire_class(const fb::Pod& pod) {
  const auto* bytes = pod.class_bytes();
  return classes.acquire(bytes == nullptr ? std::span<const std::uint8_t>{}
                                          : std::span(bytes->data(), bytes->size()));
}

/// Takes over the reference to `cls`.
void Placement::State::fill(PendingPod& p, const Message& message, ClassId cls, ProfileId profile) {
  const auto& wire = message.as<fb::Pod>();
  if (p.cls != kNoClass) classes.release(p.cls);
  p.cls = cls;
  p.profile = profile;
  p.pod = message;
  p.priority = wire.priority();
  const std::string_view pinned = text(wire.pinned_node());
  p.pinned_node = pinned.empty() ? kNoString : interner.id(pinned);
}

void Placement::State::forget(PodIndex pod) {
  classes.release(queue[pod].cls);
  queue.erase(pod);
}

void Placement::State::on_pod(const Message& message, FollowerTurn& turn) {
  const auto& wire = message.as<fb::Pod>();
  const PodUid uid = uid_of(wire.uid(), text(wire.namespace_()), text(wire.name()));
  const PodIndex pod = queue.find(uid);
  const ProfileId profile = profile_of(text(wire.scheduler_name()));
  if (!text(wire.node_name()).empty()) {
    if (pod != kNoPod) on_bound_pod(pod, message, turn);
    return;
  }
  if (profile == profiles.size() || finished(wire)) {
    if (pod == kNoPod) return;
    if (queue[pod].place == Place::in_flight) in_flight.abandon(pod, turn);
    forget(pod);
    return;
  }
  if (pod == kNoPod) {
    on_new_pod(message, uid, profile, turn);
  } else {
    on_known_pod(pod, message, profile, turn);
  }
}

void Placement::State::on_new_pod(const Message& message, const PodUid& uid, ProfileId profile,
                                  FollowerTurn& turn) {
  const auto& wire = message.as<fb::Pod>();
  const PodIndex pod = queue.create(uid, turn.now());
  PendingPod& p = queue[pod];
  fill(p, message, acquire_class(wire), profile);
  if (const AccountRecord* r = snapshot.ledger_record(uid)) {
    in_flight.hold(pod, r->slot);  // committed before this shard epoch, and not bound yet
    return;
  }
  queue.enqueue(pod, gated(p), turn.now());
  reporter.publish(p, "queued", {}, {}, {}, turn);
}

void Placement::State::on_bound_pod(PodIndex pod, const Message& message, FollowerTurn& turn) {
  PendingPod& p = queue[pod];
  if (p.place == Place::in_flight) {
    const std::string_view node = text(message.as<fb::Pod>().node_name());
    if (in_flight.is_asked(pod) && in_flight.node_of(pod) == node) {
      p.pod = message;  // the answer to our commit, still to come, ends it
      return;
    }
    if (in_flight.node_of(pod) == node) {
      in_flight.land(pod);
      ++totals.bound;
    } else {
      in_flight.abandon(pod, turn);
    }
  }
  forget(pod);
}

void Placement::State::on_known_pod(PodIndex pod, const Message& message, ProfileId profile,
                                    FollowerTurn& turn) {
  PendingPod& p = queue[pod];
  const auto& wire = message.as<fb::Pod>();
  const ClassId cls = acquire_class(wire);
  switch (p.place) {
    case Place::parked:
      on_parked_pod(pod, message, cls, profile, turn);
      return;
    case Place::gated:
      fill(p, message, cls, profile);
      if (!gated(p)) {
        queue.enqueue(pod, false, turn.now());
        reporter.publish(p, "queued", {}, {}, {}, turn);
      }
      return;
    case Place::active:
    case Place::backoff:
    case Place::error_backoff:
      if (p.priority != wire.priority()) {
        queue.alter(pod, [&](PendingPod& changed) { fill(changed, message, cls, profile); });
        return;
      }
      break;
    default:
      break;
  }
  fill(p, message, cls, profile);
}

void Placement::State::on_parked_pod(PodIndex pod, const Message& message, ClassId cls, ProfileId profile,
                                     FollowerTurn& turn) {
  const PluginSet rejectors = queue.rejectors(pod);
  const EventSet events = own_events(classes.get(queue[pod].cls), classes.get(cls));
  const bool other_profile = queue[pod].profile != profile;
  queue.alter(pod, [&](PendingPod& changed) { fill(changed, message, cls, profile); });
  if (other_profile || own_update_wakes(rejectors, cache.prepared(cls, profile), events))
    queue.wake(pod, turn.now());
}

void Placement::State::on_node(const fb::Node& node, FollowerTurn& turn) {
  const NodeUpdate update = snapshot.update(node);
  ClusterEvent event;
  event.slot = update.slot;
  event.node = snapshot.facts(update.slot).name;
  event.before = update.added ? nullptr : &update.before;
  if (update.added) event.what.insert(Event::node_add);
  if (update.allocatable_changed && !update.added) event.what.insert(Event::node_allocatable);
  if (update.labels_changed && !update.added) event.what.insert(Event::node_label);
  const bool uncordoned = update.unschedulable_changed && !node.unschedulable();
  if ((update.taints_changed || uncordoned) && !update.added) event.what.insert(Event::node_taint);
  if (!event.what.empty()) queue.event(event, turn.now());
}

void Placement::State::on_gone(const fb::Gone& gone, FollowerTurn& turn) {
  if (gone.kind() == fb::ObjectKind::Node) {
    snapshot.remove(text(gone.name()));
    in_flight.on_node_gone(text(gone.name()));
  } else if (gone.kind() == fb::ObjectKind::Pod) {
    const PodIndex pod = queue.find(uid_of(gone.uid(), text(gone.namespace_()), text(gone.name())));
    if (pod == kNoPod) return;
    if (queue[pod].place == Place::in_flight) in_flight.abandon(pod, turn);
    forget(pod);
  }
}

void Placement::State::on_effects(std::vector<LedgerEffect>& changes, FollowerTurn& turn) {
  for (const LedgerEffect& effect : changes) ended(in_flight.on_ledger(effect, turn), {}, turn);
  changes.clear();
  in_flight.on_ledger_versions();
}

void Placement::State::on_copy(const Message& message, FollowerTurn& turn) {
  const LedgerStreams::Copied copied = streams.on_copy(message, turn, effects);
  on_effects(effects, turn);
  if (!copied.complete || !copied.new_epoch) return;
  in_flight.on_new_epoch(copied.partition, turn);
  // A new owner may not know which shard epochs its predecessor refused.
  if (raised[copied.partition]) raise_epoch(copied.partition, turn);
}

void Placement::State::raise_epoch(std::uint32_t partition, FollowerTurn& turn) {
  flatbuffers::FlatBufferBuilder b(64);
  b.Finish(fb::CreateRaiseShardEpoch(b, options.shard, options.shard_epoch, partition));
  turn.send({ActorKind::node, partition, {}}, Message(Kind::raise_shard_epoch, b));
}

void Placement::State::on_epoch_raised(const fb::ShardEpochRaised& answer) {
  if (answer.shard() != options.shard || answer.partition() >= raised.size()) return;
  if (answer.shard_epoch() > options.shard_epoch) superseded = true;
  if (answer.shard_epoch() != options.shard_epoch || raised[answer.partition()]) return;
  raised[answer.partition()] = true;
  ++raised_count;
}

void Placement::State::ended(const FlightEnd& end, std::string_view why, FollowerTurn& turn) {
  switch (end.how) {
    case FlightEnd::How::none:
      return;
    case FlightEnd::How::granted:
      ++totals.scheduled;
      reporter.publish(queue[end.pod], "scheduled", in_flight.node_of(end.pod), {}, {}, turn);
      return;
    case FlightEnd::How::bound:
      ++totals.bound;
      forget(end.pod);
      return;
    case FlightEnd::How::gone:
      forget(end.pod);
      return;
    case FlightEnd::How::failed: {
      ++totals.errors;
      PendingPod& p = queue[end.pod];
      const std::string message = "running Bind plugin \"DefaultBinder\": " + std::string(why);
      p.message = std::make_shared<const std::string>(message);
      reporter.failed(p, "SchedulerError", message, profiles[p.profile].scheduler_name, turn);
      return;
    }
  }
}

void Placement::State::wake_freed(FollowerTurn& turn) {
  const std::vector<Slot> slots = snapshot.take_freed();
  if (!queue.any_parked()) return;
  for (const Slot slot : slots) {
    if (!snapshot.alive().contains(slot)) continue;
    const Columns& columns = snapshot.columns();
    queue.freed({{Event::assigned_pod_delete}, slot, snapshot.facts(slot).name, nullptr},
                columns.resource(kCpu)->free[slot], columns.resource(kMemory)->free[slot], turn.now());
  }
}

bool Placement::State::helps(const ParkedGroup& group, const ClusterEvent& event) {
  if (event.what.contains(Event::assigned_pod_delete)) {
    // A pod that left changes nothing but what is free on its node: it helps if the class fits there now,
    // which says more than the plugins' hints.
    const ClassState& state = cache.facts(group.cls, group.profile);
    return cache.leaf(state, event.slot) != kInfeasible;
  }
  const PreparedClass& prepared = cache.prepared(group.cls, group.profile);
  const PodFacts facts{group.pinned_node, kNoString};
  const SnapshotLane now(snapshot, event.slot);
  if (event.before == nullptr)
    return node_wakes<SnapshotLane, NodeBeforeView>(group.rejectors, prepared, facts, event.what, now,
                                                    nullptr);
  const NodeBeforeView before(snapshot, event.slot, *event.before);
  return node_wakes(group.rejectors, prepared, facts, event.what, now, &before);
}

void Placement::State::arm_tick(FollowerTurn& turn) {
  static constexpr std::uint8_t kTick[] = {1};
  turn.after(kSecond - turn.now() % kSecond, Message(Kind::self, Bytes(kTick)));
}

void Placement::State::on_tick(FollowerTurn& turn) {
  arm_tick(turn);
  queue.flush_backoff(turn.now());
  if (turn.now() - parked_flushed >= kParkedFlushMs) {
    parked_flushed = turn.now();
    queue.flush_parked(turn.now());
  }
  streams.ask_missing(turn);
  for (std::uint32_t p = 0; p < raised.size() && !superseded; ++p) {
    if (!raised[p]) raise_epoch(p, turn);
  }
  in_flight.on_tick(profiles, turn);
  classes.collect(kIdleClasses, [this](ClassId id) { cache.drop(id); });
}

bool Placement::State::ready() const {
  return synced && !superseded && raised_count == raised.size() && streams.complete();
}

void Placement::State::decide(PodIndex pod, FollowerTurn& turn) {
  PendingPod& p = queue[pod];
  if (p.wire().deletion_ms() != 0) {
    queue.withhold(pod);
    reporter.skipped_deleting(p, profiles[p.profile].scheduler_name, turn);
    return;
  }
  const std::uint64_t begin = clock();
  const PodDemand wanted = demand(p);
  const Choice choice = planner.plan(wanted);
  if (choice.slot == kNoSlot) {
    refuse(pod, wanted, turn);
    return;
  }
  in_flight.commit(pod, choice, turn);
  decisions.push({p.pod, snapshot.facts(choice.slot).name, choice.score, choice.feasible, p.cls,
                  turn.wall_ms(), clock() - begin});
}

void Placement::State::refuse(PodIndex pod, const PodDemand& wanted, FollowerTurn& turn) {
  const Refused refused = explain_refusal(cache, snapshot, wanted);
  PendingPod& p = queue[pod];
  p.message = refused.message;
  ++totals.unschedulable;
  queue.unschedulable(pod, refused.rejectors, {}, turn.now());
  reporter.failed(p, "Unschedulable", *refused.message, profiles[p.profile].scheduler_name, turn);
}

PlacementStats Placement::State::stats() const {
  PlacementStats s = totals;
  s.conflicts = in_flight.conflicts();
  s.asked_again = in_flight.asked_again();
  s.full_passes = cache.stats().full_passes;
  s.incremental_updates = cache.stats().updates;
  s.copies = streams.copies();
  s.active = queue.count(Place::active);
  s.backoff = queue.count(Place::backoff) + queue.count(Place::error_backoff);
  s.parked = queue.count(Place::parked);
  s.gated = queue.count(Place::gated);
  s.unanswered = in_flight.unanswered();
  s.granted = in_flight.granted();
  s.nodes = snapshot.node_count();
  s.accounted_pods = snapshot.accounted_pods();
  s.classes = classes.size();
  s.class_cache_bytes = cache.bytes();
  return s;
}

Placement::Placement(PlacementOptions options) : state_(std::make_unique<State>(std::move(options))) {}
Placement::~Placement() = default;

void Placement::start(FollowerTurn& turn) {
  for (std::uint32_t p = 0; p < state_->options.node_partitions; ++p) state_->raise_epoch(p, turn);
  state_->streams.ask_missing(turn);
  state_->parked_flushed = turn.now();
  state_->arm_tick(turn);
}

void Placement::on(const Message& message, FollowerTurn& turn) {
  State& s = *state_;
  switch (message.kind()) {
    case Kind::pod:
      s.on_pod(message, turn);
      break;
    case Kind::node:
      s.on_node(message.as<fb::Node>(), turn);
      break;
    case Kind::gone:
      s.on_gone(message.as<fb::Gone>(), turn);
      break;
    case Kind::synced:
      s.synced = true;
      break;
    case Kind::ledger_delta:
      s.streams.on_delta(message, turn, s.effects);
      s.on_effects(s.effects, turn);
      break;
    case Kind::ledger_copy:
      s.on_copy(message, turn);
      break;
    case Kind::commit_result:
      s.ended(s.in_flight.on_result(message.as<fb::CommitResult>(), turn), {}, turn);
      break;
    case Kind::bind_settled: {
      const auto& settled = message.as<fb::BindSettled>();
      s.ended(s.in_flight.on_settled(settled, turn), text(settled.message()), turn);
      break;
    }
    case Kind::shard_epoch_raised:
      s.on_epoch_raised(message.as<fb::ShardEpochRaised>());
      break;
    case Kind::query:
      s.on_query(message.as<fb::Query>(), turn);
      break;
    case Kind::self:
      s.on_tick(turn);
      break;
    default:
      // Namespaces and priority classes: no plugin of the profiles reads them; a pod's priority is resolved
      // by the API server.
      break;
  }
  s.wake_freed(turn);
}

bool Placement::wants_cycle() const {
  const State& s = *state_;
  const std::size_t most =
      std::size_t{s.options.batch_pods} * (std::max(s.options.batches_in_flight, 1U) - 1U);
  return s.queue.has_next() && s.ready() && s.in_flight.unanswered() <= most;
}

void Placement::cycle(FollowerTurn& turn) {
  State& s = *state_;
  if (!wants_cycle()) return;
  const std::uint64_t begin = s.clock();
  for (std::uint32_t i = 0; i < s.options.batch_pods; ++i) {
    const PodIndex pod = s.queue.pop(turn.now());
    if (pod == kNoPod) break;
    s.decide(pod, turn);
  }
  s.in_flight.send(s.profiles, turn);
  ++s.totals.cycles;
  s.totals.decide_ns += s.clock() - begin;
}

bool Placement::ready() const {
  return state_->ready();
}

PlacementStats Placement::stats() const {
  return state_->stats();
}

}  // namespace troupe
