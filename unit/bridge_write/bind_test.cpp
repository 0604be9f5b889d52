#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "unit/bridge_write/harness.hpp"

namespace troupe::test {
namespace {

using Kind_ = Fault::Kind;

bool is_binding(const HttpRequest& request) {
  return request.path.ends_with("/binding");
}

/// The first binding meets `kind`, everything else goes well.
std::function<Fault(const HttpRequest&)> first_binding(Fault bad) {
  return [bad, left = 1](const HttpRequest& request) mutable {
    if (is_binding(request) && left-- > 0) return bad;
    return Fault{};
  };
}

TEST(Bind, TellsTheEffectAndThenThatItsEventHasArrived) {
  Harness h;
  FakePod& pod = h.api.add_pod("p");
  IntentSpec spec = intent_for(pod, 9, "Bind");
  spec.event = true;
  h.issue({spec});
  ASSERT_TRUE(h.finish());
  EXPECT_EQ(pod.node, "n1");
  ASSERT_EQ(h.told.size(), 2U);
  EXPECT_EQ(h.told[0].stage, fb::IntentStage::Effect);
  EXPECT_EQ(h.told[0].outcome, fb::IntentOutcome::Done);
  EXPECT_EQ(h.told[1].stage, fb::IntentStage::Complete);
  EXPECT_EQ(h.told[1].outcome, fb::IntentOutcome::Done);
  ASSERT_EQ(h.api.events.size(), 1U);
  const auto event = nlohmann::json::parse(h.api.events.begin()->second);
  EXPECT_EQ(event.at("reportingInstance"), "koord-scheduler-host");
  EXPECT_EQ(event.at("regarding").at("uid"), pod.uid);
  EXPECT_FALSE(h.api.writes_without_uid);
}

TEST(Bind, WithoutAnEventGivesOneResult) {
  Harness h;
  h.issue({intent_for(h.api.add_pod("p"), 9, "Bind")});
  ASSERT_TRUE(h.finish());
  ASSERT_EQ(h.told.size(), 1U);
  EXPECT_EQ(h.told[0].stage, fb::IntentStage::Complete);
  EXPECT_EQ(h.told[0].status, 201);
}

TEST(Bind, WhoseAnswerIsLostIsReadAndNotBoundAgain) {
  for (const Fault& bad :
       {Fault{Kind_::lost_answer}, Fault{Kind_::answer_after, 504}, Fault{Kind_::answer_after, 500}}) {
    Harness h;
    FakePod& pod = h.api.add_pod("p");
    h.api.fault = first_binding(bad);
    h.issue({intent_for(pod, 1, "Bind")});
    ASSERT_TRUE(h.finish());
    EXPECT_EQ(h.outcome(1), "Done");
    EXPECT_EQ(h.api.sent("POST", "/binding").size(), 1U);
    EXPECT_EQ(h.api.sent("GET", "/p").size(), 1U);
  }
}

TEST(Bind, ThatNeverArrivedIsSentAgainAfterReading) {
  for (const Fault& bad :
       {Fault{Kind_::lost_request}, Fault{Kind_::answer_before, 504}, Fault{Kind_::answer_before, 503}}) {
    Harness h;
    FakePod& pod = h.api.add_pod("p");
    h.api.fault = first_binding(bad);
    h.issue({intent_for(pod, 1, "Bind")});
    ASSERT_TRUE(h.finish());
    EXPECT_EQ(h.outcome(1), "Done");
    EXPECT_EQ(pod.node, "n1");
    EXPECT_EQ(h.api.sent("POST", "/binding").size(), 2U);
    EXPECT_EQ(h.api.sent("GET", "/p").size(), 1U);
  }
}

TEST(Bind, ThatArrivesLateMeetsItsSecond) {
  Harness h;
  FakePod& pod = h.api.add_pod("p");
  h.api.fault = first_binding(Fault{Kind_::late});
  h.issue({intent_for(pod, 1, "Bind")});
  ASSERT_TRUE(h.finish());
  h.timers.run_until(h.timers.now_ms() + 10'000);
  EXPECT_EQ(h.outcome(1), "Done");
  EXPECT_EQ(h.api.applied.size(), 1U);
}

TEST(Bind, WithoutConnectionWasNotSentAndNeedsNoReading) {
  for (const Fault& bad : {Fault{Kind_::not_sent}, Fault{Kind_::answer_before, 401}}) {
    Harness h;
    FakePod& pod = h.api.add_pod("p");
    h.api.fault = first_binding(bad);
    h.issue({intent_for(pod, 1, "Bind")});
    ASSERT_TRUE(h.finish());
    EXPECT_EQ(h.outcome(1), "Done");
    EXPECT_TRUE(h.api.sent("GET", "/p").empty());
  }
}

TEST(Bind, HonoursRetryAfter) {
  Harness h;
  FakePod& pod = h.api.add_pod("p");
  h.api.fault = first_binding({Kind_::answer_before, 429, 2, 3000});
  h.issue({intent_for(pod, 1, "Bind")});
  ASSERT_TRUE(h.finish());
  EXPECT_EQ(h.outcome(1), "Done");
  const auto posts = h.api.sent("POST", "/binding");
  ASSERT_EQ(posts.size(), 2U);
  EXPECT_GE(posts[1].ms - posts[0].ms, 3000);
}

TEST(Bind, OfAPodBoundElsewhereSaysSo) {
  Harness h;
  FakePod& pod = h.api.add_pod("p");
  const IntentSpec spec = intent_for(pod, 1, "Bind");
  pod.node = "n2";
  h.api.change_spec(pod);
  h.issue({spec});
  ASSERT_TRUE(h.finish());
  EXPECT_EQ(h.outcome(1), "Elsewhere");
  EXPECT_EQ(h.complete(1)->message, "the pod is bound to node n2");
  EXPECT_EQ(h.complete(1)->status, 409);
}

TEST(Bind, OfAPodWhoseStatusChangedUsesTheFreshVersion) {
  Harness h;
  FakePod& pod = h.api.add_pod("p");
  const IntentSpec spec = intent_for(pod, 1, "Bind");
  h.api.touch(pod);
  const std::string fresh = std::to_string(pod.version);
  h.issue({spec});
  ASSERT_TRUE(h.finish());
  EXPECT_EQ(h.outcome(1), "Done");
  EXPECT_EQ(pod.node, "n1");
  const auto posts = h.api.sent("POST", "/binding");
  ASSERT_EQ(posts.size(), 2U);
  EXPECT_EQ(nlohmann::json::parse(posts[1].body).at("metadata").at("resourceVersion"), fresh);
}

TEST(Bind, OfAPodWhoseSpecChangedOrMayHaveChangedIsGivenBack) {
  for (const std::int64_t decided_generation : {1, 0}) {
    Harness h;
    FakePod& pod = h.api.add_pod("p");
    IntentSpec spec = intent_for(pod, 1, "Bind");
    spec.generation = decided_generation;
    if (decided_generation == 1) {
      h.api.change_spec(pod);
    } else {
      h.api.touch(pod);
    }
    h.issue({spec});
    ASSERT_TRUE(h.finish());
    EXPECT_EQ(h.outcome(1), "Refused");
    EXPECT_EQ(h.complete(1)->status, 409);
    EXPECT_NE(h.complete(1)->message.find("changed since it was decided"), std::string::npos);
    EXPECT_EQ(pod.node, "");
  }
}

TEST(Bind, NeverTouchesAPodCreatedAgainUnderItsName) {
  Harness h;
  const IntentSpec spec = intent_for(h.api.add_pod("p"), 1, "Bind");
  FakePod& second = h.api.add_pod("p");
  h.issue({spec});
  ASSERT_TRUE(h.finish());
  EXPECT_EQ(h.outcome(1), "Gone");
  EXPECT_EQ(second.node, "");
}

TEST(Bind, OfAPodThatIsGoneOrBeingDeletedIsGone) {
  Harness h;
  const IntentSpec absent = intent_for(h.api.add_pod("absent"), 1, "Bind");
  h.api.remove("absent");
  FakePod& leaving = h.api.add_pod("leaving");
  leaving.deleting = true;
  h.issue({absent, intent_for(leaving, 2, "Bind")});
  ASSERT_TRUE(h.finish());
  EXPECT_EQ(h.outcome(1), "Gone");
  EXPECT_EQ(h.complete(1)->status, 404);
  EXPECT_EQ(h.outcome(2), "Gone");
}

TEST(Bind, DefiniteErrorEndsIt) {
  for (const int status : {400, 403, 422, 405}) {
    Harness h;
    FakePod& pod = h.api.add_pod("p");
    h.api.fault = first_binding({Kind_::answer_before, status, 2, 0, "not like this"});
    h.issue({intent_for(pod, 1, "Bind")});
    ASSERT_TRUE(h.finish());
    EXPECT_EQ(h.outcome(1), "Refused");
    EXPECT_EQ(h.complete(1)->status, status);
    EXPECT_EQ(h.complete(1)->message, "not like this");
    EXPECT_EQ(h.api.log.size(), 1U);
  }
}

TEST(Bind, GivesUpOnAPodThatChangesEachTime) {
  Harness h;
  FakePod& pod = h.api.add_pod("p");
  h.api.fault = [&](const HttpRequest& request) {
    if (is_binding(request)) h.api.touch(pod);
    return Fault{};
  };
  h.issue({intent_for(pod, 1, "Bind")});
  ASSERT_TRUE(h.finish());
  EXPECT_EQ(h.outcome(1), "Refused");
  EXPECT_EQ(h.api.sent("POST", "/binding").size(), 6U);
}

TEST(Bind, OfAnEarlierProcessIsReadFirst) {
  Harness h;
  FakePod& bound = h.api.add_pod("bound");
  IntentSpec first = intent_for(bound, 1, "Bind");
  first.created_ms = SimTimers::kWallStartUs / 1000 - 5000;
  bound.node = "n1";
  h.api.change_spec(bound);
  FakePod& pending = h.api.add_pod("pending");
  IntentSpec second = intent_for(pending, 2, "Bind");
  second.created_ms = first.created_ms;
  h.api.touch(pending);
  h.issue({first, second});
  ASSERT_TRUE(h.finish());
  EXPECT_EQ(h.outcome(1), "Done");
  EXPECT_EQ(h.outcome(2), "Done");
  EXPECT_EQ(h.api.log[0].method, "GET");
  EXPECT_EQ(h.api.sent("POST", "bound/binding").size(), 0U);
  EXPECT_EQ(h.api.sent("POST", "pending/binding").size(), 1U);
}

TEST(Bind, EventThatIsRefusedDoesNotUndoIt) {
  Harness h;
  FakePod& pod = h.api.add_pod("p");
  IntentSpec spec = intent_for(pod, 1, "Bind");
  spec.event = true;
  h.api.fault = [](const HttpRequest& request) {
    if (request.path.ends_with("/events"))
      return Fault{Kind_::answer_before, 403, 2, 0, "namespace is being terminated"};
    return Fault{};
  };
  h.issue({spec});
  ASSERT_TRUE(h.finish());
  EXPECT_EQ(h.outcome(1), "Done");
  EXPECT_EQ(h.complete(1)->message, "event refused: namespace is being terminated");
}

TEST(Bind, IssuedAgainWhilePendingIsOneAndItsEffectIsToldAgain) {
  Harness h;
  FakePod& pod = h.api.add_pod("p");
  IntentSpec spec = intent_for(pod, 1, "Bind");
  spec.event = true;
  bool block_events = true;
  h.api.fault = [&](const HttpRequest& request) {
    return Fault{request.path.ends_with("/events") && block_events ? Kind_::not_sent : Kind_::none};
  };
  h.issue({spec});
  h.issue({spec});
  h.timers.run_until(5000);
  ASSERT_EQ(h.told.size(), 1U);
  h.issue({spec});
  ASSERT_EQ(h.told.size(), 2U);
  EXPECT_EQ(h.told[1].stage, fb::IntentStage::Effect);
  block_events = false;
  ASSERT_TRUE(h.finish());
  EXPECT_EQ(h.told.size(), 3U);
  EXPECT_EQ(h.api.sent("POST", "/binding").size(), 1U);
}

TEST(Bind, OutageIsProbedGentlyAndOutlived) {
  Harness h;
  std::vector<IntentSpec> specs;
  for (std::uint64_t i = 1; i <= 500; ++i)
    specs.push_back(intent_for(h.api.add_pod(numbered("p", i)), i, "Bind"));
  h.api.fault = [&](const HttpRequest&) {
    return Fault{h.timers.now_ms() < 120'000 ? Kind_::not_sent : Kind_::none};
  };
  h.issue(specs);
  h.timers.run_until(10'000);
  h.api.most_in_flight = 0;
  h.timers.run_until(100'000);
  EXPECT_LE(h.api.most_in_flight, 2U);
  ASSERT_TRUE(h.finish());
  for (std::uint64_t i = 1; i <= 500; ++i) EXPECT_EQ(h.outcome(i), "Done");
  EXPECT_LE(h.timers.now_ms(), 140'000);
}

TEST(Bind, CountsItsLatency) {
  Harness h;
  h.issue({intent_for(h.api.add_pod("a"), 1, "Bind"), intent_for(h.api.add_pod("b"), 2, "Bind")});
  ASSERT_TRUE(h.finish());
  const ExecutorStats stats = h.executor->stats();
  EXPECT_EQ(stats.bind_latency_sum_ms, 4U);  // 2 ms each
  EXPECT_EQ(stats.bind_latency[2], 2U);
  EXPECT_EQ(stats.issued[0], 2U);
  EXPECT_EQ(stats.outcomes[0][0], 2U);
  EXPECT_EQ(stats.requests, 2U);
  EXPECT_EQ(stats.waiting, 0U);
}

}  // namespace
}  // namespace troupe::test
