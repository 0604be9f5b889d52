// Internal door to the RocksDB store: what open_store does, with the parts that tests and tools replace.
#pragma once

#include <memory>
#include <span>

#include "store/rocksdb_migration.hpp"
#include "store/store.hpp"

namespace rocksdb {
class Env;
}

namespace troupe {

/// For tests only. The defaults are what open_store uses.
struct StoreTestKnobs {
  std::shared_ptr<rocksdb::Env> env = nullptr;  // null: the machine's
  bool skip_sync = false;                       // releases without a sync: shows that the crash tests notice
  std::uint32_t schema_version = kStoreSchemaVersion;
  std::span<const MigrationStep> migrations = migration_steps();
};

Result<std::unique_ptr<Store>> open_store(const StoreOptions& options, StoreHooks hooks,
                                          const StoreTestKnobs& knobs);

}  // namespace troupe
