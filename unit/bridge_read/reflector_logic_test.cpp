#include "k8s-bridge/reflect/reflector_logic.hpp"

#include <gtest/gtest.h>

#include "messages/fb/pod_generated.h"
#include "unit/bridge_read/fake_api.hpp"

namespace troupe {
namespace {

using testing::FakeApi;
using testing::FakePod;
using Ask = NextRequest::Ask;

ListChunk chunk(std::string version, std::string continue_token = {}) {
  ListChunk out;
  out.resource_version = std::move(version);
  out.continue_token = std::move(continue_token);
  return out;
}

WatchEvent bookmark(std::string version) {
  WatchEvent event;
  event.type = WatchType::bookmark;
  event.resource_version = std::move(version);
  return event;
}

WatchEvent error(int code, std::string reason, int retry_after = 0) {
  WatchEvent event;
  event.type = WatchType::error;
  event.status.code = code;
  event.status.reason = std::move(reason);
  event.status.retry_after_seconds = retry_after;
  return event;
}

ReflectFailure answer(int status, std::string message = {}, std::int64_t retry_after_ms = 0) {
  ReflectFailure out;
  out.http_status = status;
  out.status.code = status;
  out.status.message = std::move(message);
  out.retry_after_ms = retry_after_ms;
  return out;
}

class Logic : public ::testing::Test {
 protected:
  // A logic that watches from version 700.
  NextRequest watching() {
    logic_.start();
    const NextRequest next = logic_.page(chunk("700"), 0, out_);
    logic_.watch_started(0);
    return next;
  }
  static void expect_list(const NextRequest& next, const std::string& version, bool at_once) {
    EXPECT_EQ(next.ask, Ask::list);
    EXPECT_EQ(next.resource_version, version);
    EXPECT_TRUE(next.continue_token.empty());
    EXPECT_EQ(next.delay_ms == 0, at_once) << next.delay_ms;
  }
  static void expect_watch(const NextRequest& next, const std::string& version, bool at_once) {
    EXPECT_EQ(next.ask, Ask::watch);
    EXPECT_EQ(next.resource_version, version);
    EXPECT_EQ(next.delay_ms == 0, at_once) << next.delay_ms;
  }

