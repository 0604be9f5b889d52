// One open RocksDB: families, reads, synced writes, and RocksDB's statuses as errors that name the file and
// the remedy. Shows no RocksDB header.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "messages/error.hpp"
#include "store/store.hpp"

namespace rocksdb {
class ColumnFamilyHandle;
class DB;
class Env;
class Status;
class WriteBatch;
}  // namespace rocksdb

namespace troupe {

inline constexpr std::string_view kRebuildRemedy =
    "restore the directory from a copy, or start once with --rebuild-from-apiserver: it sets the directory "
    "aside "
    "and rebuilds from the API server";

/// `status`, which is not OK, as an error of the database at `path`: corrupt, no_space, permission, conflict
/// (another process has it), or io.
Error to_error(const rocksdb::Status& status, std::string what, const std::string& path);

class Database {
 public:
  /// Looks at the files of `options.path`, which nobody else has open: whether there is a database. Changes
  /// nothing. Errors: corrupt (a write-ahead log is damaged before its unsynced tail; CURRENT is gone),
  /// newer_schema (a family that this version does not know), and what reading them says.
  static Result<bool> check(const StoreOptions& options, const std::shared_ptr<rocksdb::Env>& env);
  /// Opens the database of `options.path`, or creates it, and verifies the checksums of every table. Does not
  /// look at the schema version.
  static Result<std::unique_ptr<Database>> open(const StoreOptions& options,
                                                const std::shared_ptr<rocksdb::Env>& env);
  /// Closes; after a write or a background job has failed, only stops the database and keeps its memory and
  /// its lock until the process ends.
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }

  /// As Store::scan and Store::get. Thread-safe.
  Result<void> scan(Family family, std::string_view prefix,
                    const std::function<bool(std::string_view, std::string_view)>& visit) const;
  [[nodiscard]] Result<std::string> get(Family family, std::string_view key) const;

  /// Adds to the write that commit() performs. One thread.
  void add(const Writes& writes);
  /// Bytes and operations added since the last commit.
  [[nodiscard]] std::size_t pending_bytes() const;
  [[nodiscard]] std::size_t pending_operations() const { return pending_operations_; }
  /// Writes what was added, atomically; durable when it returns without error, unless `sync` is false. After
  /// an error the database takes no more writes.
  Result<void> commit(bool sync = true);
  /// add and commit.
  Result<void> write(const Writes& writes);

 private:
  Database() = default;
  void abandon();

  std::string path_;
  std::shared_ptr<rocksdb::Env> env_;  // outlives db_
  std::unique_ptr<rocksdb::DB> db_;
  std::array<rocksdb::ColumnFamilyHandle*, kFamilyNames.size()> families_{};
  rocksdb::ColumnFamilyHandle* unused_default_ = nullptr;
  std::unique_ptr<rocksdb::WriteBatch> batch_;
  std::size_t pending_operations_ = 0;
  bool failed_ = false;
};

}  // namespace troupe
