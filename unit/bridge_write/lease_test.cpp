#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "k8s-bridge/lease/elector.hpp"
#include "unit/bridge_write/fake_lease_api.hpp"

namespace troupe::test {
namespace {

struct Candidate {
  Candidate(LeaseServer& server, SimTimers& timers, const std::string& name) : client(server, timers) {
    LeaseOptions options;
    options.identity = name;
    options.seed = std::hash<std::string>{}(name);
    LeaseElector::Hooks hooks;
    hooks.role = [this, &timers](bool leads) { roles.emplace_back(timers.now_ms(), leads); };
    elector = std::make_unique<LeaseElector>(client, timers, options, "koord-scheduler", hooks);
  }
  LeaseClient client;
  std::vector<std::pair<std::int64_t, bool>> roles;
  std::unique_ptr<LeaseElector> elector;
};

struct LeaseTest : ::testing::Test {
  SimTimers timers;
  LeaseServer server{timers};
  std::vector<std::unique_ptr<Candidate>> candidates;

  Candidate& candidate(const std::string& name) {
    candidates.push_back(std::make_unique<Candidate>(server, timers, name));
    return *candidates.back();
  }
  void run(std::int64_t ms) { timers.run_until(timers.now_ms() + ms); }
};

TEST_F(LeaseTest, TheFirstCreatesItAndRenewsEveryRetryPeriod) {
  Candidate& a = candidate("a");
  a.elector->start();
  run(100);
  ASSERT_TRUE(server.lease);
  EXPECT_EQ(server.lease->record.holder, "a");
  EXPECT_EQ(server.lease->record.duration_s, 15);
  EXPECT_EQ(server.lease->record.transitions, 0);
  EXPECT_TRUE(a.elector->leading());
  const std::string acquired = server.lease->record.acquire_time;
  run(20'000);
  EXPECT_TRUE(a.elector->leading());
  EXPECT_EQ(server.lease->record.acquire_time, acquired);
  EXPECT_GT(server.lease->record.renew_time, acquired);
  EXPECT_EQ(server.writes, 11);
  EXPECT_EQ(server.events, std::vector<std::string>{"a became leader"});
  EXPECT_TRUE(a.elector->healthy());
}

TEST_F(LeaseTest, AStandbyTakesOverWhenTheHolderFallsSilent) {
  Candidate& a = candidate("a");
  Candidate& b = candidate("b");
  a.elector->start();
  run(100);
  b.elector->start();
  run(5000);
  EXPECT_FALSE(b.elector->leading());
  EXPECT_EQ(b.elector->holder(), "a");
  a.client.fault = [](const HttpRequest&) { return LeaseFault{.lost_request = true}; };
  const std::int64_t silent = timers.now_ms();
  run(25'000);
  ASSERT_EQ(a.roles.size(), 2U);
  ASSERT_EQ(b.roles.size(), 1U);
  EXPECT_LE(a.roles[1].first, silent + 10'000);
  EXPECT_GE(b.roles[0].first, a.roles[1].first);
  EXPECT_LE(b.roles[0].first, silent + 15'000 + 4'400 + 100);
  EXPECT_EQ(server.lease->record.transitions, 1);
}

TEST_F(LeaseTest, AReleaseIsTakenAtOnce) {
  Candidate& a = candidate("a");
  Candidate& b = candidate("b");
  a.elector->start();
  run(100);
  b.elector->start();
  run(7'000);
  a.elector->release(std::chrono::milliseconds(0));
  EXPECT_FALSE(a.elector->leading());
  const std::int64_t released = timers.now_ms();
  run(100);
  EXPECT_TRUE(b.elector->leading());
  ASSERT_EQ(b.roles.size(), 1U);
  EXPECT_LE(b.roles[0].first, released + 20);
  EXPECT_EQ(server.lease->record.holder, "b");
  EXPECT_EQ(server.lease->record.transitions, 1);
  run(20'000);
  EXPECT_TRUE(b.elector->leading());
  EXPECT_EQ(server.events,
            (std::vector<std::string>{"a became leader", "a stopped leading", "b became leader"}));
}

TEST_F(LeaseTest, AReleaseWritesAnEmptyHolderForOneSecond) {
  Candidate& a = candidate("a");
  a.elector->start();
  run(100);
  a.elector->release(std::chrono::milliseconds(0));
  run(100);
  EXPECT_EQ(server.lease->record.holder, "");
  EXPECT_EQ(server.lease->record.duration_s, 1);
  run(60'000);
  EXPECT_EQ(server.lease->record.holder, "");  // no candidate any more
}

TEST_F(LeaseTest, WhoMayNotWatchPolls) {
  Candidate& a = candidate("a");
  Candidate& b = candidate("b");
  b.client.refuse_watch = 403;
  a.elector->start();
  run(100);
  b.elector->start();
  run(7'000);
  a.elector->release(std::chrono::milliseconds(0));
  run(4'500);
  EXPECT_TRUE(b.elector->leading());
}

TEST_F(LeaseTest, AnotherHolderEndsItAtOnce) {
  Candidate& a = candidate("a");
  a.elector->start();
  run(3'000);
  server.lease->record.holder = "intruder";
  server.lease->resource_version = std::to_string(++server.version);
  auto metadata = nlohmann::json::parse(server.lease->metadata);
  metadata["resourceVersion"] = server.lease->resource_version;
  server.lease->metadata = metadata.dump();
  run(4'100);  // one refused renewal, one read
  EXPECT_FALSE(a.elector->leading());
  ASSERT_EQ(a.roles.size(), 2U);
  EXPECT_EQ(a.elector->holder(), "intruder");
}

TEST_F(LeaseTest, AnUpdateKeepsWhatOthersWroteIntoItsMetadata) {
  Candidate& a = candidate("a");
  a.elector->start();
  run(1'000);
  auto metadata = nlohmann::json::parse(server.lease->metadata);
  metadata["annotations"] = {{"note", "keep me"}};
  server.lease->resource_version = std::to_string(++server.version);
  metadata["resourceVersion"] = server.lease->resource_version;
  server.lease->metadata = metadata.dump();
  run(10'000);
  EXPECT_TRUE(a.elector->leading());
  EXPECT_NE(server.lease->metadata.find("keep me"), std::string::npos);
}

TEST_F(LeaseTest, ADeletedLeaseStaysWithItsHolder) {
  Candidate& a = candidate("a");
  Candidate& b = candidate("b");
  a.elector->start();
  run(100);
  b.elector->start();
  run(5'000);
  server.erase();
  run(9'000);
  EXPECT_TRUE(a.elector->leading());
  EXPECT_FALSE(b.elector->leading());
  EXPECT_EQ(server.lease->record.holder, "a");
}

TEST_F(LeaseTest, AnElectorMayEndWhileItsRequestsAreUnderWay) {
  Candidate& a = candidate("a");
  a.elector->start();
  a.elector.reset();
  run(100);
  EXPECT_TRUE(a.roles.empty());
}

TEST(LeaseOptionsCheck, NamesWhatIsWrong) {
  LeaseOptions options;
  EXPECT_EQ(check(options).error().field, "identity");
  options.identity = "me";
  EXPECT_TRUE(check(options));
  options.renew_deadline_ms = 15'000;
  EXPECT_EQ(check(options).error().field, "renewDeadline");
  options.renew_deadline_ms = 10'000;
  options.retry_period_ms = 9'000;
  EXPECT_EQ(check(options).error().field, "retryPeriod");
  options.retry_period_ms = 2'000;
  options.lease_duration_ms = 15'500;
  EXPECT_EQ(check(options).error().field, "leaseDuration");
}

}  // namespace
}  // namespace troupe::test
