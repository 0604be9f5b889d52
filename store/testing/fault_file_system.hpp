// store/testing/: a disk under the store that loses power, fails and hangs on demand. A killed process keeps
// its page cache; only a disk that forgets what was not synced shows a missing sync.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "messages/error.hpp"

namespace rocksdb {
class Env;
}

namespace troupe {

/// Wraps the machine's file system for one power cycle: give env() to open_store's knobs; after a
/// crash destroy the store and open the directory again with another object or with none. Thread-safe.
///
/// Kept by a crash: a file's bytes up to its last sync, and a directory's creations, renames and deletions up
/// to the directory's last sync.
class FaultFileSystem {
 public:
  FaultFileSystem();
  /// Takes the disk away from a store that has not closed: frees its lock on the directory.
  ~FaultFileSystem();
  FaultFileSystem(const FaultFileSystem&) = delete;
  FaultFileSystem& operator=(const FaultFileSystem&) = delete;

  [[nodiscard]] std::shared_ptr<rocksdb::Env> env() const;

  enum class Unsynced {
    lost,  // nothing of it is on the disk
    torn,  // a file keeps the first part of it, a log with sectors missing; a directory the first few changes
  };
  /// Power off: restores what was durable; every operation fails from then on.
  void crash(Unsynced unsynced = Unsynced::lost, std::uint64_t seed = 0);
  /// Power off instead of the `operations`th change from now on (write, sync, creation, rename, deletion).
  void crash_after(std::uint64_t operations, Unsynced unsynced = Unsynced::lost, std::uint64_t seed = 0);
  [[nodiscard]] bool crashed() const;

  enum class Operation { write, sync };
  enum class Files { wal, all };
  /// After `after` more such operations all of them fail, with `code`: io or no_space.
  void fail(Operation operation, ErrorCode code, Files files = Files::wal, std::uint64_t after = 0);
  /// From now on such operations wait until release().
  void stall(Operation operation, Files files = Files::wal);
  /// Whether an operation is waiting, or comes to wait within `deadline`.
  [[nodiscard]] bool wait_stalled(std::chrono::milliseconds deadline) const;
  void release();

 private:
  class Disk;
  std::shared_ptr<Disk> disk_;
  std::shared_ptr<rocksdb::Env> env_;
};

}  // namespace troupe
