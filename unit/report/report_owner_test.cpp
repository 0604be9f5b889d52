#include "actors/report/report_owner.hpp"

#include <gtest/gtest.h>

#include <map>
#include <optional>

namespace troupe {
namespace {

Message request(std::string_view message) {
  flatbuffers::FlatBufferBuilder b;
  const auto type = b.CreateString("PodScheduled");
  const auto status = b.CreateString("False");
  const auto reason = b.CreateString("Unschedulable");
  const auto text_at = b.CreateString(message.data(), message.size());
  const auto condition = fb::CreatePodCondition(b, type, status, reason, text_at);
  const auto ns = b.CreateString("default");
  const auto name = b.CreateString("web-0");
  fb::IntentBuilder i(b);
  i.add_kind(fb::IntentKind::PatchStatus);
  i.add_namespace_(ns);
  i.add_name(name);
  i.add_condition(condition);
  const auto intent = i.Finish();
  const auto key = b.CreateString("default/web-0");
  b.Finish(fb::CreateReportRequest(b, key, intent));
  return {Kind::report_request, b};
}

Message result(std::uint64_t id, fb::IntentOutcome outcome) {
  flatbuffers::FlatBufferBuilder b;
  const auto key = b.CreateString("default/web-0");
  fb::IntentResultBuilder r(b);
  r.add_id(id);
  r.add_kind(fb::IntentKind::PatchStatus);
  r.add_stage(fb::IntentStage::Complete);
  r.add_owner_key(key);
  r.add_outcome(outcome);
  b.Finish(r.Finish());
  return {Kind::intent_result, b};
}

class ReportOwnerTest : public testing::Test {
 protected:
  std::vector<Message> on(const Message& m) {
    return run([&](Turn& turn) { owner_->on(m, turn); });
  }
  std::vector<Message> restart() {
    owner_.emplace("default/web-0", shared_);
    for (const auto& [key, value] : journal_) {
      EXPECT_EQ(ReportOwner::instance_of(Family::journal, key, value), "default/web-0");
      owner_->restore_entry(Family::journal, key, value);
    }
    return run([&](Turn& turn) { owner_->restored(turn); });
  }

  ReportOwner::Shared shared_{};
  std::optional<ReportOwner> owner_{std::in_place, "default/web-0", shared_};
  std::map<std::string, std::string> journal_;

 private:
  template <class F>
  std::vector<Message> run(F&& handler) {
    Turn turn({ActorKind::report, 1, "default/web-0"}, 1'700'000'000'000, 5, random_, 2, next_intent_);
    handler(turn);
    for (const Write w : turn.writes()) {
      EXPECT_EQ(w.family, Family::journal);
      if (w.erase) {
        journal_.erase(std::string(w.key));
      } else {
        journal_[std::string(w.key)] = std::string(w.value);
      }
    }
    std::vector<Message> sent;
    for (Envelope& e : turn.sent()) sent.push_back(e.message);
    return sent;
  }

  Random random_{1};
  std::uint64_t next_intent_ = 10;
};

TEST_F(ReportOwnerTest, JournalsAndIssuesWhatItIsAskedFor) {
  const auto sent = on(request("0/3 nodes are available: 3 Insufficient cpu."));
  ASSERT_EQ(sent.size(), 1U);
  const auto& intent = sent[0].as<fb::Intent>();
  EXPECT_EQ(intent.id(), 10U);
  EXPECT_EQ(intent.owner_kind(), static_cast<std::uint8_t>(ActorKind::report));
  EXPECT_EQ(text(intent.owner_key()), "default/web-0");
  EXPECT_EQ(intent.partition(), 1U);
  EXPECT_EQ(intent.partition_epoch(), 2U);
  EXPECT_EQ(text(intent.condition()->message()), "0/3 nodes are available: 3 Insufficient cpu.");
  EXPECT_EQ(journal_.size(), 1U);
  EXPECT_FALSE(owner_->empty());
}

TEST_F(ReportOwnerTest, ForgetsWhatHasArrivedOrWasRefusedForGood) {
  on(request("a"));
  on(request("b"));
  on(result(10, fb::IntentOutcome::Done));
  EXPECT_EQ(journal_.size(), 1U);
  on(result(11, fb::IntentOutcome::Refused));
  EXPECT_TRUE(journal_.empty());
  EXPECT_TRUE(owner_->empty());
}

TEST_F(ReportOwnerTest, KeepsWhatWasStoppedForTheNextStart) {
  on(request("a"));
  on(result(10, fb::IntentOutcome::Stopped));
  EXPECT_EQ(journal_.size(), 1U);
  const auto again = restart();
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].as<fb::Intent>().id(), 10U);
  EXPECT_FALSE(owner_->empty());
}

}  // namespace
}  // namespace troupe
