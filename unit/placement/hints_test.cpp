#include "actors/placement/hints.hpp"

#include <gtest/gtest.h>

#include <optional>

#include "unit/placement/random_cluster.hpp"

namespace troupe {
namespace {

using testing::RandomCluster;
using testing::RowNode;

/// What changed between two states of a node, as the snapshot reports it.
EventSet changes(const RowNode& before, const RowNode& now) {
  EventSet events;
  if (before.allocatable_amounts != now.allocatable_amounts || before.pods_allowed != now.pods_allowed) {
    events.insert(Event::node_allocatable);
  }
  if (before.labels != now.labels) events.insert(Event::node_label);
  const auto same = [](const Taint& a, const Taint& b) {
    return a.key == b.key && a.value == b.value && a.effect == b.effect;
  };
  if (!std::equal(before.taint_list.begin(), before.taint_list.end(), now.taint_list.begin(),
                  now.taint_list.end(), same) ||
      (before.cordoned && !now.cordoned)) {
    events.insert(Event::node_taint);
  }
  return events;
}

/// A pod that was refused, and by which plugins.
struct Parked {
  PodClass cls;
  PodFacts facts;
  PluginSet rejected_by;
};

/// One attempt on all nodes: empty when the pod fits, else the first refusing plugin of each node.
std::optional<PluginSet> attempt(const CompiledProfile& profile, const Interner& interner,
                                 const PodClass& cls, const PodFacts& facts,
                                 const std::vector<RowNode>& nodes) {
  const PreparedClass prepared(profile, cls, interner);
  PluginSet rejected_by;
  for (const RowNode& node : nodes) {
    const std::vector<Refusal> refusals = check(prepared, facts, node);
    if (refusals.empty()) return std::nullopt;
    rejected_by.insert(refusals.front().plugin);
  }
  return rejected_by;
}

class HintsCompleteness {
 public:
  explicit HintsCompleteness(std::uint64_t seed)
      : cluster_(seed), profile_(compile(Profile::standard(), cluster_.interner)) {
    // A profile with addedAffinity: it too can stop refusing.
    if (seed % 2 == 0) {
      profile_.has_added_affinity = true;
      profile_.added_affinity.has_required = true;
      profile_.added_affinity.required = {cluster_.term(), cluster_.term(), cluster_.term()};
    }
  }

  void run(int events) {
    for (int i = 0; i < 4; ++i) nodes_.push_back(cluster_.node(next_node_++ % 4, 4));
    for (int i = 0; i < events; ++i) {
      refill();
      step();
      if (::testing::Test::HasFatalFailure()) return;
    }
  }

 private:
  void refill() {
    // Pods that nothing can help would crowd out the others.
    if (!parked_.empty() && cluster_.chance(20)) parked_.erase(parked_.begin());
    while (parked_.size() < 6) {
      Parked p{cluster_.pod_class(), {}, {}};
      if (cluster_.chance(10)) p.facts.pinned_node = cluster_.node_name(static_cast<int>(cluster_.below(4)));
      const auto rejected_by = attempt(profile_, cluster_.interner, p.cls, p.facts, nodes_);
      if (!rejected_by) continue;
      p.rejected_by = *rejected_by;
      parked_.push_back(std::move(p));
    }
  }

  void step() {
    switch (cluster_.below(nodes_.empty() ? 1 : 6)) {
      case 0:
        return add_node();
      case 1:
        return delete_node();
      case 2:
      case 3:
        return change_node();
      case 4:
        return delete_pod();
      default:
        return cluster_.chance(50) ? scale_down() : change_tolerations();
    }
  }

  /// After an event: every pod that fits must have been woken; woken pods are tried again.
  template <class Wakes>
  void settle(const char* event, Wakes&& wakes) {
    std::vector<Parked> still;
    for (Parked& p : parked_) {
      const PreparedClass prepared(profile_, p.cls, cluster_.interner);
      const bool wakes_it = wakes(p, prepared);
      const auto rejected_by = attempt(profile_, cluster_.interner, p.cls, p.facts, nodes_);
      ASSERT_TRUE(rejected_by || wakes_it) << event << " made a parked pod fit without waking it";
      wakes_it ? ++woken : ++skipped;
      if (!rejected_by) {
        ++fitting;
        continue;
      }
      if (wakes_it) p.rejected_by = *rejected_by;
      still.push_back(std::move(p));
    }
    parked_ = std::move(still);
  }

  void add_node() {
    if (nodes_.size() >= 5) return;
    nodes_.push_back(cluster_.node(next_node_++ % 4, 4));
    settle("node added", [&](const Parked& p, const PreparedClass& prepared) {
      return added_node_wakes(p.rejected_by, prepared, p.facts, nodes_.back());
    });
  }

  void delete_node() {
    if (nodes_.size() < 2) return;
    nodes_.erase(nodes_.begin() + static_cast<std::ptrdiff_t>(cluster_.below(nodes_.size())));
    settle("node deleted", [](const Parked&, const PreparedClass&) { return false; });
  }

