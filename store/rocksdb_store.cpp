// The Store on RocksDB: opening, and the writer thread that groups commits.
#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <iterator>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "store/rocksdb_database.hpp"
#include "store/rocksdb_open.hpp"

namespace troupe {
namespace {

namespace stdfs = std::filesystem;

class RocksStore final : public Store {
 public:
  RocksStore(std::unique_ptr<Database> database, StoreHooks hooks, bool sync)
      : database_(std::move(database)), hooks_(std::move(hooks)), sync_(sync), writer_([this] { run(); }) {}
  ~RocksStore() override { close(); }
  RocksStore(const RocksStore&) = delete;
  RocksStore& operator=(const RocksStore&) = delete;

  void commit(WriteSet set) override {
    bool wake = false;
    {
      const std::lock_guard lock(mutex_);
      if (closing_) return;
      queue_.push_back(std::move(set));
      wake = std::exchange(asleep_, false);
    }
    if (wake) wake_.notify_one();
  }

  Result<void> scan(Family family, std::string_view prefix,
                    const std::function<bool(std::string_view, std::string_view)>& visit) override {
    return database_->scan(family, prefix, visit);
  }

  Result<std::string> get(Family family, std::string_view key) override {
    return database_->get(family, key);
  }

  [[nodiscard]] StoreStats stats() const override {
    return {commits_.load(std::memory_order_relaxed), write_sets_.load(std::memory_order_relaxed),
            operations_.load(std::memory_order_relaxed), wal_bytes_.load(std::memory_order_relaxed)};
  }

  void close() override {
    {
      const std::lock_guard lock(mutex_);
      closing_ = true;
    }
    wake_.notify_one();
    if (writer_.joinable()) writer_.join();
  }

 private:
  void run() {
    std::vector<WriteSet> group;
    bool failed = false;
    while (take(group)) {
      if (!failed) failed = !commit_group(group);
      group.clear();
    }
  }

  // Swaps everything queued into `group`, which is empty; false: closing, and nothing is left.
  bool take(std::vector<WriteSet>& group) {
    std::unique_lock lock(mutex_);
    while (queue_.empty()) {
      if (closing_) return false;
      asleep_ = true;
      wake_.wait(lock);
    }
    asleep_ = false;
    queue_.swap(group);
    return true;
  }

  // False: the write failed; nothing was released.
  bool commit_group(std::vector<WriteSet>& group) {
    for (const WriteSet& set : group) database_->add(set.writes);
    if (const std::size_t operations = database_->pending_operations(); operations > 0) {
      const std::size_t bytes = database_->pending_bytes();
      if (const Result<void> written = database_->commit(sync_); !written) {
        if (hooks_.failed) hooks_.failed(written.error());
        return false;
      }
      count(commits_, 1);
      count(operations_, operations);
      count(wal_bytes_, bytes);
    }
    count(write_sets_, group.size());

    release(group);
    return true;
  }

  void release(std::vector<WriteSet>& group) {
    std::size_t messages = 0;
    for (WriteSet& set : group) {
      if (set.durable) set.durable(set.messages);
      messages += set.messages.size();
    }
    if (messages > 0 && hooks_.release) {
      std::vector<Envelope> released = std::move(group.front().messages);
      released.reserve(messages);
      for (auto set = group.begin() + 1; set != group.end(); ++set) {
        released.insert(released.end(), std::make_move_iterator(set->messages.begin()),
                        std::make_move_iterator(set->messages.end()));
      }
      hooks_.release(std::move(released));
    }
    for (const WriteSet& set : group) {
      if (set.released) set.released();
    }
  }

  // Only the writer thread adds.
  static void count(std::atomic<std::uint64_t>& counter, std::uint64_t n) {
    counter.store(counter.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }

  const std::unique_ptr<Database> database_;
  const StoreHooks hooks_;
  const bool sync_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<WriteSet> queue_;
  bool asleep_ = false;  // the writer waits for a wake-up
  bool closing_ = false;
  std::atomic<std::uint64_t> commits_ = 0;
  std::atomic<std::uint64_t> write_sets_ = 0;
  std::atomic<std::uint64_t> operations_ = 0;
  std::atomic<std::uint64_t> wal_bytes_ = 0;
  std::thread writer_;  // last: runs only once everything else is there
};

// RocksDB's lock on the directory, for what must happen before it opens the database itself.
class DirectoryLock {
 public:
  static Result<DirectoryLock> take(rocksdb::FileSystem& fs, const std::string& path) {
    rocksdb::FileLock* lock = nullptr;
    const rocksdb::IOStatus status = fs.LockFile(path + "/LOCK", {}, &lock, nullptr);
    if (!status.ok()) return fail(to_error(status, "cannot lock the database", path));
    return DirectoryLock(fs, lock);
  }
  DirectoryLock(DirectoryLock&& other) noexcept
      : fs_(other.fs_), lock_(std::exchange(other.lock_, nullptr)) {}
  DirectoryLock& operator=(DirectoryLock&&) = delete;
  ~DirectoryLock() {
    if (lock_ != nullptr) fs_->UnlockFile(lock_, {}, nullptr).PermitUncheckedError();
  }

