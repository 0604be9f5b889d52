#include "store/rocksdb_database.hpp"

#include <rocksdb/cache.h>
#include <rocksdb/convenience.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/file_system.h>
#include <rocksdb/write_batch.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "store/rocksdb_options.hpp"
#include "store/rocksdb_wal.hpp"

namespace troupe {
namespace {

constexpr std::size_t kBlockCacheBytes = 4U << 20U;
constexpr std::size_t kKeepBatchBytes = 4U << 20U;  // a larger batch is given back after its commit

std::size_t index_of(Family family) {
  return static_cast<std::size_t>(family);
}

std::string_view view(const rocksdb::Slice& slice) {
  return {slice.data(), slice.size()};
}
rocksdb::Slice slice(std::string_view text) {
  return {text.data(), text.size()};
}

std::vector<rocksdb::ColumnFamilyDescriptor> descriptors(const StoreOptions& options) {
  std::vector<rocksdb::ColumnFamilyDescriptor> out;
  const std::shared_ptr<rocksdb::Cache> cache = rocksdb::NewLRUCache(kBlockCacheBytes);
  out.emplace_back(rocksdb::kDefaultColumnFamilyName, family_options(Family::meta, options, cache));
  for (std::size_t i = 0; i < kFamilyNames.size(); ++i) {
    out.emplace_back(std::string(kFamilyNames[i]), family_options(static_cast<Family>(i), options, cache));
  }
  return out;
}

// Everything that starts at `prefix` sorts before this; empty: no bound.
std::string end_of_prefix(std::string_view prefix) {
  std::string end(prefix);
  while (!end.empty() && static_cast<unsigned char>(end.back()) == 0xFFU) end.pop_back();
  if (!end.empty()) end.back() = static_cast<char>(static_cast<unsigned char>(end.back()) + 1);
  return end;
}

// The database file that RocksDB's message names.
std::string file_in(std::string_view message, const std::string& path) {
  constexpr std::string_view kSeparators = " \t\n:;,'\"()[]";
  std::size_t at = 0;
  while (at < message.size()) {
    at = message.find_first_not_of(kSeparators, at);
    if (at == std::string_view::npos) break;
    const std::size_t end = std::min(message.find_first_of(kSeparators, at), message.size());
    const std::string_view word = message.substr(at, end - at);
    const std::string_view name = word.substr(word.rfind('/') + 1);
    if (name.ends_with(".sst") || name.ends_with(".log") || name.starts_with("MANIFEST-") ||
        name == "CURRENT") {
      return path + "/" + std::string(name);
    }
    at = end;
  }
  return path;
}

bool says(std::string_view message, int error) {
  return message.find(std::generic_category().message(error)) != std::string_view::npos;
}

struct File {
  std::uint64_t number = 0;
  std::string name;
};

// What is in the directory, before anything is opened.
struct Contents {
  bool current = false;
  std::vector<File> logs;  // by number
  std::string orphan;      // a table, or a log with records
};

Result<Contents> look_into(rocksdb::FileSystem& fs, const std::string& path) {
  std::vector<std::string> names;
  const rocksdb::IOStatus listed = fs.GetChildren(path, {}, &names, nullptr);
  if (!listed.ok()) return fail(to_error(listed, "cannot list the database directory", path));
  Contents contents;
  for (const std::string& name : names) {
    contents.current = contents.current || name == "CURRENT";
    if (name.ends_with(".sst")) contents.orphan = name;
    if (name.ends_with(".log")) contents.logs.push_back({std::strtoull(name.c_str(), nullptr, 10), name});
  }
  std::sort(contents.logs.begin(), contents.logs.end(),
            [](const File& a, const File& b) { return a.number < b.number; });
  return contents;
}

Result<WalSummary> read_wal(rocksdb::FileSystem& fs, const std::string& file) {
  constexpr std::size_t kChunk = 8 * kWalBlockBytes;
  WalCheck check;
  std::unique_ptr<rocksdb::FSSequentialFile> input;
  rocksdb::IOStatus status = fs.NewSequentialFile(file, {}, &input, nullptr);
  std::vector<char> chunk(kChunk);
  std::size_t filled = 0;
  bool end = false;
  while (status.ok() && !end) {
    rocksdb::Slice got;
    status = input->Read(kChunk - filled, {}, &got, chunk.data() + filled, nullptr);
    if (!status.ok()) break;
    if (got.data() != chunk.data() + filled) std::copy_n(got.data(), got.size(), chunk.data() + filled);
    filled += got.size();
    end = got.empty();
    std::size_t at = 0;
    while (filled - at >= kWalBlockBytes || (end && at < filled)) {
      const std::size_t size = std::min(kWalBlockBytes, filled - at);
      check.feed({reinterpret_cast<const std::uint8_t*>(chunk.data() + at), size});
      at += size;
    }
    std::copy(chunk.begin() + static_cast<std::ptrdiff_t>(at),
              chunk.begin() + static_cast<std::ptrdiff_t>(filled), chunk.begin());
    filled -= at;
  }
  if (!status.ok()) return fail(to_error(status, "cannot read the write-ahead log", file));
  return check.summary();
}

Error damaged(const std::string& file, std::size_t offset) {
  return {ErrorCode::corrupt, "the write-ahead log is damaged before its last record", file,
          "byte " + std::to_string(offset), std::string(kRebuildRemedy)};
}

// Opens without changing anything, and tells the last sequence number that recovery arrives at.
Result<std::uint64_t> recovered_sequence(const rocksdb::DBOptions& db_options, const StoreOptions& options) {
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::DB* raw = nullptr;
  const rocksdb::Status status =
      rocksdb::DB::OpenForReadOnly(db_options, options.path, descriptors(options), &handles, &raw);
  if (!status.ok()) return fail(to_error(status, "cannot open the database", options.path));
  const std::unique_ptr<rocksdb::DB> db(raw);
  for (rocksdb::ColumnFamilyHandle* handle : handles) db->DestroyColumnFamilyHandle(handle);
  return db->GetLatestSequenceNumber();
}

Result<void> check_wals(rocksdb::FileSystem& fs, const Contents& contents,
                        const rocksdb::DBOptions& db_options, const StoreOptions& options) {
  std::uint64_t last_sequence = 0;
  std::optional<std::pair<std::string, std::size_t>> torn;
  bool goes_on_after_tear = false;
  for (const File& log : contents.logs) {
    const std::string file = options.path + "/" + log.name;
    const Result<WalSummary> summary = read_wal(fs, file);
    if (!summary) return fail(summary.error());
    if (summary->damaged_at) return fail(damaged(file, *summary->damaged_at));
    goes_on_after_tear = goes_on_after_tear || (torn && summary->records > 0);
    last_sequence = std::max(last_sequence, summary->last_sequence);
    if (!torn && summary->torn_at) torn.emplace(file, *summary->torn_at);
  }
  if (!goes_on_after_tear) return {};
  // Either the tear was there when the next log was begun, and nothing is missing between them; or the record
  // was whole then, and recovery would drop the next log.
  const Result<std::uint64_t> recovered = recovered_sequence(db_options, options);
  if (!recovered) return fail(recovered.error());
  if (*recovered < last_sequence) return fail(damaged(torn->first, torn->second));
  return {};
}

Result<void> check_families(const rocksdb::DBOptions& db_options, const std::string& path) {
  std::vector<std::string> names;
  const rocksdb::Status listed = rocksdb::DB::ListColumnFamilies(db_options, path, &names);
  if (!listed.ok()) return fail(to_error(listed, "cannot read the database's families", path));
  for (const std::string& name : names) {
    const bool known = name == rocksdb::kDefaultColumnFamilyName ||
                       std::find(kFamilyNames.begin(), kFamilyNames.end(), name) != kFamilyNames.end();
    if (known) continue;
    return fail(
        {ErrorCode::newer_schema, "the database has a column family that this version does not know", path,
         name,
         "run the newer version of Troupe that wrote it, or start once with --rebuild-from-apiserver: it "
         "sets the directory aside and rebuilds from the API server"});
  }
  return {};
}

}  // namespace

Error to_error(const rocksdb::Status& status, std::string what, const std::string& path) {
  const std::string detail = status.ToString();
  const std::string file = file_in(detail, path);
  const bool missing = file != path && (status.IsPathNotFound() || says(detail, ENOENT));
  if (status.IsCorruption() || missing) {
    return {ErrorCode::corrupt, std::move(what), file, detail, std::string(kRebuildRemedy)};
  }
  if (status.IsNoSpace() || says(detail, ENOSPC)) {
    return {ErrorCode::no_space, std::move(what), file, detail,
            "free space on the disk of " + path + " and start again"};
  }
  // A lock file that may not be opened is a matter of permission; one that is held says so when it is locked.
  const bool lock =
      detail.find("/LOCK") != std::string::npos && detail.find("open a file for lock") == std::string::npos;
  if (lock &&
      (says(detail, EAGAIN) || says(detail, EACCES) || detail.find("lock hold by") != std::string::npos)) {
    return {ErrorCode::conflict, "another process has the database open", path, detail,
            "stop the other process, or give this one a directory of its own"};
  }
  if (says(detail, EACCES) || says(detail, EPERM) || says(detail, EROFS)) {
    return {ErrorCode::permission, std::move(what), file, detail,
            "give this user read and write access to " + path};
  }
  return {ErrorCode::io, std::move(what), file, detail, "check the disk of " + path};
}

Result<bool> Database::check(const StoreOptions& options, const std::shared_ptr<rocksdb::Env>& env) {
  rocksdb::DBOptions db_options = database_options(options);
  if (env) db_options.env = env.get();
  rocksdb::FileSystem& fs = *db_options.env->GetFileSystem();

  const Result<Contents> contents = look_into(fs, options.path);
  if (!contents) return fail(contents.error());
  if (contents->current) {
    if (Result<void> known = check_families(db_options, options.path); !known) return fail(known.error());
    if (Result<void> sound = check_wals(fs, *contents, db_options, options); !sound)
      return fail(sound.error());
    return true;
  }
  // CURRENT is written before the first log and the first table.
  if (!contents->orphan.empty() || !contents->logs.empty()) {
    const std::string& file = contents->orphan.empty() ? contents->logs.front().name : contents->orphan;
    return fail({ErrorCode::corrupt, "the database has data but no CURRENT file", options.path, file,
                 std::string(kRebuildRemedy)});
  }
  return false;
}

Result<std::unique_ptr<Database>> Database::open(const StoreOptions& options,
                                                 const std::shared_ptr<rocksdb::Env>& env) {
  std::unique_ptr<Database> database(new Database);
  database->path_ = options.path;
  database->env_ = env;
  rocksdb::DBOptions db_options = database_options(options);
  if (env) db_options.env = env.get();
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::DB* raw = nullptr;
  rocksdb::Status status = rocksdb::DB::Open(db_options, options.path, descriptors(options), &handles, &raw);
  if (!status.ok()) return fail(to_error(status, "cannot open the database", options.path));
  database->db_.reset(raw);
  database->unused_default_ = handles.front();
  std::copy(handles.begin() + 1, handles.end(), database->families_.begin());
  database->batch_ = std::make_unique<rocksdb::WriteBatch>();

  status = raw->VerifyChecksum({});
  if (!status.ok()) return fail(to_error(status, "a file of the database is damaged", options.path));
  return database;
}

Database::~Database() {
  if (!db_) return;
  std::uint64_t errors = 0;
  const bool counted = db_->GetIntProperty(rocksdb::DB::Properties::kBackgroundErrors, &errors);
  if (failed_ || !counted || errors > 0) {
    abandon();
    return;
  }
  for (rocksdb::ColumnFamilyHandle* family : families_) db_->DestroyColumnFamilyHandle(family);
  db_->DestroyColumnFamilyHandle(unused_default_);
  db_->Close().PermitUncheckedError();
}

// RocksDB 7.8 does not count its references to families down on every path that fails, and closing then
// aborts the process. A store that failed is left as it is, with nothing running in it.
void Database::abandon() {
  rocksdb::CancelAllBackgroundWork(db_.get(), true);
  const auto* const kept =
      new std::pair(db_.release(), std::move(env_));  // NOLINT(cppcoreguidelines-owning-memory)
#ifdef __SANITIZE_ADDRESS__
  __lsan_ignore_object(kept);
#endif
  static_cast<void>(kept);
}

Result<void> Database::scan(Family family, std::string_view prefix,
                            const std::function<bool(std::string_view, std::string_view)>& visit) const {
  const std::string end = end_of_prefix(prefix);
  const rocksdb::Slice bound = slice(end);
  rocksdb::ReadOptions read;
  if (!end.empty()) read.iterate_upper_bound = &bound;
  const std::unique_ptr<rocksdb::Iterator> at(db_->NewIterator(read, families_[index_of(family)]));
  for (at->Seek(slice(prefix)); at->Valid(); at->Next()) {
    if (!visit(view(at->key()), view(at->value()))) break;
  }
  if (!at->status().ok()) return fail(to_error(at->status(), "cannot read the database", path_));
  return {};
}

Result<std::string> Database::get(Family family, std::string_view key) const {
  std::string value;
  const rocksdb::Status status = db_->Get({}, families_[index_of(family)], slice(key), &value);
  if (status.IsNotFound()) {
    return fail({ErrorCode::not_found, "no such key", std::string(kFamilyNames[index_of(family)]), {}, {}});
  }
  if (!status.ok()) return fail(to_error(status, "cannot read the database", path_));
  return value;
}

void Database::add(const Writes& writes) {
  for (const Write write : writes) {
    rocksdb::ColumnFamilyHandle* family = families_[index_of(write.family)];
    if (write.erase) {
      batch_->Delete(family, slice(write.key));
    } else {
      batch_->Put(family, slice(write.key), slice(write.value));
    }
  }
  pending_operations_ += writes.size();
}

std::size_t Database::pending_bytes() const {
  return pending_operations_ == 0 ? 0 : batch_->GetDataSize();
}

Result<void> Database::commit(bool sync) {
  rocksdb::WriteOptions write;
  write.sync = sync;
  const rocksdb::Status status = db_->Write(write, batch_.get());
  pending_operations_ = 0;
  if (batch_->GetDataSize() > kKeepBatchBytes) {
    *batch_ = rocksdb::WriteBatch();
  } else {
    batch_->Clear();
  }
  if (status.ok()) return {};
  failed_ = true;
  return fail(to_error(status, "cannot write to the database", path_));
}

Result<void> Database::write(const Writes& writes) {
  add(writes);
  return commit();
}

}  // namespace troupe
