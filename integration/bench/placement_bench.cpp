// What one placement decision costs: the column pass, the update of a class after one change, and plan() with
// its overlay and the changes that come back, at the sizes that the service is built for.
#include <benchmark/benchmark.h>

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "actors/placement/plan.hpp"
#include "messages/message.hpp"

namespace troupe {
namespace {

constexpr std::int64_t kGi = std::int64_t{1} << 30;

Message node_message(std::uint32_t i, bool soft_taints) {
  flatbuffers::FlatBufferBuilder b;
  const auto amount = [&b](const char* name, std::int64_t value) {
    return fb::CreateResourceAmount(b, b.CreateString(name), value);
  };
  // Four shapes of nodes, as a grown cluster has.
  const std::int64_t scale = 1 + i % 4;
  const auto allocatable = b.CreateVector(std::vector<flatbuffers::Offset<fb::ResourceAmount>>{
      amount("cpu", 32'000 * scale), amount("memory", 128 * kGi * scale),
      amount("ephemeral-storage", 500 * kGi), amount("pods", 250)});
  const auto label = [&b](const char* key, const std::string& value) {
    return fb::CreateKeyValue(b, b.CreateString(key), b.CreateString(value));
  };
  const std::string name = "node-" + std::to_string(i);
  const auto labels = b.CreateVector(std::vector<flatbuffers::Offset<fb::KeyValue>>{
      label("kubernetes.io/hostname", name),
      label("topology.kubernetes.io/zone", "zone-" + std::to_string(i % 3)),
      label("kubernetes.io/os", "linux"), label("kubernetes.io/arch", "amd64")});
  std::vector<flatbuffers::Offset<fb::Taint>> taints;
  for (std::uint32_t t = 0; soft_taints && t < i % 3; ++t) {
    taints.push_back(fb::CreateTaint(b, b.CreateString("soft-" + std::to_string(t)), b.CreateString(""),
                                     fb::TaintEffect::PreferNoSchedule));
  }
  const auto taint_list = b.CreateVector(taints);
  const auto name_at = b.CreateString(name);
  fb::NodeBuilder node(b);
  node.add_name(name_at);
  node.add_labels(labels);
  node.add_taints(taint_list);
  node.add_allocatable(allocatable);
  b.Finish(node.Finish());
  return {Kind::node, b};
}

std::vector<std::uint8_t> class_bytes(std::uint32_t i, bool preferences) {
  flatbuffers::FlatBufferBuilder b;
  const std::int64_t cpu = 100 + 10 * static_cast<std::int64_t>(i % 97);
  const std::int64_t memory = (128 + static_cast<std::int64_t>(i)) << 20;
  const auto requests = b.CreateVector(std::vector<flatbuffers::Offset<fb::ResourceAmount>>{
      fb::CreateResourceAmount(b, b.CreateString("cpu"), cpu),
      fb::CreateResourceAmount(b, b.CreateString("memory"), memory)});
  flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<fb::PreferredTerm>>> preferred = 0;
  if (preferences) {
    const auto values = b.CreateVector(std::vector<flatbuffers::Offset<flatbuffers::String>>{
        b.CreateString("zone-" + std::to_string(i % 3))});
    const auto requirement = fb::CreateRequirement(b, b.CreateString("topology.kubernetes.io/zone"),
                                                   fb::SelectorOperator::In, values);
    const auto term = fb::CreateNodeSelectorTerm(
        b, b.CreateVector(std::vector<flatbuffers::Offset<fb::Requirement>>{requirement}));
    preferred = b.CreateVector(std::vector<flatbuffers::Offset<fb::PreferredTerm>>{
        fb::CreatePreferredTerm(b, 1 + static_cast<int>(i % 50), term)});
  }
  fb::PodClassBuilder cls(b);
  cls.add_requests(requests);
  cls.add_non_zero_cpu_milli(cpu);
  cls.add_non_zero_memory_bytes(memory);
  if (preferences) cls.add_preferred(preferred);
  b.Finish(cls.Finish());
  return {b.GetBufferPointer(), b.GetBufferPointer() + b.GetSize()};
}

struct Cluster {
  Cluster(std::uint32_t nodes, std::uint32_t class_count, bool soft) {
    for (std::uint32_t i = 0; i < class_count; ++i) ids.push_back(classes.acquire(class_bytes(i, soft)));
    for (std::uint32_t i = 0; i < nodes; ++i) snapshot.update(node_message(i, soft).as<fb::Node>());
  }

  PodDemand next_pod() { return {ids[order.below(ids.size())], 0, kNoString, 0, {1, ++pods}}; }
  /// Decides one pod and lets it count; the oldest beyond `live` leave.
  bool place(std::size_t live) {
    const PodDemand pod = next_pod();
    const Choice choice = planner.plan(pod);
    if (choice.slot == kNoSlot) return false;
    snapshot.assume(pod.uid, pods, choice.slot, pod.cls, 0);
    running.push_back({pod.uid, pods});
    while (running.size() > live) {
      snapshot.withdraw(running.front().first, running.front().second);
      running.pop_front();
    }
    return true;
  }

  Interner interner;
  ClassTable classes{interner};
  std::vector<CompiledProfile> profiles{compile(Profile::standard(), interner)};
  std::vector<ClassId> ids;
  Snapshot snapshot{interner, classes, 32, 1};
  ClassCache cache{profiles, snapshot, 64U << 20U};
  Planner planner{cache, snapshot, 1};
  Random order{2};
  std::uint64_t pods = 0;
  std::deque<std::pair<PodUid, std::uint64_t>> running;
};

/// One pass over all nodes for one class.
void ColumnPassOfOneClass(benchmark::State& state) {
  Cluster cluster(static_cast<std::uint32_t>(state.range(0)), 1, false);
  for (int i = 0; i < 1000; ++i) cluster.place(50'000);
  const PreparedClass prepared(cluster.profiles[0], cluster.classes.get(cluster.ids[0]), cluster.interner);
  const PassPlan plan = plan_pass(prepared);
  ScoreTree tree;
  tree.reset(cluster.snapshot.columns().blocks(), 1);
  for (auto _ : state) {
    const ColumnPass pass(plan, cluster.snapshot.columns());
    for (std::size_t b = 0; b < tree.blocks(); ++b) {
      pass.block(b, cluster.snapshot.alive().word(b), tree.leaves().data() + b * kBlock);
    }
    tree.rebuild({});
    benchmark::DoNotOptimize(tree.best(0));
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(ColumnPassOfOneClass)->Arg(5'000)->Arg(100'000)->Unit(benchmark::kMicrosecond);

/// One changed node, one class brought up to date, the best node found.
void ClassUpdateOfOneNode(benchmark::State& state) {
  Cluster cluster(static_cast<std::uint32_t>(state.range(0)), 1, false);
  for (int i = 0; i < 1000; ++i) cluster.place(50'000);
  for (auto _ : state) cluster.place(1000);
}
BENCHMARK(ClassUpdateOfOneNode)->Arg(5'000)->Arg(100'000);

/// Nodes, classes, soft taints and preferences or not: plan() and the overlay of one pod, with one older pod
/// leaving for each, 50,000 live.
void PlanPerPod(benchmark::State& state) {
  Cluster cluster(static_cast<std::uint32_t>(state.range(0)), static_cast<std::uint32_t>(state.range(1)),
                  state.range(2) != 0);
  constexpr std::size_t live = 50'000;
  while (cluster.running.size() < live) cluster.place(live);
  std::int64_t unplaced = 0;
  for (auto _ : state) unplaced += cluster.place(live) ? 0 : 1;
  state.counters["unplaced"] = static_cast<double>(unplaced);
  state.counters["full_pass_share"] =
      static_cast<double>(cluster.cache.stats().full_passes) / static_cast<double>(cluster.pods);
  state.counters["updates_per_pod"] =
      static_cast<double>(cluster.cache.stats().updates) / static_cast<double>(cluster.pods);
  state.counters["cache_bytes"] = static_cast<double>(cluster.cache.bytes());
}
BENCHMARK(PlanPerPod)
    ->Args({5'000, 20, 0})
    ->Args({5'000, 1'000, 0})
    ->Args({100'000, 20, 0})
    ->Args({5'000, 20, 1})
    ->Args({5'000, 1'000, 1})
    ->Args({5'000, 100, 0});

/// A class seen for the first time.
void BuildClass(benchmark::State& state) {
  Cluster cluster(static_cast<std::uint32_t>(state.range(0)), 2, false);
  std::uint32_t next = 2;
  for (auto _ : state) {
    const ClassId id = cluster.classes.acquire(class_bytes(next++, false));
    benchmark::DoNotOptimize(&cluster.cache.current(id, 0));
    cluster.cache.drop(id);
    cluster.classes.release(id);
  }
}
BENCHMARK(BuildClass)->Arg(5'000)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace troupe

BENCHMARK_MAIN();
