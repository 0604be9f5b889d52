// What opening a database says in each state that its directory can be in.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <fstream>

#include "unit/store_rocksdb/child.hpp"
#include "unit/store_rocksdb/support.hpp"

namespace troupe {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::filesystem::path> files(const std::string& db, const std::string& extension) {
  std::vector<std::filesystem::path> out;
  for (const auto& entry : std::filesystem::directory_iterator(db)) {
    if (entry.path().extension() == extension) out.push_back(entry.path());
  }
  return out;
}

void flip(const std::filesystem::path& file, std::uintmax_t at) {
  std::fstream f(file, std::ios::binary | std::ios::in | std::ios::out);
  f.seekg(static_cast<std::streamoff>(at));
  const int byte = f.get();
  f.seekp(static_cast<std::streamoff>(at));
  f.put(static_cast<char>(byte ^ 0x20));
}

// A database of 600 numbered sets with tables, which recovery makes of the first log, and a log.
void fill(const std::string& db) {
  for (std::uint64_t next = 0; next < 600;) {
    Listener listener;
    const auto store = must_open(db, listener);
    const std::uint64_t first = next;
    while (next < first + 300) store->commit(numbered_set(next++));
    ASSERT_TRUE(listener.wait(300));
    store->close();
  }
  ASSERT_THAT(files(db, ".sst"), Not(IsEmpty()));
}

TEST(RocksdbOpen, AnEmptyOrMissingDirectoryBecomesADatabase) {
  const TempDir dir;
  Listener listener;
  EXPECT_THAT(everything(*must_open(dir.path() + "/deep/down/", listener), Family::ledger), IsEmpty());
  std::filesystem::create_directory(dir.db());
  EXPECT_THAT(everything(*must_open(dir.db(), listener), Family::ledger), IsEmpty());
}

TEST(RocksdbOpen, NothingIsMadeWhenItMustExist) {
  const TempDir dir;
  StoreOptions options;
  options.path = dir.db();
  options.create_if_missing = false;
  EXPECT_EQ(open_error(options).code, ErrorCode::not_found);
  EXPECT_FALSE(std::filesystem::exists(dir.db()));
  std::filesystem::create_directory(dir.db());
  EXPECT_EQ(open_error(options).code, ErrorCode::not_found);
}

TEST(RocksdbOpen, AFileInItsPlaceIsRefused) {
  const TempDir dir;
  std::ofstream(dir.db()) << "not a directory";
  const Error error = open_error(dir.db());
  EXPECT_EQ(error.code, ErrorCode::invalid);
  EXPECT_EQ(error.object, dir.db());
}

TEST(RocksdbOpen, ANewerSchemaIsRefusedAndLeftAsItIs) {
  const TempDir dir;
  {
    Listener listener;
    const auto store = must_open(dir.db(), listener);
    WriteSet set = put("a", "1", "m");
    set.writes.put(Family::meta, kSchemaKey, std::to_string(kStoreSchemaVersion + 1));
    store->commit(std::move(set));
    ASSERT_TRUE(listener.wait(1));
  }
  const Error error = open_error(dir.db());
  EXPECT_EQ(error.code, ErrorCode::newer_schema);
  EXPECT_EQ(error.object, dir.db());
  EXPECT_THAT(error.remedy, HasSubstr("--rebuild-from-apiserver"));
  Listener listener;
  const auto store = must_open(dir.db(), listener, {.schema_version = kStoreSchemaVersion + 1});
  EXPECT_EQ(store->get(Family::ledger, "a").value(), "1");
}

TEST(RocksdbOpen, AnUnreadableSchemaVersionIsCorrupt) {
  const TempDir dir;
  {
    Listener listener;
    const auto store = must_open(dir.db(), listener);
    WriteSet set = only("m");
    set.writes.put(Family::meta, kSchemaKey, "one");
    store->commit(std::move(set));
    ASSERT_TRUE(listener.wait(1));
  }
  EXPECT_EQ(open_error(dir.db()).code, ErrorCode::corrupt);
}

TEST(RocksdbOpen, AFlippedByteInATableIsFoundByName) {
  const TempDir dir;
  fill(dir.db());
  const std::filesystem::path table = files(dir.db(), ".sst").front();
  const std::uintmax_t size = std::filesystem::file_size(table);
  for (const std::uintmax_t at : {std::uintmax_t{10}, size / 2, size - 200, size - 3}) {
    flip(table, at);
    const Error error = open_error(dir.db());
    EXPECT_EQ(error.code, ErrorCode::corrupt) << at;
    EXPECT_EQ(error.object, table.string()) << error.text();
    EXPECT_THAT(error.remedy, HasSubstr("--rebuild-from-apiserver"));
    flip(table, at);
  }
  Listener listener;
  EXPECT_EQ(stored_prefix(*must_open(dir.db(), listener), 600), 600U);
}

TEST(RocksdbOpen, ATableThatIsDamagedWhileOpenFailsTheScan) {
  const TempDir dir;
  fill(dir.db());
  Listener listener;
  const auto store = must_open(dir.db(), listener);
  for (const std::filesystem::path& table : files(dir.db(), ".sst")) flip(table, 100);
  const Result<void> scanned =
      store->scan(Family::ledger, {}, [](std::string_view, std::string_view) { return true; });
  ASSERT_FALSE(scanned);
  EXPECT_EQ(scanned.error().code, ErrorCode::corrupt);
  EXPECT_THAT(scanned.error().object, HasSubstr(".sst"));
  EXPECT_THAT(scanned.error().remedy, HasSubstr("--rebuild-from-apiserver"));
}

TEST(RocksdbOpen, AMissingFileIsCorruptAndNotStartedOver) {
  for (const char* gone : {"CURRENT", "MANIFEST", ".sst"}) {
    const TempDir dir;
    fill(dir.db());
    for (const auto& entry : std::filesystem::directory_iterator(dir.db())) {
      if (entry.path().filename().string().find(gone) == std::string::npos) continue;
      std::filesystem::remove(entry.path());
      break;
    }
    const Error error = open_error(dir.db());
    EXPECT_EQ(error.code, ErrorCode::corrupt) << gone << ": " << error.text();
    EXPECT_THAT(error.text(), HasSubstr(dir.db()));
    EXPECT_THAT(error.remedy, HasSubstr("--rebuild-from-apiserver"));
  }
}

TEST(RocksdbOpen, RebuildingSetsTheOldDatabaseAside) {
  const TempDir dir;
  fill(dir.db());
  flip(files(dir.db(), ".sst").front(), 10);
  StoreOptions options;
  options.path = dir.db();
  options.discard_and_rebuild = true;
  for (int n = 1; n <= 2; ++n) {
    const Result<std::unique_ptr<Store>> store = open_store(options, {});
    ASSERT_TRUE(store) << store.error().text();
    EXPECT_THAT(everything(**store, Family::ledger), IsEmpty());
    EXPECT_TRUE(std::filesystem::exists(dir.db() + ".set-aside-" + std::to_string(n) + "/CURRENT"));
  }
  EXPECT_EQ(open_error(dir.db() + ".set-aside-1").code, ErrorCode::corrupt);
}

TEST(RocksdbOpen, RebuildingAnEmptyDirectorySetsNothingAside) {
  const TempDir dir;
  StoreOptions options;
  options.path = dir.db();
  options.discard_and_rebuild = true;
  ASSERT_TRUE(open_store(options, {}));
  EXPECT_FALSE(std::filesystem::exists(dir.db() + ".set-aside-1"));
}

TEST(RocksdbOpen, ASecondProcessIsRefusedWhateverItWants) {
  const TempDir dir;
  Listener listener;
  const auto store = must_open(dir.db(), listener);
  Child child({"--open", dir.db()});
  const std::string said = child.read_all();
  EXPECT_THAT(said, HasSubstr(std::to_string(static_cast<int>(ErrorCode::conflict)) + " another process"));
  EXPECT_THAT(said, HasSubstr(dir.db()));

  EXPECT_EQ(open_error(dir.db()).code, ErrorCode::conflict);
  StoreOptions options;
  options.path = dir.db();
  options.discard_and_rebuild = true;
  EXPECT_EQ(open_error(options).code, ErrorCode::conflict);
  store->commit(put("a", "1", "m"));
  EXPECT_TRUE(listener.wait(1));
  EXPECT_THAT(listener.failures(), IsEmpty());
}

std::string permission_start() {
  return std::to_string(static_cast<int>(ErrorCode::permission)) + " ";
}

TEST(RocksdbOpen, WithoutPermissionItSaysSo) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to become somebody else";
  const TempDir dir;
  {
    Listener listener;
    must_open(dir.db(), listener);
  }
  chmod(dir.path().c_str(), 0755);
  for (const int mode : {0755, 0000}) {  // may read it, may not even enter it
    chmod(dir.db().c_str(), static_cast<mode_t>(mode));
    Child child({"--open", dir.db(), "65534"});
    const std::string said = child.read_all();
    EXPECT_TRUE(said.starts_with(permission_start())) << said;
    EXPECT_THAT(said, HasSubstr(dir.db()));
  }
  Child child({"--open", dir.path() + "/other", "65534"});  // may not create it
  const std::string said = child.read_all();
  EXPECT_TRUE(said.starts_with(permission_start())) << said;
}

