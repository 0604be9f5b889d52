#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "k8s-bridge/embedded/embedded_cluster.hpp"
#include "messages/fb/node_generated.h"
#include "ops/api/api.hpp"
#include "ops/cli/allocation.hpp"
#include "ops/cli/commands.hpp"
#include "ops/cli/up_cluster.hpp"
#include "ops/daemon/daemon.hpp"
#include "ops/daemon/signals.hpp"
#include "ops/service/service.hpp"

namespace troupe::cli {
namespace {

using std::chrono::steady_clock;

struct Options {
  DaemonOptions daemon;  // --kubeconfig: a real cluster
  std::vector<std::string> trace;
  std::uint64_t seed = 1;
  std::string store;
  std::uint16_t port = 10251;
  std::string format = "table";
};

/// The embedded cluster, with the sums of what is bound.
class TallyPort final : public ClusterPort, private ClusterSink {
 public:
  EmbeddedCluster& cluster() { return cluster_; }
  [[nodiscard]] Allocation tally() {
    const std::lock_guard lock(mutex_);
    return tally_;
  }

  Result<void> start(ClusterSink& sink) override {
    sink_ = &sink;
    return cluster_.start(*this);
  }
  void issue(std::vector<Message> intents) override { cluster_.issue(std::move(intents)); }
  void stop() override { cluster_.stop(); }
  [[nodiscard]] PortStats stats() const override { return cluster_.stats(); }

 private:
  void changed(std::vector<Message> changes) override {
    {
      // Each pod appears with a node once: nothing here resizes or deletes.
      const std::lock_guard lock(mutex_);
      for (const Message& m : changes) count(m, tally_);
    }
    sink_->changed(std::move(changes));
  }
  void synced() override { sink_->synced(); }
  void settled(std::vector<Message> results) override { sink_->settled(std::move(results)); }
  void rejected(const Error& error) override { sink_->rejected(error); }
  void active(bool active) override { sink_->active(active); }

