// What an owner class looks like to the host. An owner instance holds the durable state of one key (one node,
// one report key); a Shared object per partition holds what its instances have in common: caches, durable
// facts of the whole partition, and what an instance must find again after it was restored but does not store
// (mirrored facts).
//
//   struct NodeOwner {
//     static constexpr ActorKind kind = ActorKind::node;
//     static constexpr std::array families = {Family::ledger, Family::journal};  // that it restores from
//     static constexpr bool streams = true;     // has a delta stream and answers CopyRequest
//     struct Shared : PartitionShared { ... };  // one per partition
//     NodeOwner(std::string key, Shared& shared);
//
//     // Messages. State changes here only. A handler that throws loses its whole turn.
//     // `on`: addressed to the key. `on_part`: this key's part of a message that is addressed to the
//     // partition, as `split` found it. `refuse_part`: the answer of a quarantined part.
//     void on(const Message& message, Turn& turn);
//     void on_part(const Message& message, std::uint32_t index, Turn& turn);
//     static void split(const Message& message, PartSink& sink);
//     void refuse_part(const Message& message, std::uint32_t index, Turn& turn);
//
//     // Restoration, from one pass over each family in the order of `Family`: the instance that an entry
//     // belongs to (empty: none of this kind), the prefix of all keys of an instance, and the entries one by
//     // one. `restored` comes last: it arms timers and sends again what is pending.
//     static std::string_view instance_of(Family family, std::string_view key, std::string_view value);
//     static std::string prefix_of(Family family, std::string_view instance);
//     void restore_entry(Family family, std::string_view key, std::string_view value);
//     void restored(Turn& turn);
//
//     // `describe`: every entry as finished fb::DeltaEntry bytes, for LedgerCopy. `empty`: nothing is left,
//     // and no timer matters: the host may drop the instance.
//     void describe(CopySink& sink) const;
//     bool empty() const;
//   };
//
// An owner whose messages are all addressed to keys derives from WholeMessages and WithoutStream.
#pragma once

#include <concepts>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "actors/host/turn.hpp"

namespace troupe {

/// Reads durable facts during restoration: as of the last durable write, no write of the caller outstanding.
/// Throws std::runtime_error when the store cannot be read; the host treats that as a failed restoration.
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

/// Where `split` says who handles a message that is addressed to a whole partition.
class PartSink {
 public:
  virtual ~PartSink() = default;
  /// `on_part(message, index)` of the instance `key`. Parts of one key run as one turn, in order. `index`:
  /// which entry of the message the part is (owners read it from the message again; no bytes are copied);
  /// `key` must live as long as the message.
  virtual void part(std::string_view key, std::uint32_t index) = 0;
  /// `on(message)` of every instance that exists, a turn each.
  virtual void every_instance() = 0;
  /// `Shared::on(message)`, before the others: a turn of the partition itself, whose messages wait for all
  /// outstanding writes of the partition.
  virtual void partition() = 0;
};

/// Where `describe` puts the entries of an instance.
class CopySink {
 public:
  virtual ~CopySink() = default;
  /// One finished fb::DeltaEntry.
  virtual void entry(std::span<const std::uint8_t> bytes) = 0;
  void operator()(const Bytes& bytes) { entry(bytes.span()); }
};

/// What every Shared derives from; both members may be hidden by the Shared's own.
struct PartitionShared {
  /// A message that `split` gave to the partition itself. It changes the Shared last: a handler that throws
  /// leaves what is not durable as it was.
  void on(const Message&, Turn&) {}
  /// Reads the partition's durable facts (again, after a handler threw: caches may stay).
  void restore(std::uint32_t /*partition*/, StateReader&) {}
};

/// Base of owners that take no message addressed to the partition.
struct WholeMessages {
  static void split(const Message&, PartSink&) {}
  void on_part(const Message&, std::uint32_t, Turn&) {}
  void refuse_part(const Message&, std::uint32_t, Turn&) {}
};

/// Base of owners without a delta stream.
struct WithoutStream {
  static constexpr bool streams = false;
  void describe(CopySink&) const {}
};

template <class O>
concept Owner = std::constructible_from<O, std::string, typename O::Shared&> &&
    std::derived_from<typename O::Shared, PartitionShared> &&
    requires(O owner, const O& seen, typename O::Shared shared, const Message& message, Turn& turn,
             PartSink& parts, CopySink& copy, StateReader& reader, Family family, std::string_view text,
             std::uint32_t number) {
  { O::kind } -> std::convertible_to<ActorKind>;
  { O::streams } -> std::convertible_to<bool>;
  std::span<const Family>(O::families);
  owner.on(message, turn);
  owner.on_part(message, number, turn);
  O::split(message, parts);
  owner.refuse_part(message, number, turn);
  { O::instance_of(family, text, text) } -> std::convertible_to<std::string_view>;
  { O::prefix_of(family, text) } -> std::convertible_to<std::string>;
  owner.restore_entry(family, text, text);
  owner.restored(turn);
  seen.describe(copy);
  { seen.empty() } -> std::convertible_to<bool>;
  shared.on(message, turn);
  shared.restore(number, reader);
};

}  // namespace troupe
