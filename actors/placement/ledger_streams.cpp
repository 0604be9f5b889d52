#include "actors/placement/ledger_streams.hpp"

#include <utility>

#include "messages/fb/ledger_generated.h"

namespace troupe {
namespace {

// More than this many deltas between a gap and the copy: a later gap asks again.
constexpr std::size_t kMostBuffered = 4096;

std::uint64_t count(const fb::LedgerDelta& delta) {
  return delta.entries() == nullptr ? 0 : delta.entries()->size();
}

const fb::DeltaEntry& entry(const fb::DeltaBytes& bytes) {
  return *flatbuffers::GetRoot<fb::DeltaEntry>(bytes.bytes()->data());
}

}  // namespace

void LedgerStreams::want_copy(Stream& stream, std::uint32_t partition, FollowerTurn& turn) {
  if (std::exchange(stream.wants_copy, true)) return;
  flatbuffers::FlatBufferBuilder b(64);
  b.Finish(fb::CreateCopyRequest(b, partition));
  turn.send({ActorKind::node, partition, {}}, Message(Kind::copy_request, b));
}

void LedgerStreams::ask_missing(FollowerTurn& turn) {
  for (std::uint32_t p = 0; p < streams_.size(); ++p) {
    if (!std::exchange(streams_[p].wants_copy, false)) continue;
    want_copy(streams_[p], p, turn);
  }
}

bool LedgerStreams::apply(Stream& stream, const Message& message, std::vector<LedgerEffect>& effects) {
  const auto& delta = message.as<fb::LedgerDelta>();
  if (delta.partition_epoch() != stream.epoch) return delta.partition_epoch() < stream.epoch;
  if (delta.sequence() <= stream.sequence) return true;  // a repeat
  const std::uint64_t n = count(delta);
  const std::uint64_t before = delta.sequence() - n;
  if (n > delta.sequence() || before > stream.sequence) return false;
  for (std::uint64_t i = stream.sequence - before; i < n; ++i) {
    const fb::DeltaBytes* bytes = delta.entries()->Get(static_cast<flatbuffers::uoffset_t>(i));
    if (bytes->bytes() == nullptr) continue;
    const LedgerEffect effect = snapshot_.apply(entry(*bytes));
    if (effect.what != LedgerEffect::What::none) effects.push_back(effect);
  }
  stream.sequence = delta.sequence();
  return true;
}

void LedgerStreams::on_delta(const Message& message, FollowerTurn& turn, std::vector<LedgerEffect>& effects) {
  const auto& delta = message.as<fb::LedgerDelta>();
  if (delta.partition() >= streams_.size()) return;
  Stream& stream = streams_[delta.partition()];
  if (!stream.wants_copy && apply(stream, message, effects)) return;
  want_copy(stream, delta.partition(), turn);
  if (stream.deltas.size() < kMostBuffered) stream.deltas.push_back(message);
}

LedgerStreams::Copied LedgerStreams::on_copy(const Message& message, FollowerTurn& turn,
                                             std::vector<LedgerEffect>& effects) {
  const auto& chunk = message.as<fb::LedgerCopy>();
  const std::uint32_t partition = chunk.partition();
  if (partition >= streams_.size()) return {};
  Stream& stream = streams_[partition];
  const bool older = chunk.partition_epoch() < stream.epoch ||
                     (chunk.partition_epoch() == stream.epoch && chunk.sequence() < stream.sequence);
  if (!stream.wants_copy || older) return {};
  if (chunk.chunk() == 0) stream.chunks.clear();
  if (!stream.chunks.empty()) {
    const auto& first = stream.chunks.front().as<fb::LedgerCopy>();
    if (first.partition_epoch() != chunk.partition_epoch() || first.sequence() != chunk.sequence())
      stream.chunks.clear();
  }
  // A chunk that does not follow on the last one: the copy is asked for again in time.
  if (chunk.chunk() != stream.chunks.size()) return {};
  stream.chunks.push_back(message);
  if (!chunk.last()) return {};

  Copied copied{true, chunk.partition_epoch() > stream.epoch, partition};
  ++copies_;
  snapshot_.begin_copy(partition);
  for (const Message& part : stream.chunks) {
    const auto* entries = part.as<fb::LedgerCopy>().entries();
    if (entries == nullptr) continue;
    for (const fb::DeltaBytes* bytes : *entries) {
      if (bytes->bytes() == nullptr) continue;
      const LedgerEffect effect = snapshot_.apply_copied(entry(*bytes));
      if (effect.what != LedgerEffect::What::none) effects.push_back(effect);
    }
  }
  for (const LedgerEffect& e : snapshot_.end_copy(partition, copied.new_epoch ? KeepOverlay{} : keep_))
    effects.push_back(e);
  stream.chunks.clear();
  stream.epoch = chunk.partition_epoch();
  stream.sequence = chunk.sequence();
  stream.wants_copy = false;
  if (!std::exchange(stream.known, true)) ++known_;
  for (const Message& delta : std::exchange(stream.deltas, {})) on_delta(delta, turn, effects);
  return copied;
}

}  // namespace troupe
