#include "store/testing/fault_file_system.hpp"

#include <rocksdb/env.h>
#include <rocksdb/file_system.h>
#include <rocksdb/system_clock.h>

#include <algorithm>
#include <condition_variable>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe {
namespace {

using rocksdb::FileOptions;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

constexpr std::string_view kKept =
    ".kept-until-synced-";  // a deleted or replaced file that a crash brings back
constexpr std::uint64_t kSector = 512;

std::string directory_of(const std::string& file) {
  return std::filesystem::path(file).parent_path().string();
}

// After a failed flush RocksDB sleeps for a second; tests have no time for it.
class ImpatientClock final : public rocksdb::SystemClockWrapper {
 public:
  ImpatientClock() : SystemClockWrapper(rocksdb::SystemClock::Default()) {}
  const char* Name() const override { return "ImpatientClock"; }
  void SleepForMicroseconds(int micros) override {
    SystemClockWrapper::SleepForMicroseconds(std::min(micros, 1000));
  }
};

class DiskEnv final : public rocksdb::EnvWrapper {
 public:
  explicit DiskEnv(const std::shared_ptr<rocksdb::FileSystem>& disk)
      : EnvWrapper(rocksdb::NewCompositeEnv(disk)) {
    file_system_ = disk;
    system_clock_ = std::make_shared<ImpatientClock>();
  }
  const char* Name() const override { return "FaultFileSystemEnv"; }
};

IOStatus powered_off() {
  return IOStatus::IOError("the disk has lost power");
}

}  // namespace

class FaultFileSystem::Disk : public rocksdb::FileSystemWrapper {
 public:
  Disk() : FileSystemWrapper(rocksdb::FileSystem::Default()) {}
  const char* Name() const override { return "FaultFileSystem"; }

  // What a file holds, and how much of it a crash keeps.
  struct Inode {
    std::string name;  // where it is
    std::uint64_t size = 0;
    std::uint64_t durable = 0;
  };

  class File final : public rocksdb::FSWritableFileOwnerWrapper {
   public:
    File(std::unique_ptr<rocksdb::FSWritableFile>&& base, std::shared_ptr<Inode> inode, Disk& disk)
        : FSWritableFileOwnerWrapper(std::move(base)),
          inode_(std::move(inode)),
          disk_(&disk),
          wal_(inode_->name.ends_with(".log")) {}

    IOStatus Append(const Slice& data, const IOOptions& options, IODebugContext* debug) override {
      std::unique_lock lock(disk_->mutex_);
      IOStatus status = disk_->enter(lock, Operation::write, wal_);
      if (status.ok()) status = target()->Append(data, options, debug);
      if (status.ok()) inode_->size += data.size();
      return status;
    }
    IOStatus Append(const Slice& data, const IOOptions& options, const rocksdb::DataVerificationInfo&,
                    IODebugContext* debug) override {
      return Append(data, options, debug);
    }
    IOStatus PositionedAppend(const Slice&, std::uint64_t, const IOOptions&, IODebugContext*) override {
      return IOStatus::NotSupported("PositionedAppend");
    }
    IOStatus Truncate(std::uint64_t size, const IOOptions& options, IODebugContext* debug) override {
      const std::lock_guard lock(disk_->mutex_);
      if (disk_->off_) return powered_off();
      IOStatus status = target()->Truncate(size, options, debug);
      if (status.ok()) inode_->size = size;
      return status;
    }
    IOStatus Sync(const IOOptions&, IODebugContext*) override {
      std::unique_lock lock(disk_->mutex_);
      IOStatus status = disk_->enter(lock, Operation::sync, wal_);
      if (status.ok()) inode_->durable = inode_->size;
      return status;
    }
    IOStatus Fsync(const IOOptions& options, IODebugContext* debug) override { return Sync(options, debug); }
    IOStatus RangeSync(std::uint64_t, std::uint64_t, const IOOptions&, IODebugContext*) override {
      return IOStatus::OK();  // promises nothing
    }

    // Nothing is allocated ahead: the file would be cut to its own idea of its size when it is closed, after
    // a crash too.
    void SetPreallocationBlockSize(std::size_t) override {}
    void PrepareWrite(std::size_t, std::size_t, const IOOptions&, IODebugContext*) override {}
    IOStatus Allocate(std::uint64_t, std::uint64_t, const IOOptions&, IODebugContext*) override {
      return IOStatus::OK();
    }

   private:
    std::shared_ptr<Inode> inode_;
    Disk* disk_;
    bool wal_;
  };

