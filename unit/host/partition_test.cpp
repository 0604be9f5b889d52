#include "actors/host/partition.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/host/rig.hpp"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing_host::kPlacement;
using testing_host::numbered;
using testing_host::Rig;

TEST(Partition, ATurnWithWritesSpeaksAfterTheSync) {
  Rig rig;
  rig.settle();
  rig.process({Rig::to("a", "add 3")});
  EXPECT_THAT(rig.take_sent(), IsEmpty());
  rig.settle();
  EXPECT_THAT(rig.take_sent(), ElementsAre("t<a=3"));
  EXPECT_EQ(decode_u64(rig.memory.get(Family::ledger, "a/n").value()), 3U);
}

TEST(Partition, NothingLeavesBeforeTheEpochIsDurable) {
  Rig rig;
  rig.process({Rig::to("a", "get")});
  EXPECT_THAT(rig.take_sent(), IsEmpty());
  rig.settle();
  EXPECT_THAT(rig.take_sent(), ElementsAre("t<a=0"));
}

TEST(Partition, AStalledStoreDelaysExactlyWhatDependsOnIt) {
  Rig rig;
  rig.process({Rig::to("b", "add 1")});
  rig.settle();
  rig.take_sent();
  rig.memory.stall(true);
  rig.process({Rig::to("a", "add 1"), Rig::to("b", "get"), Rig::to("a", "get"), Rig::batch("!:show")});
  rig.process({Rig::to("b", "get"), Rig::to("a", "get")});
  EXPECT_THAT(rig.take_sent(), ElementsAre("t<b=1", "t<b=1"));
  rig.memory.stall(false);
  rig.settle();
  EXPECT_THAT(rig.take_sent(), ElementsAre("t<a=1", "t<a=1", "t<shared=0", "t<a=1"));
}

// A write-less turn whose message waits holds back the instance's later ones, although no write is left.
TEST(Partition, KeepsTheOrderOfASender) {
  Rig rig;
  rig.settle();
  rig.process({Rig::to("a", "add 1")});
  rig.process({Rig::to("a", "tell second")});
  rig.slow.step(1);
  EXPECT_THAT(rig.sent, ElementsAre("t<a=1"));
  rig.process({Rig::to("a", "tell third")});
  EXPECT_THAT(rig.sent, ElementsAre("t<a=1"));
  rig.settle();
  EXPECT_THAT(rig.take_sent(), ElementsAre("t<a=1", "0<second", "0<third"));
}

TEST(Partition, OneBatchIsOneWriteSetAndOneRelease) {
  Rig rig;
  rig.settle();
  rig.sends = 0;
  std::vector<Envelope> batch;
  for (int i = 0; i < 100; ++i)
    batch.push_back(Rig::to(numbered("n", static_cast<std::uint64_t>(i)), "add 1"));
  rig.process(std::move(batch));
  EXPECT_EQ(rig.slow.queued(), 1U);
  rig.settle();
  EXPECT_EQ(rig.sends, 1U);
  EXPECT_EQ(rig.take_sent().size(), 100U);
}

TEST(Partition, PartsOfOneKeyAreOneTurnInOrder) {
  Rig rig;
  rig.settle();
  rig.process({Rig::batch("a:add 1;b:add 10;a:add 2;a:get;b:add 20")});
  rig.settle();
  EXPECT_THAT(rig.take_sent(), ElementsAre("t<a=1", "t<a=3", "t<a=3", "t<b=10", "t<b=30"));
}

TEST(Partition, EveryInstanceTakesAMessageForAll) {
  Rig rig;
  rig.process({Rig::batch("a:add 1;b:add 2")});
  rig.settle();
  rig.take_sent();
  rig.process({Rig::batch("*:add 5")});
  rig.settle();
  EXPECT_THAT(rig.take_sent(), testing::UnorderedElementsAre("t<a=6", "t<b=7"));
}

TEST(Partition, AnEmptyInstanceIsDroppedWhenItsWritesAreOut) {
  Rig rig;
  rig.process({Rig::to("a", "add 1"), Rig::to("b", "get")});
  rig.settle();
  rig.process({Rig::to("a", "clear")});
  EXPECT_EQ(rig.partition->stats().instances, 1U);
  rig.settle();
  rig.process();
  EXPECT_EQ(rig.partition->stats().instances, 0U);
  EXPECT_FALSE(rig.memory.get(Family::ledger, "a/n").has_value());
}

