#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "unit/store_rocksdb/support.hpp"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using Operation = FaultFileSystem::Operation;
using Files = FaultFileSystem::Files;

std::vector<std::string> keys(Store& store, std::string_view prefix) {
  std::vector<std::string> out;
  EXPECT_TRUE(store.scan(Family::ledger, prefix, [&](std::string_view key, std::string_view) {
    out.emplace_back(key);
    return true;
  }));
  return out;
}

TEST(RocksdbStore, WhatIsReleasedIsThereAndStaysThere) {
  TempDir dir;
  Listener listener;
  {
    const auto store = must_open(dir.db(), listener);
    store->commit(put("a", "1", "m1"));
    WriteSet set = put("b", "2", "m2");
    set.writes.put(Family::journal, "j", "3");
    set.writes.erase(Family::ledger, "a");
    store->commit(std::move(set));
    ASSERT_TRUE(listener.wait(2));
    EXPECT_EQ(store->get(Family::ledger, "b").value(), "2");
    EXPECT_EQ(store->get(Family::ledger, "a").error().code, ErrorCode::not_found);
  }
  EXPECT_THAT(listener.released(), ElementsAre("m1", "m2"));
  const auto store = must_open(dir.db(), listener);
  EXPECT_EQ(everything(*store, Family::ledger), (std::map<std::string, std::string>{{"b", "2"}}));
  EXPECT_EQ(everything(*store, Family::journal), (std::map<std::string, std::string>{{"j", "3"}}));
  EXPECT_THAT(listener.failures(), IsEmpty());
}

TEST(RocksdbStore, OneSyncServesEverythingThatWaited) {
  TempDir dir;
  Listener listener;
  FaultFileSystem disk;
  const auto store = must_open(dir.db(), listener, {.env = disk.env()});
  disk.stall(Operation::sync);
  store->commit(put("first", "", "first"));
  ASSERT_TRUE(disk.wait_stalled(kDeadline));
  std::vector<std::string> expected = {"first"};
  for (int i = 0; i < 100; ++i) {
    expected.push_back(std::to_string(i));
    store->commit(i % 10 == 0 ? only(expected.back()) : put(expected.back(), "v", expected.back()));
  }
  EXPECT_THAT(listener.released(), IsEmpty());
  EXPECT_THAT(keys(*store, {}), IsEmpty());
  disk.release();
  ASSERT_TRUE(listener.wait(101));
  EXPECT_EQ(listener.released(), expected);
  store->close();
  EXPECT_EQ(store->stats().commits, 2U);
  EXPECT_EQ(store->stats().write_sets, 101U);
  EXPECT_EQ(store->stats().operations, 91U);
}

TEST(RocksdbStore, SetsWithoutWritesWaitTheirTurnAndSyncNothing) {
  TempDir dir;
  Listener listener;
  FaultFileSystem disk;
  const auto store = must_open(dir.db(), listener, {.env = disk.env()});
  disk.stall(Operation::sync);
  store->commit(only("m1"));
  ASSERT_TRUE(listener.wait(1));
  store->commit(put("a", "1", "m2"));
  ASSERT_TRUE(disk.wait_stalled(kDeadline));
  store->commit(only("m3"));
  EXPECT_THAT(listener.released(), ElementsAre("m1"));
  disk.release();
  store->close();
  EXPECT_THAT(listener.released(), ElementsAre("m1", "m2", "m3"));
  EXPECT_EQ(store->stats().commits, 1U);
}

TEST(RocksdbStore, DurableMayTakeMessagesBackAndReleasedComesLast) {
  TempDir dir;
  Listener listener;
  const auto store = must_open(dir.db(), listener);
  std::size_t at_durable = 99;
  std::size_t at_released = 99;
  WriteSet set = put("a", "1", "kept");
  set.messages.push_back(message_to("taken back"));
  set.durable = [&](std::vector<Envelope>& messages) {
    at_durable = listener.released().size();
    messages.pop_back();
  };
  set.released = [&] { at_released = listener.released().size(); };
  store->commit(std::move(set));
  store->close();
  EXPECT_EQ(at_durable, 0U);
  EXPECT_EQ(at_released, 1U);
  EXPECT_THAT(listener.released(), ElementsAre("kept"));
}

TEST(RocksdbStore, EachSendersSetsKeepTheirOrder) {
  TempDir dir;
  Listener listener;
  const auto store = must_open(dir.db(), listener);
  constexpr int kSenders = 4;
  constexpr int kSets = 500;
  std::vector<std::thread> senders;
  for (int s = 0; s < kSenders; ++s) {
    senders.emplace_back([&store, s] {
      for (int i = 0; i < kSets; ++i) {
        store->commit(put(std::to_string(s), std::to_string(i), std::to_string(s) + "/" + std::to_string(i)));
      }
    });
  }
  for (std::thread& sender : senders) sender.join();
  store->close();
  std::vector<int> next(kSenders, 0);
  for (const std::string& message : listener.released()) {
    const int sender = message[0] - '0';
    ASSERT_EQ(message,
              std::to_string(sender) + "/" + std::to_string(next[static_cast<std::size_t>(sender)]++));
  }
  EXPECT_EQ(listener.released().size(), static_cast<std::size_t>(kSenders * kSets));
  for (int s = 0; s < kSenders; ++s) {
    EXPECT_EQ(store->get(Family::ledger, std::to_string(s)).value(), std::to_string(kSets - 1));
  }
}

