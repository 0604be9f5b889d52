#include "actors/placement/evaluate.hpp"

#include <gtest/gtest.h>

#include "unit/placement/random_cluster.hpp"

namespace troupe {
namespace {

using testing::RandomCluster;
using testing::RowNode;

// The cheap form and the form with reasons are two readings of one rule.
TEST(Evaluate, PassesAgreesWithReasons) {
  RandomCluster cluster(11);
  const CompiledProfile profile = compile(Profile::standard(), cluster.interner);
  int feasible = 0;
  for (int i = 0; i < 20'000; ++i) {
    const PodClass cls = cluster.pod_class();
    const PreparedClass prepared(profile, cls, cluster.interner);
    const RowNode node = cluster.node(static_cast<int>(cluster.below(4)), 4);
    PodFacts facts;
    if (cluster.chance(10)) facts.pinned_node = cluster.node_name(static_cast<int>(cluster.below(4)));
    if (cluster.chance(10)) facts.node_name = cluster.node_name(static_cast<int>(cluster.below(4)));
    const std::vector<Refusal> all = check(prepared, facts, node, false);
    const std::vector<Refusal> first = check(prepared, facts, node);
    ASSERT_EQ(passes(prepared, facts, node), all.empty());
    ASSERT_EQ(first.size(), all.empty() ? 0U : 1U);
    if (!first.empty()) {
      ASSERT_EQ(first.front().plugin, all.front().plugin);
      ASSERT_EQ(first.front().verdict.reasons, all.front().verdict.reasons);
      ASSERT_FALSE(first.front().verdict.reasons.empty());
    }
    feasible += all.empty() ? 1 : 0;
  }
  EXPECT_GT(feasible, 500);
  EXPECT_LT(feasible, 19'000);
}

TEST(Evaluate, TotalsAreWeightedNormalisedSumsAndWinnersAreTheirMaximum) {
  RandomCluster cluster(12);
  const CompiledProfile profile = compile(Profile::standard(), cluster.interner);
  for (int i = 0; i < 3'000; ++i) {
    const PodClass cls = cluster.pod_class();
    const PreparedClass prepared(profile, cls, cluster.interner);
    std::vector<RowNode> nodes;
    for (int n = 0; n < 6; ++n) nodes.push_back(cluster.node(n, 6));
    const Evaluation e = reference_evaluate<RowNode>(prepared, {}, nodes);
    std::int64_t best = -1;
    for (const NodeEvaluation& node : e.nodes) {
      if (!node.refusals.empty()) continue;
      ASSERT_EQ(node.weighted.size(), e.scores.size());
      std::int64_t total = 0;
      for (std::size_t k = 0; k < e.scores.size(); ++k) {
        ASSERT_GE(node.weighted[k], 0);
        ASSERT_LE(node.weighted[k], kMaxNodeScore * e.scores[k].weight);
        total += node.weighted[k];
      }
      ASSERT_EQ(node.total, total);
      best = std::max(best, total);
    }
    for (const std::uint32_t w : e.winners) ASSERT_EQ(e.nodes[w].total, best);
    ASSERT_EQ(e.winners.empty(), best < 0);
  }
}

TEST(Evaluate, NormalisationFollowsTheMaximum) {
  std::vector<std::int64_t> scores = {0, 5, 10};
  normalise(Normalise::standard, scores);
  EXPECT_EQ(scores, (std::vector<std::int64_t>{0, 50, 100}));
  scores = {0, 5, 10};
  normalise(Normalise::reversed, scores);
  EXPECT_EQ(scores, (std::vector<std::int64_t>{100, 50, 0}));
  scores = {0, 0};
  normalise(Normalise::reversed, scores);
  EXPECT_EQ(scores, (std::vector<std::int64_t>{100, 100}));
}

}  // namespace
}  // namespace troupe
