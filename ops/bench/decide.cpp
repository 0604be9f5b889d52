#include <algorithm>
#include <chrono>
#include <cstdio>

#include "ops/bench/benches.hpp"
#include "ops/bench/harness.hpp"
#include "ops/bench/report.hpp"

namespace troupe::bench {
namespace {

using std::chrono::steady_clock;

constexpr std::uint64_t kChunk = 1000;  // pods created or deleted at a time

/// Keeps `window` pods waiting and `live` pods bound: creates what is missing, deletes the oldest.
class Churn {
 public:
  Churn(Harness& harness, Workload& workload, const DecideOptions& options)
      : harness_(harness), workload_(workload), options_(options) {}

  /// Until bound() has grown to `target` or `deadline` has come. False when nothing is bound for 30 s.
  bool run(std::uint64_t target, steady_clock::time_point deadline) {
    while (harness_.bound() < target && steady_clock::now() < deadline) {
      const std::uint64_t bound = harness_.bound();
      while (created_ < bound + options_.window) create();
      while (deleted_ + options_.live + kChunk <= bound) remove();
      if (!harness_.wait_bound(bound + 1, std::chrono::seconds(30))) return false;
    }
    return true;
  }

  [[nodiscard]] std::uint64_t deleted() const { return deleted_; }

 private:
  void create() {
    std::vector<Message> pods;
    pods.reserve(kChunk);
    for (std::uint64_t i = 0; i < kChunk; ++i) pods.push_back(workload_.pod(created_++));
    harness_.cluster().put(std::move(pods));
  }
  void remove() {
    std::vector<ObjectName> names;
    names.reserve(kChunk);
    for (std::uint64_t i = 0; i < kChunk; ++i)
      names.push_back({fb::ObjectKind::Pod, "bench", Workload::pod_name(deleted_++)});
    harness_.cluster().remove(std::move(names));
  }

  Harness& harness_;
  Workload& workload_;
  const DecideOptions& options_;
  std::uint64_t created_ = 0;
  std::uint64_t deleted_ = 0;
};

}  // namespace

int decide(const DecideOptions& options) {
  ScratchDirectory scratch(options.directory);
  Workload workload(options.workload);
  Harness harness((scratch.path() / "store").string());
  harness.cluster().put(workload.nodes());
  std::vector<Message> existing;
  existing.reserve(options.existing);
  for (std::uint64_t i = 0; i < options.existing; ++i) existing.push_back(workload.bound_pod(i));
  harness.cluster().put(std::move(existing));
  if (const auto started = harness.start(); !started) {
    std::fprintf(stderr, "troupe-bench: %s\n", started.error().text().c_str());
    return 1;
  }
  if (!harness.wait_ready(std::chrono::seconds(60))) {
    std::fprintf(stderr, "troupe-bench: not ready within 60 s: %s\n",
                 harness.service().readiness().why.c_str());
    return 1;
  }

  Churn churn(harness, workload, options);
  // Warm: as many pods alive as there will be, then one more window.
  const auto warm_deadline = steady_clock::now() + std::chrono::seconds(120);
  bool moving = churn.run(options.live + options.window, warm_deadline);

  const std::uint64_t bound = harness.bound();
  const std::uint64_t cpu = process_cpu_us();
  const StoreStats store = harness.service().store_stats();
  const auto begin = steady_clock::now();
  moving = moving && churn.run(UINT64_MAX, begin + std::chrono::microseconds(
                                                       static_cast<std::int64_t>(options.seconds * 1e6)));
  const double seconds = std::chrono::duration<double>(steady_clock::now() - begin).count();
  const auto pods = static_cast<double>(harness.bound() - bound);
  const StoreStats after = harness.service().store_stats();
  const auto cpu_used = static_cast<double>(process_cpu_us() - cpu);
  const std::uint64_t resident = resident_bytes();
  if (!moving) std::fprintf(stderr, "troupe-bench: no pod was bound for 30 s\n");

  Line("decide")
      .add("nodes", std::uint64_t{options.workload.nodes})
      .add("classes", std::uint64_t{options.workload.classes})
      .add("existing", options.existing)
      .add("unique_labels", options.workload.unique_labels)
      .add("soft_taints", options.workload.soft_taints)
      .add("live_pods", options.live)
      .add("seconds", seconds)
      .add("pods", harness.bound() - bound)
      .add("pods_per_s", pods / seconds)
      .add("cpu_us_per_pod", pods > 0 ? cpu_used / pods : 0.0)
      .add("rss_bytes", resident)
      .add("syncs", after.commits - store.commits)
      .add("wal_bytes_per_pod",
           pods > 0 ? static_cast<double>(after.wal_bytes - store.wal_bytes) / pods : 0.0)
      .add("filesystem", filesystem_of(scratch.path().string()))
      .print();
  harness.stop();
  return moving ? 0 : 1;
}

}  // namespace troupe::bench
