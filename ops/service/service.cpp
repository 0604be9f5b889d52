#include "ops/service/service.hpp"

#include <algorithm>
#include <utility>

#include "actors/node/node_owner.hpp"
#include "actors/report/report_owner.hpp"
#include "messages/fb/node_generated.h"
#include "messages/fb/query_generated.h"
#include "ops/log/log.hpp"
#include "ops/service/routes.hpp"

namespace troupe {
namespace {

constexpr std::chrono::seconds kDrainLimit{20};
constexpr std::string_view kShardEpochs = "shard-epoch/";

const Log& log() {
  static const Log instance("service");
  return instance;
}

Address placement_address() {
  return {ActorKind::placement, 0, "0"};
}
Address api_address() {
  return {ActorKind::api, 0, {}};
}

void report(const HostEvent& event) {
  static const Log host("host");
  host.warn(to_string(event.type), {{"message", std::string(to_string(event.message))},
                                    {"kind", std::string(to_string(event.address.kind))},
                                    {"key", event.address.key},
                                    {"why", event.text}});
}

}  // namespace

Service::Service(ServiceOptions options, std::unique_ptr<ClusterPort> port,
                 std::function<void(const Error&)> fatal)
    : options_(std::move(options)), port_(std::move(port)), fatal_(std::move(fatal)) {
  RuntimeOptions runtime;
  runtime.store = options_.store;
  runtime.threads = options_.threads;
  runtime.seed = options_.seed;
  runtime.report = report;
  runtime.fatal = [this](const Error& error) { failed(error); };
  runtime.open = [this](StoreHooks hooks) -> Result<std::unique_ptr<Store>> {
    auto store = open_store(options_.store, std::move(hooks));
    if (!store) return store;
    if (auto epoch = read_shard_epoch(**store); !epoch) return fail(epoch.error());
    return store;
  };
  runtime_ = std::make_unique<Runtime>(std::move(runtime));
  runtime_->add_owner<NodeOwner>(options_.node_partitions);
  runtime_->add_owner<ReportOwner>(1);
  runtime_->add_follower(placement_address(),
                         std::make_unique<DecidingFollower>([this] { return placement_options(); }, deciding_,
                                                            [this] { became_ready(); }));
  runtime_->add_port(ActorKind::bridge, 0, [this](std::vector<Envelope> envelopes) {
    std::vector<Message> intents;
    intents.reserve(envelopes.size());
    for (Envelope& e : envelopes) intents.push_back(std::move(e.message));
    port_->issue(std::move(intents));
  });
  runtime_->add_port(ActorKind::api, 0,
                     [this](std::vector<Envelope> envelopes) { take_api(std::move(envelopes)); });
}

Service::~Service() {
  stop();
}

Result<void> Service::read_shard_epoch(Store& store) {
  std::uint64_t last = 0;
  auto scanned = store.scan(Family::meta, kShardEpochs, [&](std::string_view, std::string_view value) {
    last = std::max(last, decode_u64(value));
    return true;
  });
  if (!scanned) return scanned;
  shard_epoch_ = last + 1;
  return {};
}

PlacementOptions Service::placement_options() const {
  PlacementOptions placement;
  placement.shard_epoch = shard_epoch_;
  placement.node_partitions = options_.node_partitions;
  placement.seed = options_.seed;
  placement.scheduler_names = options_.scheduler_names;
  placement.publish_events = options_.publish_events;
  placement.stopwatch = [] {
    return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  };
  return placement;
}

Result<void> Service::start() {
  if (auto started = runtime_->start(); !started) return started;
  started_.store(true);
  if (auto started = port_->start(*this); !started) return started;
  return {};
}

void Service::stop() {
  if (stopped_.exchange(true) || !started_.load()) return;
  log().info("draining");
  deciding_->stopping.store(true);
  port_->stop();
  if (!runtime_->drain(kDrainLimit)) {
    log().warn("drain did not finish in time; what was pending is issued at the next start");
  }
  log().info("stopped");
}

Readiness Service::readiness() const {
  {
    const std::lock_guard lock(mutex_);
    if (!failure_.empty()) return {false, failure_};
  }
  if (!started_.load()) return {false, "starting"};
  if (stopped_.load()) return {false, "stopping"};
  if (!active_.load()) return {true, "standby: another replica holds the lease"};
  if (!synced_.load()) return {false, "waiting for the first consistent list"};
  if (!deciding_->ready.load()) return {false, "waiting for the copies of all node partitions"};
  return {true, "deciding"};
}

bool Service::wait_ready(std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, limit, [&] { return deciding_->ready.load() || !failure_.empty(); }) &&
         failure_.empty();
}

void Service::became_ready() {
  log().info("deciding", {{"shard_epoch", std::to_string(shard_epoch_)}});
  { const std::lock_guard lock(mutex_); }
  changed_.notify_all();
}

Result<std::string> Service::query(std::string_view verb, std::string_view ns, std::string_view name,
                                   std::uint32_t limit, std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  const std::uint64_t id = next_question_++;
  Question& question = questions_[id];
  lock.unlock();
  runtime_->bus().send({{api_address(), placement_address(), query_message(id, verb, ns, name, limit)}});
  lock.lock();
  const bool in_time = changed_.wait_for(lock, timeout, [&] { return question.answered; });
  const Question got = std::move(question);
  questions_.erase(id);
  if (!in_time)
    return fail(
        {ErrorCode::unavailable, "placement did not answer in time", std::string(verb), {}, "try again"});
  if (!got.ok)
    return fail({ErrorCode::not_found, query_error(got.json), std::string(name), std::string(verb), {}});
  return got.json;
}

std::string Service::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void Service::take_api(std::vector<Envelope> envelopes) {
  bool answers = false;
  std::vector<Message> events;
  for (Envelope& e : envelopes) {
    if (e.message.kind() == Kind::public_event) {
      events.push_back(std::move(e.message));
    } else if (e.message.kind() == Kind::query_result) {
      const auto& result = e.message.as<fb::QueryResult>();
      const std::lock_guard lock(mutex_);
      const auto it = questions_.find(result.id());
      if (it == questions_.end()) continue;
      it->second = {true, result.ok(), std::string(text(result.json()))};
      answers = true;
    }
  }
  if (!events.empty()) events_.publish(std::move(events));
  if (answers) changed_.notify_all();
}

void Service::failed(const Error& error) {
  log().error("failed", {{"error", error.text()}});
  {
    const std::lock_guard lock(mutex_);
    if (failure_.empty()) failure_ = error.text();
  }
  changed_.notify_all();
  fatal_(error);
}

void Service::changed(std::vector<Message> changes) {
  runtime_->bus().send(route_changes(changes, options_.node_partitions));
}

void Service::synced() {
  flatbuffers::FlatBufferBuilder b;
  b.Finish(fb::CreateSynced(b, 0));
  runtime_->bus().send(route_synced(Message(Kind::synced, b), options_.node_partitions));
  synced_.store(true);
  log().info("mirror is in step with the cluster");
}

void Service::settled(std::vector<Message> results) {
  runtime_->bus().send(route_results(results, options_.node_partitions));
}

void Service::rejected(const Error& error) {
  rejected_.fetch_add(1);
  static const Log bridge("bridge");
  bridge.warn("object not understood", {{"error", error.text()}});
}

void Service::active(bool active) {
  const bool was = active_.exchange(active);
  log().info(active ? "active" : "standby");
  if (was && !active && !stopped_.load()) {
    failed({ErrorCode::conflict,
            "the lease was lost",
            {},
            {},
            "the process ends and starts again as a standby"});
  }
}

}  // namespace troupe
