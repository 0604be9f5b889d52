#include "actors/node/node_owner.hpp"

#include <gtest/gtest.h>

#include <map>
#include <optional>

#include "unit/node/wire.hpp"

namespace troupe {
namespace {

using test::ClassSpec;
using test::commit_batch;
using test::CommitSpec;
using test::gone_pod;
using test::NodeSpec;
using test::pod_on;
using test::result;
using test::uid_text;

/// Runs turns of one owner and keeps what they wrote and said, as a host with a store that never fails.
class Harness {
 public:
  Harness() : owner_(std::in_place, "n1", *shared_) {}

  struct Said {
    std::vector<Envelope> sent;
    std::vector<Bytes> deltas;
    std::size_t writes = 0;
  };

  Said on(const Message& m) {
    return run([&](Turn& turn) { owner_->on(m, turn); });
  }
  Said commit(const Message& batch) {
    return run([&](Turn& turn) {
      const auto n = batch.as<fb::CommitBatch>().commits()->size();
      for (std::uint32_t i = 0; i < n; ++i) owner_->on_part(batch, i, turn);
    });
  }
  /// Loses everything in memory and restores from what was written.
  Said restart() {
    shared_ = std::make_unique<NodeShared>();
    owner_.emplace("n1", *shared_);
    for (const Family family : {Family::ledger, Family::journal}) {
      for (const auto& [key, value] : disk_[family]) owner_->restore_entry(family, key, value);
    }
    return run([&](Turn& turn) { owner_->restored(turn); });
  }
  NodeOwner& owner() { return *owner_; }
  std::size_t on_disk(Family family) { return disk_[family].size(); }

 private:
  template <class F>
  Said run(F&& handler) {
    Turn turn({ActorKind::node, 3, "n1"}, 1'700'000'000'000, 1000, random_, 5, next_intent_);
    turn.set_sender({ActorKind::placement, 0, "0"});
    handler(turn);
    Said said;
    for (const Write w : turn.writes()) {
      if (w.erase) {
        disk_[w.family].erase(std::string(w.key));
      } else {
        disk_[w.family][std::string(w.key)] = std::string(w.value);
      }
      ++said.writes;
    }
    said.sent = std::move(turn.sent());
    said.deltas = std::move(turn.deltas());
    return said;
  }