  void change_node() {
    RowNode& node = any_node();
    const RowNode before = node;
    const RowNode fresh = cluster_.node(0, 4);
    if (cluster_.chance(40)) node.labels = fresh.labels;
    if (cluster_.chance(40)) node.taint_list = fresh.taint_list;
    if (cluster_.chance(40)) node.cordoned = fresh.cordoned;
    if (cluster_.chance(40)) node.allocatable_amounts = fresh.allocatable_amounts;
    if (cluster_.chance(20)) node.pods_allowed = fresh.pods_allowed;
    const EventSet events = changes(before, node);
    settle("node changed", [&](const Parked& p, const PreparedClass& prepared) {
      return node_wakes(p.rejected_by, prepared, p.facts, events, node, &before);
    });
  }

  void delete_pod() {
    RowNode& node = any_node();
    if (node.pods.empty()) return;
    const PodClass gone = node.pods.back();
    node.pods.pop_back();
    settle("pod deleted", [&](const Parked& p, const PreparedClass& prepared) {
      return deleted_pod_wakes(p.rejected_by, prepared, true, gone);
    });
  }

  void scale_down() {
    RowNode& node = any_node();
    if (node.pods.empty() || node.pods.back().requests.empty()) return;
    PodClass& pod = node.pods.back();
    const PodClass before = pod;
    pod.requests[cluster_.below(pod.requests.size())].amount /= 2;
    settle("pod scaled down", [&](const Parked& p, const PreparedClass& prepared) {
      return scaled_down_pod_wakes(p.rejected_by, prepared, false, true, before, pod);
    });
  }

  void change_tolerations() {
    Parked& changed = parked_[cluster_.below(parked_.size())];
    changed.cls.tolerations = cluster_.tolerations();
    settle("tolerations changed", [&](const Parked& p, const PreparedClass& prepared) {
      return &p == &changed && own_update_wakes(p.rejected_by, prepared, {Event::own_toleration});
    });
  }

  RowNode& any_node() { return nodes_[cluster_.below(nodes_.size())]; }

  RandomCluster cluster_;
  CompiledProfile profile_;
  std::vector<RowNode> nodes_;
  std::vector<Parked> parked_;
  int next_node_ = 0;

 public:
  int woken = 0;
  int fitting = 0;
  int skipped = 0;
};

TEST(Hints, AnEventThatMakesAPodFitWakesIt) {
  constexpr int events = 6'000;
  int woken = 0;
  int fitting = 0;
  int skipped = 0;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    HintsCompleteness run(seed);
    run.run(events);
    if (HasFatalFailure()) FAIL() << "seed " << seed;
    woken += run.woken;
    fitting += run.fitting;
    skipped += run.skipped;
  }
  EXPECT_GT(woken, events / 10);
  EXPECT_GT(fitting, events / 20);
  EXPECT_GT(skipped, events);
}

// A parked pod must not be tried for events that change nothing for the plugin that refused it.
TEST(Hints, IrrelevantNodeChangesAreSkipped) {
  RandomCluster cluster(22);
  const CompiledProfile profile = compile(Profile::standard(), cluster.interner);
  for (int i = 0; i < 10'000; ++i) {
    const PodClass cls = cluster.pod_class();
    const PreparedClass prepared(profile, cls, cluster.interner);
    const RowNode before = cluster.node(0, 1);
    RowNode now = cluster.node(0, 1);
    now.pods = before.pods;
    const EventSet events = changes(before, now);
    for_each_plugin([&]<class P>(P) {
      if constexpr (FilterPlugin<P>) {
        if (!node_helps(P::id, prepared, {}, events, now, &before)) return;
        // Resources: the node grew in something that counts, which the hint cannot tell from enough.
        if (P::id == PluginId::node_resources_fit) return;
        EXPECT_TRUE(filter(P::id, prepared, {}, now).ok()) << P::name;
        EXPECT_FALSE(filter(P::id, prepared, {}, before).ok()) << P::name;
      }
    });
  }
}

TEST(Hints, HeartbeatsWakeNobody) {
  RandomCluster cluster(23);
  const CompiledProfile profile = compile(Profile::standard(), cluster.interner);
  for (int i = 0; i < 1'000; ++i) {
    const PodClass cls = cluster.pod_class();
    const PreparedClass prepared(profile, cls, cluster.interner);
    const RowNode node = cluster.node(0, 1);
    PluginSet all;
    for_each_plugin([&]<class P>(P) { all.insert(P::id); });
    EXPECT_FALSE(node_wakes(all, prepared, {}, EventSet{}, node, &node));
  }
}

TEST(Hints, EveryRejectingPluginRegistersForSomething) {
  for_each_plugin([]<class P>(P) {
    EXPECT_EQ(registered(P::id).empty(), !FilterPlugin<P> && !P::points.contains(Point::pre_enqueue))
        << P::name;
  });
}

}  // namespace
}  // namespace troupe
