#include "actors/host/runtime.hpp"

#include <algorithm>
#include <atomic>
#include <future>
#include <map>
#include <span>
#include <utility>

#include "actors/host/guarded.hpp"
#include "actors/host/local_bus.hpp"
#include "actors/host/scheduler.hpp"

namespace troupe {
namespace {

/// Envelopes that one write set may come from: a long queue becomes several, so that the first do not wait
/// for the last.
constexpr std::size_t kBatch = 4096;

}  // namespace

class Runtime::Impl final : public HostServices {
 public:
  explicit Impl(RuntimeOptions given)
      : options(std::move(given)), bus([this](const Envelope& envelope) { undeliverable(envelope); }) {}

  ~Impl() override {
    bus.close();
    if (scheduler != nullptr) scheduler->stop();
    close_store();  // ends the writer thread, which pokes actors
  }

  // What partitions and followers use.
  void send(std::vector<Envelope> envelopes) override { bus.send(std::move(envelopes)); }
  Store& store() override { return *database; }
  [[nodiscard]] const Authority& authority() const override { return rights; }
  [[nodiscard]] const Clock& clock() const override { return time; }
  void report(const HostEvent& event) override {
    if (options.report) options.report(event);
  }
  void wake(ActorKind kind, std::uint32_t partition) override { bus.knock(kind, partition); }

  void undeliverable(const Envelope& envelope) {
    if (envelope.to == event_address()) return;  // published, and nobody listens
    report({HostEvent::Type::undeliverable, envelope.message.kind(), envelope.to, "dropped"});
  }
  void fail_with(const Error& error) {
    rights.fail();
    if (!failed.exchange(true) && options.fatal) options.fatal(error);
  }
  void close_store() {
    if (database != nullptr && !closed.exchange(true)) database->close();
  }

  struct PartitionActor {
    Mailbox* mailbox = nullptr;
    std::unique_ptr<Partition> engine;
    std::vector<Envelope> batch;
  };
  struct FollowerActor {
    Address self;
    std::unique_ptr<HostedFollower> hosted;
    Mailbox* mailbox = nullptr;
    std::unique_ptr<FollowerEngine> engine;
    std::vector<Envelope> batch;
  };

  Result<void> start();
  std::optional<Millis> run(PartitionActor& actor);
  std::optional<Millis> run(FollowerActor& actor);
  [[nodiscard]] std::optional<Millis> delay(std::optional<Millis> due) const {
    if (!due) return std::nullopt;
    return std::max<Millis>(0, *due - time.now());
  }
  bool come_to_rest(std::chrono::steady_clock::time_point deadline);

