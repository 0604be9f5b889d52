#include "store/memory_store.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Envelope to(std::string key) {
  return {{ActorKind::node, 0, "from"}, {ActorKind::placement, 0, std::move(key)}, {}};
}

struct Process {
  std::vector<std::string> released;
  std::vector<Error> failures;

  StoreHooks hooks() {
    return {[this](std::vector<Envelope> envelopes) {
              for (const Envelope& e : envelopes) released.push_back(e.to.key);
            },
            [this](const Error& error) { failures.push_back(error); }};
  }
};

WriteSet put(std::string key, std::string value, std::string message = {}) {
  WriteSet set;
  set.writes.put(Family::ledger, key, value);
  if (!message.empty()) set.messages.push_back(to(std::move(message)));
  return set;
}

WriteSet only(std::string message) {
  WriteSet set;
  set.messages.push_back(to(std::move(message)));
  return set;
}

std::vector<std::string> keys(Store& store, std::string_view prefix = {}) {
  std::vector<std::string> out;
  EXPECT_TRUE(store.scan(Family::ledger, prefix, [&](std::string_view key, std::string_view) {
    out.emplace_back(key);
    return true;
  }));
  return out;
}

TEST(MemoryStore, NothingIsVisibleOrReleasedBeforeTheStep) {
  Process process;
  MemoryStore store(process.hooks());
  store.commit(put("a", "1", "m1"));
  store.commit(only("m2"));
  store.commit(put("b", "2", "m3"));
  EXPECT_THAT(process.released, IsEmpty());
  EXPECT_THAT(keys(store), IsEmpty());
  EXPECT_EQ(store.step(), 3U);
  EXPECT_THAT(process.released, ElementsAre("m1", "m2", "m3"));
  EXPECT_THAT(keys(store), ElementsAre("a", "b"));
  EXPECT_EQ(store.stats().commits, 1U);
  EXPECT_EQ(store.stats().operations, 2U);
}

TEST(MemoryStore, SetsWithoutWritesCauseNoCommit) {
  Process process;
  MemoryStore store(process.hooks());
  store.commit(only("m1"));
  store.step();
  EXPECT_THAT(process.released, ElementsAre("m1"));
  EXPECT_EQ(store.stats().commits, 0U);
}

TEST(MemoryStore, DurableRunsBeforeTheMessagesLeave) {
  Process process;
  MemoryStore store(process.hooks());
  WriteSet set = put("a", "1", "m1");
  bool saw_nothing = false;
  set.durable = [&](std::vector<Envelope>&) { saw_nothing = process.released.empty(); };
  store.commit(std::move(set));
  store.step();
  EXPECT_TRUE(saw_nothing);
  EXPECT_THAT(process.released, ElementsAre("m1"));
}

TEST(MemoryStore, DurableMayTakeMessagesBack) {
  Process process;
  MemoryStore store(process.hooks());
  WriteSet set = put("a", "1", "m1");
  set.durable = [](std::vector<Envelope>& messages) { messages.clear(); };
  store.commit(std::move(set));
  store.commit(put("b", "2", "m2"));
  store.step();
  EXPECT_THAT(process.released, ElementsAre("m2"));
  EXPECT_THAT(keys(store), ElementsAre("a", "b"));
}

TEST(MemoryStore, ReleasedRunsAfterTheMessagesHaveLeft) {
  Process process;
  MemoryStore store(process.hooks());
  WriteSet set = put("a", "1", "m1");
  std::vector<std::string> seen;
  set.released = [&] { seen = process.released; };
  store.commit(std::move(set));
  store.step();
  EXPECT_THAT(seen, ElementsAre("m1"));
}

TEST(MemoryStore, ASetCommittedByAHookWaitsForTheNextStep) {
  Process process;
  MemoryStore store(process.hooks());
  WriteSet set = put("a", "1", "m1");
  set.durable = [&](std::vector<Envelope>&) { store.commit(put("b", "2", "m2")); };
  store.commit(std::move(set));
  EXPECT_EQ(store.step(), 1U);
  EXPECT_THAT(process.released, ElementsAre("m1"));
  EXPECT_EQ(store.step(), 1U);
  EXPECT_THAT(process.released, ElementsAre("m1", "m2"));
}

TEST(MemoryStore, ImmediateModeAlsoCommitsWhatHooksAdd) {
  Process process;
  MemoryStore store(process.hooks(), MemoryStore::Mode::immediate);
  WriteSet set = put("a", "1", "m1");
  set.durable = [&](std::vector<Envelope>&) { store.commit(put("b", "2", "m2")); };
  store.commit(std::move(set));
  EXPECT_THAT(process.released, ElementsAre("m1", "m2"));
  EXPECT_THAT(keys(store), ElementsAre("a", "b"));
}

