#include "actors/host/follower.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/host/rig.hpp"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing_host::kPlacement;
using testing_host::Rig;
using testing_host::text_message;

const Address kOwner{ActorKind::node, 3, {}};

/// Collects texts and tells an owner of all of them in the next cycle; "boom" throws, "later N" comes back.
class Collector {
 public:
  explicit Collector(bool bad_start = false) : bad_start_(bad_start) {}
  void start(FollowerTurn& turn) {
    turn.send(kOwner, text_message("hello"));
    if (bad_start_) throw std::runtime_error("cannot start");
  }
  void on(const Message& message, FollowerTurn& turn) {
    const std::string text(message.bytes().view());
    if (text.starts_with("later ")) return turn.after(std::stoll(text.substr(6)), text_message("due"));
    collected_ += text + " ";
    turn.reply(text_message("got " + text));
    if (text == "boom") throw std::runtime_error("boom");
    broken_ = broken_ || text == "break";
  }
  [[nodiscard]] bool wants_cycle() const { return !collected_.empty(); }
  void cycle(FollowerTurn& turn) {
    turn.send(kOwner, text_message(collected_));
    if (broken_) throw std::runtime_error("broken");
    collected_.clear();
  }

 private:
  std::string collected_;
  bool bad_start_;
  bool broken_ = false;
};

Envelope to_follower(std::string_view text) {
  return {{ActorKind::api, 0, "t"}, kPlacement, text_message(text)};
}

class FollowerEngineTest : public testing::Test {
 protected:
  void SetUp() override {
    process({});
    EXPECT_THAT(rig_.take_sent(), ElementsAre("<hello"));
  }
  void process(std::vector<Envelope> batch) { engine_.process(batch); }

  Rig rig_;
  FollowerEngine engine_{std::make_unique<HostedFollowerOf<Collector>>(std::make_unique<Collector>()),
                         kPlacement, 1, rig_};
};

TEST_F(FollowerEngineTest, SeesEveryMessageBeforeACycle) {
  process({to_follower("a"), to_follower("b")});
  EXPECT_THAT(rig_.take_sent(), ElementsAre("t<got a", "t<got b"));
  ASSERT_TRUE(engine_.wants_cycle());
  engine_.cycle();
  EXPECT_THAT(rig_.take_sent(), ElementsAre("<a b "));
  EXPECT_FALSE(engine_.wants_cycle());
  EXPECT_EQ(rig_.order.back().from, kPlacement);
}

TEST_F(FollowerEngineTest, QuarantinesAMessageThatThrows) {
  process({to_follower("a"), to_follower("boom"), to_follower("b")});
  EXPECT_THAT(rig_.take_sent(), ElementsAre("t<got a", "t<got b"));
  ASSERT_EQ(engine_.quarantined().size(), 1U);
  EXPECT_EQ(engine_.quarantined()[0].to, kPlacement);
  EXPECT_EQ(engine_.quarantined()[0].error, "boom");
  EXPECT_EQ(engine_.stats().throws, 1U);
  EXPECT_EQ(engine_.stats().turns, 4U);
}

TEST_F(FollowerEngineTest, TimersComeBack) {
  process({to_follower("later 40")});
  EXPECT_EQ(engine_.next_due(), 1040);
  rig_.time.at = 1039;
  process({});
  EXPECT_FALSE(engine_.wants_cycle());
  rig_.time.at = 1040;
  process({});
  engine_.cycle();
  EXPECT_THAT(rig_.take_sent(), ElementsAre("0<got due", "<due "));
}

TEST_F(FollowerEngineTest, CyclesThatKeepThrowingBreakIt) {
  process({to_follower("break")});
  rig_.take_sent();
  for (int i = 0; i < FollowerEngine::kMaxCycleThrows; ++i) {
    EXPECT_TRUE(engine_.wants_cycle());
    engine_.cycle();
  }
  EXPECT_FALSE(engine_.wants_cycle());
  EXPECT_EQ(engine_.broken(), "broken");
  EXPECT_TRUE(rig_.take_sent().empty());
  EXPECT_THAT(rig_.events, testing::Each(HasSubstr("broken")));
}

TEST(FollowerEngine, IsBrokenWhenItCannotStart) {
  Rig rig;
  FollowerEngine engine(std::make_unique<HostedFollowerOf<Collector>>(std::make_unique<Collector>(true)),
                        kPlacement, 1, rig);
  engine.process({});
  EXPECT_EQ(engine.broken(), "cannot start");
  EXPECT_TRUE(rig.sent.empty());
}

}  // namespace
}  // namespace troupe
