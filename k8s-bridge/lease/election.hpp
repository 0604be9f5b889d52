// k8s-bridge/lease/: one active instance among several, by a Lease in the API server (spec 5.11).
// LeaseElection decides (pure: time and answers in, requests out); LeaseElector is its shell.
//
// Why never two: a leader acts until renew_deadline after it *sent* its last successful renewal; another
// takes over no earlier than lease_duration after it *saw* that renewal, which is later than it was sent.
// Each counts on its own clock, so the two may run up to lease_duration / renew_deadline apart (1.5 by
// default) before they could overlap. Every write is a compare-and-set.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "k8s-bridge/http.hpp"
#include "k8s-bridge/jitter.hpp"
#include "k8s-bridge/lease/lease_object.hpp"

namespace troupe {

struct LeaseOptions {
  std::string identity;  // <hostname>_<uuid>
  std::string name_space = "koordinator-system";
  std::string name = "koord-scheduler";
  std::int64_t lease_duration_ms = 15'000;  // whole seconds; longer than renew_deadline_ms
  std::int64_t renew_deadline_ms = 10'000;  // longer than 1.2 x retry_period_ms
  std::int64_t retry_period_ms = 2'000;
  std::uint64_t seed = 1;  // of the jitter; differs between instances
};

/// Error names the option: durations as kube-scheduler demands them, names not empty.
Result<void> check(const LeaseOptions& options);

enum class LeaseAction { create, update, wait };

struct LeaseDecision {
  LeaseAction action{};
  LeaseRecord record;  // to write; empty for wait
};

/// One round. `seen`: the record as read, null when there is no Lease; `seen_for_ms`: since this process
/// first saw that record; `now`: the timestamp to write.
LeaseDecision decide_lease(const LeaseRecord* seen, std::int64_t seen_for_ms, const std::string& identity,
                           std::int64_t duration_s, const std::string& now);

class LeaseElection {
 public:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  explicit LeaseElection(LeaseOptions options);

  /// The request to send now, if one is due; then its answer must come before the next. now: boot-time clock;
  /// wall: for timestamps only.
  std::optional<HttpRequest> poll(std::int64_t now_ms, std::int64_t wall_us);
  void answered(const HttpOutcome& outcome, std::int64_t now_ms);
  /// A watch showed the Lease. Older than what is known: ignored.
  void observed(LeaseObject object, std::int64_t now_ms);
  /// A watch showed that it was deleted.
  void deleted(std::int64_t now_ms);

  /// Whether this instance acts as leader at that time. Turns false by itself when renewals fail.
  [[nodiscard]] bool leading(std::int64_t now_ms) const { return now_ms < held_until_ms_; }
  [[nodiscard]] std::int64_t held_until_ms() const { return held_until_ms_; }
  /// When `poll` has to be called next though nothing was answered or observed, or leading ends.
  [[nodiscard]] std::int64_t next_due() const;

  /// Gives the Lease up: leading ends at once, and `poll` writes an empty holder and a duration of 1 s, so
  /// that a standby takes over without waiting. Call it when nothing is under way any more.
  void release(std::int64_t now_ms);
  /// The release is done, or there is nothing to release, or it failed and the Lease runs out by itself.
  [[nodiscard]] bool released() const { return releasing_ && flight_ == Flight::none && release_left_ == 0; }

  [[nodiscard]] const LeaseOptions& options() const { return options_; }
  /// The Lease as last read or written; empty resource_version: none.
  [[nodiscard]] const LeaseObject& known() const { return known_; }
  /// Who holds it, as far as known; empty: nobody.
  [[nodiscard]] const std::string& holder() const { return known_.record.holder; }
  /// Path of the Lease, and of its collection.
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const std::string& collection() const { return collection_; }

 private:
  enum class Flight { none, get, create, update, release };

  HttpRequest request(std::string method, const std::string& path, std::string body) const;
  void take_in(LeaseObject object, std::int64_t now_ms);
  void wait(std::int64_t now_ms);
  void lose();
  void on_read(const HttpOutcome& outcome, std::int64_t now_ms);
  void on_written(const HttpOutcome& outcome, std::int64_t now_ms);
  void on_released(const HttpOutcome& outcome);

  LeaseOptions options_;
  std::string collection_;
  std::string path_;
  Jitter jitter_;

  LeaseObject known_;
  bool fresh_ =
      false;  // known_ is the newest that the API server showed, or its absence: write without reading first
  bool absent_ = false;       // there is no Lease
  std::int64_t seen_ms_ = 0;  // when known_.record was first seen
  std::int64_t held_until_ms_ = 0;
  std::int64_t due_ms_ = 0;
  Flight flight_ = Flight::none;
  std::int64_t sent_ms_ = 0;
  bool releasing_ = false;
  int release_left_ = 0;  // tries
};

}  // namespace troupe
