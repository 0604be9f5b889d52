// store/: what a replica remembers, in one RocksDB with a column family per kind of fact (family.hpp). One
// writer thread groups the write sets of many partitions into one synced commit and releases what waits for
// them. This header shows no RocksDB.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "messages/error.hpp"
#include "messages/message.hpp"
#include "store/family.hpp"
#include "store/writes.hpp"

namespace troupe {

/// Schema of the bytes on disk. Version history: docs/operations.md.
inline constexpr std::uint32_t kStoreSchemaVersion = 1;

/// The writes of one or more turns, and what may leave once they are durable.
struct WriteSet {
  Writes writes;                   // empty: waits for everything enqueued before it, writes nothing
  std::vector<Envelope> messages;  // released after the sync, in order
  // Both run on the writer thread and may be empty. `durable`: after the sync, before the messages leave; it
  // may take messages back. `released`: after StoreHooks::release has been given the messages.
  std::function<void(std::vector<Envelope>& messages)> durable;
  std::function<void()> released;
};

struct StoreOptions {
  std::string path;
  bool create_if_missing = true;
  bool discard_and_rebuild =
      false;  // --rebuild-from-apiserver: set the old database aside (renamed, never deleted) and start empty
  std::size_t write_buffer_bytes = 16U << 20U;  // memtables of all families together
};

struct StoreStats {
  std::uint64_t commits = 0;  // group commits = WAL syncs
  std::uint64_t write_sets = 0;
  std::uint64_t operations = 0;
  std::uint64_t wal_bytes = 0;
};

/// One open database. Thread-safe but for open and close.
class Store {
 public:
  virtual ~Store() = default;

  /// Queues `set`; commits happen in queue order. After a failed commit nothing queued is ever released.
  virtual void commit(WriteSet set) = 0;
  /// Visits keys with `prefix` in order, as of the last durable commit, until `visit` returns false.
  virtual Result<void> scan(
      Family family, std::string_view prefix,
      const std::function<bool(std::string_view key, std::string_view value)>& visit) = 0;
  /// The value of `key`; error not_found when absent.
  virtual Result<std::string> get(Family family, std::string_view key) = 0;
  [[nodiscard]] virtual StoreStats stats() const = 0;
  /// Waits until everything queued is durable, then stops the writer. Nothing may be queued afterwards.
  virtual void close() = 0;
};

/// What the store tells its process.
struct StoreHooks {
  std::function<void(std::vector<Envelope>)> release;  // durable: send these (writer thread)
  std::function<void(const Error&)>
      failed;  // a write or sync failed; once; nothing was released (writer thread)
};

/// Opens (or creates) the database. Errors name the file and the remedy: corrupt, newer_schema, permission,
/// no_space, io. An older schema is migrated before this returns.
Result<std::unique_ptr<Store>> open_store(const StoreOptions& options, StoreHooks hooks);

}  // namespace troupe
