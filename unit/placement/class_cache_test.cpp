// The column pass and its incremental updates against the plain reading of the rules: after any history of
// commits, deletes and node changes, plan() finds what reference_evaluate() finds on rows that were kept
// apart.
#include "actors/placement/class_cache.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "actors/placement/failure.hpp"
#include "actors/placement/plan.hpp"
#include "unit/placement/wire.hpp"

namespace troupe {
namespace {

using testing::class_bytes;
using testing::DeltaSpec;
using testing::RandomCluster;
using testing::RowNode;

constexpr std::uint64_t kShardEpoch = 7;

/// A snapshot with its class cache, and beside it the same cluster as rows.
class Twin {
 public:
  explicit Twin(std::uint64_t seed) : cluster_(seed) {
    profiles_.push_back(compile(random_profile(), cluster_.interner));
    for (int i = 0; i < 5; ++i) add_class();
    snapshot_ = std::make_unique<Snapshot>(cluster_.interner, classes_, 4, kShardEpoch);
    for (const auto& r : profiles_[0].fit_resources) snapshot_->score(r.resource, !r.scalar);
    for (const auto& r : profiles_[0].balanced_resources) snapshot_->score(r.resource, !r.scalar);
    const std::size_t budget = cluster_.chance(20) ? 2000 : 1 << 20;
    cache_ = std::make_unique<ClassCache>(profiles_, *snapshot_, budget);
    planner_ = std::make_unique<Planner>(*cache_, *snapshot_, seed);
    const auto nodes = 1 + cluster_.below(cluster_.chance(30) ? 150 : 20);
    for (std::uint64_t i = 0; i < nodes; ++i) add_node();
  }

  void step() {
    const auto what = cluster_.below(100);
    if (what < 40) {
      add_pod();
    } else if (what < 65) {
      remove_pod();
    } else if (what < 75) {
      change_facts();
    } else if (what < 85) {
      change_allocatable();
    } else if (what < 88) {
      change_images();
    } else if (what < 93) {
      add_node();
    } else if (what < 96) {
      remove_node();
    } else {
      confirm();
    }
  }

  void compare() {
    const std::size_t c = cluster_.below(compiled_.size());
    PodDemand demand{ids_[c], 0, kNoString, static_cast<std::int32_t>(cluster_.below(3)), uid(999999)};
    if (cluster_.chance(10)) demand.pinned_node = cluster_.node_name(static_cast<int>(cluster_.below(6)));
    update_images();

    std::vector<RowNode> rows;
    std::vector<RowNode> with;
    for (const auto& node : nodes_) {
      if (!node.alive) continue;
      rows.push_back(node.row);
      with.push_back(node.row);
      for (const Pod& pod : node.pods) {
        if (!pod.nominated) {
          rows.back().pods.push_back(compiled_[pod.cls]);
          with.back().pods.push_back(compiled_[pod.cls]);
        } else if (pod.priority >= demand.priority) {
          with.back().pods.push_back(compiled_[pod.cls]);
        }
      }
    }
    const PreparedClass prepared(profiles_[0], compiled_[c], cluster_.interner);
    const PodFacts facts{demand.pinned_node, kNoString};
    // Nodes on which the nominated pods leave no room are out; scores do not see nominations.
    std::vector<RowNode> candidates;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (passes(prepared, facts, with[i])) candidates.push_back(rows[i]);
    }
    const Evaluation expected = reference_evaluate<RowNode>(prepared, facts, candidates);
    const auto feasible =
        static_cast<std::uint32_t>(std::count_if(expected.nodes.begin(), expected.nodes.end(),
                                                 [](const NodeEvaluation& n) { return n.refusals.empty(); }));

