#include "store/rocksdb_options.hpp"

#include <rocksdb/memtablerep.h>
#include <rocksdb/table.h>

#include <memory>

namespace troupe {

rocksdb::DBOptions database_options(const StoreOptions& options) {
  rocksdb::DBOptions db;
  db.create_if_missing = options.create_if_missing;
  db.create_missing_column_families = true;

  // One writer thread: nothing to arbitrate between writers.
  db.allow_concurrent_memtable_write = false;
  db.enable_write_thread_adaptive_yield = false;
  db.max_background_jobs = 2;  // one flush, one compaction

  // Memory: all memtables together. A family that is rarely written holds no WAL back beyond four buffers.
  db.db_write_buffer_size = options.write_buffer_bytes;
  db.max_total_wal_size = 4 * options.write_buffer_bytes;

  // The WAL was checked before opening (rocksdb_wal.hpp): what is damaged can only be the unsynced tail.
  db.wal_recovery_mode = rocksdb::WALRecoveryMode::kPointInTimeRecovery;
  db.track_and_verify_wals_in_manifest = true;

  // After a background error the process exits and starts again; nothing is resumed behind the writer's back.
  db.max_bgerror_resume_count = 0;

  db.info_log_level = rocksdb::InfoLogLevel::WARN_LEVEL;
  db.keep_log_file_num = 2;
  db.stats_dump_period_sec = 0;
  db.stats_persist_period_sec = 0;
  db.skip_stats_update_on_db_open = true;
  return db;
}

rocksdb::ColumnFamilyOptions family_options(Family family, const StoreOptions& options,
                                            const std::shared_ptr<rocksdb::Cache>& cache) {
  rocksdb::BlockBasedTableOptions table;
  table.block_size = 16U << 10U;
  table.format_version = 5;
  table.checksum = rocksdb::kXXH3;
  table.block_cache = cache;

  rocksdb::ColumnFamilyOptions cf;
  cf.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  cf.compression = rocksdb::kNoCompression;  // small, short-lived entries: CPU is dearer than disk
  cf.write_buffer_size = options.write_buffer_bytes / 2;
  cf.max_write_buffer_number = 4;
  cf.target_file_size_base = 16U << 20U;
  cf.max_bytes_for_level_base = 64U << 20U;
  // Never slow the writer down for compaction: its backlog is bounded by the ledger's size.
  cf.level0_file_num_compaction_trigger = 4;
  cf.level0_slowdown_writes_trigger = 64;
  cf.level0_stop_writes_trigger = 128;
  // Written often and read only in restorations: an append per write, sorted once when flushed, costs less
  // than half of a skip list.
  if (family != Family::meta) cf.memtable_factory = std::make_shared<rocksdb::VectorRepFactory>();
  return cf;
}

}  // namespace troupe
