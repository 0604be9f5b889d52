// actors/report/: a durable outbox for followers. Placement keeps no state of its own, but its failure
// conditions and events must arrive all the same: it asks the report owner of the object, which journals the
// intent, issues it, and forgets it when settled.
//
// Owns      the pending reports of one object (namespace/name).
// Persists  journal (the intent, until it has arrived).
// Takes     ReportRequest from followers, IntentResult from the bridge.
// Sends     Intent to the bridge.
// Restarts  from its pending intents, which it issues again (an Event by its name, a status patch by its
// content: both idempotent).
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "actors/host/owner.hpp"
#include "actors/host/turn.hpp"
#include "messages/fb/intent_generated.h"

namespace troupe {

class ReportOwner : public WholeMessages, public WithoutStream {
 public:
  static constexpr ActorKind kind = ActorKind::report;
  static constexpr std::array families = {Family::journal};
  struct Shared : PartitionShared {
    flatbuffers::FlatBufferBuilder builder{512};
  };

  ReportOwner(std::string key, Shared& shared) : key_(std::move(key)), shared_(&shared) {}

  void on(const Message& message, Turn& turn);

  static std::string_view instance_of(Family family, std::string_view key, std::string_view value);
  static std::string prefix_of(Family, std::string_view) { return {}; }
  void restore_entry(Family family, std::string_view key, std::string_view value);
  void restored(Turn& turn);

  [[nodiscard]] bool empty() const { return pending_.empty(); }

 private:
  void on_request(const fb::ReportRequest& request, Turn& turn);
  void on_result(const fb::IntentResult& result, Turn& turn);

  std::string key_;
  Shared* shared_;
  std::vector<std::uint64_t> pending_;  // journal ids
  std::vector<Bytes> restored_;         // between restore_entry and restored
};

}  // namespace troupe