// A tmpfs of the test's own.
class Mount {
 public:
  Mount(const std::string& at, const char* options) : at_(at) {
    std::filesystem::create_directory(at);
    mounted_ = mount("none", at.c_str(), "tmpfs", 0, options) == 0;
  }
  ~Mount() {
    if (mounted_) umount2(at_.c_str(), MNT_DETACH);
  }
  Mount(const Mount&) = delete;
  Mount& operator=(const Mount&) = delete;
  [[nodiscard]] bool mounted() const { return mounted_; }
  bool read_only() { return mount("none", at_.c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr) == 0; }

 private:
  std::string at_;
  bool mounted_ = false;
};

TEST(RocksdbOpen, OnAReadOnlyDiskItSaysSo) {
  const TempDir dir;
  Mount disk(dir.path() + "/disk", "size=64m");
  if (!disk.mounted()) GTEST_SKIP() << "may not mount";
  {
    Listener listener;
    must_open(dir.path() + "/disk/db", listener);
  }
  ASSERT_TRUE(disk.read_only());
  const Error error = open_error(dir.path() + "/disk/db");
  EXPECT_EQ(error.code, ErrorCode::permission) << error.text();
  EXPECT_THAT(error.text(), HasSubstr("/disk/db"));
}

TEST(RocksdbOpen, OnAFullDiskItSaysSo) {
  const TempDir dir;
  Mount disk(dir.path() + "/disk", "size=256k");
  if (!disk.mounted()) GTEST_SKIP() << "may not mount";
  std::ofstream(dir.path() + "/disk/other") << std::string(1U << 20U, 'x');
  const Error error = open_error(dir.path() + "/disk/db");
  EXPECT_EQ(error.code, ErrorCode::no_space) << error.text();
  EXPECT_THAT(error.remedy, HasSubstr("free space"));
}

}  // namespace
}  // namespace troupe