TEST(Partition, TimersFireOnceWhenDue) {
  Rig rig;
  rig.process({Rig::to("a", "later 50 add 7")});
  rig.settle();
  EXPECT_EQ(rig.partition->next_due(), 1050);
  rig.time.at += 49;
  rig.process();
  rig.settle();
  EXPECT_FALSE(rig.memory.get(Family::ledger, "a/n").has_value());
  rig.time.at += 1;
  rig.process();
  rig.settle();
  rig.time.at += 1000;
  rig.process();
  rig.settle();
  EXPECT_EQ(decode_u64(rig.memory.get(Family::ledger, "a/n").value()), 7U);
}

TEST(Partition, RestoresWhatWasDurableAndArmsTimersAgain) {
  auto disk = std::make_shared<MemoryDisk>();
  {
    Rig rig(disk);
    rig.process({Rig::to("a", "add 3"), Rig::to("a", "later 50 add 4"), Rig::batch("!:set 9")});
    rig.settle();
    rig.process({Rig::to("a", "add 100")});  // lost in the crash
  }
  Rig rig(disk);
  rig.settle();
  EXPECT_EQ(rig.partition->epoch(), 2U);
  rig.process({Rig::to("a", "get"), Rig::batch("!:show")});
  EXPECT_THAT(rig.take_sent(), ElementsAre("t<a=3", "t<shared=9"));
  rig.time.at += 50;
  rig.process();
  rig.settle();
  rig.process({Rig::to("a", "get")});
  EXPECT_EQ(rig.take_sent().back(), "t<a=7");
}

