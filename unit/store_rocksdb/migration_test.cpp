#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "store/rocksdb_database.hpp"
#include "unit/store_rocksdb/support.hpp"

namespace troupe {
namespace {

void write(const std::string& path, const Writes& writes, const StoreTestKnobs& knobs = {}) {
  Listener listener;
  const auto store = must_open(path, listener, knobs);
  WriteSet set;
  set.writes = writes;
  set.messages.push_back(message_to("done"));
  store->commit(std::move(set));
  ASSERT_TRUE(listener.wait(1));
}

std::string schema_of(const std::string& path, const StoreTestKnobs& knobs = {}) {
  Listener listener;
  return must_open(path, listener, knobs)->get(Family::meta, kSchemaKey).value();
}

TEST(Migration, AFreshDatabaseHasTheCurrentVersion) {
  const TempDir dir;
  EXPECT_EQ(schema_of(dir.db()), std::to_string(kStoreSchemaVersion));
}

TEST(Migration, ADatabaseWithoutAVersionIsNumberedAndKeepsItsData) {
  const TempDir dir;
  Writes writes;
  writes.erase(Family::meta, kSchemaKey);
  writes.put(Family::ledger, "a", "1");
  write(dir.db(), writes);
  EXPECT_EQ(schema_of(dir.db()), std::to_string(kStoreSchemaVersion));
  Listener listener;
  EXPECT_EQ(must_open(dir.db(), listener)->get(Family::ledger, "a").value(), "1");
}

// Version 1 -> 2: ledger keys get a prefix. 2 -> 3: counts them.
Result<void> prefix_keys(const Database& before, Writes& out) {
  return before.scan(Family::ledger, {}, [&](std::string_view key, std::string_view value) {
    out.erase(Family::ledger, key);
    out.put(Family::ledger, "node/" + std::string(key), value);
    return true;
  });
}
Result<void> count_keys(const Database& before, Writes& out) {
  std::uint64_t n = 0;
  const Result<void> scanned = before.scan(Family::ledger, "node/", [&](std::string_view, std::string_view) {
    ++n;
    return true;
  });
  out.put(Family::meta, "count", std::to_string(n));
  return scanned;
}
Result<void> refuse(const Database& before, Writes& out) {
  out.put(Family::meta, "half", "done");
  return fail({ErrorCode::corrupt, "cannot", before.path(), {}, {}});
}
constexpr std::array kSteps = {MigrationStep{1, prefix_keys}, MigrationStep{2, count_keys}};
constexpr std::array kBroken = {MigrationStep{1, prefix_keys}, MigrationStep{2, refuse}};

TEST(Migration, StepsRunInOrderFromTheVersionFound) {
  const TempDir dir;
  Writes writes;
  writes.put(Family::ledger, "a", "1");
  writes.put(Family::ledger, "b", "2");
  write(dir.db(), writes);
  const StoreTestKnobs third{.schema_version = 3, .migrations = kSteps};
  Listener listener;
  {
    const auto store = must_open(dir.db(), listener, third);
    EXPECT_EQ(everything(*store, Family::ledger),
              (std::map<std::string, std::string>{{"node/a", "1"}, {"node/b", "2"}}));
    EXPECT_EQ(store->get(Family::meta, "count").value(), "2");
  }
  EXPECT_EQ(schema_of(dir.db(), third), "3");
}

TEST(Migration, AStepThatFailsChangesNothingAndCanBeRunAgain) {
  const TempDir dir;
  Writes writes;
  writes.put(Family::ledger, "a", "1");
  write(dir.db(), writes);
  EXPECT_EQ(open_error(dir.db(), {.schema_version = 3, .migrations = kBroken}).code, ErrorCode::corrupt);
  // The first step is done, nothing of the second.
  const StoreTestKnobs second{.schema_version = 2, .migrations = kSteps};
  EXPECT_EQ(schema_of(dir.db(), second), "2");
  Listener listener;
  const auto store = must_open(dir.db(), listener, {.schema_version = 3, .migrations = kSteps});
  EXPECT_EQ(store->get(Family::meta, "half").error().code, ErrorCode::not_found);
  EXPECT_EQ(store->get(Family::meta, "count").value(), "1");
}

TEST(Migration, AVersionWithoutAStepIsAnError) {
  const TempDir dir;
  write(dir.db(), {});
  const Error error = open_error(dir.db(), {.schema_version = 2, .migrations = {}});
  EXPECT_EQ(error.code, ErrorCode::invalid);
  EXPECT_THAT(error.text(), testing::HasSubstr("schema 1"));
}

TEST(Migration, ACrashInAMigrationLeavesOneVersionOrTheNext) {
  for (std::uint64_t operations = 1; operations < 120; operations += 2) {
    const TempDir dir;
    Writes writes;
    writes.put(Family::ledger, "a", "1");
    write(dir.db(), writes);
    FaultFileSystem disk;
    disk.crash_after(operations);
    StoreOptions options;
    options.path = dir.db();
    const bool opened =
        open_store(options, {}, {.env = disk.env(), .schema_version = 3, .migrations = kSteps}).has_value();
    disk.crash();
    Listener listener;
    const auto store = must_open(dir.db(), listener, {.schema_version = 3, .migrations = kSteps});
    EXPECT_EQ(everything(*store, Family::ledger), (std::map<std::string, std::string>{{"node/a", "1"}}));
    if (opened) break;  // the crash comes after the migration from here on
  }
}

}  // namespace
}  // namespace troupe