  RuntimeOptions options;
  SystemClock time;
  EmbeddedAuthority rights;
  LocalBus bus;
  std::vector<OwnerGroup> groups;
  std::unique_ptr<Store> database;
  std::vector<std::unique_ptr<PartitionActor>> partitions;
  std::vector<std::unique_ptr<FollowerActor>> followers;
  std::unique_ptr<Scheduler> scheduler;
  std::atomic<bool> stopping{false};
  std::atomic<bool> failed{false};
  std::atomic<bool> closed{false};
};

Result<void> Runtime::Impl::start() {
  // Addresses first: restored owners may send as soon as their epoch is durable. Nobody is woken before
  // `knock`.
  std::size_t actor = 0;
  const auto next_mailbox = [&](ActorKind kind, std::uint32_t partition) {
    return &bus.add_mailbox(kind, partition, [this, number = actor++] { scheduler->poke(number); });
  };
  for (const OwnerGroup& group : groups) {
    for (std::uint32_t p = 0; p < group.partitions; ++p) {
      partitions.push_back(std::make_unique<PartitionActor>());
      partitions.back()->mailbox = next_mailbox(group.traits->kind, p);
    }
  }
  for (const auto& follower : followers) {
    follower->mailbox = next_mailbox(follower->self.kind, follower->self.partition);
  }

  StoreHooks hooks{[this](std::vector<Envelope> envelopes) { bus.send(std::move(envelopes)); },
                   [this](const Error& error) { fail_with(error); }};
  auto opened = options.open ? options.open(std::move(hooks)) : open_store(options.store, std::move(hooks));
  if (!opened) return fail(opened.error());
  database = std::move(*opened);
  auto restored = restore_partitions(groups, options.seed, *this);
  if (!restored) return fail(restored.error());

  scheduler = std::make_unique<Scheduler>(std::max<std::size_t>(1, options.threads));
  for (std::size_t i = 0; i < partitions.size(); ++i) {
    partitions[i]->engine = std::move((*restored)[i]);
    PartitionActor& it = *partitions[i];
    scheduler->spawn([this, &it] { return run(it); }, false);
  }
  for (const auto& follower : followers) {
    follower->engine =
        std::make_unique<FollowerEngine>(std::move(follower->hosted), follower->self, options.seed, *this);
    FollowerActor& it = *follower;
    scheduler->spawn([this, &it] { return run(it); }, true);
  }
  for (std::size_t i = 0; i < actor; ++i) scheduler->poke(i);
  return {};
}

std::optional<Millis> Runtime::Impl::run(PartitionActor& actor) {
  bus.begin_work();
  actor.mailbox->take(actor.batch);
  const std::size_t messages = actor.batch.size();
  const auto error = guarded([&] {
    std::span<Envelope> rest(actor.batch);
    do {
      const std::size_t n = std::min(rest.size(), kBatch);
      actor.engine->process(rest.first(n));
      rest = rest.subspan(n);
    } while (!rest.empty());
  });
  actor.batch.clear();
  if (error) fail_with({ErrorCode::unavailable, "a partition's engine failed: " + *error, {}, {}, "restart"});
  const auto again = delay(actor.engine->next_due());
  bus.end_work(messages);
  return again;
}

std::optional<Millis> Runtime::Impl::run(FollowerActor& actor) {
  bus.begin_work();
  actor.mailbox->take(actor.batch);
  const std::size_t messages = actor.batch.size();
  std::optional<Millis> again;
  const auto error = guarded([&] {
    FollowerEngine& engine = *actor.engine;
    engine.process(actor.batch);
    const bool go = !stopping.load() && !failed.load();
    if (go && engine.wants_cycle()) engine.cycle();
    again = go && engine.wants_cycle() ? Millis{0} : delay(engine.next_due());
    if (engine.broken())
      fail_with({ErrorCode::unavailable,
                 "a follower is broken: " + *engine.broken(),
                 std::string(to_string(actor.self.kind)),
                 {},
                 "restart"});
  });
  actor.batch.clear();
  if (error) fail_with({ErrorCode::unavailable, "a follower's engine failed: " + *error, {}, {}, "restart"});
  bus.end_work(messages);
  return again;
}

/// At rest: nothing in flight, and nothing was delivered while everything that the store had at that moment
/// was written and released.
bool Runtime::Impl::come_to_rest(std::chrono::steady_clock::time_point deadline) {
  while (!failed.load()) {
    if (!bus.wait_for_rest(deadline)) return false;
    const std::uint64_t before = bus.deliveries();
    auto reached = std::make_shared<std::promise<void>>();
    WriteSet barrier;
    barrier.released = [reached] { reached->set_value(); };
    auto released = reached->get_future();
    database->commit(std::move(barrier));
    while (released.wait_for(std::chrono::milliseconds(10)) != std::future_status::ready) {
      if (failed.load() || std::chrono::steady_clock::now() > deadline) return false;
    }
    if (bus.wait_for_rest(std::chrono::steady_clock::now()) && bus.deliveries() == before) return true;
  }
  return false;
}

Runtime::Runtime(RuntimeOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}

Runtime::~Runtime() = default;

void Runtime::add(OwnerGroup group) {
  impl_->groups.push_back(std::move(group));
}

void Runtime::add(Address self, std::unique_ptr<HostedFollower> follower) {
  impl_->followers.push_back(std::make_unique<Impl::FollowerActor>());
  impl_->followers.back()->self = std::move(self);
  impl_->followers.back()->hosted = std::move(follower);
}

void Runtime::add_port(ActorKind kind, std::uint32_t partition, Take take) {
  impl_->bus.add_port(kind, partition, std::move(take));
}

Result<void> Runtime::start() {
  return impl_->start();
}

Bus& Runtime::bus() {
  return impl_->bus;
}

bool Runtime::drain(std::chrono::milliseconds limit) {
  impl_->stopping.store(true);
  const bool rested =
      impl_->scheduler != nullptr && impl_->come_to_rest(std::chrono::steady_clock::now() + limit);
  impl_->bus.close();
  if (impl_->scheduler != nullptr) impl_->scheduler->stop();
  impl_->close_store();
  return rested;
}

bool Runtime::failed() const {
  return impl_->failed.load();
}

const Authority& Runtime::authority() const {
  return impl_->rights;
}

std::vector<HostStats> Runtime::stats() const {
  std::map<ActorKind, HostStats> kinds;
  const auto add = [&](const auto& actor) {
    if (actor->engine == nullptr) return;
    HostStats one = actor->engine->stats();
    one.queue_depth = actor->mailbox->size();
    const auto [at, first] = kinds.try_emplace(one.kind, one);
    if (!first) at->second += one;
  };
  std::ranges::for_each(impl_->partitions, add);
  std::ranges::for_each(impl_->followers, add);
  std::vector<HostStats> out;
  for (const auto& [kind, stats] : kinds) out.push_back(stats);
  return out;
}

std::vector<Quarantined> Runtime::quarantined() const {
  std::vector<Quarantined> out;
  const auto add = [&](const auto& actor) {
    if (actor->engine == nullptr) return;
    std::ranges::move(actor->engine->quarantined(), std::back_inserter(out));
  };
  std::ranges::for_each(impl_->partitions, add);
  std::ranges::for_each(impl_->followers, add);
  return out;
}

StoreStats Runtime::store_stats() const {
  return impl_->database == nullptr ? StoreStats{} : impl_->database->stats();
}

std::uint64_t Runtime::epoch(ActorKind kind, std::uint32_t partition) const {
  for (const auto& actor : impl_->partitions) {
    if (actor->engine != nullptr && actor->engine->kind() == kind &&
        actor->engine->partition() == partition) {
      return actor->engine->epoch();
    }
  }
  return 0;
}

}  // namespace troupe
