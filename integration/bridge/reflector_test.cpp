// The reflector over real connections.
#include "k8s-bridge/reflect/reflector.hpp"

#include <gtest/gtest.h>

#include <map>

#include "integration/bridge/scripted_api.hpp"
#include "messages/fb/pod_generated.h"

namespace troupe {
namespace {

using testing::eventually;
using testing::FakeApi;
using testing::FakePod;
using testing::ScriptedApi;
using testing::ServedConnection;
using testing::ServedRequest;

class ReflectorIo : public ::testing::Test {
 protected:
  void begin() {
    ApiServer api;
    api.url = api_.url();
    http_ = std::move(make_http_client(api, {.connections = 4}).value());
    ReflectorOptions options;
    options.logic.backoff_ms = 5;
    options.logic.backoff_max_ms = 20;
    options.logic.page_size = 2;
    options.idle_ms = idle_ms_;
    Reflector::Hooks hooks;
    hooks.reflected = [this](const Reflected& out) { hear(out); };
    hooks.trouble = [this](const std::optional<Error>& error) {
      const std::lock_guard lock(mutex_);
      troubles_.push_back(error ? error->text() : "well");
    };
    reflector_ =
        std::make_unique<Reflector>(info(fb::ObjectKind::Pod), *http_, *timers_, options, std::move(hooks));
    reflector_->start();
  }
  ~ReflectorIo() override {
    reflector_.reset();
    http_.reset();
  }

  void hear(const Reflected& out) {
    const std::lock_guard lock(mutex_);
    for (const Message& m : out.changes) {
      if (m.kind() == Kind::gone) {
        const auto& gone = m.as<fb::Gone>();
        pods_.erase(std::string(text(gone.name())));
        gone_.emplace_back(std::string(text(gone.name())).append("@").append(text(gone.node_name())));
      } else {
        const auto& pod = m.as<fb::Pod>();
        pods_[std::string(text(pod.name()))] = text(pod.node_name());
      }
    }
    for (const RejectedObject& rejected : out.rejected) rejected_.push_back(rejected.ref.name);
    consistent_ += out.consistent ? 1 : 0;
  }
  bool sees(const std::map<std::string, std::string>& pods) {
    return eventually([&] {
      const std::lock_guard lock(mutex_);
      return pods_ == pods;
    });
  }
  bool watches() {
    return eventually([&] { return api_.watching() > 0; });
  }
  void put(FakePod pod) {
    api_.change([&](FakeApi& api) { api.put(std::move(pod)); });
  }

  std::int64_t idle_ms_ = 60'000;
  ScriptedApi api_;
  std::unique_ptr<Timers> timers_ = make_timers();
  std::unique_ptr<HttpClient> http_;
  std::unique_ptr<Reflector> reflector_;

