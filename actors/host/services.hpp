// What a partition or a follower needs from whoever runs it: the CAF host, a test, or a simulator.
#pragma once

#include <cstdint>
#include <vector>

#include "actors/host/authority.hpp"
#include "actors/host/clock.hpp"
#include "actors/host/stats.hpp"
#include "messages/message.hpp"
#include "store/store.hpp"

namespace troupe {

/// Outlives the partitions that use it, and the store's writer thread.
class HostServices {
 public:
  virtual ~HostServices() = default;
  /// Messages that may leave at once. (Those that wait for a write leave through StoreHooks::release.)
  virtual void send(std::vector<Envelope> envelopes) = 0;
  virtual Store& store() = 0;
  [[nodiscard]] virtual const Authority& authority() const = 0;
  [[nodiscard]] virtual const Clock& clock() const = 0;
  /// From any thread.
  virtual void report(const HostEvent& event) = 0;
  /// From any thread: `process` of that partition is to be called soon, with or without messages.
  virtual void wake(ActorKind kind, std::uint32_t partition) = 0;
};

}  // namespace troupe
