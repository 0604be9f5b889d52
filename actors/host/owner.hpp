// What an owner class looks like to the host. An owner instance holds the durable state of one key (one node,
// one report key); a Shared object per partition holds what its instances have in common (caches,
// partition-wide durable facts).
//
//   struct NodeOwner {
//     static constexpr ActorKind kind = ActorKind::node;
//     struct Shared { ... };                              // one per partition
//     NodeOwner(std::string key, Shared& shared);
//     void on(const Message& message, Turn& turn);        // the only place where state changes
//     void restore(StateReader& reader, Turn& turn);      // from the store; arms timers, sends again what is
//     pending static void split(const Message& message, PartSink& sink);   // partition-addressed messages ->
//     one part per key static void refuse(const Message& part, Turn& turn);         // answer of a
//     quarantined part bool empty() const;                                 // nothing left to remember: the
//     host may drop the instance
//   };
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "actors/host/turn.hpp"

namespace troupe {

/// Reads the durable state of a partition during restoration: as of the last durable write, no write of the
/// caller outstanding.
class StateReader {
 public:
  virtual ~StateReader() = default;
  /// Calls `visit(key, value)` for every key of `family` that starts with `prefix`, in key order, until it
  /// returns false.
  virtual void scan(Family family, std::string_view prefix,
                    const std::function<bool(std::string_view, std::string_view)>& visit) = 0;
  /// The value of `key`, or an empty Bytes.
  virtual Bytes get(Family family, std::string_view key) = 0;
};

/// Where `split` puts the parts of a message that is addressed to a whole partition. Parts of one key run as
/// one turn, in order.
class PartSink {
 public:
  virtual ~PartSink() = default;
  /// `index`: which entry of the message the part is (owners read it from the message again; no bytes are
  /// copied).
  virtual void part(std::string_view key, std::uint32_t index) = 0;
};

}  // namespace troupe