  std::mutex mutex_;
  std::map<std::string, std::string> pods_;
  std::vector<std::string> gone_;
  std::vector<std::string> rejected_;
  std::vector<std::string> troubles_;
  int consistent_ = 0;
};

TEST_F(ReflectorIo, ListsInPagesThenWatches) {
  for (const std::string name : {"a", "b", "c", "d", "e"}) put({.name = name, .uid = name});
  begin();
  ASSERT_TRUE(sees({{"a", ""}, {"b", ""}, {"c", ""}, {"d", ""}, {"e", ""}}));
  ASSERT_TRUE(watches());
  EXPECT_EQ(consistent_, 1);
  put({.name = "a", .uid = "a", .node = "n1"});
  api_.change([](FakeApi& api) { api.erase("b"); });
  put({.name = "c", .uid = "c", .finished = true});
  ASSERT_TRUE(sees({{"a", "n1"}, {"d", ""}, {"e", ""}}));
  EXPECT_EQ(reflector_->stats().objects, 3U);
  EXPECT_EQ(reflector_->stats().relists, 0U);
}

TEST_F(ReflectorIo, HalfALineIsReadAgain) {
  begin();
  ASSERT_TRUE(watches());
  api_.cut_watches([](ServedConnection& c, const std::string& line) {
    c.chunk(line.substr(0, line.size() / 2));
    c.reset();
  });
  put({.name = "a", .uid = "1", .node = "n1"});
  EXPECT_TRUE(sees({{"a", "n1"}}));
  EXPECT_EQ(reflector_->stats().relists, 0U);
}

TEST_F(ReflectorIo, ACutConnectionLosesNothing) {
  begin();
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(watches());
    api_.cut_watches([](ServedConnection& c, const std::string&) { c.close(); });
    put({.name = std::to_string(i), .uid = "u"});
    ASSERT_TRUE(eventually([&] {
      const std::lock_guard lock(mutex_);
      return pods_.contains(std::to_string(i));
    }));
  }
  EXPECT_EQ(reflector_->stats().relists, 0U);
}

TEST_F(ReflectorIo, AnExpiredVersionIsListedAgainAndFindsWhatIsGone) {
  put({.name = "a", .uid = "1", .node = "n1"});
  put({.name = "b", .uid = "2"});
  begin();
  ASSERT_TRUE(watches());
  api_.cut_watches([&](ServedConnection& c, const std::string&) {
    api_.change([](FakeApi& api) {
      api.erase("a");
      api.put({.name = "b", .uid = "3"});
      api.compact();
    });
    c.close();
  });
  put({.name = "c", .uid = "4"});
  ASSERT_TRUE(sees({{"b", ""}, {"c", ""}}));
  const std::lock_guard lock(mutex_);
  EXPECT_EQ(gone_, (std::vector<std::string>{"b@", "a@n1"}));
  EXPECT_EQ(reflector_->stats().relists, 1U);
}

TEST_F(ReflectorIo, SurvivesAServerThatRefusesForAWhile) {
  put({.name = "a", .uid = "1"});
  api_.next([](ServedConnection& c, const ServedRequest&) {
    return c.reply(500, FakeApi::status(500, "X")), true;
  });
  api_.next([](ServedConnection& c, const ServedRequest&) { return c.reset(), true; });
  api_.next([](ServedConnection& c, const ServedRequest&) { return c.reply(200, "{\"items\":[{"), true; });
  api_.next([](ServedConnection& c, const ServedRequest&) {
    return c.reply(403, FakeApi::status(403, "Forbidden", "pods is forbidden")), true;
  });
  begin();
  ASSERT_TRUE(sees({{"a", ""}}));
  ASSERT_TRUE(watches());
  const std::lock_guard lock(mutex_);
  ASSERT_GE(troubles_.size(), 3U);
  EXPECT_NE(troubles_[troubles_.size() - 2].find("pods is forbidden"), std::string::npos) << troubles_.back();
  EXPECT_EQ(troubles_.back(), "well");
}

TEST_F(ReflectorIo, WaitsAsLongAsRetryAfterSays) {
  put({.name = "a", .uid = "1"});
  api_.next([](ServedConnection& c, const ServedRequest&) {
    return c.reply(429, FakeApi::status(429, "TooManyRequests"), "Retry-After: 1\r\n"), true;
  });
  const auto before = std::chrono::steady_clock::now();
  begin();
  ASSERT_TRUE(sees({{"a", ""}}));
  EXPECT_GE(std::chrono::steady_clock::now() - before, std::chrono::seconds(1));
}

TEST_F(ReflectorIo, AWatchThatIsRefusedIsTriedAgain) {
  put({.name = "a", .uid = "1"});
  api_.next([](ServedConnection&, const ServedRequest&) { return false; });
  api_.next([](ServedConnection& c, const ServedRequest&) {
    return c.reply(429, FakeApi::status(429, "TooManyRequests")), true;
  });
  api_.next([](ServedConnection& c, const ServedRequest&) { return c.reply(500, "no json"), true; });
  begin();
  ASSERT_TRUE(watches());
  put({.name = "b", .uid = "2"});
  EXPECT_TRUE(sees({{"a", ""}, {"b", ""}}));
  EXPECT_EQ(reflector_->stats().relists, 0U);
}

TEST_F(ReflectorIo, ASilentWatchIsReplaced) {
  idle_ms_ = 100;
  api_.next([](ServedConnection&, const ServedRequest&) { return false; });
  api_.next([](ServedConnection& c, const ServedRequest&) {
    c.start_chunked();
    c.hold();
    return true;
  });
  begin();
  ASSERT_TRUE(watches());
  put({.name = "b", .uid = "2"});
  EXPECT_TRUE(sees({{"b", ""}}));
}

TEST_F(ReflectorIo, WhatCannotBeUnderstoodStopsNothing) {
  put({.name = "bad", .uid = "1", .broken = true});
  put({.name = "good", .uid = "2"});
  begin();
  ASSERT_TRUE(sees({{"good", ""}}));
  ASSERT_TRUE(watches());
  put({.name = "worse", .uid = "3", .broken = true});
  put({.name = "better", .uid = "4"});
  ASSERT_TRUE(sees({{"good", ""}, {"better", ""}}));
  {
    const std::lock_guard lock(mutex_);
    EXPECT_EQ(rejected_, (std::vector<std::string>{"bad", "worse"}));
  }
  put({.name = "bad", .uid = "1"});
  EXPECT_TRUE(sees({{"bad", ""}, {"good", ""}, {"better", ""}}));
  EXPECT_EQ(reflector_->stats().rejected, 2U);
}

TEST_F(ReflectorIo, StartsOverOnDemandAndStopsForGood) {
  put({.name = "a", .uid = "1"});
  begin();
  ASSERT_TRUE(watches());
  reflector_->start();
  ASSERT_TRUE(eventually([&] {
    const std::lock_guard lock(mutex_);
    return consistent_ == 2;
  }));
  auto requests = api_.requests();
  std::erase_if(requests, [](const std::string& path) { return !testing::query(path, "watch").empty(); });
  EXPECT_EQ(requests.size(), 2U);
  EXPECT_EQ(testing::query(requests.back(), "resourceVersion"), "");
  reflector_->stop();
  EXPECT_TRUE(eventually([&] { return api_.watching() == 0; }));
  put({.name = "b", .uid = "2"});
  EXPECT_TRUE(sees({{"a", ""}}));
}

}  // namespace
}  // namespace troupe
