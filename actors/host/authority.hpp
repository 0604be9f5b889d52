// Who may speak for a partition, checked when a handler starts and again when its output leaves after the
// sync (protocols 2).
#pragma once

#include <atomic>
#include <cstdint>

#include "messages/message.hpp"

namespace troupe {

/// Thread-safe.
class Authority {
 public:
  virtual ~Authority() = default;
  /// Whether this process may act for the partition in that epoch, at this moment.
  [[nodiscard]] virtual bool holds(ActorKind kind, std::uint32_t partition, std::uint64_t epoch) const = 0;
};

/// One process that owns everything until it fails.
class EmbeddedAuthority final : public Authority {
 public:
  [[nodiscard]] bool holds(ActorKind, std::uint32_t, std::uint64_t) const override {
    return !failed_.load(std::memory_order_acquire);
  }
  /// Ends the authority for good: after a write error nothing more may leave.
  void fail() { failed_.store(true, std::memory_order_release); }

 private:
  std::atomic<bool> failed_{false};
};

}  // namespace troupe
