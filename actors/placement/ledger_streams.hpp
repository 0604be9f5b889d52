// The ledger streams of all node partitions: applies what follows on what is known, and asks for a copy where
// something is missing (protocols 23).
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "actors/host/turn.hpp"
#include "actors/placement/snapshot.hpp"
#include "messages/message.hpp"

namespace troupe {

class LedgerStreams {
 public:
  /// `keep`: as in Snapshot::end_copy.
  LedgerStreams(Snapshot& snapshot, std::uint32_t partitions, KeepOverlay keep)
      : snapshot_(snapshot), keep_(std::move(keep)), streams_(partitions) {}

  /// fb::LedgerDelta. Appends what it changed to `effects`.
  void on_delta(const Message& message, FollowerTurn& turn, std::vector<LedgerEffect>& effects);

  struct Copied {
    bool complete = false;   // the last chunk: the partition is as the copy says
    bool new_epoch = false;  // its owner changed or restarted: the overlay that it lacked is gone, too
    std::uint32_t partition = 0;
  };
  /// fb::LedgerCopy, one chunk.
  Copied on_copy(const Message& message, FollowerTurn& turn, std::vector<LedgerEffect>& effects);

  /// Asks for every copy that is missing; once a second, since requests and answers may be lost.
  void ask_missing(FollowerTurn& turn);
  /// A copy of every partition has been taken.
  [[nodiscard]] bool complete() const { return known_ == streams_.size(); }
  [[nodiscard]] std::uint64_t copies() const { return copies_; }

 private:
  struct Stream {
    std::uint64_t epoch = 0;
    std::uint64_t sequence = 0;
    bool known = false;           // a copy has been taken
    bool wants_copy = true;       // something is missing
    std::vector<Message> chunks;  // of a copy that is not complete
    std::vector<Message> deltas;  // that came while a copy was missing
  };

  /// Applies a delta that follows on the stream, or what of it does. False: there is a gap.
  bool apply(Stream& stream, const Message& message, std::vector<LedgerEffect>& effects);
  void want_copy(Stream& stream, std::uint32_t partition, FollowerTurn& turn);

  Snapshot& snapshot_;
  KeepOverlay keep_;
  std::vector<Stream> streams_;
  std::size_t known_ = 0;
  std::uint64_t copies_ = 0;
};

}  // namespace troupe
