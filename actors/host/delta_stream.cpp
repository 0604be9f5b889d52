#include "actors/host/delta_stream.hpp"

#include <algorithm>
#include <utility>

#include "messages/fb/ledger_generated.h"

namespace troupe {
namespace {

/// Collects finished DeltaEntry bytes for one message.
class EntryVector {
 public:
  void add(std::span<const std::uint8_t> entry) {
    // Nested tables are read in place: they keep the alignment that they were built with.
    builder_.ForceVectorAlignment(entry.size(), sizeof(std::uint8_t), sizeof(std::uint64_t));
    const auto bytes = builder_.CreateVector(entry.data(), entry.size());
    entries_.push_back(fb::CreateDeltaBytes(builder_, bytes));
  }
  [[nodiscard]] std::size_t count() const { return entries_.size(); }
  [[nodiscard]] std::size_t bytes() const { return builder_.GetSize(); }

  Message delta(const Address& self, std::uint64_t epoch, std::uint64_t sequence) {
    const auto entries = builder_.CreateVector(entries_);
    builder_.Finish(fb::CreateLedgerDelta(builder_, self.partition, epoch, sequence, entries));
    return done(Kind::ledger_delta);
  }
  Message copy(const Address& self, std::uint64_t epoch, std::uint64_t sequence, bool last,
               std::uint32_t chunk) {
    const auto entries = builder_.CreateVector(entries_);
    builder_.Finish(fb::CreateLedgerCopy(builder_, self.partition, epoch, sequence, entries, last, chunk));
    return done(Kind::ledger_copy);
  }

 private:
  Message done(Kind kind) {
    Message message(kind, builder_);
    builder_.Clear();
    entries_.clear();
    return message;
  }

  flatbuffers::FlatBufferBuilder builder_{4096};
  std::vector<flatbuffers::Offset<fb::DeltaBytes>> entries_;
};

/// Cuts what an instance describes into chunks.
class ChunkSink final : public CopySink {
 public:
  explicit ChunkSink(std::function<void(EntryVector&)> full) : full_(std::move(full)) {}
  void entry(std::span<const std::uint8_t> bytes) override {
    if (entries.count() > 0 && entries.bytes() + bytes.size() > DeltaStream::kChunkBytes) full_(entries);
    entries.add(bytes);
  }

  EntryVector entries;

 private:
  std::function<void(EntryVector&)> full_;
};

}  // namespace

void DeltaStream::subscribe(const Address& reader) {
  if (std::ranges::find(subscribers_, reader) == subscribers_.end()) subscribers_.push_back(reader);
}

void DeltaStream::send(std::vector<Envelope>& out, const Message& message) const {
  for (const Address& reader : subscribers_) out.push_back({self_, reader, message});
}

void DeltaStream::append(const std::vector<Bytes>& entries, std::vector<Envelope>& out) {
  if (subscribers_.empty()) {
    sequence_ += entries.size();
    return;
  }
  EntryVector chunk;
  const auto flush = [&] {
    sequence_ += chunk.count();
    send(out, chunk.delta(self_, epoch_, sequence_));
  };
  for (const Bytes& entry : entries) {
    if (chunk.count() > 0 && chunk.bytes() + entry.size() > kChunkBytes) flush();
    chunk.add(entry.span());
  }
  if (chunk.count() > 0) flush();
}

void DeltaStream::head(std::vector<Envelope>& out) {
  send(out, EntryVector().delta(self_, epoch_, sequence_));
}

void DeltaStream::copy(const Address& reader, const std::function<void(CopySink&)>& describe,
                       std::vector<Envelope>& out) {
  std::uint32_t chunk = 0;
  ChunkSink sink([&](EntryVector& entries) {
    out.push_back({self_, reader, entries.copy(self_, epoch_, sequence_, false, chunk++)});
  });
  describe(sink);
  out.push_back({self_, reader, sink.entries.copy(self_, epoch_, sequence_, true, chunk)});
}

}  // namespace troupe
