#include "messages/message.hpp"

#include <xxhash.h>

#include <cstring>

#include "messages/fb/commit_generated.h"
#include "messages/fb/intent_generated.h"
#include "messages/fb/ledger_generated.h"
#include "messages/fb/node_generated.h"
#include "messages/fb/pod_generated.h"
#include "messages/fb/query_generated.h"

namespace troupe {
namespace {

template <class Table>
bool valid(std::span<const std::uint8_t> bytes) {
  flatbuffers::Verifier verifier(bytes.data(), bytes.size());
  return verifier.VerifyBuffer<Table>(nullptr);
}

bool valid(Kind kind, std::span<const std::uint8_t> bytes) {
  switch (kind) {
    case Kind::pod:
      return valid<fb::Pod>(bytes);
    case Kind::node:
      return valid<fb::Node>(bytes);
    case Kind::name_space:
      return valid<fb::Namespace>(bytes);
    case Kind::priority_class:
      return valid<fb::PriorityClass>(bytes);
    case Kind::gone:
      return valid<fb::Gone>(bytes);
    case Kind::synced:
      return valid<fb::Synced>(bytes);
    case Kind::commit_batch:
      return valid<fb::CommitBatch>(bytes);
    case Kind::commit_result:
      return valid<fb::CommitResult>(bytes);
    case Kind::bind_settled:
      return valid<fb::BindSettled>(bytes);
    case Kind::release:
      return valid<fb::Release>(bytes);
    case Kind::raise_shard_epoch:
      return valid<fb::RaiseShardEpoch>(bytes);
    case Kind::shard_epoch_raised:
      return valid<fb::ShardEpochRaised>(bytes);
    case Kind::ledger_delta:
      return valid<fb::LedgerDelta>(bytes);
    case Kind::copy_request:
      return valid<fb::CopyRequest>(bytes);
    case Kind::ledger_copy:
      return valid<fb::LedgerCopy>(bytes);
    case Kind::intent:
      return valid<fb::Intent>(bytes);
    case Kind::intent_result:
      return valid<fb::IntentResult>(bytes);
    case Kind::report_request:
      return valid<fb::ReportRequest>(bytes);
    case Kind::query:
      return valid<fb::Query>(bytes);
    case Kind::query_result:
      return valid<fb::QueryResult>(bytes);
    case Kind::public_event:
      return valid<fb::PublicEvent>(bytes);
    case Kind::self:
      return false;
  }
  return false;
}

}  // namespace

std::string_view to_string(Kind kind) {
  switch (kind) {
    case Kind::pod:
      return "Pod";
    case Kind::node:
      return "Node";
    case Kind::name_space:
      return "Namespace";
    case Kind::priority_class:
      return "PriorityClass";
    case Kind::gone:
      return "Gone";
    case Kind::synced:
      return "Synced";
    case Kind::commit_batch:
      return "CommitBatch";
    case Kind::commit_result:
      return "CommitResult";
    case Kind::bind_settled:
      return "BindSettled";
    case Kind::release:
      return "Release";
    case Kind::raise_shard_epoch:
      return "RaiseShardEpoch";
    case Kind::shard_epoch_raised:
      return "ShardEpochRaised";
    case Kind::ledger_delta:
      return "LedgerDelta";
    case Kind::copy_request:
      return "CopyRequest";
    case Kind::ledger_copy:
      return "LedgerCopy";
    case Kind::intent:
      return "Intent";
    case Kind::intent_result:
      return "IntentResult";
    case Kind::report_request:
      return "ReportRequest";
    case Kind::query:
      return "Query";
    case Kind::query_result:
      return "QueryResult";
    case Kind::public_event:
      return "PublicEvent";
    case Kind::self:
      return "Self";
  }
  return "unknown";
}

std::string_view to_string(ActorKind kind) {
  switch (kind) {
    case ActorKind::node:
      return "node";
    case ActorKind::placement:
      return "placement";
    case ActorKind::bridge:
      return "bridge";
    case ActorKind::report:
      return "report";
    case ActorKind::cluster:
      return "cluster";
    case ActorKind::api:
      return "api";
  }
  return "unknown";
}

std::uint32_t partition_of(std::string_view key, std::uint32_t partitions) {
  return static_cast<std::uint32_t>(XXH64(key.data(), key.size(), 0) % partitions);
}

Bytes::Bytes(std::span<const std::uint8_t> data) : size_(data.size()) {
  if (data.empty()) return;
  std::shared_ptr<std::uint8_t[]> copy = std::make_shared_for_overwrite<std::uint8_t[]>(data.size());
  std::memcpy(copy.get(), data.data(), data.size());
  data_ = std::move(copy);
}

Result<Message> Message::verified(std::uint16_t kind, std::span<const std::uint8_t> bytes) {
  const auto k = static_cast<Kind>(kind);
  // FlatBuffers reads through aligned pointers; a verified message owns an aligned copy.
  Bytes owned(bytes);
  if (owned.empty() || !valid(k, owned.span())) {
    return fail({ErrorCode::invalid, "message bytes do not match their schema", std::string(to_string(k)),
                 std::to_string(bytes.size()) + " bytes", "dropped; check the sender's version"});
  }
  return Message(k, std::move(owned));
}

}  // namespace troupe