TEST(MemoryStore, AStallDelaysAndItsEndReleases) {
  Process process;
  MemoryStore store(process.hooks(), MemoryStore::Mode::immediate);
  store.stall(true);
  store.commit(put("a", "1", "m1"));
  EXPECT_THAT(process.released, IsEmpty());
  EXPECT_EQ(store.queued(), 1U);
  store.stall(false);
  EXPECT_THAT(process.released, ElementsAre("m1"));
}

TEST(MemoryStore, AFailureReleasesNothingEverAgain) {
  Process process;
  MemoryStore store(process.hooks());
  store.commit(put("a", "1", "m1"));
  store.step();
  store.fail_next({ErrorCode::io, "sync failed", {}, {}, {}});
  store.commit(only("m2"));
  store.commit(put("b", "2", "m3"));
  EXPECT_EQ(store.step(), 0U);
  store.commit(put("c", "3", "m4"));
  EXPECT_EQ(store.step(), 0U);
  store.close();
  EXPECT_THAT(process.released, ElementsAre("m1"));
  ASSERT_EQ(process.failures.size(), 1U);
  EXPECT_EQ(process.failures[0].code, ErrorCode::io);
  EXPECT_THAT(keys(store), ElementsAre("a"));
}

TEST(MemoryStore, AFailedSyncMayHaveReachedTheDisk) {
  Process process;
  auto disk = std::make_shared<MemoryDisk>();
  {
    MemoryStore store(process.hooks(), MemoryStore::Mode::stepped, disk);
    store.fail_next({ErrorCode::io, "sync failed", {}, {}, {}}, true);
    store.commit(put("a", "1", "m1"));
    store.step();
  }
  EXPECT_THAT(process.released, IsEmpty());
  MemoryStore again(process.hooks(), MemoryStore::Mode::stepped, disk);
  EXPECT_THAT(keys(again), ElementsAre("a"));
}

TEST(MemoryStore, ACrashLosesWhatWasQueuedAndKeepsWhatWasCommitted) {
  Process process;
  auto disk = std::make_shared<MemoryDisk>();
  {
    MemoryStore store(process.hooks(), MemoryStore::Mode::stepped, disk);
    store.commit(put("a", "1"));
    store.step();
    store.commit(put("b", "2"));
  }
  MemoryStore again(process.hooks(), MemoryStore::Mode::stepped, disk);
  EXPECT_THAT(keys(again), ElementsAre("a"));
}

TEST(MemoryStore, CloseCommitsWhatIsQueuedAndTakesNoMore) {
  Process process;
  MemoryStore store(process.hooks());
  store.stall(true);
  store.commit(put("a", "1", "m1"));
  store.close();
  store.commit(put("b", "2", "m2"));
  store.step();
  EXPECT_THAT(process.released, ElementsAre("m1"));
  EXPECT_THAT(keys(store), ElementsAre("a"));
}

TEST(MemoryStore, ScanVisitsThePrefixInOrderUntilToldToStop) {
  Process process;
  MemoryStore store(process.hooks(), MemoryStore::Mode::immediate);
  for (const char* key : {"n2/b", "n1/b", "n1/a", "n10", "m"}) store.commit(put(key, key));
  EXPECT_THAT(keys(store, "n1/"), ElementsAre("n1/a", "n1/b"));
  std::vector<std::string> first;
  ASSERT_TRUE(store.scan(Family::ledger, {}, [&](std::string_view key, std::string_view) {
    first.emplace_back(key);
    return first.size() < 2;
  }));
  EXPECT_THAT(first, ElementsAre("m", "n1/a"));
}

TEST(MemoryStore, AVisitMayChangeWhatItVisits) {
  Process process;
  MemoryStore store(process.hooks(), MemoryStore::Mode::immediate);
  for (const char* key : {"a", "b", "c"}) store.commit(put(key, key));
  std::vector<std::string> seen;
  ASSERT_TRUE(store.scan(Family::ledger, {}, [&](std::string_view key, std::string_view) {
    seen.emplace_back(key);
    WriteSet set;
    set.writes.erase(Family::ledger, key);
    store.commit(std::move(set));
    return true;
  }));
  EXPECT_THAT(seen, ElementsAre("a", "b", "c"));
  EXPECT_THAT(keys(store), IsEmpty());
}

TEST(MemoryStore, GetFindsTheValueOrSaysNotFound) {
  Process process;
  MemoryStore store(process.hooks(), MemoryStore::Mode::immediate);
  store.commit(put("a", "1"));
  store.commit(put("a", "2"));
  EXPECT_EQ(store.get(Family::ledger, "a").value(), "2");
  EXPECT_EQ(store.get(Family::journal, "a").error().code, ErrorCode::not_found);
}

}  // namespace
}  // namespace troupe
