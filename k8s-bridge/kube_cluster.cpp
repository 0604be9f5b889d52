#include "k8s-bridge/kube_cluster.hpp"

#include <algorithm>
#include <atomic>
#include <future>
#include <mutex>
#include <utility>

#include "k8s-bridge/delivery.hpp"
#include "k8s-bridge/lease/elector.hpp"
#include "k8s-bridge/reject_events.hpp"
#include "messages/fb/intent_generated.h"

namespace troupe {
namespace {

constexpr std::size_t kMostUnposted = 1000;
constexpr int kReadConnections = 8;

Error refusal(const ObjectKindInfo& kind, const HttpOutcome& outcome) {
  Error error{ErrorCode::unavailable,
              "cannot list " + std::string(kind.name) + " objects",
              std::string(kind.path),
              {},
              "check that the API server runs and can be reached"};
  if (!outcome.has_value()) {
    error.field = outcome.error().what;
    return error;
  }
  const auto status = Decoder().status(outcome->body);
  error.field = status.has_value() && !status->message.empty()
                    ? status->message
                    : "HTTP status " + std::to_string(outcome->status);
  if (outcome->status == 401) {
    error.code = ErrorCode::permission;
    error.remedy = "check the credentials of the kubeconfig or service account";
  } else if (outcome->status == 403) {
    error.code = ErrorCode::permission;
    error.remedy = "give the user or service account the project's ClusterRole";
  } else if (outcome->status == 404) {
    error.code = ErrorCode::not_found;
    error.remedy = "check that the URL is that of a Kubernetes API server";
  }
  return error;
}

}  // namespace

struct KubeCluster::Impl {
  Impl(KubeClusterOptions opts, std::unique_ptr<HttpClient> read_client,
       std::unique_ptr<HttpClient> write_client, std::unique_ptr<Timers> clock)
      : options(std::move(opts)),
        timers(std::move(clock)),
        reads(std::move(read_client)),
        writes(std::move(write_client)),
        seen(object_kinds().size(), 0) {
    for (std::size_t k = 0; k < object_kinds().size(); ++k) {
      Reflector::Hooks hooks;
      hooks.reflected = [this, k](Reflected out) { reflected(k, std::move(out)); };
      hooks.trouble = [this, k](const std::optional<Error>& trouble) { told_trouble(k, trouble); };
      reflectors.push_back(
          std::make_unique<Reflector>(object_kinds()[k], *reads, *timers, options.reflect, hooks));
    }
    if (options.lease) {
      LeaseElector::Hooks hooks;
      hooks.role = [this](bool gained) { role(gained); };
      hooks.note = options.note;
      elector = std::make_unique<LeaseElector>(*reads, *timers, *options.lease, options.component,
                                               std::move(hooks));
    }
    IntentExecutor::Hooks hooks;
    hooks.authority = [this](std::uint32_t partition, std::uint64_t epoch) {
      return leading() &&
             (partition == kBridgePartition || !options.authority || options.authority(partition, epoch));
    };
    hooks.settled = [this](std::vector<Message> results) { delivery.settled(std::move(results)); };
    hooks.would = options.would;
    executor = std::make_unique<IntentExecutor>(*writes, *timers, options.executor, std::move(hooks));
  }

  [[nodiscard]] bool leading() const { return elector == nullptr ? begun.load() : elector->leading(); }

  Result<void> start(ClusterSink& sink) {
    for (const ObjectKindInfo& kind : object_kinds()) {
      if (auto ready = probe(kind); !ready) return ready;
    }
    delivery.start(sink);
    begun = true;
    if (elector == nullptr) delivery.active(true);
    list_everything();
    if (elector != nullptr) elector->start();
    return {};
  }

  Result<void> probe(const ObjectKindInfo& kind) {
    HttpRequest request;
    request.method = "GET";
    request.path = std::string(kind.path) + "?limit=1";
    request.timeout = options.connect_timeout;
    auto promise = std::make_shared<std::promise<HttpOutcome>>();
    auto answer = promise->get_future();
    reads->send(std::move(request),
                [promise](HttpOutcome outcome) { promise->set_value(std::move(outcome)); });
    const HttpOutcome outcome = answer.get();
    // A server that is busy now is one that is there.
    if (outcome.has_value() && (outcome->status < 400 || outcome->status == 429 || outcome->status >= 500))
      return {};
    return fail(refusal(kind, outcome));
  }

  // Every list that was begun before counts no longer: `synced` waits for those begun here.
  void list_everything() {
    {
      const std::lock_guard lock(mutex);
      ++round;
    }
    for (const auto& reflector : reflectors) reflector->start();
  }

  void role(bool gained) {
    if (!gained) {
      writes->abort();
      return delivery.active(false);
    }
    delivery.active(true);
    list_everything();
    std::vector<RejectedObject> late;
    {
      const std::lock_guard lock(mutex);
      late.swap(unposted);
    }
    for (const RejectedObject& rejected : late) post(rejected);
  }

