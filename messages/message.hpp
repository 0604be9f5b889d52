// messages/: the domain model of Troupe. Objects that actors exchange, persist and publish are FlatBuffers
// tables (schemas/*.fbs); this header gives them a kind, shared immutable bytes, and an address. In one
// process a Message is passed by reference; between processes and on disk the same bytes are used. Bytes from
// outside the process enter through `Message::verified` only.
#pragma once

#include <flatbuffers/flatbuffers.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "messages/error.hpp"

namespace troupe {

/// What a message's root table is. Values are wire format: never renumbered.
enum class Kind : std::uint16_t {
  // mirror -> placement, node owners
  pod = 1,
  node = 2,
  name_space = 3,
  priority_class = 4,
  gone = 5,
  synced = 6,
  // placement <-> node owners
  commit_batch = 20,
  commit_result = 21,
  bind_settled = 22,
  release = 23,
  raise_shard_epoch = 24,
  shard_epoch_raised = 25,
  ledger_delta = 26,
  copy_request = 27,
  ledger_copy = 28,
  // owners <-> bridge
  intent = 40,
  intent_result = 41,
  report_request = 42,
  // questions and public events
  query = 60,
  query_result = 61,
  public_event = 62,
  // timers and other messages of one actor to itself; never leave the process
  self = 100,
};

/// The schema's name of a kind, for logs and quarantine reports; "unknown" for a value outside the enum.
std::string_view to_string(Kind kind);

enum class ActorKind : std::uint8_t {
  node = 1,
  placement = 2,
  bridge = 3,
  report = 4,
  cluster = 5,
  api = 6,
};

std::string_view to_string(ActorKind kind);

/// Where a message goes: an instance of an actor kind. Node owners: key = node name. Placement: key = shard
/// number. Bridge, api: key = replica name. Report: key = namespace/name of the object. An empty key
/// addresses the partition itself.
struct Address {
  ActorKind kind{};
  std::uint32_t partition = 0;  // of the kind; 0 where the kind has one partition
  std::string key;

  friend bool operator==(const Address&, const Address&) = default;
};

/// The partition of a key: a stable hash, the same on every replica and in every version.
std::uint32_t partition_of(std::string_view key, std::uint32_t partitions);

/// Immutable bytes with shared ownership; one allocation. Cheap to copy.
class Bytes {
 public:
  Bytes() = default;
  /// Copies `data`.
  explicit Bytes(std::span<const std::uint8_t> data);

  [[nodiscard]] std::span<const std::uint8_t> span() const { return {data_.get(), size_}; }
  [[nodiscard]] const std::uint8_t* data() const { return data_.get(); }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] std::string_view view() const { return {reinterpret_cast<const char*>(data_.get()), size_}; }

 private:
  std::shared_ptr<const std::uint8_t[]> data_;
  std::size_t size_ = 0;
};

/// A kind and the bytes of its root table.
class Message {
 public:
  Message() = default;
  /// For bytes made in this process.
  Message(Kind kind, Bytes bytes) : kind_(kind), bytes_(std::move(bytes)) {}
  /// Takes the finished buffer of `builder` (Finish already called); the builder may be cleared and used
  /// again.
  Message(Kind kind, const flatbuffers::FlatBufferBuilder& builder)
      : kind_(kind), bytes_(std::span<const std::uint8_t>(builder.GetBufferPointer(), builder.GetSize())) {}

  /// For bytes from outside the process: verifies them against the schema of `kind`, nested tables included.
  /// Error when the kind is unknown or the bytes are not a valid table of it.
  static Result<Message> verified(std::uint16_t kind, std::span<const std::uint8_t> bytes);

  [[nodiscard]] Kind kind() const { return kind_; }
  [[nodiscard]] const Bytes& bytes() const { return bytes_; }

  /// The root table. The caller has looked at kind().
  template <class Table>
  [[nodiscard]] const Table& as() const {
    return *flatbuffers::GetRoot<Table>(bytes_.data());
  }

 private:
  Kind kind_{};
  Bytes bytes_;
};

/// A message on its way.
struct Envelope {
  Address from;
  Address to;
  Message message;
};

/// The bus between actors: LocalBus in one process, NatsBus between replicas. Delivers in order per (from,
/// to) or not at all; may lose, repeat or delay. Thread-safe.
class Bus {
 public:
  virtual ~Bus() = default;
  /// Envelopes for one or more destinations; those for one destination reach it together, in order.
  virtual void send(std::vector<Envelope> envelopes) = 0;
};

/// The text in a FlatBuffers string, empty when absent.
inline std::string_view text(const flatbuffers::String* s) {
  return s == nullptr ? std::string_view{} : std::string_view{s->c_str(), s->size()};
}

}  // namespace troupe
