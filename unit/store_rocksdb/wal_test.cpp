// What a cut or a flipped bit anywhere in the write-ahead log does.
#include "store/rocksdb_wal.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <random>

#include "unit/store_rocksdb/support.hpp"

namespace troupe {
namespace {

std::string slurp(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void spill(const std::filesystem::path& file, const std::string& bytes) {
  std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
}

WalSummary summary_of(std::string_view bytes) {
  WalCheck check;
  for (std::size_t at = 0; at < bytes.size(); at += kWalBlockBytes) {
    const std::string_view block = bytes.substr(at, kWalBlockBytes);
    check.feed({reinterpret_cast<const std::uint8_t*>(block.data()), block.size()});
  }
  return check.summary();
}

// The only log of the database that has records.
std::filesystem::path only_log(const std::string& db) {
  std::vector<std::filesystem::path> logs;
  for (const auto& entry : std::filesystem::directory_iterator(db)) {
    if (entry.path().extension() == ".log" && entry.file_size() > 0) logs.push_back(entry.path());
  }
  EXPECT_EQ(logs.size(), 1U);
  return logs.front();
}

// A database whose log holds `sets` numbered sets, one record each, and a copy of it to damage.
class WalDamage : public testing::Test {
 protected:
  static constexpr std::uint64_t kSets = 150;  // several blocks

  void SetUp() override {
    Listener listener;
    const auto store = must_open(dir_.db(), listener);
    for (std::uint64_t n = 0; n < kSets; ++n) {
      WriteSet set = numbered_set(n);
      if (n % 50 == 20) set.writes.put(Family::ledger, "large", std::string(100000, 'x'));  // fragments
      if (n % 50 == 21) set.writes.erase(Family::ledger, "large");
      store->commit(std::move(set));
      ASSERT_TRUE(listener.wait(n + 1));
    }
    store->close();
  }

  // The database with its log replaced.
  std::string with_log(const std::string& bytes) {
    const std::string copy = dir_.path() + "/copy";
    std::filesystem::remove_all(copy);
    std::filesystem::copy(dir_.db(), copy);
    spill(only_log(copy), bytes);
    return copy;
  }

  std::string log() const { return slurp(only_log(dir_.db())); }

 private:
  TempDir dir_;
};

TEST_F(WalDamage, ASoundLogHasEveryRecord) {
  const WalSummary summary = summary_of(log());
  EXPECT_FALSE(summary.damaged_at);
  EXPECT_FALSE(summary.torn_at);
  EXPECT_EQ(summary.records, kSets + 1);  // and the schema version
}

TEST_F(WalDamage, ACutIsATornTailAndNeverDamage) {
  const std::string whole = log();
  std::uint64_t records = kSets + 1;
  for (std::size_t size = whole.size(); size-- > 0;) {
    if (size % 7 != 0 && size + 100 < whole.size()) continue;
    const WalSummary summary = summary_of(std::string_view(whole).substr(0, size));
    ASSERT_FALSE(summary.damaged_at) << size;
    ASSERT_LE(summary.records, records) << size;
    records = summary.records;
  }
}

TEST_F(WalDamage, ACutLogOpensWithTheRecordsBeforeTheCut) {
  const std::string whole = log();
  std::mt19937_64 random(3);
  for (int i = 0; i < 12; ++i) {
    const std::size_t size = i == 0 ? whole.size() - 1 : random() % whole.size();
    const std::uint64_t records = summary_of(std::string_view(whole).substr(0, size)).records;
    Listener listener;
    const auto store = must_open(with_log(whole.substr(0, size)), listener);
    const std::map<std::string, std::string> meta = everything(*store, Family::meta);
    const std::uint64_t sets = meta.contains("last") ? decode_u64(meta.at("last")) + 1 : 0;
    EXPECT_EQ(sets, records == 0 ? 0 : records - 1) << size;
  }
}

TEST_F(WalDamage, AFlippedByteShowsUnlessItIsInTheLastRecord) {
  const std::string whole = log();
  const std::size_t last = *summary_of(std::string_view(whole).substr(0, whole.size() - 1)).torn_at;
  for (std::size_t at = 0; at < whole.size(); at += at + 300 < whole.size() ? 211 : 1) {
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ 0x10);
    const WalSummary summary = summary_of(flipped);
    if (at < last) {
      ASSERT_TRUE(summary.damaged_at || at % kWalBlockBytes > kWalBlockBytes - 7) << at;
      if (summary.damaged_at) {
        ASSERT_LE(*summary.damaged_at, at);
      }
    } else {
      ASSERT_FALSE(summary.damaged_at) << at;
      ASSERT_EQ(summary.torn_at, last) << at;
    }
  }
}

TEST_F(WalDamage, ADamagedLogIsRefusedByNameAndLeftAsItIs) {
  std::string bytes = log();
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  const std::string copy = with_log(bytes);
  for (int attempt = 0; attempt < 2; ++attempt) {
    const Error error = open_error(copy);
    EXPECT_EQ(error.code, ErrorCode::corrupt);
    EXPECT_EQ(error.object, only_log(copy).string());
    EXPECT_THAT(error.remedy, testing::HasSubstr("--rebuild-from-apiserver"));
  }
  EXPECT_EQ(slurp(only_log(copy)), bytes);
}

TEST_F(WalDamage, ABlankedSectorShows) {
  std::string bytes = log();
  const std::size_t sector = bytes.size() / 3 / 512 * 512;
  std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(sector), 512, '\0');
  EXPECT_TRUE(summary_of(bytes).damaged_at);
}

}  // namespace
}  // namespace troupe
