// Each plugin by the letter of its rule, on written-out cases.
#include <gtest/gtest.h>

#include "actors/placement/evaluate.hpp"
#include "unit/placement/random_cluster.hpp"

namespace troupe {
namespace {

using testing::RowNode;

class Plugins : public ::testing::Test {
 protected:
  Interner interner;
  Profile settings = Profile::standard();
  PodClass cls;
  PodFacts facts;
  RowNode node;

  void SetUp() override { node.node_name = interner.id("n1"); }

  StringId id(const char* text) { return interner.id(text); }

  Verdict filter_by(PluginId plugin) {
    const CompiledProfile profile = compile(settings, interner);
    const PreparedClass prepared(profile, cls, interner);
    return filter(plugin, prepared, facts, node);
  }
  bool fits_by(PluginId plugin) { return filter_by(plugin).ok(); }

  std::int64_t score_by(PluginId plugin) {
    const CompiledProfile profile = compile(settings, interner);
    const PreparedClass prepared(profile, cls, interner);
    return raw_score(plugin, prepared, node);
  }

  Requirement label(const char* key, fb::SelectorOperator op, std::vector<const char*> values = {}) {
    Requirement r;
    r.key = id(key);
    r.op = op;
    for (const char* v : values) r.values.push_back(id(v));
    return r;
  }
  Requirement number(const char* key, fb::SelectorOperator op, std::int64_t value) {
    Requirement r = label(key, op);
    r.number = value;
    r.number_valid = true;
    return r;
  }
  Requirement name_in(std::vector<const char*> names, fb::SelectorOperator op = fb::SelectorOperator::In) {
    return label("metadata.name", op, std::move(names));
  }
  void require(std::vector<NodeSelectorTerm> terms) {
    cls.has_required = true;
    cls.required = std::move(terms);
  }
};

TEST_F(Plugins, TheDefaultSetHasKubeSchedulersOrderAndWeights) {
  const Profile p = Profile::standard();
  std::vector<std::pair<std::string_view, int>> scores;
  for (const EnabledPlugin& s : p.at(Point::score)) scores.emplace_back(plugin_name(s.plugin), s.weight);
  EXPECT_EQ(scores, (std::vector<std::pair<std::string_view, int>>{{"TaintToleration", 3},
                                                                   {"NodeAffinity", 2},
                                                                   {"NodeResourcesFit", 1},
                                                                   {"NodeResourcesBalancedAllocation", 1},
                                                                   {"ImageLocality", 1}}));
  std::vector<std::string_view> filters;
  for (const EnabledPlugin& f : p.at(Point::filter)) filters.push_back(plugin_name(f.plugin));
  EXPECT_EQ(filters, (std::vector<std::string_view>{"NodeUnschedulable", "NodeName", "TaintToleration",
                                                    "NodeAffinity", "NodePorts", "NodeResourcesFit"}));
  EXPECT_EQ(p.at(Point::pre_enqueue).size(), 1U);
  EXPECT_EQ(p.at(Point::queue_sort).size(), 1U);
  EXPECT_EQ(p.at(Point::bind).size(), 1U);
}

TEST_F(Plugins, ProfilesEnableDisableAndWeigh) {
  EXPECT_TRUE(settings.disable(Point::score, PluginId::image_locality));
  EXPECT_FALSE(settings.disable(Point::score, PluginId::image_locality));
  settings.enable(Point::score, PluginId::node_resources_fit, 7);
  settings.enable(Point::score, PluginId::image_locality);  // weight 0 counts as 1, and it goes to the end
  const CompiledProfile profile = compile(settings, interner);
  EXPECT_EQ(profile.scores.back().plugin, PluginId::image_locality);
  EXPECT_EQ(profile.scores.back().weight, 1);
  EXPECT_EQ(profile.scores[2].weight, 7);
}

TEST_F(Plugins, PrioritySortPutsHigherPriorityThenEarlierTimeFirst) {
  EXPECT_TRUE(PrioritySort::before({1, 9}, {0, 1}));
  EXPECT_TRUE(PrioritySort::before({0, 1}, {0, 2}));
  EXPECT_FALSE(PrioritySort::before({0, 2}, {0, 2}));
}

TEST_F(Plugins, CordonedNodesTakePodsThatTolerateTheCordon) {
  node.cordoned = true;
  EXPECT_EQ(filter_by(PluginId::node_unschedulable).code, Code::unschedulable_and_unresolvable);
  cls.tolerations = {
      {id("node.kubernetes.io/unschedulable"), true, kEmptyString, fb::TaintEffect::NoExecute}};
  EXPECT_FALSE(fits_by(PluginId::node_unschedulable));
  cls.tolerations[0].effect = fb::TaintEffect::NoSchedule;
  EXPECT_TRUE(fits_by(PluginId::node_unschedulable));
}

TEST_F(Plugins, TolerationsMatchByEffectKeyAndValue) {
  const auto tolerated_by = [&](Toleration t) {
    cls.tolerations = {t};
    return fits_by(PluginId::taint_toleration);
  };
  node.taint_list = {{id("k"), id("v"), fb::TaintEffect::NoExecute}};
  using enum fb::TaintEffect;
  EXPECT_TRUE(tolerated_by({id("k"), false, id("v"), NoExecute}));
  EXPECT_TRUE(tolerated_by({id("k"), false, id("v"), Any}));
  EXPECT_FALSE(tolerated_by({id("k"), false, id("v"), NoSchedule}));
  EXPECT_FALSE(tolerated_by({id("k"), false, id("w"), NoExecute}));
  EXPECT_TRUE(tolerated_by({id("k"), true, id("w"), NoExecute})) << "Exists ignores the value";
  EXPECT_TRUE(tolerated_by({kEmptyString, true, kEmptyString, Any})) << "an empty key is every key";
  EXPECT_FALSE(tolerated_by({id("j"), true, kEmptyString, Any}));
}

TEST_F(Plugins, PreferNoScheduleCountsAndNeverFilters) {
  using enum fb::TaintEffect;
  node.taint_list = {{id("a"), kEmptyString, PreferNoSchedule}, {id("b"), kEmptyString, PreferNoSchedule}};
  EXPECT_TRUE(fits_by(PluginId::taint_toleration));
  EXPECT_EQ(score_by(PluginId::taint_toleration), 2);
  cls.tolerations = {{id("a"), true, kEmptyString, NoSchedule}};
  EXPECT_EQ(score_by(PluginId::taint_toleration), 2) << "another effect does not help";
  cls.tolerations = {{id("a"), true, kEmptyString, Any}, {id("b"), true, kEmptyString, PreferNoSchedule}};
  EXPECT_EQ(score_by(PluginId::taint_toleration), 0);
}

TEST_F(Plugins, RequirementsMatchAsLabelSelectorsDo) {
  using enum fb::SelectorOperator;
  node.labels = {{id("zone"), id("a")}, {id("cores"), id("8")}, {id("word"), id("8x")}};
  const auto matches = [&](Requirement r) {
    require({{{std::move(r)}, {}}});
    return fits_by(PluginId::node_affinity);
  };
  EXPECT_TRUE(matches(label("zone", In, {"b", "a"})));
  EXPECT_FALSE(matches(label("none", In, {"a"})));
  EXPECT_FALSE(matches(label("zone", NotIn, {"a"})));
  EXPECT_TRUE(matches(label("none", NotIn, {"a"}))) << "an absent key is not in any list";
  EXPECT_TRUE(matches(label("zone", Exists)));
  EXPECT_FALSE(matches(label("zone", DoesNotExist)));
  EXPECT_TRUE(matches(label("none", DoesNotExist)));
  EXPECT_TRUE(matches(number("cores", Gt, 7)));
  EXPECT_FALSE(matches(number("cores", Gt, 8)));
  EXPECT_TRUE(matches(number("cores", Lt, 9)));
  EXPECT_FALSE(matches(number("word", Gt, 1))) << "not an integer";
  EXPECT_FALSE(matches(number("none", Lt, 1)));
  Requirement unparsed = label("cores", Gt, {"x"});
  EXPECT_FALSE(matches(unparsed));
}

TEST_F(Plugins, TermsAreOredAndEmptyOnesMatchNothing) {
  using enum fb::SelectorOperator;
  node.labels = {{id("zone"), id("a")}};
  const NodeSelectorTerm empty;
  const NodeSelectorTerm good{{label("zone", In, {"a"})}, {}};
  const NodeSelectorTerm both{{label("zone", In, {"a"}), label("disk", Exists)}, {}};
  require({});
  EXPECT_FALSE(fits_by(PluginId::node_affinity));
  require({empty});
  EXPECT_FALSE(fits_by(PluginId::node_affinity));
  require({empty, good});
  EXPECT_TRUE(fits_by(PluginId::node_affinity));
  require({both});
  EXPECT_FALSE(fits_by(PluginId::node_affinity)) << "requirements of a term are ANDed";
  require({good});
  cls.node_selector = {{id("zone"), id("b")}};
  EXPECT_FALSE(fits_by(PluginId::node_affinity)) << "nodeSelector is ANDed with the affinity";
}

TEST_F(Plugins, PreferredTermsAddTheirWeights) {
  using enum fb::SelectorOperator;
  node.labels = {{id("zone"), id("a")}};
  cls.preferred = {{10, {{label("zone", Exists)}, {}}}, {5, {}}, {3, {{}, {name_in({"n1"})}}}};
  EXPECT_EQ(score_by(PluginId::node_affinity), 13) << "an empty preference matches nothing";
}

TEST_F(Plugins, TermsThatAllNameNodesAreANodeSet) {
  require({{{}, {name_in({"n1"})}}, {{}, {name_in({"n2"})}}});
  const CompiledProfile profile = compile(settings, interner);
  const PreparedClass prepared(profile, cls, interner);
  EXPECT_TRUE(check(prepared, facts, node).empty());
  node.node_name = id("n3");
  const std::vector<Refusal> refusals = check(prepared, facts, node);
  ASSERT_EQ(refusals.size(), 1U);
  EXPECT_EQ(refusals[0].verdict.code, Code::unschedulable_and_unresolvable);
  EXPECT_EQ(text(refusals[0].verdict.reasons[0], interner),
            "node(s) didn't satisfy plugin(s) [NodeAffinity]");
}

TEST_F(Plugins, OneTermWithoutANameOpensEveryNode) {
  require({{{}, {name_in({"n1"})}}, {{label("zone", fb::SelectorOperator::Exists)}, {}}});
  node.node_name = id("n3");
  const CompiledProfile profile = compile(settings, interner);
  const PreparedClass prepared(profile, cls, interner);
  const std::vector<Refusal> refusals = check(prepared, facts, node);
  ASSERT_EQ(refusals.size(), 1U);
  EXPECT_EQ(text(refusals[0].verdict.reasons[0], interner),
            "node(s) didn't match Pod's node affinity/selector");
}

TEST_F(Plugins, ConflictingNamesRefuseInPreFilter) {
  require({{{}, {name_in({"n1"}), name_in({"n2"})}}});
  const CompiledProfile profile = compile(settings, interner);
  const PreparedClass prepared(profile, cls, interner);
  const std::optional<Reason> reason = pre_filter_refusal(prepared);
  ASSERT_TRUE(reason);
  EXPECT_EQ(text(*reason, interner), "pod affinity terms conflict");
  EXPECT_FALSE(passes(prepared, facts, node));
}

TEST_F(Plugins, AddedAffinityHoldsForEveryPodAndIsReportedFirst) {
  CompiledProfile profile = compile(settings, interner);
  profile.has_added_affinity = true;
  profile.added_affinity.has_required = true;
  profile.added_affinity.required = {{{label("pool", fb::SelectorOperator::In, {"x"})}, {}}};
  profile.added_affinity.preferred = {{4, {{label("pool", fb::SelectorOperator::Exists)}, {}}}};
  cls.node_selector = {{id("zone"), id("a")}};
  const PreparedClass prepared(profile, cls, interner);
  EXPECT_EQ(text(filter(PluginId::node_affinity, prepared, facts, node).reasons[0], interner),
            "node(s) didn't match scheduler-enforced node affinity");
  node.labels = {{id("pool"), id("x")}, {id("zone"), id("a")}};
  EXPECT_TRUE(filter(PluginId::node_affinity, prepared, facts, node).ok());
  EXPECT_EQ(raw_score(PluginId::node_affinity, prepared, node), 4);
}

TEST_F(Plugins, FitChecksThePodCountEvenForPodsThatRequestNothing) {
  node.pods.push_back({});
  node.pods.back().requests = {{kCpu, 9000}};
  node.allocatable_amounts = {{kCpu, 4000}};
  EXPECT_TRUE(fits_by(PluginId::node_resources_fit)) << "over-committed, but nothing is requested";
  node.pods_allowed = 1;
  const Verdict verdict = filter_by(PluginId::node_resources_fit);
  EXPECT_EQ(verdict.code, Code::unschedulable);
  EXPECT_EQ(text(verdict.reasons.at(0), interner), "Too many pods");
}

TEST_F(Plugins, IgnoredExtendedResourcesAreNotComparedButNativeOnesAlwaysAre) {
  cls.requests = {{interner.resource("example.com/gpu"), 1},
                  {interner.resource("other.org/x"), 1},
                  {interner.resource("kubernetes.io/batch-cpu"), 1}};
  settings.node_resources_fit.ignored_resources = {"example.com/gpu", "kubernetes.io/batch-cpu"};
  settings.node_resources_fit.ignored_resource_groups = {"other.org", "kubernetes.io"};
  const Verdict verdict = filter_by(PluginId::node_resources_fit);
  ASSERT_EQ(verdict.reasons.size(), 1U);
  EXPECT_EQ(text(verdict.reasons[0], interner), "Insufficient kubernetes.io/batch-cpu");
  EXPECT_EQ(verdict.code, Code::unschedulable_and_unresolvable);
}

TEST_F(Plugins, ScalarsThatThePodDoesNotRequestAreLeftOutOfTheScore) {
  settings.node_resources_fit.resources = {{"cpu", 1}, {"example.com/gpu", 3}};
  node.allocatable_amounts = {{kCpu, 1000}, {interner.resource("example.com/gpu"), 4}};
  cls.score_cpu = 500;
  EXPECT_EQ(score_by(PluginId::node_resources_fit), 50);
  cls.score_requests = {{interner.resource("example.com/gpu"), 4}};
  EXPECT_EQ(score_by(PluginId::node_resources_fit), 12) << "(50 + 3 * 0) / 4";
}

TEST_F(Plugins, CapacitiesBeyondTheNarrowRangeScoreExactly) {
  node.allocatable_amounts = {{kCpu, std::int64_t{1} << 61}, {kMemory, (std::int64_t{1} << 62) + 12345}};
  cls.score_cpu = std::int64_t{1} << 60;
  cls.score_memory = std::int64_t{1} << 60;
  EXPECT_EQ(score_by(PluginId::node_resources_fit), (50 + 75) / 2);
}

TEST_F(Plugins, RatioIsPiecewiseLinearWithIntegerSegments) {
  const auto scores = ratio_scores({{20, 10}, {50, 3}, {80, 3}});
  EXPECT_EQ(scores[0], 100);
  EXPECT_EQ(scores[20], 100);
  EXPECT_EQ(scores[21], 98) << "100 + (-70 * 1) / 30, truncated toward zero";
  EXPECT_EQ(scores[50], 30);
  EXPECT_EQ(scores[65], 30);
  EXPECT_EQ(scores[100], 30);
}

TEST_F(Plugins, BalancedAllocationIsSkippedForPodsThatRequestNoneOfItsResources) {
  const CompiledProfile profile = compile(settings, interner);
  const auto scored = [&] {
    const PreparedClass prepared(profile, cls, interner);
    return std::any_of(prepared.scores().begin(), prepared.scores().end(), [](const EnabledPlugin& p) {
      return p.plugin == PluginId::node_resources_balanced_allocation;
    });
  };
  EXPECT_FALSE(scored());
  cls.requests = {{kCpu, 1}};
  EXPECT_TRUE(scored());
}

TEST_F(Plugins, PortsConflictByPortProtocolAndAddress) {
  const auto free_for = [&](HostPort used, HostPort wanted) {
    node.pods.assign(1, {});
    node.pods[0].host_ports = {used};
    cls.host_ports = {wanted};
    return fits_by(PluginId::node_ports);
  };
  const StringId tcp = id("TCP");
  const StringId a = id("10.0.0.1");
  EXPECT_FALSE(free_for({kEmptyString, tcp, 80}, {kEmptyString, tcp, 80}));
  EXPECT_TRUE(free_for({kEmptyString, tcp, 80}, {kEmptyString, id("UDP"), 80}));
  EXPECT_TRUE(free_for({a, tcp, 80}, {id("10.0.0.2"), tcp, 80}));
  EXPECT_FALSE(free_for({a, tcp, 80}, {kEmptyString, tcp, 80}));
  EXPECT_TRUE(free_for({a, tcp, 80}, {a, tcp, 81}));
}

TEST_F(Plugins, EveryPluginIsFoundByItsName) {
  for_each_plugin([]<class P>(P) {
    PluginId found{};
    ASSERT_TRUE(find_plugin(P::name, found));
    EXPECT_EQ(found, P::id);
    EXPECT_EQ(plugin_name(P::id), P::name);
  });
  PluginId none{};
  EXPECT_FALSE(find_plugin("Nothing", none));
}

}  // namespace
}  // namespace troupe
