// The disk loses power at any point: whatever was released is there afterwards.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "unit/store_rocksdb/support.hpp"

namespace troupe {
namespace {

using Unsynced = FaultFileSystem::Unsynced;

struct Outcome {
  std::uint64_t released = 0;
  std::uint64_t stored = 0;
};

// Opens, writes numbered sets until the disk loses power after `operations` changes, and opens again on what
// is left; `rounds` times over on the same directory, with the power failing in recovery too.
Outcome crash_run(std::uint64_t seed, Unsynced unsynced, bool skip_sync) {
  std::mt19937_64 random(seed);
  const TempDir dir;
  constexpr std::size_t kSmallBuffer = 64U << 10U;  // flushes and compactions happen within a run
  constexpr std::uint64_t kMostSets = 1500;
  Outcome outcome;
  std::uint64_t next = 0;
  for (int round = 0; round < 3; ++round) {
    FaultFileSystem disk;
    disk.crash_after(10 + random() % 900, unsynced, random());
    Listener listener;
    StoreOptions options;
    options.path = dir.db();
    options.write_buffer_bytes = kSmallBuffer;
    const StoreTestKnobs knobs{.env = disk.env(), .skip_sync = skip_sync};
    Result<std::unique_ptr<Store>> store = open_store(options, listener.hooks(), knobs);
    if (!store) {
      EXPECT_TRUE(disk.crashed()) << store.error().text();
    } else {
      const std::uint64_t first = next;
      std::uint64_t in_flight = 1 + random() % 40;
      while (!disk.crashed() && next < first + kMostSets) {
        for (std::uint64_t i = 0; i < in_flight; ++i) (*store)->commit(numbered_set(next++));
        EXPECT_TRUE(listener.wait(next - first));
        in_flight = 1 + random() % 40;
      }
      disk.crash(unsynced, random());
      store->reset();
    }
    if (!listener.released().empty()) {
      outcome.released =
          std::max<std::uint64_t>(outcome.released, std::stoull(listener.released().back()) + 1);
    }
    Listener after;
    const std::unique_ptr<Store> left = must_open(dir.db(), after, {}, kSmallBuffer);
    outcome.stored = stored_prefix(*left, next);
    if (outcome.stored < outcome.released) return outcome;
    next = outcome.stored;
  }
  return outcome;
}

TEST(RocksdbCrash, NothingReleasedIsLostWhenUnsyncedBytesVanish) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const Outcome outcome = crash_run(seed, Unsynced::lost, false);
    ASSERT_GE(outcome.stored, outcome.released) << "seed " << seed;
  }
}

TEST(RocksdbCrash, NothingReleasedIsLostWhenUnsyncedBytesAreTorn) {
  for (std::uint64_t seed = 101; seed <= 105; ++seed) {
    const Outcome outcome = crash_run(seed, Unsynced::torn, false);
    ASSERT_GE(outcome.stored, outcome.released) << "seed " << seed;
  }
}

TEST(RocksdbCrash, AMissingSyncIsNoticed) {
  int lost = 0;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    const Outcome outcome = crash_run(seed, Unsynced::lost, true);
    if (outcome.stored < outcome.released) ++lost;
  }
  EXPECT_GT(lost, 0);
}

}  // namespace
}  // namespace troupe