    const Choice choice = planner_->plan(demand);
    ASSERT_EQ(choice.feasible, feasible);
    if (feasible > 0) {
      ASSERT_NE(choice.slot, kNoSlot);
      const StringId chosen = snapshot_->facts(choice.slot).name;
      const bool wins = std::any_of(expected.winners.begin(), expected.winners.end(),
                                    [&](std::uint32_t i) { return candidates[i].node_name == chosen; });
      ASSERT_TRUE(wins) << cluster_.interner.text(chosen) << " scores " << choice.score << ", the best "
                        << expected.nodes[expected.winners.front()].total;
      ASSERT_EQ(choice.score, expected.nodes[expected.winners.front()].total);
      return;
    }
    ASSERT_EQ(choice.slot, kNoSlot);
    compare_refusal(demand, prepared, facts, rows, with);
  }

 private:
  struct Pod {
    PodUid uid;
    std::size_t cls = 0;
    std::uint64_t n = 0;
    bool overlay = false;
    bool nominated = false;
    std::int32_t priority = 0;
  };
  struct Node {
    RowNode row;
    bool alive = true;
    std::vector<Pod> pods;
    std::uint64_t version = 0;
  };

  static PodUid uid(std::uint64_t i) { return {1, i + 1}; }

  Profile random_profile() {
    Profile p = Profile::standard();
    NodeResourcesFitArgs& fit = p.node_resources_fit;
    fit.type = static_cast<ScoringType>(cluster_.below(3));
    if (fit.type == ScoringType::requested_to_capacity_ratio) {
      fit.shape = {
          {0, static_cast<std::int32_t>(cluster_.below(11))},
          {static_cast<std::int32_t>(20 + cluster_.below(60)), static_cast<std::int32_t>(cluster_.below(11))},
          {100, static_cast<std::int32_t>(cluster_.below(11))}};
    }
    const auto weight = [&] { return 1 + static_cast<std::int32_t>(cluster_.below(5)); };
    if (cluster_.chance(50)) {
      fit.resources.clear();
      for (const char* r : {"cpu", "memory", "ephemeral-storage", "example.com/gpu"}) {
        if (cluster_.chance(60)) fit.resources.push_back({r, weight()});
      }
    }
    if (cluster_.chance(40)) {
      p.balanced_allocation.resources.clear();
      for (const char* r : {"cpu", "memory", "ephemeral-storage", "example.com/gpu"}) {
        if (cluster_.chance(60)) p.balanced_allocation.resources.push_back(r);
      }
    }
    if (cluster_.chance(20)) fit.ignored_resources.push_back("example.com/gpu");
    for (const PluginId id :
         {PluginId::node_resources_fit, PluginId::node_resources_balanced_allocation,
          PluginId::image_locality, PluginId::taint_toleration, PluginId::node_affinity}) {
      if (cluster_.chance(10)) p.disable(Point::score, id);
      if (cluster_.chance(20)) p.enable(Point::score, id, weight());
    }
    if (cluster_.chance(10)) p.disable(Point::filter, PluginId::taint_toleration);
    if (cluster_.chance(5)) p.disable(Point::filter, PluginId::node_resources_fit);
    if (cluster_.chance(10)) {
      auto& filters = p.at(Point::filter);
      std::rotate(filters.begin(), filters.begin() + 2, filters.end());
    }
    return p;
  }

  void add_class() {
    const std::vector<std::uint8_t> bytes = class_bytes(cluster_.pod_class(), cluster_.interner);
    compiled_.push_back(
        troupe::compile(*flatbuffers::GetRoot<fb::PodClass>(bytes.data()), cluster_.interner));
    bytes_.push_back(bytes);
    ids_.push_back(classes_.acquire(bytes));
  }

  void add_node() {
    const int index = static_cast<int>(cluster_.below(nodes_.size() + 2));
    const StringId name = cluster_.node_name(index);
    auto it =
        std::find_if(nodes_.begin(), nodes_.end(), [&](const Node& n) { return n.row.node_name == name; });
    if (it == nodes_.end()) it = nodes_.insert(nodes_.end(), Node{});
    it->alive = true;
    it->row = cluster_.node(index, 1);
    it->row.pods.clear();
    if (cluster_.chance(3)) it->row.allocatable_amounts[kMemory] = (std::int64_t{1} << 54) + 12345;
    if (cluster_.chance(5)) it->row.allocatable_amounts[kMemory] = (std::int64_t{1} << 45) + 1;
    send(*it);
  }

