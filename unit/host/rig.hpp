// A partition of Tally instances over the in-memory store, on one thread, with a clock that tests move.
#pragma once

#include <algorithm>
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

/// One process: a store on `disk`, one partition restored from it. Destroying it is a crash.
class Rig final : public HostServices {
 public:
  explicit Rig(std::shared_ptr<MemoryDisk> disk = std::make_shared<MemoryDisk>(),
               MemoryStore::Mode mode = MemoryStore::Mode::stepped)
      : memory({[this](std::vector<Envelope> envelopes) { send(std::move(envelopes)); },
                [this](const Error& error) {
                  failures.push_back(error);
                  rights.fail();
                }},
               mode, std::move(disk)) {
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
  Store& store() override { return memory; }
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
      while (memory.step() > 0) {
      }
      if (wakes > 0) process();
      wakes -= woken;
    } while (wakes > 0 || (memory.queued() > 0 && !memory.failed() && !stalled));
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
  bool stalled = false;
  MemoryStore memory;
  std::unique_ptr<Partition> partition;
};

}  // namespace troupe::testing_host