  void reflected(std::size_t k, Reflected out) {
    delivery.changed(std::move(out.changes));
    for (const RejectedObject& rejected : out.rejected) {
      delivery.rejected(rejected.error);
      post(rejected);
    }
    if (!out.consistent) return;
    const std::lock_guard lock(mutex);
    const bool before = complete();
    seen[k] = out.starts;
    if (!before && complete()) delivery.synced();
  }

  [[nodiscard]] bool complete() const {
    return std::all_of(seen.begin(), seen.end(), [&](std::uint64_t starts) { return starts >= round; });
  }

  void post(const RejectedObject& rejected) {
    if (rejected.ref.name.empty()) return;
    {
      const std::lock_guard lock(mutex);
      if (!leading()) {
        if (unposted.size() < kMostUnposted) unposted.push_back(rejected);
        return;
      }
      if (!budget.take(timers->now_ms())) return;
    }
    std::vector<Message> intents;
    intents.push_back(reject_event(rejected, options.component, timers->wall_us()));
    executor->issue(std::move(intents));
  }

  void told_trouble(std::size_t k, const std::optional<Error>& trouble) {
    if (trouble) {
      delivery.trouble(*trouble);
    } else if (options.note) {
      options.note("lists and watches " + std::string(object_kinds()[k].name) + " objects again");
    }
  }

  void stop() {
    if (std::exchange(stopped, true)) return;
    for (const auto& reflector : reflectors) reflector->stop();
    executor->stop(options.stop_limit);
    if (elector != nullptr && begun) elector->release(options.stop_limit);
    delivery.stop();
  }

  const KubeClusterOptions options;
  Delivery delivery;
  const std::unique_ptr<Timers> timers;
  // Destroyed before the timers and the delivery that their callbacks use, after the parts that use them.
  const std::unique_ptr<HttpClient> reads;
  const std::unique_ptr<HttpClient> writes;
  std::atomic<bool> begun{false};
  bool stopped = false;

  std::mutex mutex;
  std::uint64_t round = 0;          // how often everything was listed
  std::vector<std::uint64_t> seen;  // per kind: the round of its last consistent list
  std::vector<RejectedObject> unposted;
  RejectBudget budget;

  std::unique_ptr<LeaseElector> elector;
  std::unique_ptr<IntentExecutor> executor;
  std::vector<std::unique_ptr<Reflector>> reflectors;
};

Result<std::unique_ptr<KubeCluster>> KubeCluster::make(KubeClusterOptions options) {
  if (options.lease) {
    if (auto usable = check(*options.lease); !usable) return fail(usable.error());
  }
  options.executor.concurrency = std::min(options.executor.concurrency, options.http.connections);
  auto writes = make_http_client(options.server, options.http);
  if (!writes) return fail(writes.error());
  HttpOptions for_reading = options.http;
  for_reading.connections = kReadConnections;
  auto reads = make_http_client(options.server, for_reading);
  if (!reads) return fail(reads.error());
  return std::make_unique<KubeCluster>(std::move(options), std::move(*reads), std::move(*writes),
                                       make_timers());
}

KubeCluster::KubeCluster(KubeClusterOptions options, std::unique_ptr<HttpClient> reads,
                         std::unique_ptr<HttpClient> writes, std::unique_ptr<Timers> timers)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(reads), std::move(writes),
                                   std::move(timers))) {}

KubeCluster::~KubeCluster() {
  stop();
}

Result<void> KubeCluster::start(ClusterSink& sink) {
  return impl_->start(sink);
}
void KubeCluster::issue(std::vector<Message> intents) {
  impl_->executor->issue(std::move(intents));
}
void KubeCluster::stop() {
  impl_->stop();
}

PortStats KubeCluster::stats() const {
  PortStats out;
  const ExecutorStats executor = impl_->executor->stats();
  for (const auto& kind : executor.outcomes) {
    for (std::size_t outcome = 0; outcome < kind.size(); ++outcome) {
      const bool done = outcome == static_cast<std::size_t>(fb::IntentOutcome::Done);
      (done ? out.intents_done : out.intents_failed) += kind[outcome];
    }
  }
  out.intents_waiting = executor.waiting;
  out.requests = executor.requests;
  for (const ReflectorStats& reflector : reflector_stats()) {
    out.requests += reflector.requests;
    out.relists += reflector.relists;
    out.rejected_objects += reflector.rejected;
  }
  return out;
}

bool KubeCluster::leading() const {
  return impl_->leading();
}
bool KubeCluster::healthy() const {
  return impl_->elector == nullptr || impl_->elector->healthy();
}
std::string KubeCluster::leader() const {
  return impl_->elector == nullptr ? std::string() : impl_->elector->holder();
}
ExecutorStats KubeCluster::executor_stats() const {
  return impl_->executor->stats();
}

std::vector<ReflectorStats> KubeCluster::reflector_stats() const {
  std::vector<ReflectorStats> out;
  for (const auto& reflector : impl_->reflectors) out.push_back(reflector->stats());
  return out;
}

}  // namespace troupe