  EmbeddedCluster cluster_;
  ClusterSink* sink_ = nullptr;
  std::mutex mutex_;
  Allocation tally_;
};

struct Progress {
  std::uint64_t bound = 0;
  std::uint64_t waiting = 0;  // parked: no node fits
  bool still = false;         // nothing moves any more
};

Progress progress_of(const PlacementStats& p, std::uint64_t pods) {
  Progress out{p.bound, p.parked + p.gated, false};
  out.still = p.bound + p.parked + p.gated >= pods && p.active + p.backoff + p.unanswered + p.granted == 0;
  return out;
}

void draw(const Progress& p, std::uint64_t pods, double seconds) {
  constexpr std::uint64_t kWidth = 40;
  const std::uint64_t done = pods == 0 ? kWidth : std::min(kWidth, (p.bound + p.waiting) * kWidth / pods);
  std::cerr << fmt::format("\r[{}{}] {} bound, {} waiting, {:.1f} s ", std::string(done, '#'),
                           std::string(kWidth - done, '.'), p.bound, p.waiting, seconds)
            << std::flush;
}

/// A quantile of `d`, milliseconds: the upper bound of the bucket that holds it.
double quantile_ms(const Durations& d, double q) {
  const auto wanted = static_cast<std::uint64_t>(q * static_cast<double>(d.count));
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < Durations::kBuckets; ++i) {
    seen += d.buckets[i];
    if (seen > wanted) return static_cast<double>(std::uint64_t{1} << i) / 1000.0;
  }
  return static_cast<double>(d.max_ns) / 1e6;
}

struct Summary {
  UpCluster cluster;
  Progress progress;
  double seconds = 0;
  Allocation allocation;
  std::map<std::string, std::uint64_t> reasons;  // message -> pods
  double commit_p50_ms = 0;
  double commit_p99_ms = 0;
};

/// The reasons of a failure text without its counts, sorted: equal for pods that wait for the same things.
std::string without_counts(std::string_view message) {
  constexpr std::string_view kLead = "nodes are available: ";
  if (const std::size_t lead = message.find(kLead); lead != std::string_view::npos)
    message.remove_prefix(lead + kLead.size());
  if (message.ends_with('.')) message.remove_suffix(1);
  std::set<std::string> items;
  while (!message.empty()) {
    const std::size_t comma = std::min(message.find(", "), message.size());
    std::string_view item = message.substr(0, comma);
    message.remove_prefix(std::min(comma + 2, message.size()));
    item.remove_prefix(std::min(item.find_first_not_of("0123456789 "), item.size()));
    items.emplace(item);
  }
  std::string out;
  for (const std::string& item : items) out += (out.empty() ? "" : ", ") + item;
  return out;
}

std::map<std::string, std::uint64_t> pending_reasons(Service& service) {
  std::map<std::string, std::uint64_t> out;
  const auto text = service.query("pending", {}, {}, 1'000'000, std::chrono::seconds(30));
  if (!text) return out;
  const Json document = Json::parse(*text, nullptr, false);
  if (!document.is_object() || !document.contains("pending")) return out;
  for (const Json& pod : document["pending"]) ++out[without_counts(pod.value("message", ""))];
  return out;
}

void print_summary(const Summary& s, Format format) {
  const std::uint64_t pods = s.cluster.pods.size();
  const double rate = s.seconds > 0 ? static_cast<double>(pods) / s.seconds : 0;
  if (format == Format::json || format == Format::yaml) {
    Json reasons = Json::object();
    for (const auto& [reason, n] : s.reasons) reasons[reason] = n;
    print_document({{"source", s.cluster.source},
                    {"nodes", s.cluster.nodes.size()},
                    {"pods", pods},
                    {"bound", s.progress.bound},
                    {"pending", s.progress.waiting},
                    {"pendingReasons", reasons},
                    {"seconds", s.seconds},
                    {"decisionsPerSecond", rate},
                    {"commitLatencyMs", {{"p50", s.commit_p50_ms}, {"p99", s.commit_p99_ms}}},
                    {"allocation", to_json(s.allocation)}},
                   format, std::cout);
    return;
  }
  std::cout << s.cluster.source << "\n"
            << s.cluster.nodes.size() << " nodes, " << pods << " pods: " << s.progress.bound << " bound, "
            << s.progress.waiting << " pending\n";
  for (const auto& [reason, n] : s.reasons) std::cout << "  " << n << " pending: " << reason << "\n";
  std::cout << "\n";
  Table table{{"RESOURCE", "ALLOCATABLE", "REQUESTED", ""}, {}};
  for (const auto& [resource, a] : s.allocation) {
    table.rows.push_back(
        {resource, human(resource, a.allocatable), human(resource, a.requested), percent(a)});
  }
  table.print(std::cout);
  std::cout << fmt::format(
      "\n{:.0f} decisions per second ({:.2f} s), commit latency p50 <= {:.1f} ms, p99 <= {:.1f} ms\n", rate,
      s.seconds, s.commit_p50_ms, s.commit_p99_ms);
}

/// Puts the pods in and waits until nothing moves.
Progress schedule(Service& service, EmbeddedCluster& cluster, const std::vector<Message>& pods,
                  double& seconds) {
  const auto begin = steady_clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(steady_clock::now() - begin).count(); };
  cluster.put(pods);
  Progress p;
  std::uint64_t last = 0;
  auto moved = begin;
  const bool bar = isatty(STDERR_FILENO) == 1;
  while (!p.still) {
    p = progress_of(service.placement_stats(), pods.size());
    if (bar) draw(p, pods.size(), elapsed());
    if (p.bound + p.waiting != last) {
      last = p.bound + p.waiting;
      moved = steady_clock::now();
      seconds = elapsed();
    }
    if (steady_clock::now() - moved > std::chrono::seconds(30)) break;
    if (!p.still) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  if (bar) std::cerr << "\n";
  return p;
}

int run_embedded(const Options& options) {
  auto wanted = up_cluster(options.trace, options.seed);
  if (!wanted) return complain(wanted.error(), kBadInput);
  Summary summary;
  summary.cluster = std::move(*wanted);
  EndSignals signals;
  start_logging({.level = LogLevel::warn});

  const bool scratch = options.store.empty();
  const std::string store =
      scratch ? (std::filesystem::temp_directory_path() / fmt::format("troupe-up.{}", getpid())).string()
              : options.store;
  auto port = std::make_unique<TallyPort>();
  TallyPort& tally = *port;
  ServiceOptions service_options;
  service_options.store.path = store;
  service_options.seed = options.seed;
  int code = kOk;
  {
    Service service(std::move(service_options), std::move(port), [&signals](const Error& error) {
      complain(error);
      signals.end(kFailed);
    });
    tally.cluster().put(summary.cluster.nodes);
    if (auto started = service.start(); !started) return complain(started.error());
    if (!service.wait_ready(std::chrono::seconds(30))) {
      return complain(
          {ErrorCode::unavailable, "the service did not become ready", service.readiness().why, {}, {}});
    }
    summary.progress = schedule(service, tally.cluster(), summary.cluster.pods, summary.seconds);
    summary.allocation = tally.tally();
    summary.reasons = pending_reasons(service);
    for (const HostStats& h : service.host_stats()) {
      if (h.kind != ActorKind::node) continue;
      summary.commit_p50_ms = quantile_ms(h.commit_wait, 0.5);
      summary.commit_p99_ms = quantile_ms(h.commit_wait, 0.99);
    }
    print_summary(summary, parse_format(options.format));

    if (on_terminal() && options.format == "table") {
      const std::unique_ptr<HttpServer> server = make_http_server({.port = options.port});
      register_api(*server, service, "koord-scheduler");
      if (auto serving = server->start(); !serving) {
        code = complain(serving.error());
      } else {
        std::cout << "\nThe service stays up on http://127.0.0.1:" << options.port
                  << " until Ctrl-C. Try in another terminal:\n"
                  << "  troupe get nodes          troupe get pending        troupe explain --all-pending\n"
                  << "  troupe top                troupe events             curl -s 127.0.0.1:"
                  << options.port << "/metrics\n";
        code = signals.wait();
        server->stop();
      }
    }
    service.stop();
  }
  if (scratch) {
    std::error_code ignored;
    std::filesystem::remove_all(store, ignored);
  }
  return summary.progress.still ? code : static_cast<int>(kFailed);
}

}  // namespace