  class Directory final : public rocksdb::FSDirectory {
   public:
    Directory(std::string name, Disk& disk) : name_(std::move(name)), disk_(&disk) {}
    IOStatus Fsync(const IOOptions&, IODebugContext*) override {
      std::unique_lock lock(disk_->mutex_);
      IOStatus status = disk_->enter(lock, Operation::sync, false);
      if (status.ok()) disk_->sync_directory(name_);
      return status;
    }

   private:
    std::string name_;
    Disk* disk_;
  };

  IOStatus NewSequentialFile(const std::string& name, const FileOptions& options,
                             std::unique_ptr<rocksdb::FSSequentialFile>* out,
                             IODebugContext* debug) override {
    if (off()) return powered_off();
    return target()->NewSequentialFile(name, options, out, debug);
  }
  IOStatus NewRandomAccessFile(const std::string& name, const FileOptions& options,
                               std::unique_ptr<rocksdb::FSRandomAccessFile>* out,
                               IODebugContext* debug) override {
    if (off()) return powered_off();
    return target()->NewRandomAccessFile(name, options, out, debug);
  }
  IOStatus NewWritableFile(const std::string& name, const FileOptions& options,
                           std::unique_ptr<rocksdb::FSWritableFile>* out, IODebugContext* debug) override {
    const std::lock_guard lock(mutex_);
    if (const IOStatus status = step(); !status.ok()) return status;
    std::string replaced;
    if (const IOStatus status = keep(name, replaced); !status.ok()) return status;
    std::unique_ptr<rocksdb::FSWritableFile> base;
    if (const IOStatus status = target()->NewWritableFile(name, options, &base, debug); !status.ok())
      return status;
    auto inode = std::make_shared<Inode>();
    inode->name = name;
    inodes_[name] = inode;
    changes_[directory_of(name)].push_back({Change::created, name, {}, replaced});
    *out = std::make_unique<File>(std::move(base), std::move(inode), *this);
    return IOStatus::OK();
  }
  // The store recycles no log and appends to no old file: their old bytes need not be restored.
  IOStatus ReopenWritableFile(const std::string&, const FileOptions&,
                              std::unique_ptr<rocksdb::FSWritableFile>*, IODebugContext*) override {
    return IOStatus::NotSupported("ReopenWritableFile");
  }
  IOStatus ReuseWritableFile(const std::string&, const std::string&, const FileOptions&,
                             std::unique_ptr<rocksdb::FSWritableFile>*, IODebugContext*) override {
    return IOStatus::NotSupported("ReuseWritableFile");
  }
  IOStatus NewRandomRWFile(const std::string&, const FileOptions&, std::unique_ptr<rocksdb::FSRandomRWFile>*,
                           IODebugContext*) override {
    return IOStatus::NotSupported("NewRandomRWFile");
  }
  IOStatus LinkFile(const std::string&, const std::string&, const IOOptions&, IODebugContext*) override {
    return IOStatus::NotSupported("LinkFile");
  }

  IOStatus NewDirectory(const std::string& name, const IOOptions&, std::unique_ptr<rocksdb::FSDirectory>* out,
                        IODebugContext*) override {
    if (off()) return powered_off();
    *out = std::make_unique<Directory>(name, *this);
    return IOStatus::OK();
  }
  IOStatus GetChildren(const std::string& name, const IOOptions& options, std::vector<std::string>* out,
                       IODebugContext* debug) override {
    if (off()) return powered_off();
    IOStatus status = target()->GetChildren(name, options, out, debug);
    std::erase_if(*out, [](const std::string& child) { return child.starts_with(kKept); });
    return status;
  }

  IOStatus DeleteFile(const std::string& name, const IOOptions&, IODebugContext*) override {
    const std::lock_guard lock(mutex_);
    if (const IOStatus status = step(); !status.ok()) return status;
    std::string kept;
    if (const IOStatus status = keep(name, kept); !status.ok()) return status;
    if (kept.empty()) return IOStatus::PathNotFound(name);
    changes_[directory_of(name)].push_back({Change::deleted, name, {}, kept});
    return IOStatus::OK();
  }
  IOStatus RenameFile(const std::string& from, const std::string& to, const IOOptions& options,
                      IODebugContext* debug) override {
    const std::lock_guard lock(mutex_);
    if (const IOStatus status = step(); !status.ok()) return status;
    if (std::filesystem::is_directory(from)) return target()->RenameFile(from, to, options, debug);
    std::string replaced;
    if (const IOStatus status = keep(to, replaced); !status.ok()) return status;
    if (const IOStatus status = target()->RenameFile(from, to, options, debug); !status.ok()) return status;
    move_inode(from, to);
    changes_[directory_of(to)].push_back({Change::renamed, to, from, replaced});
    return IOStatus::OK();
  }

