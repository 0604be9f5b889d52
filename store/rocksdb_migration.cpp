#include "store/rocksdb_migration.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <utility>

#include "store/rocksdb_database.hpp"

namespace troupe {
namespace {

// Version 0 has the families and formats of version 1, but no version number.
Result<void> number_the_schema(const Database&, Writes&) {
  return {};
}

constexpr std::array kSteps = {MigrationStep{0, number_the_schema}};
static_assert(kSteps.size() == kStoreSchemaVersion);

Result<std::uint32_t> found_version(const Database& database) {
  const Result<std::string> text = database.get(Family::meta, kSchemaKey);
  if (!text && text.error().code == ErrorCode::not_found) return 0;
  if (!text) return fail(text.error());
  std::uint32_t version = 0;
  const char* end = text->data() + text->size();
  const auto [at, error] = std::from_chars(text->data(), end, version);
  if (error != std::errc() || at != end || text->empty()) {
    return fail({ErrorCode::corrupt, "the schema version of the database is not a number", database.path(),
                 "meta/" + std::string(kSchemaKey), std::string(kRebuildRemedy)});
  }
  return version;
}

}  // namespace

std::span<const MigrationStep> migration_steps() {
  return kSteps;
}

Result<void> migrate(Database& database, bool fresh, std::uint32_t target,
                     std::span<const MigrationStep> steps) {
  Result<std::uint32_t> version = found_version(database);
  if (!version) return fail(std::move(version.error()));
  if (*version > target) {
    return fail(
        {ErrorCode::newer_schema, "the database was written by a newer version of Troupe", database.path(),
         "schema " + std::to_string(*version) + ", this program knows up to " + std::to_string(target),
         "run the newer version, or start once with --rebuild-from-apiserver: it sets the directory "
         "aside and rebuilds from the API server"});
  }
  if (fresh) *version = target;
  Writes writes;
  while (*version < target) {
    const auto step =
        std::find_if(steps.begin(), steps.end(), [&](const MigrationStep& s) { return s.from == *version; });
    if (step == steps.end()) {
      return fail({ErrorCode::invalid, "no migration leads on from this schema version", database.path(),
                   "schema " + std::to_string(*version), std::string(kRebuildRemedy)});
    }
    writes.clear();
    if (Result<void> ran = step->run(database, writes); !ran) return ran;
    ++*version;
    writes.put(Family::meta, kSchemaKey, std::to_string(*version));
    if (Result<void> written = database.write(writes); !written) return written;
  }
  if (fresh) {
    writes.put(Family::meta, kSchemaKey, std::to_string(target));
    return database.write(writes);
  }
  return {};
}

}  // namespace troupe
