// A partition of Tally instances over the in-memory store, on one thread, with a clock that tests move.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "actors/host/partition.hpp"
#include "actors/host/restore.hpp"
#include "store/memory_store.hpp"
#include "unit/host/tally.hpp"

namespace troupe::testing_host {

class ManualClock final : public Clock {
 public:
  [[nodiscard]] Millis wall_ms() const override { return 1'700'000'000'000 + at; }
  [[nodiscard]] Millis now() const override { return at; }
  [[nodiscard]] std::int64_t nanos() const override { return at * 1'000'000; }
  Millis at = 1000;
};

inline const Address kPlacement{ActorKind::placement, 0, "0"};

/// Hands write sets to the in-memory store a few at a time, as a store does whose groups form while others
/// are being written.
class SlowStore final : public Store {
 public:
  explicit SlowStore(MemoryStore& inner) : inner_(inner) {}

  void commit(WriteSet set) override { waiting_.push_back(std::move(set)); }
  Result<void> scan(Family family, std::string_view prefix,
                    const std::function<bool(std::string_view, std::string_view)>& visit) override {
    return inner_.scan(family, prefix, visit);
  }
  Result<std::string> get(Family family, std::string_view key) override { return inner_.get(family, key); }
  [[nodiscard]] StoreStats stats() const override { return inner_.stats(); }
  void close() override {
    step();
    inner_.close();
  }

  /// One group commit of at most `sets`. Returns how many were released.
  std::size_t step(std::size_t sets = SIZE_MAX) {
    for (; sets > 0 && !waiting_.empty(); --sets) {
      inner_.commit(std::move(waiting_.front()));
      waiting_.pop_front();
    }
    return inner_.step();
  }
  [[nodiscard]] std::size_t queued() const { return waiting_.size() + inner_.queued(); }

 private:
  MemoryStore& inner_;
  std::deque<WriteSet> waiting_;
};

/// One process: a store on `disk`, one partition restored from it. Destroying it is a crash.
class Rig final : public HostServices {
 public:
  explicit Rig(std::shared_ptr<MemoryDisk> disk = std::make_shared<MemoryDisk>())
      : memory({[this](std::vector<Envelope> envelopes) { send(std::move(envelopes)); },
                [this](const Error& error) {
                  failures.push_back(error);
                  rights.fail();
                }},
               MemoryStore::Mode::stepped, std::move(disk)),
        slow(memory) {
    OwnerGroup group = owner_group<Tally>(1, [](std::uint32_t) { return std::make_unique<Tally::Shared>(); });
    std::vector<OwnerGroup> groups;
    groups.push_back(std::move(group));
    auto restored = restore_partitions(groups, 7, *this);
    if (restored) partition = std::move(restored->front());
    if (!restored) failures.push_back(restored.error());
  }

  void send(std::vector<Envelope> envelopes) override {
    for (Envelope& e : envelopes) {
      order.push_back(e);
      if (e.message.kind() == Kind::self)
        sent.push_back(e.to.key + "<" + std::string(e.message.bytes().view()));
    }
    ++sends;
  }
  Store& store() override { return slow; }
  [[nodiscard]] const Authority& authority() const override { return rights; }
  [[nodiscard]] const Clock& clock() const override { return time; }
  void report(const HostEvent& event) override {
    events.push_back(std::string(to_string(event.type)) + " " + event.address.key + ": " + event.text);
  }
  void wake(ActorKind, std::uint32_t) override { ++wakes; }

  /// Text to an instance, from `from`.
  static Envelope to(std::string key, std::string_view text, std::string from = "t") {
    return {{ActorKind::api, 0, std::move(from)}, {ActorKind::node, 0, std::move(key)}, text_message(text)};
  }
  static Envelope batch(std::string_view text, std::string from = "t") {
    return {{ActorKind::api, 0, std::move(from)}, {ActorKind::node, 0, {}}, text_message(text, Kind::query)};
  }
  static Envelope copy_request(Address from = kPlacement) {
    flatbuffers::FlatBufferBuilder b;
    b.Finish(fb::CreateCopyRequest(b, 0));
    return {std::move(from), {ActorKind::node, 0, {}}, Message(Kind::copy_request, b)};
  }

  void process(std::vector<Envelope> envelopes = {}) { partition->process(envelopes); }
  /// Commits what waits, and answers wake-ups, until nothing moves.
  void settle() {
    std::size_t woken = 0;
    do {
      woken = wakes;
      while (slow.step() > 0) {
      }
      if (wakes > 0) process();
      wakes -= woken;
    } while (wakes > 0 || (slow.queued() > 0 && !memory.failed()));
  }
  std::vector<std::string> take_sent() { return std::exchange(sent, {}); }
  /// Messages of one kind, in the order in which they left.
  std::vector<Envelope> of(Kind kind) const {
    std::vector<Envelope> out;
    for (const Envelope& e : order) {
      if (e.message.kind() == kind) out.push_back(e);
    }
    return out;
  }

  ManualClock time;
  EmbeddedAuthority rights;
  std::vector<Error> failures;
  std::vector<std::string> sent;    // texts, "RECEIVER<TEXT"
  std::vector<Envelope> order;      // everything
  std::vector<std::string> events;  // "TYPE KEY: TEXT"
  std::size_t sends = 0;
  std::size_t wakes = 0;
  MemoryStore memory;
  SlowStore slow;
  std::unique_ptr<Partition> partition;
};

}  // namespace troupe::testing_host