  // A store that failed keeps its lock until the process ends; a disk without power holds none.
  IOStatus LockFile(const std::string& name, const IOOptions& options, rocksdb::FileLock** out,
                    IODebugContext* debug) override {
    const std::lock_guard lock(mutex_);
    if (off_) return powered_off();
    IOStatus status = target()->LockFile(name, options, out, debug);
    if (status.ok()) locks_.insert(*out);
    return status;
  }
  IOStatus UnlockFile(rocksdb::FileLock* file_lock, const IOOptions& options,
                      IODebugContext* debug) override {
    const std::lock_guard lock(mutex_);
    return locks_.erase(file_lock) > 0 ? target()->UnlockFile(file_lock, options, debug) : IOStatus::OK();
  }

  void take_away() {
    const std::lock_guard lock(mutex_);
    off_ = true;
    release_locks();
    forget_kept_files();
    changed_.notify_all();
  }

  void crash(Unsynced unsynced, std::uint64_t seed) {
    const std::lock_guard lock(mutex_);
    power_off(unsynced, seed);
  }
  void crash_after(std::uint64_t operations, Unsynced unsynced, std::uint64_t seed) {
    const std::lock_guard lock(mutex_);
    crash_in_ = operations;
    crash_unsynced_ = unsynced;
    crash_seed_ = seed;
  }
  bool off() const {
    const std::lock_guard lock(mutex_);
    return off_;
  }
  void fail(Operation operation, ErrorCode code, Files files, std::uint64_t after) {
    const std::lock_guard lock(mutex_);
    failure_ = {operation, files, code, after};
  }
  void stall(Operation operation, Files files) {
    const std::lock_guard lock(mutex_);
    stall_ = {operation, files};
  }
  bool wait_stalled(std::chrono::milliseconds deadline) const {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, deadline, [&] { return stalled_ > 0; });
  }
  void release() {
    const std::lock_guard lock(mutex_);
    stall_.reset();
    changed_.notify_all();
  }

 private:
  struct Change {
    enum Kind { created, renamed, deleted } kind;
    std::string name;  // what was created or deleted; where a rename led
    std::string from;  // of a rename
    std::string kept;  // the file that had the name before; may be empty
  };
  struct Failure {
    Operation operation{};
    Files files{};
    ErrorCode code{};
    std::uint64_t after = 0;
  };
  struct Stall {
    Operation operation{};
    Files files{};
  };

  static bool concerns(Files files, bool wal) { return files == Files::all || wal; }

  // Before a write or a sync: stalls, fails or crashes as ordered.
  IOStatus enter(std::unique_lock<std::mutex>& lock, Operation operation, bool wal) {
    while (!off_ && stall_ && stall_->operation == operation && concerns(stall_->files, wal)) {
      ++stalled_;
      changed_.notify_all();
      changed_.wait(lock);
      --stalled_;
    }
    if (const IOStatus status = step(); !status.ok()) return status;
    if (!failure_ || failure_->operation != operation || !concerns(failure_->files, wal))
      return IOStatus::OK();
    if (failure_->after > 0) {
      --failure_->after;
      return IOStatus::OK();
    }
    return failure_->code == ErrorCode::no_space ? IOStatus::NoSpace("the disk is full")
                                                 : IOStatus::IOError("the disk does not take it");
  }

  IOStatus step() {
    if (crash_in_ && !off_ && --*crash_in_ == 0) power_off(crash_unsynced_, crash_seed_);
    return off_ ? powered_off() : IOStatus::OK();
  }

  // Moves the file away, if there is one, to where a crash finds it.
  IOStatus keep(const std::string& name, std::string& kept) {
    if (!std::filesystem::exists(name)) return IOStatus::OK();
    kept = directory_of(name) + "/" + std::string(kKept) + std::to_string(++kept_names_);
    if (IOStatus status = target()->RenameFile(name, kept, {}, nullptr); !status.ok()) return status;
    kept_.insert(kept);
    move_inode(name, kept);
    return IOStatus::OK();
  }

  void move_inode(const std::string& from, const std::string& to) {
    auto node = inodes_.extract(from);
    inodes_.erase(to);
    if (node.empty()) return;
    node.key() = to;
    node.mapped()->name = to;
    inodes_.insert(std::move(node));
  }

  void sync_directory(const std::string& name) {
    for (const Change& change : changes_[name]) forget(change.kept);
    changes_[name].clear();
  }

  void forget(const std::string& kept) {
    if (kept.empty()) return;
    std::error_code ignored;
    std::filesystem::remove(kept, ignored);
    kept_.erase(kept);
    inodes_.erase(kept);
  }

  void forget_kept_files() {
    while (!kept_.empty()) forget(std::string(*kept_.begin()));
  }

  void release_locks() {
    for (rocksdb::FileLock* file_lock : locks_)
      target()->UnlockFile(file_lock, {}, nullptr).PermitUncheckedError();
    locks_.clear();
  }

  void power_off(Unsynced unsynced, std::uint64_t seed) {
    if (off_) return;
    off_ = true;
    release_locks();
    std::mt19937_64 random(seed);
    const auto below = [&](std::uint64_t bound) { return random() % bound; };
    for (const auto& [name, inode] : inodes_) {
      if (inode->size == inode->durable) continue;
      std::uint64_t size = inode->durable;
      if (unsynced == Unsynced::torn) size += below(inode->size - inode->durable + 1);
      std::filesystem::resize_file(name, size);
      for (std::uint64_t at = inode->durable; name.ends_with(".log") && at < size;) {
        const std::uint64_t end = std::min(size, (at / kSector + 1) * kSector);
        if (below(8) == 0) blank(name, at, end);
        at = end;
      }
    }
    for (auto& [directory, changes] : changes_) {
      const std::size_t survive = unsynced == Unsynced::torn ? below(changes.size() + 1) : 0;
      while (changes.size() > survive) {
        undo(changes.back());
        changes.pop_back();
      }
    }
    forget_kept_files();
    changed_.notify_all();
  }

  // A sector that never reached the disk.
  static void blank(const std::string& name, std::uint64_t from, std::uint64_t end) {
    const std::filesystem::path path(name);
    const auto size = std::filesystem::file_size(path);
    std::FILE* file = std::fopen(name.c_str(), "r+b");
    if (file == nullptr) return;
    const std::string zeros(std::min(end, size) - from, '\0');
    std::fseek(file, static_cast<long>(from), SEEK_SET);
    std::fwrite(zeros.data(), 1, zeros.size(), file);
    std::fclose(file);
  }

  void undo(const Change& change) {
    std::error_code ignored;
    if (change.kind == Change::created) {
      std::filesystem::remove(change.name, ignored);
      inodes_.erase(change.name);
    }
    if (change.kind == Change::renamed) {
      std::filesystem::rename(change.name, change.from, ignored);
      move_inode(change.name, change.from);
    }
    if (!change.kept.empty()) {
      std::filesystem::rename(change.kept, change.name, ignored);
      kept_.erase(change.kept);
      move_inode(change.kept, change.name);
    }
  }

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool off_ = false;
  std::optional<std::uint64_t> crash_in_;
  Unsynced crash_unsynced_ = Unsynced::lost;
  std::uint64_t crash_seed_ = 0;
  std::optional<Failure> failure_;
  std::optional<Stall> stall_;
  int stalled_ = 0;
  std::map<std::string, std::shared_ptr<Inode>> inodes_;  // by where they are; of files created here
  std::map<std::string, std::vector<Change>> changes_;    // by directory: since its last sync, in order
  std::set<std::string> kept_;
  std::set<rocksdb::FileLock*> locks_;
  std::uint64_t kept_names_ = 0;
};

FaultFileSystem::FaultFileSystem()
    : disk_(std::make_shared<Disk>()), env_(std::make_shared<DiskEnv>(disk_)) {}
FaultFileSystem::~FaultFileSystem() {
  disk_->take_away();
}

std::shared_ptr<rocksdb::Env> FaultFileSystem::env() const {
  return env_;
}
void FaultFileSystem::crash(Unsynced unsynced, std::uint64_t seed) {
  disk_->crash(unsynced, seed);
}
void FaultFileSystem::crash_after(std::uint64_t operations, Unsynced unsynced, std::uint64_t seed) {
  disk_->crash_after(operations, unsynced, seed);
}
bool FaultFileSystem::crashed() const {
  return disk_->off();
}
void FaultFileSystem::fail(Operation operation, ErrorCode code, Files files, std::uint64_t after) {
  disk_->fail(operation, code, files, after);
}
void FaultFileSystem::stall(Operation operation, Files files) {
  disk_->stall(operation, files);
}
bool FaultFileSystem::wait_stalled(std::chrono::milliseconds deadline) const {
  return disk_->wait_stalled(deadline);
}
void FaultFileSystem::release() {
  disk_->release();
}

}  // namespace troupe
