#include "actors/placement/explain.hpp"

#include <gtest/gtest.h>

#include "unit/placement/random_cluster.hpp"

namespace troupe {
namespace {

using testing::RandomCluster;
using testing::RowNode;

class Explain : public ::testing::Test {
 protected:
  Interner interner;
  CompiledProfile profile = compile(Profile::standard(), interner);
  std::vector<RowNode> nodes;

  RowNode& node(const char* name, std::int64_t cpu) {
    RowNode n;
    n.node_name = interner.id(name);
    n.allocatable_amounts = {{kCpu, cpu}, {kMemory, std::int64_t{8} << 30}};
    n.cluster_nodes = 3;
    nodes.push_back(std::move(n));
    return nodes.back();
  }

  static PodClass pod(std::int64_t cpu) {
    PodClass c;
    c.requests = {{kCpu, cpu}, {kMemory, std::int64_t{1} << 30}};
    c.non_zero_cpu = c.score_cpu = cpu;
    c.non_zero_memory = c.score_memory = std::int64_t{1} << 30;
    c.score_requests = c.requests;
    return c;
  }

  Explanation explain_pod(const PodClass& cls, PodFacts facts = {}, std::vector<std::string> gates = {}) {
    const PreparedClass prepared(profile, cls, interner);
    return explain<RowNode>(prepared, {"default", "web", facts, gates}, nodes);
  }
};

TEST_F(Explain, JsonNamesScoresAndRefusals) {
  node("n1", 4000).pods.push_back(pod(3000));
  node("n2", 4000).pods.push_back(pod(1000));
  RowNode& cordoned = node("n3", 1000);
  cordoned.cordoned = true;
  EXPECT_EQ(to_json(explain_pod(pod(2000))),
            R"({"pod":"default/web","feasible":{"n2":{"TaintToleration":300,"NodeAffinity":0,)"
            R"("NodeResourcesFit":50,"NodeResourcesBalancedAllocation":75,"ImageLocality":0,"total":425}},)"
            R"("refused":{"n1":["Insufficient cpu"],"n3":["node(s) were unschedulable"]},)"
            R"("alsoRefused":{"n3":{"NodeResourcesFit":["Insufficient cpu"]}},"message":""})");
}

TEST_F(Explain, MessageIsTheFailedSchedulingText) {
  node("n1", 1000);
  node("n2", 1000)
      .taint_list.push_back({interner.id("dedicated"), interner.id("x"), fb::TaintEffect::NoSchedule});
  const Explanation e = explain_pod(pod(2000));
  EXPECT_EQ(e.message, "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint(s).");
  ASSERT_EQ(e.refused.size(), 2U);
  EXPECT_EQ(e.refused[1].by.size(), 2U);
}

TEST_F(Explain, RemediesNameTheNearestWayOut) {
  node("n1", 4000).pods.push_back(pod(2500));
  node("n2", 4000).pods.push_back(pod(3500));
  const Explanation e = explain_pod(pod(2000));
  ASSERT_EQ(e.remedies.size(), 1U);
  EXPECT_EQ(e.remedies[0], "2 nodes (n1, n2): free 500m cpu on n1");
  EXPECT_NE(to_text(e).find("2  Insufficient cpu: n1, n2"), std::string::npos);
}

TEST_F(Explain, RemediesForTaintsLabelsAndCordons) {
  PodClass cls = pod(100);
  cls.node_selector.emplace_back(interner.id("zone"), interner.id("a"));
  for (const char* name : {"n1", "n2"}) {
    RowNode& n = node(name, 4000);
    n.labels[interner.id("zone")] = interner.id("a");
    n.taint_list.push_back({interner.id("dedicated"), interner.id("x"), fb::TaintEffect::NoSchedule});
  }
  node("n3", 4000);
  const Explanation e = explain_pod(cls);
  EXPECT_EQ(e.remedies, (std::vector<std::string>{
                            "2 nodes (n1, n2): tolerate dedicated=x:NoSchedule",
                            "1 node (n3): label them zone=a, or drop that from nodeSelector",
                        }));
}

TEST_F(Explain, APinnedPodNeedsItsNode) {
  node("n1", 4000);
  PodFacts facts;
  facts.pinned_node = interner.id("n9");
  const Explanation e = explain_pod(pod(100), facts);
  EXPECT_EQ(e.message, "0/1 nodes are available: 1 node(s) didn't satisfy plugin(s) [NodeAffinity].");
  ASSERT_FALSE(e.remedies.empty());
  EXPECT_EQ(e.remedies[0], "add node n9, the only one that the pod allows");
}

TEST_F(Explain, GatesComeBeforeTheNodes) {
  node("n1", 4000);
  const Explanation e = explain_pod(pod(100), {}, {"quota"});
  EXPECT_EQ(e.message, "waiting for scheduling gates: [quota]");
  EXPECT_EQ(e.feasible.size(), 1U);
  EXPECT_EQ(e.remedies, std::vector<std::string>{"remove the scheduling gates quota"});
}

TEST_F(Explain, NoNodes) {
  EXPECT_EQ(explain_pod(pod(100)).message, "no nodes available to schedule pods");
}

// Every node is either feasible or refused, whatever the cluster; the text and the remedies never fail.
TEST_F(Explain, CoversEveryNodeOfRandomClusters) {
  RandomCluster cluster(31);
  const CompiledProfile standard = compile(Profile::standard(), cluster.interner);
  for (int i = 0; i < 3'000; ++i) {
    std::vector<RowNode> random_nodes;
    for (int n = 0; n < 5; ++n) random_nodes.push_back(cluster.node(n, 5));
    const PodClass cls = cluster.pod_class();
    const PreparedClass prepared(standard, cls, cluster.interner);
    const Explanation e = explain<RowNode>(prepared, {"ns", "p", {}, {}}, random_nodes);
    ASSERT_EQ(e.feasible.size() + e.refused.size(), 5U);
    ASSERT_EQ(e.message.empty(), !e.feasible.empty());
    ASSERT_EQ(e.remedies.empty(), !e.feasible.empty());
    ASSERT_FALSE(to_text(e).empty());
    ASSERT_EQ(to_json(e).back(), '}');
  }
}

}  // namespace
}  // namespace troupe
