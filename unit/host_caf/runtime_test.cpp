#include "actors/host/runtime.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <thread>

#include "unit/host_caf/inbox.hpp"

namespace troupe {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing_host::Inbox;
using testing_host::kPartitions;
using testing_host::kPatience;
using testing_host::numbered;
using testing_host::Tally;
using testing_host::tell;
using testing_host::TemporaryFolder;
using testing_host::text_message;

class RuntimeTest : public testing::Test {
 protected:
  RuntimeOptions options() {
    RuntimeOptions out;
    out.store.path = folder_.path("store");
    out.report = [this](const HostEvent& event) {
      const std::lock_guard lock(mutex_);
      events_.push_back(std::string(to_string(event.type)) + " " + event.address.key + ": " + event.text);
    };
    out.fatal = [this](const Error& error) {
      const std::lock_guard lock(mutex_);
      fatal_.push_back(error);
    };
    return out;
  }
  std::unique_ptr<Runtime> make() {
    auto runtime = std::make_unique<Runtime>(options());
    runtime->add_owner<Tally>(kPartitions);
    runtime->add_port(ActorKind::api, 0, inbox_.port());
    return runtime;
  }
  std::unique_ptr<Runtime> started() {
    auto runtime = make();
    const auto ok = runtime->start();
    EXPECT_TRUE(ok.has_value()) << (ok ? "" : ok.error().text());
    return runtime;
  }
  std::vector<std::string> events() {
    const std::lock_guard lock(mutex_);
    return events_;
  }

  TemporaryFolder folder_;
  Inbox inbox_;
  std::mutex mutex_;
  std::vector<std::string> events_;
  std::vector<Error> fatal_;
};

TEST_F(RuntimeTest, KeepsTheOrderOfEverySenderOnAllThreads) {
  auto runtime = started();
  constexpr std::uint64_t kKeys = 100;
  constexpr std::uint64_t kRounds = 50;
  std::vector<std::thread> senders;
  for (std::uint64_t sender = 0; sender < 2; ++sender) {
    senders.emplace_back([&, sender] {
      for (std::uint64_t round = 0; round < kRounds; ++round) {
        std::vector<Envelope> batch;
        for (std::uint64_t key = sender; key < kKeys; key += 2) {
          // Written, and not written: replies of both kinds leave in the order of the turns.
          batch.push_back(tell(numbered("n", key), "add 1"));
          batch.push_back(tell(numbered("n", key), "get"));
        }
        runtime->bus().send(std::move(batch));
      }
    });
  }
  for (std::thread& sender : senders) sender.join();
  ASSERT_TRUE(inbox_.wait_for(kKeys * kRounds * 2));
  std::map<std::string, std::vector<std::uint64_t>> replies;
  for (const std::string& text : inbox_.texts()) {
    replies[text.substr(0, text.find('='))].push_back(std::stoull(text.substr(text.find('=') + 1)));
  }
  EXPECT_EQ(replies.size(), kKeys);
  for (const auto& [key, values] : replies) {
    ASSERT_EQ(values.size(), kRounds * 2);
    for (std::uint64_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], i / 2 + 1) << key;
  }
  const std::vector<HostStats> stats = runtime->stats();
  ASSERT_EQ(stats.size(), 1U);
  EXPECT_EQ(stats[0].kind, ActorKind::node);
  EXPECT_EQ(stats[0].turns, kKeys * kRounds * 2);
  EXPECT_EQ(stats[0].instances, kKeys);
  EXPECT_TRUE(runtime->drain(kPatience));
}

