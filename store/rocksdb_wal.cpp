#include "store/rocksdb_wal.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#ifdef __SSE4_2__
#include <nmmintrin.h>
#endif

namespace troupe {
namespace {

// RocksDB's log format: blocks of 32 KiB; in each, physical records of {masked CRC-32C of type and payload: 4
// bytes, payload length: 2, type: 1, payload}; a block's last bytes, too few for a header, are zero. A
// logical record is one `full`, or `first` `middle`* `last`.
constexpr std::size_t kHeader = 7;
enum Type : std::uint8_t { kZero = 0, kFull = 1, kFirst = 2, kMiddle = 3, kLast = 4 };

#ifdef __SSE4_2__
std::uint32_t crc32c(std::span<const std::uint8_t> bytes) {
  std::uint64_t crc = 0xFFFFFFFFU;
  std::size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + i, 8);
    crc = _mm_crc32_u64(crc, word);
  }
  auto narrow = static_cast<std::uint32_t>(crc);
  for (; i < bytes.size(); ++i) narrow = _mm_crc32_u8(narrow, bytes[i]);
  return ~narrow;
}
#else
constexpr std::array<std::uint32_t, 256> crc_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1U) ^ ((crc & 1U) != 0 ? 0x82F63B78U : 0U);
    table[i] = crc;
  }
  return table;
}
std::uint32_t crc32c(std::span<const std::uint8_t> bytes) {
  static constexpr auto kTable = crc_table();
  std::uint32_t crc = 0xFFFFFFFFU;
  for (const std::uint8_t byte : bytes) crc = (crc >> 8U) ^ kTable[(crc ^ byte) & 0xFFU];
  return ~crc;
}
#endif

std::uint32_t masked(std::uint32_t crc) {
  return ((crc >> 15U) | (crc << 17U)) + 0xA282EAD8U;
}

struct Physical {
  std::uint8_t type = kZero;
  std::size_t size = 0;  // header and payload; 0: none
};

// The physical record at the start of `rest`, the remainder of a block.
Physical read(std::span<const std::uint8_t> rest) {
  if (rest.size() < kHeader) return {};
  const std::uint8_t type = rest[6];
  const std::size_t length = rest[4] | (static_cast<std::size_t>(rest[5]) << 8U);
  if (type < kFull || type > kLast || kHeader + length > rest.size()) return {};
  std::uint32_t stored = 0;
  std::memcpy(&stored, rest.data(), 4);
  if (stored != masked(crc32c(rest.subspan(6, 1 + length)))) return {};
  return {type, kHeader + length};
}

bool starts_record(const Physical& record) {
  return record.size != 0 && (record.type == kFull || record.type == kFirst);
}

// Whether a logical record starts in `rest`, the remainder of a block. Damage may have hit a length, so every
// offset counts.
bool record_starts_in(std::span<const std::uint8_t> rest) {
  for (std::size_t at = 0; at + kHeader <= rest.size(); ++at) {
    if (starts_record(read(rest.subspan(at)))) return true;
  }
  return false;
}

template <class T>
T number(const std::uint8_t* bytes) {
  T value = 0;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

}  // namespace

void WalCheck::feed(std::span<const std::uint8_t> block) {
  const std::size_t start = offset_;
  offset_ += block.size();
  if (summary_.damaged_at) return;
  if (unreadable_at_) {
    if (record_starts_in(block)) summary_.damaged_at = unreadable_at_;
    return;
  }
  std::size_t at = 0;
  while (at < block.size()) {
    const bool trailer = block.size() == kWalBlockBytes && block.size() - at < kHeader;
    if (trailer) return;
    const Physical record = read(block.subspan(at));
    const bool continues = record.type == kMiddle || record.type == kLast;
    if (record.size == 0 || continues != inside_) {
      // Unreadable, or a fragment is missing before it.
      unreadable_at_ = start + at;
      if (starts_record(record) || record_starts_in(block.subspan(at + 1)))
        summary_.damaged_at = unreadable_at_;
      return;
    }
    if (!inside_) {
      head_size_ = 0;
      record_at_ = start + at;
    }
    const std::size_t n = std::min(record.size - kHeader, head_.size() - head_size_);
    std::memcpy(head_.data() + head_size_, block.data() + at + kHeader, n);
    head_size_ += n;
    inside_ = record.type == kFirst || record.type == kMiddle;
    if (!inside_) {
      ++summary_.records;
      const auto count = number<std::uint32_t>(head_.data() + 8);
      if (head_size_ == head_.size() && count > 0) {
        summary_.last_sequence = number<std::uint64_t>(head_.data()) + count - 1;
      }
    }
    at += record.size;
  }
}

WalSummary WalCheck::summary() const {
  WalSummary summary = summary_;
  if (!summary.damaged_at) {
    if (inside_) {
      summary.torn_at = record_at_;
    } else {
      summary.torn_at = unreadable_at_;
    }
  }
  return summary;
}

}  // namespace troupe
