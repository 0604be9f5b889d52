#include "store/writes.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <vector>

namespace troupe {
namespace {

struct Plain {
  std::uint8_t family = 0;
  bool erase = false;
  std::string key;
  std::string value;
};

std::vector<Plain> arbitrary_writes() {
  return *rc::gen::container<std::vector<Plain>>(rc::gen::build<Plain>(
      rc::gen::set(&Plain::family, rc::gen::inRange<std::uint8_t>(0, 3)), rc::gen::set(&Plain::erase),
      rc::gen::set(&Plain::key), rc::gen::set(&Plain::value)));
}

void add(Writes& writes, const std::vector<Plain>& plain) {
  for (const Plain& p : plain) {
    if (p.erase) {
      writes.erase(static_cast<Family>(p.family), p.key);
    } else {
      writes.put(static_cast<Family>(p.family), p.key, p.value);
    }
  }
}

void expect_same(const Writes& writes, const std::vector<Plain>& plain) {
  RC_ASSERT(writes.size() == plain.size());
  std::size_t i = 0;
  for (const Write w : writes) {
    RC_ASSERT(i < plain.size());
    const Plain& p = plain[i++];
    RC_ASSERT(static_cast<std::uint8_t>(w.family) == p.family);
    RC_ASSERT(w.erase == p.erase);
    RC_ASSERT(w.key == p.key);
    RC_ASSERT(w.value == (p.erase ? std::string() : p.value));
  }
  RC_ASSERT(i == plain.size());
}

TEST(Writes, GivesBackWhatWasAddedInOrder) {
  EXPECT_TRUE(rc::check([] {
    const auto plain = arbitrary_writes();
    Writes writes;
    add(writes, plain);
    expect_same(writes, plain);
  }));
}

TEST(Writes, AppendConcatenatesAndLeavesTheOtherEmpty) {
  EXPECT_TRUE(rc::check([] {
    const auto first = arbitrary_writes();
    const auto second = arbitrary_writes();
    Writes a;
    Writes b;
    add(a, first);
    add(b, second);
    Writes c = a;
    c.append(b);
    a.append(std::move(b));
    RC_ASSERT(b.empty());  // NOLINT(bugprone-use-after-move): specified
    RC_ASSERT(b.begin() == b.end());
    auto both = first;
    both.insert(both.end(), second.begin(), second.end());
    expect_same(a, both);
    expect_same(c, both);
  }));
}

TEST(Writes, ClearForgets) {
  Writes writes;
  EXPECT_EQ(writes.begin(), writes.end());
  writes.put(Family::meta, "k", "v");
  writes.clear();
  EXPECT_TRUE(writes.empty());
  EXPECT_EQ(writes.begin(), writes.end());
}

}  // namespace
}  // namespace troupe
