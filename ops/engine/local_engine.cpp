#include "ops/engine/local_engine.hpp"

#include <deque>
#include <map>
#include <utility>

#include "actors/host/partition.hpp"
#include "actors/node/node_owner.hpp"
#include "actors/placement/placement.hpp"
#include "k8s-bridge/embedded/embedded_store.hpp"
#include "messages/fb/query_generated.h"
#include "ops/service/routes.hpp"
#include "store/memory_store.hpp"

namespace troupe {
namespace {

constexpr std::uint32_t kPartitions = 8;

class StandingClock final : public Clock {
 public:
  explicit StandingClock(Millis wall_ms) : wall_ms_(wall_ms) {}
  [[nodiscard]] Millis wall_ms() const override { return wall_ms_; }
  [[nodiscard]] Millis now() const override { return 0; }
  [[nodiscard]] std::int64_t nanos() const override { return 0; }

 private:
  Millis wall_ms_;
};

Message synced_message(std::uint64_t objects) {
  flatbuffers::FlatBufferBuilder b;
  b.Finish(fb::CreateSynced(b, objects));
  return {Kind::synced, b};
}

PlacementOptions placement_options(const LocalEngineOptions& options) {
  PlacementOptions out;
  out.node_partitions = kPartitions;
  out.seed = options.seed;
  out.scheduler_names = options.scheduler_names;
  out.publish_events = false;
  return out;
}

}  // namespace

struct LocalEngine::State final : HostServices {
  explicit State(LocalEngineOptions wanted)
      : options(std::move(wanted)),
        system_clock(options.wall_ms),
        random(options.seed),
        memory({.release = [this](std::vector<Envelope> e) { send(std::move(e)); }, .failed = {}},
               MemoryStore::Mode::immediate),
        placement(placement_options(options)),
        turn({ActorKind::placement, 0, "0"}, options.wall_ms, 0, random) {
    for (std::uint32_t p = 0; p < kPartitions; ++p) {
      partitions.push_back(
          std::make_unique<Partition>(std::make_unique<Hosted<NodeOwner>>(std::make_unique<NodeShared>()), p,
                                      1, options.seed + p, *this));
      partitions.back()->activate();
    }
    placement.start(turn);
    send(std::exchange(turn.sent(), {}));
  }

  // HostServices
  void send(std::vector<Envelope> envelopes) override {
    for (Envelope& e : envelopes) queue.push_back(std::move(e));
  }
  Store& store() override { return memory; }
  [[nodiscard]] const Authority& authority() const override { return embedded_authority; }
  [[nodiscard]] const Clock& clock() const override { return system_clock; }
  void report(const HostEvent&) override {}
  void wake(ActorKind, std::uint32_t) override {}

  void changed(const std::vector<Message>& changes) {
    for (const Message& m : changes) {
      if (m.kind() == Kind::pod) {
        const auto& pod = m.as<fb::Pod>();
        pods[{std::string(text(pod.namespace_())), std::string(text(pod.name()))}] = m;
      }
    }
    send(route_changes(changes, kPartitions));
  }

  void deliver(Envelope& e) {
    switch (e.to.kind) {
      case ActorKind::node:
        partitions[e.to.partition % kPartitions]->process({&e, 1});
        return;
      case ActorKind::placement:
        turn.set_sender(e.from);
        placement.on(e.message, turn);
        send(std::exchange(turn.sent(), {}));
        return;
      case ActorKind::bridge:
        execute(e.message);
        return;
      case ActorKind::api:
        answers.push_back(std::move(e.message));
        return;
      case ActorKind::report:
      case ActorKind::cluster:
        return;  // failures are read by `pending`
    }
  }

  void execute(const Message& message) {
    const auto& intent = message.as<fb::Intent>();
    std::vector<Message> changes;
    const EmbeddedAnswer answer = cluster.execute(intent, changes);
    changed(changes);
    flatbuffers::FlatBufferBuilder b;
    const auto key = b.CreateString(intent.owner_key());
    const auto why = b.CreateString(answer.message);
    fb::IntentResultBuilder r(b);
    r.add_id(intent.id());
    r.add_kind(intent.kind());
    r.add_stage(fb::IntentStage::Complete);
    r.add_owner_key(key);
    r.add_uid(intent.uid());
    r.add_outcome(answer.outcome);
    r.add_http_status(answer.http_status);
    r.add_message(why);
    r.add_owner_kind(intent.owner_kind());
    r.add_partition(intent.partition());
    b.Finish(r.Finish());
    send(route_results({Message(Kind::intent_result, b)}, kPartitions));
  }

  void drain() {
    for (;;) {
      while (!queue.empty()) {
        Envelope e = std::move(queue.front());
        queue.pop_front();
        deliver(e);
      }
      if (!options.decide || !placement.wants_cycle()) return;
      placement.cycle(turn);
      send(std::exchange(turn.sent(), {}));
    }
  }

  LocalEngineOptions options;
  EmbeddedAuthority embedded_authority;
  StandingClock system_clock;
  Random random;
  MemoryStore memory;
  Placement placement;
  FollowerTurn turn;
  std::vector<std::unique_ptr<Partition>> partitions;
  EmbeddedStore cluster;
  std::deque<Envelope> queue;
  std::vector<Message> answers;
  std::map<std::pair<std::string, std::string>, Message> pods;
  std::uint64_t objects = 0;
  bool synced = false;
};

LocalEngine::LocalEngine(LocalEngineOptions options) : state_(std::make_unique<State>(std::move(options))) {}
LocalEngine::~LocalEngine() = default;

void LocalEngine::put(const std::vector<Message>& objects) {
  std::vector<Message> changes;
  for (const Message& object : objects) state_->cluster.put(object, changes);
  state_->objects += objects.size();
  state_->changed(changes);
}

void LocalEngine::settle() {
  if (!std::exchange(state_->synced, true))
    state_->send(route_synced(synced_message(state_->objects), kPartitions));
  state_->drain();
}

std::vector<Message> LocalEngine::pods() const {
  std::vector<Message> out;
  out.reserve(state_->pods.size());
  for (const auto& [name, pod] : state_->pods) out.push_back(pod);
  return out;
}

Result<std::string> LocalEngine::query(std::string_view verb, std::string_view ns, std::string_view name,
                                       std::uint32_t limit) {
  state_->answers.clear();
  state_->send(
      {{{ActorKind::api, 0, {}}, {ActorKind::placement, 0, "0"}, query_message(1, verb, ns, name, limit)}});
  state_->drain();
  for (const Message& m : state_->answers) {
    if (m.kind() != Kind::query_result) continue;
    const auto& answer = m.as<fb::QueryResult>();
    if (answer.ok()) return std::string(text(answer.json()));
    return fail(
        {ErrorCode::not_found, query_error(text(answer.json())), std::string(name), std::string(verb), {}});
  }
  return fail({ErrorCode::unavailable, "placement did not answer", std::string(name), std::string(verb), {}});
}

}  // namespace troupe
