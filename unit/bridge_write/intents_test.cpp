// Evictions, deletes, patches, events; lanes, order, limits and ends.
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "unit/bridge_write/harness.hpp"

namespace troupe::test {
namespace {

TEST(Evict, WaitsForItsBudgetAndIsDoneOnce) {
  Harness h;
  FakePod& pod = h.api.add_pod("p");
  pod.evictions_refused = 3;
  const IntentSpec spec = intent_for(pod, 1, "Evict");
  h.issue({spec});
  ASSERT_TRUE(h.finish());
  EXPECT_EQ(h.outcome(1), "Done");
  const auto posts = h.api.sent("POST", "/eviction");
  ASSERT_EQ(posts.size(), 4U);
  for (std::size_t i = 1; i < posts.size(); ++i) EXPECT_GE(posts[i].ms - posts[i - 1].ms, 5000);
  EXPECT_EQ(h.api.find("p"), nullptr);
}

TEST(Evict, HonoursRetryAfterOfItsBudget) {
  Harness h;
  FakePod& pod = h.api.add_pod("p");
  h.api.fault = [left = 1](const HttpRequest&) mutable {
    return left-- > 0 ? Fault{Fault::Kind::answer_before, 429, 2, 10'000} : Fault{};
  };
  h.issue({intent_for(pod, 1, "Evict")});
  ASSERT_TRUE(h.finish());
  const auto posts = h.api.sent("POST", "/eviction");
  ASSERT_EQ(posts.size(), 2U);
  EXPECT_GE(posts[1].ms - posts[0].ms, 10'000);
}

TEST(Evict, SeveralBudgetsRefuseIt) {
  Harness h;
  FakePod& pod = h.api.add_pod("p");
  pod.several_budgets = true;
  h.issue({intent_for(pod, 1, "Evict")});
  ASSERT_TRUE(h.finish());
  EXPECT_EQ(h.outcome(1), "Refused");
  EXPECT_EQ(h.complete(1)->status, 500);
}

TEST(Evict, AndDeleteOfAbsentPodsAreDone) {
  Harness h;
  const IntentSpec a = intent_for(h.api.add_pod("a"), 1, "Evict");
  const IntentSpec b = intent_for(h.api.add_pod("b"), 2, "Delete");
  h.api.remove("a");
  h.api.remove("b");
  h.issue({a, b});
  ASSERT_TRUE(h.finish());
  EXPECT_EQ(h.outcome(1), "Done");
  EXPECT_EQ(h.outcome(2), "Done");
}

TEST(Evict, DeleteAndPatchNeverTouchAPodCreatedAgain) {
  Harness h;
  std::vector<IntentSpec> specs;
  for (const std::string kind : {"Evict", "Delete", "PatchStatus"}) {
    IntentSpec spec = intent_for(h.api.add_pod(kind), specs.size() + 1, kind);
    spec.condition = "Unschedulable";
    specs.push_back(spec);
    h.api.add_pod(kind);  // again, with another uid
  }
  h.issue(specs);
  ASSERT_TRUE(h.finish());
  for (std::uint64_t id = 1; id <= 3; ++id) EXPECT_EQ(h.outcome(id), "Gone") << id;
  EXPECT_TRUE(h.api.applied.empty());
}

TEST(Evict, ThatABudgetForbidsDoesNotHoldUpADelete) {
  Harness h;
  FakePod& pod = h.api.add_pod("p");
  pod.evictions_refused = 1'000'000;
  const IntentSpec evict = intent_for(pod, 1, "Evict");
  const IntentSpec erase = intent_for(pod, 2, "Delete");
  h.issue({evict});
  h.timers.run_until(1000);
  h.issue({erase});
  h.timers.run_until(2000);
  EXPECT_EQ(h.outcome(2), "Done");
  ASSERT_TRUE(h.finish());
  EXPECT_EQ(h.outcome(1), "Done");
}

TEST(Patch, SetsConditionAndNomination) {
  Harness h;
  FakePod& pod = h.api.add_pod("p");
  IntentSpec spec = intent_for(pod, 1, "PatchStatus");
  spec.condition = "Unschedulable";
  spec.has_nominated = true;
  spec.nominated = "n7";
  h.issue({spec});
  ASSERT_TRUE(h.finish());
  EXPECT_EQ(pod.conditions.at("PodScheduled"), "False/Unschedulable/no room");
  EXPECT_EQ(pod.nominated, "n7");
  IntentSpec clear = intent_for(pod, 2, "PatchStatus");
  clear.has_nominated = true;
  h.issue({clear});
  ASSERT_TRUE(h.finish());
  EXPECT_EQ(pod.nominated, "");
  EXPECT_EQ(pod.conditions.at("PodScheduled"), "False/Unschedulable/no room");
}

TEST(Event, ArrivesOnceWhateverItsAnswersSay) {
  Harness h;
  FakePod& pod = h.api.add_pod("p");
  h.api.fault = [n = 0](const HttpRequest&) mutable {
    constexpr std::array kinds = {Fault::Kind::lost_request, Fault::Kind::answer_before,
                                  Fault::Kind::lost_answer};
    const auto i = static_cast<std::size_t>(n++);
    return i < kinds.size() ? Fault{kinds[i], 500} : Fault{};
  };
  h.issue({intent_for(pod, 1, "Event")});
  ASSERT_TRUE(h.finish());
  EXPECT_EQ(h.outcome(1), "Done");
  EXPECT_EQ(h.complete(1)->status, 409);
  EXPECT_EQ(h.api.events.size(), 1U);
}

TEST(Event, RefusedIsRefused) {
  Harness h;
  h.api.fault = [](const HttpRequest&) { return Fault{Fault::Kind::answer_before, 422, 2, 0, "invalid"}; };
  h.issue({intent_for(h.api.add_pod("p"), 1, "Event")});
  ASSERT_TRUE(h.finish());
  EXPECT_EQ(h.outcome(1), "Refused");
  EXPECT_EQ(h.complete(1)->message, "invalid");
}

TEST(Order, AnIntentStartsWhenTheOneItWaitsForHasTakenEffect) {
  Harness h;
  FakePod& preemptor = h.api.add_pod("preemptor");
  FakePod& victim = h.api.add_pod("victim");
  IntentSpec nominate = intent_for(preemptor, 1, "PatchStatus");
  nominate.has_nominated = true;
  nominate.nominated = "n1";
  IntentSpec erase = intent_for(victim, 2, "Delete");
  erase.after = 1;
  h.api.fault = [left = 2](const HttpRequest& request) mutable {
    return Fault{request.method == "PATCH" && left-- > 0 ? Fault::Kind::lost_request : Fault::Kind::none};
  };
  h.issue({erase, nominate});  // whatever their order
  ASSERT_TRUE(h.finish());
  ASSERT_EQ(h.api.applied.size(), 2U);
  EXPECT_EQ(h.api.applied[0].what, "patch");
  EXPECT_EQ(h.api.applied[1].what, "delete");
}

TEST(Order, NothingHappensWhenTheOneItWaitsForHasNoEffect) {
  Harness h;
  const IntentSpec gone = intent_for(h.api.add_pod("preemptor"), 1, "PatchStatus");
  h.api.remove("preemptor");
  FakePod& victim = h.api.add_pod("victim");
  IntentSpec erase = intent_for(victim, 2, "Delete");
  erase.after = 1;
  IntentSpec later = intent_for(h.api.add_pod("other"), 3, "Delete");
  later.after = 2;
  h.issue({gone, erase, later});
  ASSERT_TRUE(h.finish());
  EXPECT_EQ(h.outcome(1), "Gone");
  EXPECT_EQ(h.outcome(2), "Refused");
  EXPECT_EQ(h.outcome(3), "Refused");
  EXPECT_TRUE(h.api.applied.empty());
  EXPECT_TRUE(h.api.sent("DELETE", "").empty());
}

TEST(Order, AfterSomethingSettledLongAgoStartsAtOnce) {
  Harness h;
  IntentSpec erase = intent_for(h.api.add_pod("p"), 9, "Delete");
  erase.after = 4;
  h.issue({erase});
  ASSERT_TRUE(h.finish());
  EXPECT_EQ(h.outcome(9), "Done");
}

TEST(Order, APatchGoesBeforeTheBindOfItsPodAndNotBehindOtherBinds) {
  Harness h;
  h.options.concurrency = 1;
  std::vector<IntentSpec> specs;
  for (std::uint64_t i = 1; i <= 20; ++i)
    specs.push_back(intent_for(h.api.add_pod(numbered("q", i)), i, "Bind"));
  FakePod& pod = h.api.add_pod("p");
  IntentSpec patch = intent_for(pod, 21, "PatchStatus");
  patch.condition = "Unschedulable";
  specs.push_back(patch);
  specs.push_back(intent_for(pod, 22, "Bind"));
  for (std::uint64_t i = 23; i <= 40; ++i)
    specs.push_back(intent_for(h.api.add_pod(numbered("q", i)), i, "Bind"));
  h.issue(specs);
  ASSERT_TRUE(h.finish());
  EXPECT_EQ(h.outcome(22), "Done");
  EXPECT_EQ(pod.conditions.at("PodScheduled"), "True//");  // the patch did not come after the bind
}

TEST(Lanes, EventsWaitWhileBindsKeepTheServerBusy) {
  Harness h;
  std::vector<IntentSpec> specs;
  for (std::uint64_t i = 1; i <= 1000; ++i) {
    specs.push_back(intent_for(h.api.add_pod(numbered("p", i)), i, "Bind"));
    specs.back().event = true;
  }
  h.issue(specs);
  ASSERT_TRUE(h.finish());
  EXPECT_EQ(h.api.events.size(), 1000U);
  EXPECT_EQ(h.api.most_in_flight, 64U);
  std::size_t binds_before_first_event = 0;
  for (const Applied& a : h.api.applied) {
    if (a.what == "event") break;
    ++binds_before_first_event;
  }
  EXPECT_GE(binds_before_first_event, 960U);
}

TEST(Lanes, EventsArriveWhileBindsKeepComing) {
  Harness h;
  h.options.background_wait_ms = 500;
  h.options.concurrency = 8;
  std::uint64_t id = 0;
  // Twice as many as the API server takes: 8 under way, 2 ms each.
  for (int round = 0; round < 300; ++round) {
    std::vector<IntentSpec> specs;
    for (int i = 0; i < 80; ++i) {
      ++id;
      specs.push_back(intent_for(h.api.add_pod(numbered("p", id)), id, "Bind"));
      specs.back().event = true;
    }
    h.issue(specs);
    h.timers.run_until((round + 1) * 10);
  }
  std::size_t binds = 0;
  std::size_t events = 0;
  for (const Applied& a : h.api.applied) ++(a.what == "event" ? events : binds);
  EXPECT_GT(h.executor->stats().urgent_queued, 5'000U);
  EXPECT_GT(events, 4'500U);  // 2.5 s at half of 4 a ms
  EXPECT_GT(binds, events);
  ASSERT_TRUE(h.finish());
  EXPECT_EQ(h.api.events.size(), id);
}

TEST(Lanes, EventsDoNotWaitWhenBindsAreFew) {
  Harness h;
  h.api.fault = [](const HttpRequest&) { return Fault{Fault::Kind::none, 0, 100}; };
  IntentSpec bind = intent_for(h.api.add_pod("p"), 1, "Bind");
  h.issue({bind, intent_for(h.api.add_pod("q"), 2, "Event")});
  h.timers.run_until(100);
  EXPECT_EQ(h.outcome(1), "Done");
  EXPECT_EQ(h.outcome(2), "Done");
}

TEST(Lanes, RateLimitIsKept) {
  Harness h;
  h.options.qps = 50;
  h.options.burst = 10;
  std::vector<IntentSpec> specs;
  for (std::uint64_t i = 1; i <= 110; ++i)
    specs.push_back(intent_for(h.api.add_pod(numbered("p", i)), i, "Bind"));
  h.issue(specs);
  h.timers.run_until(5);
  EXPECT_EQ(h.api.log.size(), 10U);
  h.timers.run_until(1000);
  EXPECT_GE(h.api.log.size(), 55U);
  EXPECT_LE(h.api.log.size(), 60U);
  ASSERT_TRUE(h.finish());
  EXPECT_GE(h.timers.now_ms(), 1990);
  EXPECT_LE(h.timers.now_ms(), 2300);
}

TEST(Ends, WithoutAuthorityNothingIsWritten) {
  Harness h;
  h.options.concurrency = 2;
  std::vector<IntentSpec> specs;
  for (std::uint64_t i = 1; i <= 10; ++i) {
    specs.push_back(intent_for(h.api.add_pod(numbered("p", i)), i, "Bind"));
    specs.back().event = true;
  }
  h.issue(specs);
  h.timers.run_until(1);
  h.authority = false;
  const std::size_t sent = h.api.log.size();
  ASSERT_TRUE(h.finish());
  EXPECT_EQ(h.api.log.size(), sent);
  for (std::uint64_t i = 1; i <= 10; ++i) EXPECT_EQ(h.outcome(i), "Stopped") << i;
  ASSERT_EQ(h.told.size(), 12U);  // two were bound: their Effect was told, their events are missing
}

TEST(Ends, AuthorityThatEndsInsideTheClientIsStoppedAtOnce) {
  Harness h;
  h.api.fault = [&](const HttpRequest&) {
    h.authority = false;  // between the executor's question and the socket
    return Fault{};
  };
  h.issue({intent_for(h.api.add_pod("p"), 1, "Bind")});
  ASSERT_TRUE(h.finish());
  EXPECT_EQ(h.outcome(1), "Stopped");
  EXPECT_TRUE(h.api.log.empty());
  EXPECT_TRUE(h.api.applied.empty());
}

TEST(Ends, StopGivesBackWhatWasNotSent) {
  Harness h;
  h.options.concurrency = 2;
  std::vector<IntentSpec> specs;
  for (std::uint64_t i = 1; i <= 5; ++i)
    specs.push_back(intent_for(h.api.add_pod(numbered("p", i)), i, "Bind"));
  specs.push_back(intent_for(*h.api.find("p5"), 6, "Delete"));
  specs.back().after = 5;
  h.issue(specs);
  h.executor->stop(std::chrono::milliseconds(0));
  for (std::uint64_t i = 1; i <= 6; ++i) EXPECT_EQ(h.outcome(i), "Stopped") << i;
  EXPECT_EQ(h.complete(1)->message, "may have taken effect: read it again");
  EXPECT_EQ(h.complete(3)->message, "");
  h.issue({intent_for(h.api.add_pod("late"), 7, "Bind")});
  EXPECT_EQ(h.outcome(7), "Stopped");
  h.timers.run_until(1000);
  EXPECT_EQ(h.told.size(), 7U);  // the late answers change nothing
  EXPECT_EQ(h.api.log.size(), 2U);
}

TEST(Ends, DryRunIssuesNothing) {
  Harness h;
  h.options.dry_run = true;
  IntentSpec bind = intent_for(h.api.add_pod("p"), 1, "Bind");
  bind.event = true;
  h.issue({bind, intent_for(h.api.add_pod("q"), 2, "Delete")});
  EXPECT_EQ(h.outcome(1), "Done");
  EXPECT_EQ(h.outcome(2), "Done");
  EXPECT_EQ(h.told.size(), 3U);
  ASSERT_EQ(h.would.size(), 2U);
  EXPECT_EQ(text(h.would[0].as<fb::Intent>().node()), "n1");
  EXPECT_TRUE(h.api.log.empty());
}

TEST(Ends, WhatCanNeverBeSafeIsRefused) {
  Harness h;
  IntentSpec no_uid = intent_for(h.api.add_pod("p"), 1, "Delete");
  no_uid.uid.clear();
  IntentSpec circle = intent_for(*h.api.find("p"), 2, "Delete");
  circle.after = 2;
  h.issue({no_uid, circle});
  EXPECT_EQ(h.outcome(1), "Refused");
  EXPECT_EQ(h.outcome(2), "Refused");
  EXPECT_TRUE(h.api.log.empty());
}

TEST(Ends, AnIntentOfNobodyGivesNoResult) {
  Harness h;
  IntentSpec spec = intent_for(h.api.add_pod("p"), 0, "Event");
  spec.event_name = "one";
  IntentSpec other = spec;
  other.event_name = "two";
  h.issue({spec, other});
  ASSERT_TRUE(h.finish());
  EXPECT_TRUE(h.told.empty());
  EXPECT_EQ(h.api.events.size(), 2U);
}

/// Answers on threads of its own.
class ThreadedClient final : public HttpClient {
 public:
  explicit ThreadedClient(int threads) {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { run(); });
  }
  ~ThreadedClient() override {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    for (std::thread& t : threads_) t.join();
  }
  void send(HttpRequest request, std::function<void(HttpOutcome)> done) override {
    if (request.admit && !request.admit()) return done(tl::unexpected(HttpFailure{false, "not admitted"}));
    {
      const std::lock_guard lock(mutex_);
      queue_.push_back(std::move(done));
    }
    changed_.notify_one();
  }
  std::unique_ptr<HttpStream> stream(HttpRequest, std::chrono::milliseconds, HttpStreamHandler) override {
    return nullptr;
  }
  void abort() override {}

 private:
  void run() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return stop_ || !queue_.empty(); });
      if (queue_.empty()) return;
      auto done = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      done(HttpResponse{201, "{}", {}});
      lock.lock();
    }
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void(HttpOutcome)>> queue_;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

TEST(Threads, EveryIntentEndsOnceAndStopWaits) {
  constexpr std::uint64_t kEach = 4000;
  ThreadedClient client(3);
  const auto timers = make_timers();
  std::vector<int> stages(2 * kEach + 1);  // 1: effect told, 2: complete too
  bool in_order = true;
  IntentExecutor::Hooks hooks;
  hooks.authority = [](std::uint32_t, std::uint64_t) { return true; };
  hooks.settled = [&](const std::vector<Message>& results) {
    for (const Message& m : results) {
      const auto& r = m.as<fb::IntentResult>();
      in_order &= ++stages.at(r.id()) == (r.stage() == fb::IntentStage::Effect ? 1 : 2);
    }
  };
  ExecutorOptions options;
  options.started_ms = 1;
  IntentExecutor executor(client, *timers, options, hooks);
  const auto issue = [&](std::uint64_t first) {
    for (std::uint64_t id = first; id < first + kEach; id += 100) {
      std::vector<Message> batch;
      for (std::uint64_t i = id; i < id + 100; ++i) {
        IntentSpec spec;
        spec.id = i;
        spec.uid = "00000000-0000-4000-8000-" + std::to_string(100'000'000'000 + i);
        spec.event = true;
        batch.push_back(make_intent(spec));
      }
      executor.issue(std::move(batch));
    }
  };
  std::thread other([&] { issue(1); });
  issue(kEach + 1);
  other.join();
  while (executor.stats().urgent_queued + executor.stats().in_flight > 0) std::this_thread::yield();
  executor.stop(std::chrono::seconds(60));
  EXPECT_TRUE(in_order);
  for (std::uint64_t id = 1; id <= 2 * kEach; ++id) ASSERT_EQ(stages[id], 2) << id;
  EXPECT_EQ(executor.stats().outcomes[0][0], 2 * kEach);
}

TEST(Threads, TimersRunInOrderOfTheirTimes) {
  const auto timers = make_timers();
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<int> order;
  const std::int64_t now = timers->now_ms();
  const auto note = [&](int n) {
    return [&, n] {
      const std::lock_guard lock(mutex);
      order.push_back(n);
      changed.notify_one();
    };
  };
  timers->at(now + 30, note(3));
  timers->at(now + 10, note(1));
  timers->at(now + 20, note(2));
  timers->at(now - 5, note(0));
  std::unique_lock lock(mutex);
  ASSERT_TRUE(changed.wait_for(lock, std::chrono::seconds(30), [&] { return order.size() == 4; }));
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3}));
}

}  // namespace
}  // namespace troupe::test