void add_up(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("up",
                                         "start the service: embedded on a production cluster's nodes and "
                                         "pods, or with --kubeconfig on a real cluster");
  auto options = std::make_shared<Options>();
  CLI::Option* kubeconfig =
      command->add_option("--kubeconfig", options->daemon.kubeconfig, "schedule on this cluster instead");
  command->add_option("--trace", options->trace, "replay the openb trace files (node list and pod list, CSV)")
      ->excludes(kubeconfig);
  command->add_option("--seed", options->seed, "order of the pods, and choice among equally good nodes")
      ->capture_default_str();
  command->add_option("--store", options->store, "directory of the database (default: a temporary one)");
  command->add_option("--http-port", options->port, "port on 127.0.0.1")->capture_default_str();
  add_format(*command, options->format);
  command->callback([&context, options, kubeconfig] {
    context.run = [options, real = kubeconfig->count() > 0] {
      if (!real) return run_embedded(*options);
      options->daemon.http_port = options->port;
      options->daemon.seed = options->seed;
      options->daemon.store_path =
          options->store.empty()
              ? (std::filesystem::temp_directory_path() / fmt::format("troupe-up.{}", getpid())).string()
              : options->store;
      start_logging(options->daemon.log);
      return run_daemon(options->daemon);
    };
  });
}

}  // namespace troupe::cli