  void send(const Node& node) {
    update_images();
    const Message m = testing::node_message(node.row, cluster_.interner);
    snapshot_->update(m.as<fb::Node>());
  }

  void update_images() {
    std::uint32_t alive = 0;
    for (const Node& n : nodes_) alive += n.alive ? 1U : 0U;
    for (Node& n : nodes_) {
      n.row.cluster_nodes = alive;
      for (ImageState& i : n.row.image_list) {
        i.nodes_with_image = 0;
        for (const Node& other : nodes_) {
          if (!other.alive) continue;
          for (const ImageState& o : other.row.image_list) i.nodes_with_image += o.name == i.name ? 1U : 0U;
        }
      }
    }
  }

  Node* any_node() {
    std::vector<Node*> alive;
    for (Node& n : nodes_) {
      if (n.alive) alive.push_back(&n);
    }
    return alive.empty() ? nullptr : alive[cluster_.below(alive.size())];
  }

  void apply(Node& node, const Pod& pod, fb::LedgerChange change) {
    DeltaSpec d;
    d.node = std::string(cluster_.interner.text(node.row.node_name));
    d.uid = pod.uid;
    d.ledger_version = ++node.version;
    d.change = change;
    if (pod.n != 0) d.commit = {pod.uid, kShardEpoch, pod.n};
    d.state = pod.nominated ? fb::EntryState::Nominated : fb::EntryState::Granted;
    d.priority = pod.priority;
    d.class_bytes = bytes_[pod.cls];
    const auto bytes = testing::delta_bytes(d);
    snapshot_->apply(testing::as_delta(bytes));
  }

  void add_pod() {
    Node* node = any_node();
    if (node == nullptr) return;
    Pod pod;
    pod.uid = uid(next_uid_++);
    pod.cls = cluster_.below(compiled_.size());
    pod.priority = static_cast<std::int32_t>(cluster_.below(3));
    if (cluster_.chance(50)) {
      pod.n = next_n_++;
      pod.overlay = true;
      snapshot_->assume(pod.uid, pod.n, snapshot_->find(node->row.node_name), ids_[pod.cls], pod.priority);
    } else {
      pod.nominated = cluster_.chance(10);
      apply(*node, pod, fb::LedgerChange::Added);
    }
    node->pods.push_back(pod);
  }

  Node* node_with_pods() {
    std::vector<Node*> with;
    for (Node& n : nodes_) {
      if (!n.pods.empty()) with.push_back(&n);
    }
    return with.empty() ? nullptr : with[cluster_.below(with.size())];
  }

  void remove_pod() {
    Node* node = node_with_pods();
    if (node == nullptr) return;
    const auto it = node->pods.begin() + static_cast<std::ptrdiff_t>(cluster_.below(node->pods.size()));
    if (it->overlay) {
      EXPECT_TRUE(snapshot_->withdraw(it->uid, it->n));
    } else {
      apply(*node, *it, fb::LedgerChange::Removed);
    }
    node->pods.erase(it);
  }

  /// The ledger confirms an overlay entry, or changes a nomination into a grant.
  void confirm() {
    Node* node = node_with_pods();
    if (node == nullptr) return;
    Pod& pod = node->pods[cluster_.below(node->pods.size())];
    const bool overlay = pod.overlay;
    const std::uint64_t head = snapshot_->account_log().head();
    const bool nominated = pod.nominated;
    pod.overlay = false;
    pod.nominated = false;
    apply(*node, pod, overlay ? fb::LedgerChange::Added : fb::LedgerChange::Changed);
    // The grant of an own decision changes no number and wakes no class.
    if (!nominated) {
      EXPECT_EQ(snapshot_->account_log().head(), head);
    }
  }

  void change_facts() {
    Node* node = any_node();
    if (node == nullptr) return;
    if (cluster_.chance(40)) node->row.taint_list = cluster_.taints();
    if (cluster_.chance(40)) node->row.labels = cluster_.labels();
    if (cluster_.chance(30)) node->row.cordoned = !node->row.cordoned;
    send(*node);
  }