 private:
  DirectoryLock(rocksdb::FileSystem& fs, rocksdb::FileLock* lock) : fs_(&fs), lock_(lock) {}

  rocksdb::FileSystem* fs_;
  rocksdb::FileLock* lock_;
};

Error os_error(const std::error_code& error, std::string what, const std::string& path) {
  if (error == std::errc::permission_denied || error == std::errc::operation_not_permitted ||
      error == std::errc::read_only_file_system) {
    return {ErrorCode::permission, std::move(what), path, error.message(),
            "give this user read and write access to " + path};
  }
  if (error == std::errc::no_space_on_device) {
    return {ErrorCode::no_space, std::move(what), path, error.message(),
            "free space on the disk of " + path + " and start again"};
  }
  return {ErrorCode::io, std::move(what), path, error.message(), "check the path and its disk"};
}

Result<void> prepare_directory(const StoreOptions& options) {
  std::error_code error;
  const stdfs::file_status status = stdfs::status(options.path, error);
  if (stdfs::is_directory(status)) return {};
  if (stdfs::exists(status)) {
    return fail({ErrorCode::invalid,
                 "the database path is not a directory",
                 options.path,
                 {},
                 "name a directory, or a path that does not exist yet"});
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    return fail(os_error(error, "cannot reach the database directory", options.path));
  }
  if (!options.create_if_missing) {
    return fail({ErrorCode::not_found, "there is no database", options.path, {}, "check the path"});
  }
  error.clear();
  stdfs::create_directories(options.path, error);
  if (error) return fail(os_error(error, "cannot create the database directory", options.path));
  return {};
}

// The first free name <path>.set-aside-<n>.
std::string set_aside_name(const std::string& path) {
  for (int n = 1;; ++n) {
    std::string name = path + ".set-aside-" + std::to_string(n);
    std::error_code error;
    if (!stdfs::exists(stdfs::symlink_status(name, error))) return name;
  }
}

// Renames the directory if anything is in it, and makes an empty one in its place.
Result<void> set_aside(rocksdb::FileSystem& fs, const std::string& path) {
  const Result<DirectoryLock> lock = DirectoryLock::take(fs, path);
  if (!lock) return fail(lock.error());
  std::vector<std::string> names;
  rocksdb::IOStatus status = fs.GetChildren(path, {}, &names, nullptr);
  const bool used = std::any_of(names.begin(), names.end(), [](const std::string& n) { return n != "LOCK"; });
  if (status.ok() && !used) return {};

  if (status.ok()) status = fs.RenameFile(path, set_aside_name(path), {}, nullptr);
  if (status.ok()) status = fs.CreateDir(path, {}, nullptr);
  std::unique_ptr<rocksdb::FSDirectory> parent;
  const std::string above = stdfs::absolute(path).parent_path().string();
  if (status.ok()) status = fs.NewDirectory(above, {}, &parent, nullptr);
  if (status.ok()) status = parent->Fsync({}, nullptr);
  if (status.ok()) return {};
  Error error = to_error(status, "cannot set the database directory aside", path);
  error.remedy += "; if it is a mount point, use a directory below it";
  return fail(std::move(error));
}

}  // namespace

Result<std::unique_ptr<Store>> open_store(const StoreOptions& given, StoreHooks hooks,
                                          const StoreTestKnobs& knobs) {
  StoreOptions options = given;
  while (options.path.size() > 1 && options.path.back() == '/') options.path.pop_back();
  if (Result<void> ready = prepare_directory(options); !ready) return fail(std::move(ready.error()));
  rocksdb::FileSystem& fs = *(knobs.env ? knobs.env.get() : rocksdb::Env::Default())->GetFileSystem();
  if (options.discard_and_rebuild) {
    if (Result<void> aside = set_aside(fs, options.path); !aside) return fail(std::move(aside.error()));
  }
  bool exists = false;
  {
    const Result<DirectoryLock> lock = DirectoryLock::take(fs, options.path);
    if (!lock) return fail(lock.error());
    const Result<bool> checked = Database::check(options, knobs.env);
    if (!checked) return fail(checked.error());
    exists = *checked;
  }
  if (!exists && !options.create_if_missing) {
    return fail({ErrorCode::not_found, "there is no database", options.path, {}, "check the path"});
  }
  Result<std::unique_ptr<Database>> database = Database::open(options, knobs.env);
  if (!database) return fail(std::move(database.error()));
  Result<void> migrated = migrate(**database, !exists, knobs.schema_version, knobs.migrations);
  if (!migrated) return fail(std::move(migrated.error()));
  return std::make_unique<RocksStore>(std::move(*database), std::move(hooks), !knobs.skip_sync);
}

Result<std::unique_ptr<Store>> open_store(const StoreOptions& options, StoreHooks hooks) {
  return open_store(options, std::move(hooks), StoreTestKnobs{});
}

}  // namespace troupe