TEST(RocksdbStore, ScanVisitsExactlyThePrefix) {
  TempDir dir;
  Listener listener;
  const auto store = must_open(dir.db(), listener);
  const std::string top("\xFF\xFF", 2);
  for (const std::string& key : {std::string("n1/b"), std::string("n1/a"), std::string("n10"),
                                 std::string("m"), std::string("n"), top + "x", top}) {
    store->commit(put(key, key, key));
  }
  ASSERT_TRUE(listener.wait(7));
  EXPECT_THAT(keys(*store, "n1/"), ElementsAre("n1/a", "n1/b"));
  EXPECT_THAT(keys(*store, "n"), ElementsAre("n", "n1/a", "n1/b", "n10"));
  EXPECT_THAT(keys(*store, top), ElementsAre(top, top + "x"));
  EXPECT_THAT(keys(*store, {}), SizeIs(7));
  EXPECT_THAT(keys(*store, "zz"), IsEmpty());
  int visits = 0;
  ASSERT_TRUE(
      store->scan(Family::ledger, {}, [&](std::string_view, std::string_view) { return ++visits < 3; }));
  EXPECT_EQ(visits, 3);
}

TEST(RocksdbStore, ReadsSeeFlushedAndUnflushedWritesTogether) {
  TempDir dir;
  Listener listener;
  const auto store = must_open(dir.db(), listener, {}, 64U << 10U);
  constexpr std::uint64_t kSets = 2000;
  for (std::uint64_t n = 0; n < kSets; ++n) store->commit(numbered_set(n));
  ASSERT_TRUE(listener.wait(kSets));
  EXPECT_EQ(stored_prefix(*store, kSets), kSets);
}

struct FaultCase {
  Operation operation;
  ErrorCode code;
};

class RocksdbStoreFault : public testing::TestWithParam<FaultCase> {};

TEST_P(RocksdbStoreFault, ReleasesNothingEverAgainAndSaysSoOnce) {
  TempDir dir;
  Listener listener;
  {
    FaultFileSystem disk;
    const auto store = must_open(dir.db(), listener, {.env = disk.env()});
    store->commit(put("a", "1", "m1"));
    ASSERT_TRUE(listener.wait(1));
    disk.fail(GetParam().operation, GetParam().code);
    WriteSet set = put("b", "2", "m2");
    std::atomic<bool> called = false;
    set.durable = [&](std::vector<Envelope>&) { called = true; };
    set.released = [&] { called = true; };
    store->commit(std::move(set));
    ASSERT_TRUE(listener.wait(2));
    store->commit(only("m3"));
    store->commit(put("c", "3", "m4"));
    store->close();
    EXPECT_FALSE(called);
  }
  EXPECT_THAT(listener.released(), ElementsAre("m1"));
  ASSERT_THAT(listener.failures(), SizeIs(1));
  EXPECT_EQ(listener.failures()[0].code, GetParam().code);
  EXPECT_THAT(listener.failures()[0].text(), testing::HasSubstr(dir.db()));
  Listener again;
  EXPECT_EQ(must_open(dir.db(), again)->get(Family::ledger, "a").value(), "1");
}

INSTANTIATE_TEST_SUITE_P(Faults, RocksdbStoreFault,
                         testing::Values(FaultCase{Operation::write, ErrorCode::io},
                                         FaultCase{Operation::write, ErrorCode::no_space},
                                         FaultCase{Operation::sync, ErrorCode::io},
                                         FaultCase{Operation::sync, ErrorCode::no_space}));

TEST(RocksdbStore, AFlushThatFailsStopsTheStoreToo) {
  TempDir dir;
  Listener listener;
  FaultFileSystem disk;
  const auto store = must_open(dir.db(), listener, {.env = disk.env()}, 64U << 10U);
  store->commit(put("a", "1", "m"));
  ASSERT_TRUE(listener.wait(1));
  disk.fail(Operation::sync, ErrorCode::io, Files::all, 50);
  for (std::uint64_t n = 0; listener.failures().empty(); ++n) {
    ASSERT_LT(n, 100000U);
    store->commit(numbered_set(n));
    ASSERT_TRUE(listener.wait(n + 2));
  }
  store->close();
  EXPECT_THAT(listener.failures(), SizeIs(1));
  EXPECT_EQ(listener.failures()[0].code, ErrorCode::io);
}

}  // namespace
}  // namespace troupe
