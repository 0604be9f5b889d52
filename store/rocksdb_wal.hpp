// Tells an interrupted write from damage in RocksDB's write-ahead logs. RocksDB drops a record that it cannot
// read together with everything after it; that is right for the unsynced tail that a crash leaves, and loses
// acknowledged writes when the damage lies further up.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace troupe {

inline constexpr std::size_t kWalBlockBytes = 32768;

/// What one WAL file says. A log ends soundly, or in a record that is incomplete or torn; it is damaged when
/// a whole record follows what cannot be read. One record is written per sync, so that what follows proves
/// that the unreadable record was synced once.
struct WalSummary {
  std::optional<std::size_t> damaged_at;  // offset of the unreadable physical record
  std::optional<std::size_t> torn_at;     // offset where an unfinished tail begins
  std::uint64_t records = 0;              // whole records before either
  std::uint64_t last_sequence = 0;        // RocksDB's sequence number of the last write in them
};

/// Reads one WAL file, block by block.
class WalCheck {
 public:
  /// The next kWalBlockBytes of the file; the last block may be shorter.
  void feed(std::span<const std::uint8_t> block);
  [[nodiscard]] WalSummary summary() const;

 private:
  // The head of a logical record's payload, gathered over its fragments: sequence number of its first write
  // (8 bytes, little-endian), number of writes (4).
  std::array<std::uint8_t, 12> head_{};
  std::size_t head_size_ = 0;
  std::size_t offset_ = 0;     // of the next block
  std::size_t record_at_ = 0;  // where the logical record in hand began
  bool inside_ = false;        // its first fragment was read, its last is still to come
  std::optional<std::size_t> unreadable_at_;
  WalSummary summary_;
};

}  // namespace troupe
