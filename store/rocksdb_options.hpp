// RocksDB's options for one writer that syncs every group.
#pragma once

#include <rocksdb/options.h>

#include <memory>

#include "store/family.hpp"
#include "store/store.hpp"

namespace troupe {

rocksdb::DBOptions database_options(const StoreOptions& options);
rocksdb::ColumnFamilyOptions family_options(Family family, const StoreOptions& options,
                                            const std::shared_ptr<rocksdb::Cache>& cache);

}  // namespace troupe
