// Schema versions of a database on disk, and the steps from one to the next.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "messages/error.hpp"
#include "store/writes.hpp"

namespace troupe {

class Database;

/// meta key of the schema version; the value is a decimal number. Never renamed.
inline constexpr std::string_view kSchemaKey = "schema_version";

/// Rewrites a database of version `from` as version `from + 1`. `run` reads the old state and adds what
/// changes to `out`; those writes and the higher version number are one synced write, so that a crash leaves
/// the old version or the new one.
struct MigrationStep {
  std::uint32_t from = 0;
  Result<void> (*run)(const Database& before, Writes& out) = nullptr;
};

/// The steps of this program, by version: step i goes from version i to i + 1.
std::span<const MigrationStep> migration_steps();

/// Brings `database` to `target`, step by step. `fresh`: the database was just created and gets the version
/// number alone. Errors: newer_schema (written by a newer version; nothing is changed), corrupt (the version
/// number cannot be read), invalid (no step leads on from the version found), and what a step or a write
/// says.
Result<void> migrate(Database& database, bool fresh, std::uint32_t target,
                     std::span<const MigrationStep> steps);

}  // namespace troupe