TEST(Partition, IntentIdsAreNeverGivenTwice) {
  auto disk = std::make_shared<MemoryDisk>();
  std::set<std::string> ids;
  std::size_t given = 0;
  for (int life = 0; life < 3; ++life) {
    Rig rig(disk);
    rig.settle();
    // More than one reserved block in the second life.
    for (int i = 0; i < (life == 1 ? 70'000 : 10); ++i, ++given) rig.process({Rig::to("a", "intent")});
    rig.settle();
    ids.insert(rig.sent.begin(), rig.sent.end());
  }
  EXPECT_EQ(ids.size(), given);
}

// The message that crosses a reserved block waits until the next block is durable, as do those after it.
TEST(Partition, NoIntentIdLeavesBeforeItsBlockIsReserved) {
  Rig rig;
  rig.settle();
  for (int i = 0; i < (1 << 16); ++i) rig.process({Rig::to("a", "intent")});
  EXPECT_EQ(rig.take_sent().size(), std::size_t{1} << 16U);
  rig.memory.stall(true);
  rig.process({Rig::to("a", "intent"), Rig::to("b", "get")});
  rig.process({Rig::to("b", "get")});
  EXPECT_THAT(rig.take_sent(), IsEmpty());
  rig.memory.stall(false);
  rig.settle();
  EXPECT_EQ(rig.take_sent().size(), 3U);
}

TEST(Partition, AMessageThatNobodyTakesIsNamed) {
  Rig rig;
  rig.process({Rig::batch("")});
  EXPECT_EQ(rig.partition->stats().unhandled, 1U);
  EXPECT_THAT(rig.events, ElementsAre(HasSubstr("unhandled")));
}

// --- Failures of the store and of authority
// -----------------------------------------------------------------

TEST(Partition, AWriteErrorReleasesNothingEverAgain) {
  Rig rig;
  rig.settle();
  rig.memory.fail_next({ErrorCode::no_space, "write failed", {}, {}, {}});
  rig.process({Rig::to("a", "add 1")});
  rig.slow.step();
  ASSERT_EQ(rig.failures.size(), 1U);
  rig.process({Rig::to("b", "get"), Rig::to("b", "add 1")});
  rig.slow.step();
  EXPECT_THAT(rig.take_sent(), IsEmpty());
  EXPECT_EQ(rig.partition->stats().unauthorized, 2U);
}

TEST(Partition, AuthorityThatLapsesBetweenHandlerAndReleaseDropsTheMessages) {
  Rig rig;
  rig.settle();
  rig.process({Rig::to("a", "add 1"), Rig::to("b", "add 1")});
  rig.rights.fail();
  rig.settle();
  EXPECT_THAT(rig.take_sent(), IsEmpty());
  EXPECT_EQ(rig.partition->stats().unauthorized, 2U);
  EXPECT_TRUE(rig.memory.get(Family::ledger, "a/n").has_value());
}

// --- Throws
// -------------------------------------------------------------------------------------------------

TEST(Partition, AThrowLosesTheWholeTurnAndOnlyThat) {
  Rig rig;
  rig.process({Rig::to("a", "add 1")});
  rig.settle();
  rig.take_sent();
  rig.process({Rig::batch("a:add 5;b:add 2;a:boom-once;c:add 3")});
  rig.settle();
  // The parts of `a` run again as one turn, from the restored 1.
  EXPECT_THAT(rig.take_sent(), testing::UnorderedElementsAre("t<b=2", "t<c=3", "t<a=6", "t<a=7"));
  EXPECT_THAT(rig.events, ElementsAre("threw a: boom", "restored a: from the store"));
  EXPECT_EQ(rig.partition->stats().throws, 1U);
  rig.time.at += 5000;
  rig.process();  // the lost turn's timer does not exist
  rig.settle();
  EXPECT_EQ(decode_u64(rig.memory.get(Family::ledger, "a/n").value()), 7U);
}

TEST(Partition, RestorationWaitsForOutstandingWritesAndMessagesWaitInOrder) {
  Rig rig;
  rig.settle();
  rig.memory.stall(true);
  rig.process({Rig::to("a", "add 1"), Rig::to("a", "boom-once"), Rig::to("a", "get"), Rig::to("b", "get")});
  rig.process({Rig::to("a", "add 10")});
  EXPECT_THAT(rig.take_sent(), ElementsAre("t<b=0"));
  EXPECT_THAT(rig.events, ElementsAre("threw a: boom"));
  rig.memory.stall(false);
  rig.settle();
  EXPECT_THAT(rig.take_sent(), ElementsAre("t<a=1", "t<a=2", "t<a=2", "t<a=12"));
}

TEST(Partition, AMessageThatThrowsTwiceIsQuarantinedByNameAndItsPartsRefused) {
  Rig rig;
  rig.settle();
  rig.process({Rig::batch("a:add 1;b:boom;b:get;c:add 1"), Rig::to("b", "get"), Rig::to("d", "boom"),
               Rig::to("d", "get")});
  rig.settle();
  EXPECT_THAT(rig.take_sent(), testing::UnorderedElementsAre("t<a=1", "t<c=1", "t<b refused 1",
                                                             "t<b refused 2", "t<b=0", "t<d=0"));
  const std::vector<Quarantined> list = rig.partition->quarantined();
  ASSERT_EQ(list.size(), 2U);
  EXPECT_EQ(list[0].kind, Kind::query);
  EXPECT_EQ(list[0].to.key, "b");
  EXPECT_EQ(list[0].from.key, "t");
  EXPECT_EQ(list[0].error, "boom");
  EXPECT_EQ(list[1].to.key, "d");
  EXPECT_EQ(rig.partition->stats().quarantined, 2U);
  EXPECT_THAT(rig.events, testing::Contains("quarantined b: boom"));
}

TEST(Partition, KeepsABoundedListOfQuarantinedMessages) {
  Rig rig;
  rig.settle();
  for (int i = 0; i < 200; ++i) rig.process({Rig::to("a", "boom"), Rig::to("a", "add 1")});
  rig.settle();
  EXPECT_EQ(rig.partition->quarantined().size(), Partition::kMaxQuarantined);
  EXPECT_EQ(rig.partition->stats().quarantined, 200U);
  EXPECT_EQ(rig.take_sent().size(), 200U);
}

TEST(Partition, ASplitThatThrowsIsQuarantined) {
  Rig rig;
  rig.settle();
  rig.process({Rig::batch("split-boom"), Rig::to("a", "get")});
  EXPECT_THAT(rig.take_sent(), ElementsAre("t<a=0"));
  ASSERT_EQ(rig.partition->quarantined().size(), 1U);
  EXPECT_EQ(rig.partition->quarantined()[0].error, "split boom");
}

TEST(Partition, AnInstanceThatCannotBeRestoredRefusesUntilItCan) {
  auto disk = std::make_shared<MemoryDisk>();
  Writes writes;
  writes.put(Family::ledger, "a/n", "corrupt");
  writes.put(Family::ledger, "b/n", encode_u64(5));
  disk->apply(writes);
  Rig rig(disk);
  rig.settle();
  EXPECT_THAT(rig.events, ElementsAre(HasSubstr("unusable a: entry cannot be read")));
  rig.process({Rig::to("b", "get"), Rig::batch("a:get;b:get"), Rig::to("a", "get")});
  rig.settle();
  EXPECT_THAT(rig.take_sent(), ElementsAre("t<b=5", "t<a refused 0", "t<b=5"));
  Writes repaired;
  repaired.put(Family::ledger, "a/n", encode_u64(4));
  disk->apply(repaired);
  rig.time.at += Partition::kRestoreRetry;
  rig.process({Rig::to("a", "get")});
  EXPECT_THAT(rig.take_sent(), ElementsAre("t<a=4"));
}

TEST(Partition, ASharedThatThrowsIsReadAgainAndTheMessageTriedOnceMore) {
  Rig rig;
  rig.process({Rig::batch("!:set 3")});
  rig.settle();
  rig.take_sent();
  rig.process({Rig::to("a", "add 1"), Rig::batch("!:boom-once;a:add 1"), Rig::to("b", "get")});
  EXPECT_THAT(rig.take_sent(), IsEmpty());  // all of it waits for the set of a
  rig.settle();
  EXPECT_THAT(rig.take_sent(), ElementsAre("t<a=1", "t<shared=3", "t<b=0", "t<a=2"));
}

TEST(Partition, ASharedThatThrowsTwiceQuarantinesTheMessageAndRefusesItsParts) {
  Rig rig;
  rig.settle();
  rig.process({Rig::batch("!:boom;a:add 1"), Rig::batch("!:show"), Rig::to("a", "get")});
  rig.settle();
  EXPECT_THAT(rig.take_sent(), ElementsAre("t<a refused 1", "t<shared=0", "t<a=0"));
  EXPECT_EQ(rig.partition->quarantined().size(), 1U);
}

// --- The delta stream
// ---------------------------------------------------------------------------------------

std::string names(const flatbuffers::Vector<flatbuffers::Offset<fb::DeltaBytes>>* entries) {
  std::string out;
  for (const fb::DeltaBytes* item : *entries) {
    const auto& entry = *flatbuffers::GetRoot<fb::DeltaEntry>(item->bytes()->data());
    out += numbered(entry.node()->str() + "=", entry.ledger_version()) + " ";
  }
  return out;
}

TEST(Partition, ACopySubscribesAndDeltasAreNumberedFromIt) {
  Rig rig;
  rig.process({Rig::to("a", "add 1")});
  rig.settle();
  rig.process({Rig::to("a", "add 1"), Rig::copy_request(), Rig::to("b", "add 7"), Rig::to("a", "add 1")});
  EXPECT_THAT(rig.of(Kind::ledger_copy), IsEmpty());  // waits for all outstanding writes
  rig.settle();
  const auto copies = rig.of(Kind::ledger_copy);
  ASSERT_EQ(copies.size(), 1U);
  const auto& copy = copies[0].message.as<fb::LedgerCopy>();
  EXPECT_EQ(copy.partition_epoch(), 1U);
  EXPECT_EQ(copy.sequence(), 2U);
  EXPECT_TRUE(copy.last());
  EXPECT_EQ(names(copy.entries()), "a=2 ");
  EXPECT_EQ(copies[0].to, kPlacement);
  const auto deltas = rig.of(Kind::ledger_delta);
  ASSERT_EQ(deltas.size(), 1U);
  const auto& delta = deltas[0].message.as<fb::LedgerDelta>();
  EXPECT_EQ(delta.sequence(), 4U);
  EXPECT_EQ(names(delta.entries()), "b=7 a=3 ");
  EXPECT_TRUE(
      Message::verified(static_cast<std::uint16_t>(Kind::ledger_delta), deltas[0].message.bytes().span()));
  EXPECT_TRUE(
      Message::verified(static_cast<std::uint16_t>(Kind::ledger_copy), copies[0].message.bytes().span()));
}

TEST(Partition, AThrownTurnLeavesNoGapInTheStream) {
  Rig rig;
  rig.process({Rig::copy_request()});
  rig.settle();
  rig.process({Rig::to("a", "add 1"), Rig::to("b", "boom"), Rig::to("c", "add 1")});
  rig.settle();
  std::string all;
  std::uint64_t next = 0;
  for (const Envelope& e : rig.of(Kind::ledger_delta)) {
    const auto& delta = e.message.as<fb::LedgerDelta>();
    EXPECT_EQ(delta.sequence(), next + delta.entries()->size());
    next = delta.sequence();
    all += names(delta.entries());
  }
  EXPECT_EQ(all, "a=1 c=1 ");
}

TEST(Partition, TheHeadIsRepeatedEverySecondWhileIdle) {
  Rig rig;
  rig.process({Rig::copy_request(), Rig::to("a", "add 1")});
  rig.settle();
  rig.order.clear();
  EXPECT_EQ(rig.partition->next_due(), 2000);
  for (int second = 0; second < 3; ++second) {
    rig.time.at = rig.partition->next_due().value();
    rig.process();
  }
  const auto heads = rig.of(Kind::ledger_delta);
  ASSERT_EQ(heads.size(), 3U);
  EXPECT_EQ(heads[2].message.as<fb::LedgerDelta>().sequence(), 1U);
  EXPECT_EQ(heads[2].message.as<fb::LedgerDelta>().entries()->size(), 0U);
}

TEST(Partition, AHeadWaitsForOutstandingWrites) {
  Rig rig;
  rig.process({Rig::copy_request()});
  rig.settle();
  rig.order.clear();
  rig.memory.stall(true);
  rig.process({Rig::to("a", "add 1")});
  rig.time.at += 1000;
  rig.process();
  EXPECT_THAT(rig.of(Kind::ledger_delta), IsEmpty());
  rig.memory.stall(false);
  rig.settle();
  EXPECT_EQ(rig.of(Kind::ledger_delta).size(), 2U);
}

TEST(Partition, ACopyWaitsForAFaultedInstance) {
  Rig rig;
  rig.process({Rig::to("a", "add 5")});
  rig.settle();
  rig.memory.stall(true);
  rig.process({Rig::to("a", "add 1"), Rig::to("a", "boom"), Rig::copy_request()});
  rig.memory.stall(false);
  rig.settle();
  const auto copies = rig.of(Kind::ledger_copy);
  ASSERT_EQ(copies.size(), 1U);
  EXPECT_EQ(names(copies[0].message.as<fb::LedgerCopy>().entries()), "a=6 ");
}

TEST(Partition, ALargeCopyComesInChunks) {
  Rig rig;
  std::vector<Envelope> batch;
  for (int i = 0; i < 8000; ++i)
    batch.push_back(Rig::to(numbered("a-node-with-a-long-name-", static_cast<std::uint64_t>(i)), "add 1"));
  rig.process(std::move(batch));
  rig.settle();
  rig.process({Rig::copy_request()});
  const auto copies = rig.of(Kind::ledger_copy);
  ASSERT_GT(copies.size(), 1U);
  std::size_t entries = 0;
  for (std::size_t i = 0; i < copies.size(); ++i) {
    const auto& copy = copies[i].message.as<fb::LedgerCopy>();
    EXPECT_LE(copies[i].message.bytes().size(), DeltaStream::kChunkBytes + 64U * copy.entries()->size());
    EXPECT_EQ(copy.last(), i + 1 == copies.size());
    EXPECT_EQ(copy.sequence(), 8000U);
    entries += copy.entries()->size();
  }
  EXPECT_EQ(entries, 8000U);
}

TEST(Partition, StatsTellWhatHappened) {
  Rig rig;
  rig.settle();
  rig.process({Rig::to("a", "add 1"), Rig::to("a", "get")});
  EXPECT_EQ(rig.partition->stats().write_sets_out, 1U);
  rig.time.at += 2;
  rig.settle();
  const HostStats stats = rig.partition->stats();
  EXPECT_EQ(stats.kind, ActorKind::node);
  EXPECT_EQ(stats.turns, 2U);
  EXPECT_EQ(stats.messages, 2U);
  EXPECT_EQ(stats.turn_time.count, 2U);
  EXPECT_EQ(stats.write_sets, 2U);
  EXPECT_EQ(stats.write_sets_out, 0U);
  EXPECT_EQ(stats.commit_wait.max_ns, 2'000'000U);
}

}  // namespace
}  // namespace troupe
