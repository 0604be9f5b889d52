#include <chrono>
#include <cstdio>

#include "ops/bench/benches.hpp"
#include "ops/bench/harness.hpp"
#include "ops/bench/report.hpp"

namespace troupe::bench {
namespace {

using std::chrono::steady_clock;

double seconds_since(steady_clock::time_point begin) {
  return std::chrono::duration<double>(steady_clock::now() - begin).count();
}

/// Brings a cluster of that size up in `harness` and binds all its pods.
bool fill(Harness& harness, const SizeOptions& options) {
  Workload workload({.nodes = options.nodes});
  harness.cluster().put(workload.nodes());
  if (const auto started = harness.start(); !started) {
    std::fprintf(stderr, "troupe-bench: %s\n", started.error().text().c_str());
    return false;
  }
  constexpr std::uint64_t kChunk = 1000;
  for (std::uint64_t i = 0; i < options.pods; i += kChunk) {
    std::vector<Message> pods;
    for (std::uint64_t k = i; k < std::min(i + kChunk, options.pods); ++k) pods.push_back(workload.pod(k));
    harness.cluster().put(std::move(pods));
    if (!harness.wait_bound(i, std::chrono::seconds(60))) return false;
  }
  return harness.wait_bound(options.pods, std::chrono::seconds(60));
}

void print_start(const char* state, const SizeOptions& options, double seconds) {
  Line("start")
      .add("store", state)
      .add("nodes", std::uint64_t{options.nodes})
      .add("pods", options.pods)
      .add("seconds", seconds)
      .add("rss_bytes", resident_bytes())
      .print();
}

}  // namespace

int memory(const SizeOptions& options) {
  ScratchDirectory scratch(options.directory);
  Harness harness((scratch.path() / "store").string());
  if (!fill(harness, options)) {
    std::fprintf(stderr, "troupe-bench: not all pods were bound\n");
    return 1;
  }
  harness.cluster().settle();
  Line("memory")
      .add("nodes", std::uint64_t{options.nodes})
      .add("pods", options.pods)
      .add("rss_bytes", resident_bytes())
      .print();
  return 0;
}

int start(const SizeOptions& options) {
  ScratchDirectory scratch(options.directory);
  const std::string store = (scratch.path() / "store").string();
  {
    const auto begin = steady_clock::now();
    Harness harness(store);
    if (!harness.start() || !harness.wait_ready(std::chrono::seconds(60))) return 1;
    print_start("empty", {.nodes = 0, .pods = 0, .directory = {}}, seconds_since(begin));
  }
  {
    Harness harness(store);
    if (!fill(harness, options)) return 1;
  }
  const auto begin = steady_clock::now();
  Harness harness(store);
  if (!harness.start()) return 1;
  print_start("full", options, seconds_since(begin));
  return 0;
}

}  // namespace troupe::bench
