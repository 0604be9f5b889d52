// The column families of the store: one per kind of fact. Names are on disk: never renamed.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace troupe {

enum class Family : std::uint8_t {
  meta = 0,     // schema version, partition epochs, shard epochs: "<name>" -> text or bytes
  ledger = 1,   // <node>\0<uid, 16 bytes big-endian> -> fb::LedgerEntry
  journal = 2,  // <intent id, 8 bytes big-endian> -> fb::Intent; trimmed once settled
};

inline constexpr std::array<std::string_view, 3> kFamilyNames = {"meta", "ledger", "journal"};

/// 8 bytes, big-endian: keys sort by number.
std::string encode_u64(std::uint64_t value);
/// Reverse of encode_u64; 0 if `key` does not have 8 bytes.
std::uint64_t decode_u64(std::string_view key);

}  // namespace troupe