TEST_F(RuntimeTest, RestoresEverythingAndTakesNewEpochs) {
  {
    auto runtime = started();
    EXPECT_EQ(runtime->epoch(ActorKind::node, 5), 1U);
    std::vector<Envelope> batch;
    for (std::uint64_t key = 0; key < 500; ++key)
      batch.push_back(tell(numbered("n", key), numbered("add ", key)));
    runtime->bus().send(std::move(batch));
    EXPECT_TRUE(runtime->drain(kPatience));
    EXPECT_EQ(inbox_.texts().size(), 500U);
  }
  auto runtime = started();
  EXPECT_EQ(runtime->epoch(ActorKind::node, 5), 2U);
  EXPECT_EQ(runtime->epoch(ActorKind::node, kPartitions), 0U);
  std::vector<Envelope> batch;
  for (std::uint64_t key = 0; key < 500; ++key) batch.push_back(tell(numbered("n", key), "get"));
  runtime->bus().send(std::move(batch));
  ASSERT_TRUE(inbox_.wait_for(1000));
  std::vector<std::string> texts = inbox_.texts();
  texts.erase(texts.begin(), texts.begin() + 500);
  for (std::uint64_t key = 0; key < 500; ++key) {
    EXPECT_THAT(texts, Contains(numbered(numbered("n", key) + "=", key)));
  }
}

