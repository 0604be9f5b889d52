// A process that is killed at any moment: whatever it had released is there when the next one opens the
// store.
#include <gtest/gtest.h>

#include <random>

#include "unit/store_rocksdb/child.hpp"
#include "unit/store_rocksdb/support.hpp"

namespace troupe {
namespace {

TEST(RocksdbKill, WhatAKilledProcessReleasedIsThere) {
  const TempDir dir;
  std::mt19937_64 random(7);
  std::uint64_t stored = 0;
  for (int round = 0; round < 5; ++round) {
    Child child({"--write", dir.db()});
    // The child reports as it goes; it is killed in the middle of whatever it does when enough has come.
    const std::size_t enough = 1 + random() % 30000;
    std::string output;
    while (output.size() < enough) {
      const std::string some = child.read_some();
      ASSERT_FALSE(some.empty()) << "the child ended by itself";
      output += some;
    }
    child.kill_now();
    output += child.read_all();
    output.resize(output.rfind('\n') + 1);  // a cut line was not released whole
    ASSERT_FALSE(output.empty());
    const std::size_t line = output.rfind('\n', output.size() - 2) + 1;
    const std::uint64_t released = std::stoull(output.substr(line)) + 1;

    Listener listener;
    const std::unique_ptr<Store> store = must_open(dir.db(), listener);
    stored = stored_prefix(*store, released + 1000);
    ASSERT_GE(stored, released) << "round " << round;
  }
  EXPECT_GT(stored, 0U);
}

}  // namespace
}  // namespace troupe