  Random random_{1};
  std::uint64_t next_intent_ = 100;
  std::unique_ptr<NodeShared> shared_ = std::make_unique<NodeShared>();
  std::optional<NodeOwner> owner_;
  std::map<Family, std::map<std::string, std::string>> disk_;
};

std::vector<const fb::CommitResult*> results(const Harness::Said& said) {
  std::vector<const fb::CommitResult*> out;
  for (const Envelope& e : said.sent) {
    if (e.message.kind() == Kind::commit_result) out.push_back(&e.message.as<fb::CommitResult>());
  }
  return out;
}

const fb::BindSettled* settled(const Harness::Said& said) {
  for (const Envelope& e : said.sent) {
    if (e.message.kind() == Kind::bind_settled) return &e.message.as<fb::BindSettled>();
  }
  return nullptr;
}

void note_intents(const Harness::Said& said, std::map<std::uint64_t, unsigned>& pending) {
  for (const Envelope& e : said.sent) {
    if (e.message.kind() != Kind::intent) continue;
    const auto& intent = e.message.as<fb::Intent>();
    pending[intent.id()] = static_cast<unsigned>(intent.uid()->lo());
  }
}

std::size_t intents(const Harness::Said& said) {
  std::size_t n = 0;
  for (const Envelope& e : said.sent) n += e.message.kind() == Kind::intent ? 1 : 0;
  return n;
}

TEST(NodeOwner, GrantWritesEntryAndIntentTogetherAndSaysSo) {
  Harness h;
  h.on(NodeSpec{}.message());
  const auto said = h.commit(commit_batch({{}}));
  ASSERT_EQ(results(said).size(), 1U);
  EXPECT_EQ(results(said)[0]->outcome(), fb::CommitOutcome::Granted);
  EXPECT_EQ(said.writes, 2U);
  EXPECT_EQ(intents(said), 1U);
  ASSERT_EQ(said.deltas.size(), 1U);
  EXPECT_EQ(h.on_disk(Family::ledger), 1U);
  EXPECT_EQ(h.on_disk(Family::journal), 1U);
  EXPECT_EQ(h.owner().ledger().resources().requested(kCpu), 1000);
}

TEST(NodeOwner, RepeatedCommitGetsTheSameAnswerAndChangesNothing) {
  Harness h;
  h.on(NodeSpec{}.message());
  h.commit(commit_batch({{}}));
  const auto again = h.commit(commit_batch({{}}));
  ASSERT_EQ(results(again).size(), 1U);
  EXPECT_EQ(results(again)[0]->outcome(), fb::CommitOutcome::Granted);
  EXPECT_EQ(again.writes, 0U);
  EXPECT_EQ(intents(again), 0U);
  EXPECT_TRUE(again.deltas.empty());
  EXPECT_EQ(h.owner().ledger().resources().requested(kCpu), 1000);
}

TEST(NodeOwner, RefusesWhatDoesNotFitWithTheReasonsOfTheEventText) {
  Harness h;
  h.on(NodeSpec{.cpu = 1500}.message());
  const auto said = h.commit(commit_batch({{.pod = 1}, {.pod = 2}}));
  ASSERT_EQ(results(said).size(), 2U);
  EXPECT_EQ(results(said)[0]->outcome(), fb::CommitOutcome::Granted);
  EXPECT_EQ(results(said)[1]->outcome(), fb::CommitOutcome::Refused);
  ASSERT_EQ(results(said)[1]->reasons()->size(), 1U);
  EXPECT_EQ(text(results(said)[1]->reasons()->Get(0)), "Insufficient cpu");
  EXPECT_EQ(results(said)[1]->ledger_version(), h.owner().ledger().version());
}

TEST(NodeOwner, RefusesAPortThatIsTaken) {
  Harness h;
  h.on(NodeSpec{}.message());
  const ClassSpec web{.host_ports = {8080}};
  const auto said = h.commit(commit_batch({{.pod = 1, .cls = web}, {.pod = 2, .cls = web}}));
  ASSERT_EQ(results(said)[1]->outcome(), fb::CommitOutcome::Refused);
  EXPECT_EQ(text(results(said)[1]->reasons()->Get(0)),
            "node(s) didn't have free ports for the requested pod ports");
}

TEST(NodeOwner, RefusesUnknownAndDeletedNodes) {
  Harness h;
  EXPECT_EQ(results(h.commit(commit_batch({{}})))[0]->outcome(), fb::CommitOutcome::Refused);
}

TEST(NodeOwner, BoundResultSettlesOnceAndTrimsTheJournalWhenTheEventArrived) {
  Harness h;
  h.on(NodeSpec{}.message());
  h.commit(commit_batch({{}}));
  const auto effect = h.on(result(100, 1, fb::IntentStage::Effect, fb::IntentOutcome::Done));
  ASSERT_NE(settled(effect), nullptr);
  EXPECT_TRUE(settled(effect)->bound());
  EXPECT_EQ(h.on_disk(Family::journal), 1U);
  const auto complete = h.on(result(100, 1, fb::IntentStage::Complete, fb::IntentOutcome::Done));
  EXPECT_EQ(settled(complete), nullptr);
  EXPECT_EQ(h.on_disk(Family::journal), 0U);
  EXPECT_EQ(h.on_disk(Family::ledger), 1U);
}

TEST(NodeOwner, FailedBindGivesTheRoomBack) {
  Harness h;
  h.on(NodeSpec{}.message());
  h.commit(commit_batch({{}}));
  const auto said = h.on(result(100, 1, fb::IntentStage::Complete, fb::IntentOutcome::Refused));
  ASSERT_NE(settled(said), nullptr);
  EXPECT_FALSE(settled(said)->bound());
  EXPECT_FALSE(settled(said)->gone());
  EXPECT_EQ(h.owner().ledger().resources().pods(), 0);
  EXPECT_EQ(h.on_disk(Family::ledger), 0U);
  EXPECT_EQ(h.on_disk(Family::journal), 0U);
  const auto late = h.on(result(100, 1, fb::IntentStage::Complete, fb::IntentOutcome::Refused));
  EXPECT_EQ(settled(late), nullptr);
  EXPECT_EQ(h.owner().ledger().resources().pods(), 0);
}

TEST(NodeOwner, ForeignBindsAreCountedAndNeverRefused) {
  Harness h;
  h.on(NodeSpec{.cpu = 100}.message());
  const auto said = h.on(pod_on(9, "n1"));
  EXPECT_EQ(said.deltas.size(), 1U);
  EXPECT_EQ(h.owner().ledger().resources().requested(kCpu), 1000);
  EXPECT_TRUE(h.on(pod_on(9, "n1")).deltas.empty());
  h.on(gone_pod(9, "n1"));
  EXPECT_EQ(h.owner().ledger().resources().requested(kCpu), 0);
}

TEST(NodeOwner, AResizedPodChangesItsAmountsOnce) {
  Harness h;
  h.on(NodeSpec{}.message());
  h.on(pod_on(9, "n1"));
  const auto said = h.on(pod_on(9, "n1", {.cpu = 1700}));
  ASSERT_EQ(said.deltas.size(), 1U);
  EXPECT_EQ(flatbuffers::GetRoot<fb::DeltaEntry>(said.deltas[0].data())->change(), fb::LedgerChange::Changed);
  EXPECT_EQ(h.owner().ledger().resources().requested(kCpu), 1700);
  EXPECT_EQ(h.owner().ledger().resources().pods(), 1);
}

TEST(NodeOwner, OlderShardEpochIsRefused) {
  NodeShared shared;
  shared.set_shard_epoch(0, 8);
  NodeOwner owner("n1", shared);
  Random random(1);
  std::uint64_t next = 1;
  Turn turn({ActorKind::node, 0, "n1"}, 0, 0, random, 1, next);
  owner.on(NodeSpec{}.message(), turn);
  owner.on_part(commit_batch({{.shard_epoch = 7}}), 0, turn);
  EXPECT_EQ(turn.sent().back().message.as<fb::CommitResult>().outcome(), fb::CommitOutcome::Refused);
  owner.on_part(commit_batch({{.shard_epoch = 8}}), 0, turn);
  EXPECT_EQ(turn.sent().back().message.as<fb::CommitResult>().outcome(), fb::CommitOutcome::Granted);
}

TEST(NodeOwner, RestartReissuesPendingBindsAndKeepsTheAccount) {
  Harness h;
  h.on(NodeSpec{}.message());
  h.commit(commit_batch({{.pod = 1, .n = 1}, {.pod = 2, .n = 2}}));
  h.on(result(100, 1, fb::IntentStage::Complete, fb::IntentOutcome::Done));
  const auto said = h.restart();
  EXPECT_EQ(intents(said), 1U);
  EXPECT_EQ(h.owner().ledger().resources().pods(), 2);
  EXPECT_EQ(h.owner().ledger().resources().requested(kCpu), 2000);
  // Asked again after the restart, the commit has the same answer.
  h.on(NodeSpec{}.message());
  EXPECT_EQ(results(h.commit(commit_batch({{.pod = 2, .n = 2}})))[0]->outcome(), fb::CommitOutcome::Granted);
  EXPECT_EQ(h.owner().ledger().resources().pods(), 2);
}

TEST(NodeOwner, AfterTheFirstListBoundPodsThatItLacksAreReleased) {
  Harness h;
  h.on(NodeSpec{}.message());
  h.commit(commit_batch({{.pod = 1, .n = 1}, {.pod = 2, .n = 2}, {.pod = 3, .n = 3}}));
  h.on(result(100, 1, fb::IntentStage::Complete, fb::IntentOutcome::Done));
  h.on(result(101, 2, fb::IntentStage::Complete, fb::IntentOutcome::Done));
  h.restart();
  h.on(pod_on(1, "n1", ClassSpec{}));
  flatbuffers::FlatBufferBuilder b;
  b.Finish(fb::CreateSynced(b, 1));
  const auto said = h.on(Message(Kind::synced, b));
  EXPECT_EQ(said.deltas.size(), 1U);  // pod 2; pod 3's bind is still pending
  EXPECT_EQ(h.owner().ledger().resources().pods(), 2);
  EXPECT_EQ(h.owner().ledger().pods().size(), 2U);
}

TEST(NodeOwner, ReleaseOfACommitInFlightLeavesTheIntentToTheBridge) {
  Harness h;
  h.on(NodeSpec{}.message());
  h.commit(commit_batch({{}}));
  flatbuffers::FlatBufferBuilder b;
  const fb::Uid uid = PodUid::parse(uid_text(1)).wire();
  const auto node = b.CreateString("n1");
  fb::ReleaseBuilder r(b);
  r.add_node(node);
  r.add_uid(&uid);
  b.Finish(r.Finish());
  const Message release(Kind::release, b);
  h.on(release);
  EXPECT_EQ(h.owner().ledger().resources().pods(), 0);
  EXPECT_EQ(h.on_disk(Family::journal), 1U);
  h.on(release);
  h.on(result(100, 1, fb::IntentStage::Complete, fb::IntentOutcome::Gone));
  EXPECT_EQ(h.on_disk(Family::journal), 0U);
  EXPECT_EQ(h.owner().ledger().resources().pods(), 0);
}

TEST(NodeOwner, RandomHistoriesNeverDoubleCount) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    Harness h;
    h.on(NodeSpec{.cpu = 6000}.message());
    std::uint64_t n = 1;
    std::map<std::uint64_t, unsigned> pending;  // intent -> pod
    for (int step = 0; step < 120; ++step) {
      const unsigned pod = 1 + static_cast<unsigned>(random.below(9));
      switch (random.below(7)) {
        case 0:
        case 1:
          note_intents(h.commit(commit_batch({{.pod = pod, .n = n++}})), pending);
          break;
        case 2:
          h.on(pod_on(pod, "n1"));
          break;
        case 3:
          h.on(gone_pod(pod, "n1"));
          break;
        case 4:
          if (!pending.empty()) {
            const auto [id, which] = *pending.begin();
            const auto outcome = random.below(3) == 0 ? fb::IntentOutcome::Refused : fb::IntentOutcome::Done;
            h.on(result(id, which, fb::IntentStage::Complete, outcome));
            pending.erase(id);
          }
          break;
        case 5:
          note_intents(h.commit(commit_batch({{.pod = pod, .n = 1 + random.below(n)}})), pending);
          break;
        default:
          note_intents(h.restart(), pending);
          h.on(NodeSpec{.cpu = 6000}.message());
      }
      std::int64_t cpu = 0;
      for (const LedgerPod& p : h.owner().ledger().pods()) cpu += p.cls->compiled.request(kCpu);
      ASSERT_EQ(h.owner().ledger().resources().requested(kCpu), cpu) << "seed " << seed << " step " << step;
      ASSERT_EQ(static_cast<std::int64_t>(h.owner().ledger().pods().size()),
                h.owner().ledger().resources().pods());
      ASSERT_EQ(h.on_disk(Family::ledger), h.owner().ledger().pods().size())
          << "seed " << seed << " step " << step;
    }
  }
}

}  // namespace
}  // namespace troupe
