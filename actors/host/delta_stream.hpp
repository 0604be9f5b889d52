// The delta stream of one partition: numbers the changes, repeats its head, makes copies (protocols 23).
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "actors/host/owner.hpp"
#include "messages/message.hpp"

namespace troupe {

/// Messages carry (partition epoch, sequence); `sequence` counts the entries of the epoch.
class DeltaStream {
 public:
  /// Upper bound of one message's entries, bytes (a single larger entry travels alone).
  static constexpr std::size_t kChunkBytes = 256U << 10U;

  DeltaStream(Address self, std::uint64_t epoch) : self_(std::move(self)), epoch_(epoch) {}

  /// From the present sequence on. A subscriber that asks again stays one.
  void subscribe(const Address& reader);
  [[nodiscard]] bool has_subscribers() const { return !subscribers_.empty(); }
  [[nodiscard]] std::uint64_t sequence() const { return sequence_; }

  /// Numbers `entries` and appends an fb::LedgerDelta for each subscriber to `out`.
  void append(const std::vector<Bytes>& entries, std::vector<Envelope>& out);
  /// Appends the head: an fb::LedgerDelta without entries.
  void head(std::vector<Envelope>& out);
  /// Appends fb::LedgerCopy chunks for `reader`; `describe` gives every entry of the partition.
  void copy(const Address& reader, const std::function<void(CopySink&)>& describe,
            std::vector<Envelope>& out);

 private:
  void send(std::vector<Envelope>& out, const Message& message) const;

  Address self_;
  std::uint64_t epoch_;
  std::uint64_t sequence_ = 0;
  std::vector<Address> subscribers_;
};

}  // namespace troupe
