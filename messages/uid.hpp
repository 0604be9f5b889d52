// Kubernetes UIDs as 128-bit values.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "messages/fb/common_generated.h"

namespace troupe {

/// A UID: the 128 bits of a canonical lower-case UUID text, else a 128-bit hash (XXH3) of the text.
struct PodUid {
  std::uint64_t hi = 0;
  std::uint64_t lo = 0;

  static PodUid parse(std::string_view text);
  static PodUid from(const fb::Uid* uid) { return uid == nullptr ? PodUid{} : PodUid{uid->hi(), uid->lo()}; }
  [[nodiscard]] fb::Uid wire() const { return fb::Uid(hi, lo); }
  /// Canonical UUID text; for hashed UIDs this is not the original text.
  [[nodiscard]] std::string text() const;
  [[nodiscard]] bool zero() const { return hi == 0 && lo == 0; }

  friend bool operator==(const PodUid&, const PodUid&) = default;
  friend auto operator<=>(const PodUid&, const PodUid&) = default;
};

struct PodUidHash {
  std::size_t operator()(const PodUid& uid) const noexcept {
    return uid.lo ^ (uid.hi * 0x9E3779B97F4A7C15ULL);
  }
};

/// Names one decision (protocols: commit id).
struct CommitKey {
  PodUid uid;
  std::uint64_t shard_epoch = 0;
  std::uint64_t n = 0;

  static CommitKey from(const fb::CommitId* id) {
    return id == nullptr ? CommitKey{} : CommitKey{PodUid::from(&id->uid()), id->shard_epoch(), id->n()};
  }
  [[nodiscard]] fb::CommitId wire() const { return fb::CommitId(uid.wire(), shard_epoch, n); }

  friend bool operator==(const CommitKey&, const CommitKey&) = default;
};

}  // namespace troupe
