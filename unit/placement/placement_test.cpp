#include "actors/placement/placement.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/placement/world.hpp"

namespace troupe {
namespace {

using ::testing::HasSubstr;
using testing::NodeSpec;
using testing::PodSpec;
using testing::World;

std::string numbered(const char* prefix, std::uint64_t i) {
  std::string name(prefix);
  name += std::to_string(i);
  return name;
}

PlacementOptions small() {
  PlacementOptions o;
  o.node_partitions = 4;
  o.shard_epoch = 5;
  return o;
}

World world_of(int nodes, PlacementOptions options = small()) {
  World w(std::move(options));
  for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(nodes); ++i) w.add_node({numbered("n", i)});
  w.synced();
  w.run(100);
  return w;
}

std::size_t count(const World& w, fb::IntentKind kind, const std::string& pod) {
  return static_cast<std::size_t>(
      std::count_if(w.reports.begin(), w.reports.end(),
                    [&](const World::Report& r) { return r.kind == kind && r.pod == pod; }));
}

TEST(Placement, DecidesNothingBeforeListEpochAndCopies) {
  World w(small(), 1, false);
  w.add_node({"n0"});
  w.add_pod({"p"});
  w.run(500);
  EXPECT_FALSE(w.placement().ready());
  w.synced();
  w.run(500);
  EXPECT_FALSE(w.placement().ready());  // no partition has answered
  EXPECT_EQ(w.commits_seen, 0U);
  w.answer = true;
  w.run(3000);  // epochs and copies are asked for again
  EXPECT_TRUE(w.placement().ready());
  EXPECT_EQ(w.bound().at("p"), "n0");
}

TEST(Placement, BindsToTheNodeWithMostRoom) {
  World w(small());
  w.add_node({"a", 4000});
  w.add_node({"b", 4000});
  NodeSpec cordoned{"c", 4000};
  cordoned.cordoned = true;
  w.add_node(cordoned);
  w.add_pod({"x", 3000});
  w.bind_foreign("x", "a");
  w.add_pod({"y", 1000});
  w.bind_foreign("y", "b");
  w.synced();
  w.add_pod({"p", 2000});
  w.run(2000);
  EXPECT_EQ(w.bound().at("p"), "b");
}

TEST(Placement, SpreadsEqualPodsAndRepeatsForOneSeed) {
  const auto run = [](std::uint64_t seed) {
    PlacementOptions options = small();
    options.seed = seed;
    World w = world_of(100, options);
    for (std::uint64_t i = 0; i < 1000; ++i) w.add_pod({numbered("p", i), 100});
    w.run(5000);
    EXPECT_EQ(w.bound().size(), 1000U);
    for (const auto& [node, pods] : w.load()) EXPECT_LE(pods, 13U) << node;
    return w.bound();
  };
  const auto first = run(1);
  EXPECT_EQ(first, run(1));
  EXPECT_NE(first, run(2));
}

TEST(Placement, SaysWhyAndTriesAgainWhenATaintGoes) {
  World w(small());
  w.add_node({"full", 1000});
  w.add_pod({"x", 1000});
  w.bind_foreign("x", "full");
  for (std::uint64_t i = 0; i < 4; ++i) {
    NodeSpec n{numbered("t", i), 4000};
    n.taints = {"dedicated"};
    w.add_node(n);
  }
  w.synced();
  w.add_pod({"p", 500});
  w.run(1000);
  EXPECT_FALSE(w.bound().contains("p"));
  ASSERT_EQ(w.reports.size(), 2U);
  EXPECT_EQ(w.reports[0].reason, "Unschedulable");
  EXPECT_EQ(w.reports[0].text,
            "0/5 nodes are available: 1 Insufficient cpu, 4 node(s) had untolerated taint(s).");
  EXPECT_EQ(w.reports[1].reason, "FailedScheduling");
  w.add_node({"t1", 4000});
  w.run(3000);
  EXPECT_EQ(w.bound().at("p"), "t1");
}

TEST(Placement, HeartbeatsCauseNoAttempt) {
  World w = world_of(2);
  for (std::uint64_t i = 0; i < 200; ++i) w.add_pod({numbered("p", i), 100'000});
  w.run(1000);
  const std::uint64_t attempts = w.stats().unschedulable;
  EXPECT_EQ(attempts, 200U);
  for (int s = 0; s < 300; ++s) {
    w.add_node({"n0"});
    w.add_node({"n1"});
    w.run(1000, 500);
  }
  EXPECT_LE(w.stats().unschedulable, attempts * 2);
  // One text, one condition and one event for each pod.
  EXPECT_EQ(w.reports.size(), 400U);
}

TEST(Placement, WakesTheParkedWhenRoomAppears) {
  World w = world_of(1);
  w.add_pod({"big", 3500});
  w.run(2000);
  w.add_pod({"small", 1000});
  w.add_pod({"never", 9000});
  w.run(2000);
  EXPECT_FALSE(w.bound().contains("small"));
  w.delete_pod("big");
  w.run(3000);
  EXPECT_EQ(w.bound().at("small"), "n0");
  EXPECT_EQ(w.stats().parked, 1U);
  // The pod that cannot fit was not tried again by the deletion.
  EXPECT_EQ(w.stats().unschedulable, 2U);
}

TEST(Placement, HigherPriorityGoesFirst) {
  World w = world_of(1);
  w.eager = true;
  w.add_pod({"low", 3000, 1, 0});
  w.add_pod({"high", 3000, 1, 100});
  w.run(2000);
  EXPECT_TRUE(w.bound().contains("high"));
  EXPECT_FALSE(w.bound().contains("low"));
}

TEST(Placement, GatedPodsWaitWithoutAnAttempt) {
  World w = world_of(1);
  PodSpec p{"p"};
  p.gates = {"a"};
  w.add_pod(p);
  w.run(5000);
  EXPECT_EQ(w.stats().gated, 1U);
  EXPECT_TRUE(w.reports.empty());
  EXPECT_THAT(w.query("pending"), HasSubstr("waiting for scheduling gates: [a]"));
  p.gates.clear();
  w.add_pod(p);
  w.run(1000);
  EXPECT_TRUE(w.bound().contains("p"));
}

TEST(Placement, OtherSchedulersPodsOnlyCount) {
  World w = world_of(1);
  PodSpec other{"other", 3000};
  other.scheduler = "default-scheduler";
  w.add_pod(other);
  w.run(1000);
  EXPECT_EQ(w.commits_seen, 0U);
  w.bind_foreign("other", "n0");
  w.add_pod({"p", 2000});
  w.run(2000);
  EXPECT_FALSE(w.bound().contains("p"));
  EXPECT_THAT(w.query("nodes"), HasSubstr("\"requested\":{\"cpu\":3000"));
}

TEST(Placement, SchedulerNameChangesMoveThePod) {
  World w = world_of(1);
  PodSpec p{"p", 9000};
  w.add_pod(p);
  w.run(1000);
  EXPECT_EQ(w.stats().parked, 1U);
  p.scheduler = "else";
  w.add_pod(p);
  EXPECT_EQ(w.stats().parked, 0U);
  p.scheduler = "koord-scheduler";
  p.cpu = 100;
  w.add_pod(p);
  w.run(1000);
  EXPECT_TRUE(w.bound().contains("p"));
}

TEST(Placement, PinnedPodsLookAtTheirNodeOnly) {
  World w = world_of(3);
  PodSpec p{"p"};
  p.pinned = "n2";
  w.add_pod(p);
  PodSpec lost{"lost"};
  lost.pinned = "n9";
  w.add_pod(lost);
  w.run(1000);
  EXPECT_EQ(w.bound().at("p"), "n2");
  ASSERT_EQ(count(w, fb::IntentKind::PatchStatus, "lost"), 1U);
  EXPECT_EQ(w.reports[0].text, "0/3 nodes are available: 3 node(s) didn't satisfy plugin(s) [NodeAffinity].");
  w.add_node({"n5"});
  w.run(15'000);
  EXPECT_EQ(w.stats().unschedulable, 1U);  // not its node
  w.add_node({"n9"});
  w.run(3000);
  EXPECT_EQ(w.bound().at("lost"), "n9");
}

TEST(Placement, NoNodesIsAnErrorThatBacksOff) {
  World w(small());
  w.synced();
  w.add_pod({"p"});
  w.run(500);
  ASSERT_EQ(w.reports.size(), 2U);
  EXPECT_EQ(w.reports[0].text, "no nodes available to schedule pods");
  EXPECT_EQ(w.stats().backoff, 1U);
  w.add_node({"n0"});
  w.run(4000);
  EXPECT_TRUE(w.bound().contains("p"));
}

TEST(Placement, AFailedBindBacksOffAndIsTriedAgain) {
  World w = world_of(2);
  w.faults.bind_fails = 100;
  w.add_pod({"p"});
  w.run(700);
  EXPECT_EQ(w.stats().errors, 1U);
  ASSERT_GE(w.reports.size(), 1U);
  EXPECT_EQ(w.reports[0].reason, "SchedulerError");
  EXPECT_EQ(w.reports[0].text, "running Bind plugin \"DefaultBinder\": Operation cannot be fulfilled");
  EXPECT_EQ(w.stats().backoff, 1U);
  w.faults.bind_fails = 0;
  w.run(5000);
  EXPECT_TRUE(w.bound().contains("p"));
}

TEST(Placement, ARefusedPodIsTriedAgainWithoutBackoffOrAttempt) {
  World w = world_of(2);
  w.faults.refuse = 100;
  w.add_pod({"p"});
  w.run(200);
  EXPECT_GE(w.stats().conflicts, 2U);
  EXPECT_EQ(w.stats().backoff + w.stats().parked, 0U);
  w.faults.refuse = 0;
  w.run(3000);
  EXPECT_TRUE(w.bound().contains("p"));
  EXPECT_EQ(w.stats().unschedulable, 0U);
  EXPECT_EQ(w.stats().errors, 0U);
}

TEST(Placement, AMissedDeadlineAsksTheSameNodeAgain) {
  World w = world_of(5);
  w.answer = false;
  w.add_pod({"p"});
  w.run(5000);
  EXPECT_EQ(w.stats().asked_again, 1U);
  w.answer = true;
  w.run(10'000);
  EXPECT_TRUE(w.bound().contains("p"));
  EXPECT_EQ(w.grants.size(), 1U);
}

TEST(Placement, AVanishedNodeFreesWhatItDidNotAnswer) {
  World w = world_of(1);
  w.answer = false;
  w.add_pod({"p"});
  w.run(200);
  EXPECT_EQ(w.stats().unanswered, 1U);
  w.remove_node("n0");
  w.answer = true;
  w.add_node({"n7"});
  w.run(5000);
  EXPECT_EQ(w.bound().at("p"), "n7");
  EXPECT_EQ(w.stats().accounted_pods, 1U);
}

TEST(Placement, ADeletedPodInFlightIsReleased) {
  World w = world_of(1);
  w.answer = false;
  w.add_pod({"p", 4000});
  w.run(200);
  w.answer = true;
  w.delete_pod("p");
  EXPECT_EQ(w.releases_seen, 1U);
  w.add_pod({"q", 4000});
  w.run(2000);
  EXPECT_TRUE(w.bound().contains("q"));
  EXPECT_EQ(w.stats().accounted_pods, 1U);
}

TEST(Placement, PodsThatTheLedgerHoldsAreNotDecidedAgain) {
  World w(small());
  w.add_node({"n0"});
  w.add_node({"n1"});
  w.synced();
  w.run(500);
  w.binds_settle = false;
  w.add_pod({"p"});
  w.run(500);
  ASSERT_EQ(w.grants.size(), 1U);
  // A placement that starts now sees the pod unbound, and its grant in the ledger.
  // The grant came from an older shard epoch, so its commit id says nothing to it.
  PlacementOptions later = small();
  later.shard_epoch = 6;
  w.restart(later);
  w.run(3000);
  EXPECT_EQ(w.grants.size(), 1U);
  EXPECT_THAT(w.query("pending"), HasSubstr("inFlight"));
  w.binds_settle = true;
  w.run(3000);
  EXPECT_TRUE(w.bound().contains("p"));
  EXPECT_THAT(w.query("pending"), ::testing::Not(HasSubstr("\"name\":\"p\"")));
}

TEST(Placement, ADeletingPodIsSkippedWithAnEvent) {
  World w = world_of(1);
  PodSpec p{"p"};
  p.deleting = true;
  w.add_pod(p);
  w.run(1000);
  w.add_pod(p);
  w.run(1000);
  ASSERT_EQ(w.reports.size(), 1U);
  EXPECT_EQ(w.reports[0].text, "skip schedule deleting pod: default/p");
  EXPECT_EQ(w.commits_seen, 0U);
}

TEST(Placement, PublishesWhatHappens) {
  World w = world_of(1);
  w.add_pod({"p"});
  w.add_pod({"q", 90'000});
  w.run(1000);
  using Event = std::pair<std::string, std::string>;
  EXPECT_THAT(w.public_events,
              ::testing::UnorderedElementsAre(Event{"queued", "p"}, Event{"queued", "q"},
                                              Event{"scheduled", "p"}, Event{"unschedulable", "q"}));
}

TEST(Placement, AnswersQuestions) {
  World w = world_of(2);
  w.add_pod({"p"});
  w.add_pod({"q", 5000});
  w.run(2000);
  EXPECT_THAT(w.query("decisions"), HasSubstr("\"name\":\"p\""));
  EXPECT_THAT(w.query("pods"), HasSubstr("\"name\":\"p\",\"node\":\"n"));
  EXPECT_THAT(w.query("pending"), HasSubstr("0/2 nodes are available: 2 Insufficient cpu."));
  EXPECT_THAT(w.query("explain", "default", "q"),
              HasSubstr("\"refused\":{\"n0\":[\"Insufficient cpu\"],\"n1\":[\"Insufficient cpu\"]}"));
  EXPECT_THAT(w.query("explain", "default", "none"), HasSubstr("error"));
  EXPECT_THAT(w.query("stats"), HasSubstr("\"nodes\":2"));
  EXPECT_THAT(w.query("dance"), HasSubstr("unknown question"));
}

/// After any faults: once they stop, every pod that fits is bound to one node, and the accounts here are the
/// owners'.
TEST(Placement, SurvivesLateAndRepeatedMessagesRefusalsAndMoves) {
  for (std::uint64_t seed = 1; seed <= 25; ++seed) {
    PlacementOptions options = small();
    options.seed = seed;
    options.commit_deadline_ms = 500;
    World w(options, seed);
    for (std::uint64_t i = 0; i < 8; ++i) w.add_node({numbered("n", i), 4000});
    w.synced();
    w.faults = {.repeat = 15, .late = 20, .refuse = 10, .bind_fails = 10, .move = 10};
    Random random(seed);
    std::uint64_t next = 0;
    for (int round = 0; round < 60; ++round) {
      for (std::uint64_t i = 0; i < 3; ++i) w.add_pod({numbered("p", next++), 300});
      if (random.below(2) == 0 && next > 10) w.delete_if_exists(numbered("p", random.below(next)));
      if (random.below(10) == 0) w.remove_node(numbered("n", random.below(8)));
      if (random.below(4) == 0) w.add_node({numbered("n", random.below(8)), 4000});
      w.run(300);
    }
    w.faults = {};
    for (std::uint64_t i = 0; i < 8; ++i) w.add_node({numbered("n", i), 4000});
    w.run(60'000);
    // 32 cores hold 104 pods of 300 m: 13 on each node.
    const std::size_t fits = 8 * 13;
    EXPECT_EQ(w.bound().size(), std::min(w.pods(), fits)) << "seed " << seed << " " << w.query("stats");
    EXPECT_EQ(w.stats().accounted_pods, w.entries()) << "seed " << seed;
    EXPECT_EQ(w.stats().unanswered, 0U) << "seed " << seed;
    for (const std::string& node : w.node_names()) {
      EXPECT_LE(w.cpu(node), 4000) << "seed " << seed;
      EXPECT_THAT(w.query("nodes", {}, node),
                  HasSubstr("\"remaining\":{\"cpu\":" + std::to_string(4000 - w.cpu(node))))
          << "seed " << seed;
    }
    if (HasFailure()) FAIL() << "seed " << seed;
  }
}

}  // namespace
}  // namespace troupe