TEST_F(RuntimeTest, TimersFireAndAreArmedAgainAfterARestart) {
  {
    auto runtime = started();
    runtime->bus().send({tell("b", "later 3600000 add 1"), tell("c", "later 1 add 5")});
    EXPECT_TRUE(runtime->drain(kPatience));
  }
  auto runtime = started();
  // A timer's turn answers nobody: ask until it shows.
  const auto value = [&](const std::string& key) {
    const std::size_t before = inbox_.texts().size();
    runtime->bus().send({tell(key, "get")});
    EXPECT_TRUE(inbox_.wait_for(before + 1));
    return inbox_.texts().back();
  };
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (value("c") == "c=0" && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  EXPECT_NE(value("c"), "c=0");
  EXPECT_EQ(value("b"), "b=0");
}

TEST_F(RuntimeTest, AThrowIsReportedAndAMessageThatThrowsTwiceListed) {
  auto runtime = started();
  runtime->bus().send({tell("a", "add 1"), tell("a", "boom"), tell("a", "add 1"), tell("b", "boom-once")});
  ASSERT_TRUE(inbox_.wait_for(3));
  EXPECT_THAT(inbox_.texts(), testing::UnorderedElementsAre("a=1", "a=2", "b=1"));
  const auto list = runtime->quarantined();
  ASSERT_EQ(list.size(), 1U);
  EXPECT_EQ(list[0].to.key, "a");
  EXPECT_EQ(list[0].kind, Kind::self);
  EXPECT_THAT(events(), Contains("quarantined a: boom"));
  EXPECT_EQ(runtime->stats()[0].throws, 3U);
}

TEST_F(RuntimeTest, NamesAnAddressThatDoesNotExist) {
  auto runtime = started();
  runtime->bus().send({{{ActorKind::api, 0, {}}, {ActorKind::report, 3, "x"}, text_message("lost")}});
  EXPECT_THAT(events(), ElementsAre(HasSubstr("undeliverable x")));
}

TEST_F(RuntimeTest, AStoreThatCannotBeOpenedIsAnError) {
  auto first = started();
  auto second = make();
  const auto result = second->start();
  ASSERT_FALSE(result.has_value());
  EXPECT_FALSE(result.error().text().empty());
}

// --- Followers
// ----------------------------------------------------------------------------------------------

const Address kFollower{ActorKind::placement, 0, "0"};

/// Wants a cycle as long as it lives; asks an owner to add in each, and notes how often it was answered.
class Busy {
 public:
  explicit Busy(std::atomic<std::uint64_t>& cycles) : cycles_(&cycles) {}
  void start(FollowerTurn& turn) { turn.send({ActorKind::api, 0, {}}, text_message("started")); }
  void on(const Message& message, FollowerTurn& turn) {
    if (message.bytes().view() == "throw") throw std::runtime_error("follower threw");
    ++answers_;
    if (message.bytes().view() == "how many") {
      turn.reply(text_message(answers_ > 1 ? "some" : "none"));
    }
  }
  [[nodiscard]] bool wants_cycle() const { return true; }
  void cycle(FollowerTurn& turn) {
    if (cycles_->fetch_add(1) % 1000 == 0) {
      turn.send({ActorKind::node, partition_of("busy", kPartitions), "busy"}, text_message("add 1"));
    }
  }

 private:
  std::atomic<std::uint64_t>* cycles_;
  std::uint64_t answers_ = 0;
};

Envelope ask(std::string_view text) {
  return {{ActorKind::api, 0, {}}, kFollower, text_message(text)};
}

TEST_F(RuntimeTest, ABusyFollowerHearsItsMessagesAndStarvesNobody) {
  std::atomic<std::uint64_t> cycles{0};
  auto runtime = make();
  runtime->add_follower(kFollower, std::make_unique<Busy>(cycles));
  ASSERT_TRUE(runtime->start());
  ASSERT_TRUE(inbox_.wait_for(1));
  for (std::uint64_t i = 0; i < 50; ++i) {
    const std::size_t before = inbox_.texts().size();
    std::vector<Envelope> batch;
    batch.push_back(tell(numbered("n", i), "add 1"));
    batch.push_back(ask("how many"));
    batch.push_back(ask("throw"));
    runtime->bus().send(std::move(batch));
    ASSERT_TRUE(inbox_.wait_for(before + 2));
  }
  EXPECT_THAT(inbox_.texts(), Contains("some"));
  EXPECT_GT(cycles.load(), 0U);
  const auto quarantined = runtime->quarantined();
  EXPECT_EQ(quarantined.size(), 50U);
  EXPECT_EQ(runtime->stats().size(), 2U);
  EXPECT_FALSE(runtime->failed());
  EXPECT_TRUE(runtime->drain(kPatience));  // although it never has enough
}

class NeverWorks {
 public:
  void start(FollowerTurn&) {}
  void on(const Message&, FollowerTurn&) {}
  [[nodiscard]] bool wants_cycle() const { return true; }
  void cycle(FollowerTurn&) { throw std::runtime_error("no cycle works"); }
};

TEST_F(RuntimeTest, ABrokenFollowerEndsTheProcess) {
  auto runtime = make();
  runtime->add_follower(kFollower, std::make_unique<NeverWorks>());
  ASSERT_TRUE(runtime->start());
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (!runtime->failed() && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  ASSERT_TRUE(runtime->failed());
  EXPECT_FALSE(runtime->authority().holds(ActorKind::node, 0, 1));
  EXPECT_FALSE(runtime->drain(kPatience));
  const std::lock_guard lock(mutex_);
  ASSERT_EQ(fatal_.size(), 1U);
  EXPECT_THAT(fatal_[0].text(), HasSubstr("no cycle works"));
}

// --- Drain
// --------------------------------------------------------------------------------------------------

/// Passes a token round and round, `hops` times, over many partitions, with a write at each.
class Relay : public testing_host::Tally {
 public:
  using Tally::Tally;
  void on(const Message& message, Turn& turn) {
    const std::string text(message.bytes().view());
    if (!text.starts_with("hop ")) return Tally::on(message, turn);
    const std::uint64_t hops = std::stoull(text.substr(4));
    turn.put(Family::meta, "hop/" + turn.self().key, text);
    if (hops == 0) return turn.send({ActorKind::api, 0, {}}, text_message("arrived"));
    const std::string next = numbered("hop", hops);
    turn.send({ActorKind::node, partition_of(next, kPartitions), next},
              text_message(numbered("hop ", hops - 1)));
  }
};

TEST_F(RuntimeTest, DrainFinishesWhatIsUnderWay) {
  auto runtime = std::make_unique<Runtime>(options());
  runtime->add_owner<Relay>(kPartitions);
  runtime->add_port(ActorKind::api, 0, inbox_.port());
  ASSERT_TRUE(runtime->start());
  runtime->bus().send({tell("a", "hop 200")});
  EXPECT_TRUE(runtime->drain(kPatience));
  EXPECT_THAT(inbox_.texts(), ElementsAre("arrived"));
  runtime->bus().send({tell("a", "add 1")});  // too late: dropped, not a crash
  EXPECT_EQ(inbox_.texts().size(), 1U);
  EXPECT_EQ(runtime->stats()[0].write_sets_out, 0U);
}

}  // namespace
}  // namespace troupe