  void change_allocatable() {
    Node* node = any_node();
    if (node == nullptr) return;
    node->row.allocatable_amounts = cluster_.node(0, 1).allocatable_amounts;
    node->row.pods_allowed = static_cast<std::int64_t>(cluster_.below(10));
    send(*node);
  }

  void change_images() {
    Node* node = any_node();
    if (node == nullptr) return;
    node->row.image_list = cluster_.node(0, 1).image_list;
    send(*node);
  }

  void remove_node() {
    Node* node = any_node();
    if (node == nullptr) return;
    node->alive = false;
    node->row.image_list.clear();
    EXPECT_NE(snapshot_->remove(cluster_.interner.text(node->row.node_name)), kNoSlot);
    if (node->pods.empty()) nodes_.erase(nodes_.begin() + (node - nodes_.data()));
  }

  void compare_refusal(const PodDemand& demand, const PreparedClass& prepared, const PodFacts& facts,
                       const std::vector<RowNode>& rows, const std::vector<RowNode>& with) {
    const Refused refused = explain_refusal(*cache_, *snapshot_, demand);
    if (rows.empty()) {
      EXPECT_EQ(*refused.message, kNoNodes);
      EXPECT_TRUE(refused.rejectors.empty());
      return;
    }
    ReasonCounts counts;
    PluginSet rejectors;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      std::vector<Refusal> refusals = check(prepared, facts, with[i]);
      if (refusals.empty()) refusals = check(prepared, facts, rows[i]);
      ASSERT_FALSE(refusals.empty());
      rejectors.insert(refusals.front().plugin);
      for (const Reason& r : refusals.front().verdict.reasons) ++counts[text(r, cluster_.interner)];
    }
    std::string pre_filter;
    if (const auto reason = pre_filter_refusal(prepared)) {
      pre_filter = text(*reason, cluster_.interner);
      rejectors = {PluginId::node_affinity};
    }
    const bool restricts = prepared.state<NodeAffinity>().restricts || facts.pinned_node != kNoString;
    if (restricts) rejectors.insert(PluginId::node_affinity);
    EXPECT_EQ(*refused.message, failure_message(rows.size(), counts, pre_filter));
    EXPECT_EQ(refused.rejectors, rejectors);
  }

  RandomCluster cluster_;
  std::vector<CompiledProfile> profiles_;
  ClassTable classes_{cluster_.interner};
  std::vector<PodClass> compiled_;
  std::vector<std::vector<std::uint8_t>> bytes_;
  std::vector<ClassId> ids_;
  std::vector<Node> nodes_;
  std::unique_ptr<Snapshot> snapshot_;
  std::unique_ptr<ClassCache> cache_;
  std::unique_ptr<Planner> planner_;
  std::uint64_t next_uid_ = 0;
  std::uint64_t next_n_ = 1;
};

TEST(ClassCache, AgreesWithTheReferenceAfterAnyHistory) {
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    Twin twin(seed);
    for (int i = 0; i < 80; ++i) {
      twin.step();
      twin.compare();
      if (HasFailure()) FAIL() << "seed " << seed << ", step " << i;
    }
  }
}

TEST(ScoreTree, PicksEveryBestSlotAndNoOther) {
  ScoreTree tree;
  tree.reset(3, 1);
  for (const Slot s : {1U, 70U, 71U, 190U}) tree.set(s, 40, {});
  tree.set(5, 39, {});
  EXPECT_EQ(tree.feasible(), 5U);
  const ScoreTree::Best best = tree.best(0);
  EXPECT_EQ(best.leaf, 40);
  ASSERT_EQ(best.count, 4U);
  std::vector<Slot> picked;
  for (std::uint32_t k = 0; k < best.count; ++k) picked.push_back(tree.pick(0, best.leaf, k, {}));
  EXPECT_EQ(picked, (std::vector<Slot>{1, 70, 71, 190}));
}

}  // namespace
}  // namespace troupe