  ReflectorLogic logic_{fb::ObjectKind::Pod, {}};
  Reflected out_;
};

TEST_F(Logic, TheFirstListIsOfTheMostRecentState) {
  expect_list(logic_.start(), "", true);
  const auto next = logic_.page(chunk("700"), 0, out_);
  expect_watch(next, "700", true);
  EXPECT_TRUE(out_.consistent);
  EXPECT_FALSE(out_.relisted);
  EXPECT_GE(next.timeout_s, 300);
  EXPECT_LE(next.timeout_s, 600);
}

TEST_F(Logic, FollowsPagesAndIsConsistentAtTheLastOne) {
  logic_.start();
  auto next = logic_.page(chunk("700", "tok/en="), 0, out_);
  EXPECT_EQ(next.ask, Ask::list);
  EXPECT_EQ(next.continue_token, "tok/en=");
  EXPECT_FALSE(out_.consistent);
  next = logic_.page(chunk("700"), 0, out_);
  expect_watch(next, "700", true);
  EXPECT_TRUE(out_.consistent);
}

TEST_F(Logic, WritesPaths) {
  const ObjectKindInfo& pods = info(fb::ObjectKind::Pod);
  const std::string base =
      "/api/v1/pods?fieldSelector=status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed";
  EXPECT_EQ(logic_.start().path(pods), base + "&limit=500");
  EXPECT_EQ(logic_.page(chunk("700", "a/b="), 0, out_).path(pods), base + "&limit=500&continue=a%2Fb%3D");
  NextRequest watch = logic_.page(chunk("700"), 0, out_);
  watch.timeout_s = 345;
  EXPECT_EQ(watch.path(pods),
            base + "&watch=1&allowWatchBookmarks=true&resourceVersion=700&timeoutSeconds=345");
  logic_.watch_started(0);
  EXPECT_EQ(logic_.event(error(410, "Expired"), 0, out_)->path(info(fb::ObjectKind::Node)),
            "/api/v1/nodes?limit=500&resourceVersion=700&resourceVersionMatch=NotOlderThan");
}

TEST_F(Logic, ABookmarkOnlyAdvancesTheVersion) {
  watching();
  EXPECT_FALSE(logic_.event(bookmark("750"), 5'000, out_).has_value());
  EXPECT_TRUE(out_.changes.empty());
  expect_watch(logic_.watch_ended(true, 6'000), "750", true);
}

TEST_F(Logic, AVersionThatWentBackIsListedAgain) {
  watching();
  const auto next = logic_.event(bookmark("90"), 5'000, out_);
  ASSERT_TRUE(next.has_value());
  expect_list(*next, "", false);
}

TEST_F(Logic, AnExpiredWatchListsWithTheLastVersionThenTheMostRecent) {
  watching();
  const auto next = logic_.event(error(410, "Expired"), 5'000, out_);
  ASSERT_TRUE(next.has_value());
  expect_list(*next, "700", true);
  expect_list(logic_.list_failed(answer(410), 5'000), "", true);
  // And not in a tight circle.
  expect_list(logic_.list_failed(answer(410), 5'000), "", false);
}

TEST_F(Logic, AWatchRefusedAsExpiredListsToo) {
  watching();
  expect_list(logic_.watch_refused(answer(410), 5'000), "700", true);
  expect_list(logic_.list_failed(answer(504, "Too large resource version: 700, current: 1"), 5'000), "",
              true);
  expect_watch(logic_.page(chunk("800"), 5'000, out_), "800", true);
  EXPECT_TRUE(out_.relisted);
}

TEST_F(Logic, AnExpiredPageStartsTheListAgainInOnePiece) {
  logic_.start();
  logic_.page(chunk("700", "t"), 0, out_);
  const auto again = logic_.list_failed(answer(410), 0);
  expect_list(again, "", true);
  EXPECT_EQ(again.page_size, 0);
}

TEST_F(Logic, APageThatFailsIsAskedForAgain) {
  logic_.start();
  logic_.page(chunk("700", "t"), 0, out_);
  const auto again = logic_.list_failed(answer(500), 0);
  EXPECT_EQ(again.continue_token, "t");
  EXPECT_GE(again.delay_ms, 800);
}

TEST_F(Logic, AGatewayTimeoutIsNoTooLargeVersion) {
  watching();
  ASSERT_TRUE(logic_.event(error(410, "Expired"), 5'000, out_).has_value());
  expect_list(logic_.list_failed(answer(504, "etcdserver: request timed out"), 5'000), "700", false);
}

TEST_F(Logic, ANormalCloseWatchesOn) {
  watching();
  expect_watch(logic_.watch_ended(true, 400'000), "700", true);
}

TEST_F(Logic, AWatchThatClosesAtOnceWithoutAnEventListsAgain) {
  watching();
  expect_list(logic_.watch_ended(true, 999), "700", false);
}

TEST_F(Logic, TooManyRequestsWaitsAsLongAsAsked) {
  watching();
  const auto next = logic_.watch_refused(answer(429, {}, 17'000), 5'000);
  expect_watch(next, "700", false);
  EXPECT_EQ(next.delay_ms, 17'000);
}

TEST_F(Logic, BacksOffWithJitterDoublingAndForgetsAfterAWhile) {
  watching();
  std::int64_t floor = 800;
  std::int64_t now = 5'000;
  for (int i = 0; i < 10; ++i) {
    const auto next = logic_.watch_refused({}, now);
    expect_watch(next, "700", false);
    EXPECT_GE(next.delay_ms, std::min<std::int64_t>(floor, 30'000));
    EXPECT_LE(next.delay_ms, std::min<std::int64_t>(2 * floor, 30'000));
    now += next.delay_ms;
    floor = std::min<std::int64_t>(2 * floor, 30'000);
  }
  EXPECT_LE(logic_.watch_refused({}, now + 120'001).delay_ms, 1'600);
}

TEST_F(Logic, ACutWatchGoesOnFromTheLastVersion) {
  watching();
  logic_.event(bookmark("750"), 5'000, out_);
  expect_watch(logic_.watch_ended(false, 6'000), "750", true);
  logic_.watch_started(6'000);
  expect_watch(logic_.watch_ended(false, 6'100), "750", false);
}

TEST_F(Logic, AnErrorEventOrABrokenLineThatComesAgainAndAgainEndsInAList) {
  watching();
  expect_watch(*logic_.event(error(500, "InternalError"), 5'000, out_), "700", false);
  expect_watch(logic_.broken_line(6'000), "700", false);
  expect_list(logic_.broken_line(7'000), "", false);
}

TEST_F(Logic, ARefusedVersionIsGivenUp) {
  watching();
  expect_list(logic_.watch_refused(answer(400), 5'000), "", false);
}

TEST_F(Logic, TheGainOfTheRoleOwesAListOfTheMostRecentState) {
  watching();
  expect_list(logic_.start(), "", true);
  // Whatever happens meanwhile.
  expect_list(logic_.list_failed(answer(500), 5'000), "", false);
  out_ = {};
  logic_.page(chunk("900"), 6'000, out_);
  EXPECT_TRUE(out_.consistent);
  EXPECT_TRUE(out_.relisted);
}

TEST_F(Logic, AnObjectThatCannotBeUnderstoodIsReportedOncePerMistake) {
  FakeApi api;
  Decoder decoder;
  api.put({.name = "good", .uid = "1"});
  api.put({.name = "bad", .uid = "2", .broken = true});
  logic_.start();
  auto page = decoder.list_chunk(fb::ObjectKind::Pod, api.list("/api/v1/pods").body);
  ASSERT_TRUE(page.has_value());
  logic_.page(*page, 0, out_);
  EXPECT_EQ(out_.changes.size(), 1U);
  ASSERT_EQ(out_.rejected.size(), 1U);
  EXPECT_EQ(out_.rejected[0].ref.name, "bad");
  EXPECT_NE(out_.rejected[0].error.field.find("spec.containers[0].resources.requests"), std::string::npos);

  // The next version with the same mistake is none; nor is the same list again.
  logic_.watch_started(0);
  out_ = {};
  const std::uint64_t before = api.version();
  api.put({.name = "bad", .uid = "2", .node = "n", .broken = true});
  const auto again = decoder.watch_event(fb::ObjectKind::Pod, api.lines_after(before)->front());
  ASSERT_TRUE(again.has_value());
  EXPECT_FALSE(logic_.event(*again, 1, out_).has_value());
  EXPECT_TRUE(out_.rejected.empty());
  logic_.start();
  page = decoder.list_chunk(fb::ObjectKind::Pod, api.list("/api/v1/pods").body);
  logic_.page(*page, 0, out_);
  EXPECT_TRUE(out_.rejected.empty());

  // Put right, and wrong again: told again.
  logic_.watch_started(0);
  for (const bool broken : {false, true}) {
    const std::uint64_t from = api.version();
    api.put({.name = "bad", .uid = "2", .broken = broken});
    logic_.event(*decoder.watch_event(fb::ObjectKind::Pod, api.lines_after(from)->front()), 1, out_);
  }
  EXPECT_EQ(out_.rejected.size(), 1U);
}

TEST(VersionReached, LongerIsNewerElseStringOrder) {
  EXPECT_TRUE(version_reached("100", "100"));
  EXPECT_FALSE(version_reached("99", "100"));
  EXPECT_TRUE(version_reached("1000", "999"));
  EXPECT_TRUE(version_reached("101", "100"));
  EXPECT_FALSE(version_reached("100", "1000"));
  EXPECT_TRUE(version_reached("1", ""));
}

}  // namespace
}  // namespace troupe
