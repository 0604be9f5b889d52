// k8s-bridge/intents/: carries out intents at the API server (protocols 14 and 15). IntentMachine decides
// (pure: no clock, no thread, no network); IntentExecutor is its shell around an HttpClient and Timers.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "k8s-bridge/http.hpp"
#include "k8s-bridge/timers.hpp"
#include "messages/message.hpp"

namespace troupe {

/// Whether this replica still speaks for the partition in that epoch. Called under the executor's lock and on
/// the client's threads, before each write: quick, thread-safe, and never calling back.
using AuthorityCheck = std::function<bool(std::uint32_t partition, std::uint64_t epoch)>;

struct ExecutorOptions {
  int concurrency = 64;             // requests under way at once; not more than the client's connections
  int background_concurrency = 32;  // of these, events and plain status patches
  /// Events and plain status patches wait while binds keep the API server busy (one event per bind halves the
  /// bind rate), but not longer than this: then they get every second request until they have caught up.
  std::int64_t background_wait_ms = 10'000;
  double qps = 0;  // binds, evictions, deletes and what waits for them; requests per second, 0: no limit
  int burst = 1;
  double background_qps = 0;  // events and plain status patches
  int background_burst = 1;
  std::int64_t backoff_ms = 100;  // first pause after an answer that means "again"; doubles, jittered
  std::int64_t backoff_max_ms = 10'000;
  std::int64_t conflict_pause_ms = 10;     // before a bind with a fresh resourceVersion; doubles
  int conflict_tries = 5;                  // fresh resourceVersions per bind
  std::int64_t eviction_pause_ms = 5'000;  // after 429 to an eviction without Retry-After (spec 5.9)
  std::chrono::milliseconds request_timeout{30'000};
  std::string host_name;   // reportingInstance of events: <controller>-<host_name>
  bool dry_run = false;    // issue nothing: each intent goes to `would` and ends as Done
  std::uint64_t seed = 1;  // of the jitter
  std::int64_t started_ms =
      0;  // Unix ms; binds created before are read first. 0: the executor's construction
};

/// Counts since start. Arrays are indexed by fb::IntentKind and fb::IntentOutcome.
struct ExecutorStats {
  std::array<std::uint64_t, 5> issued{};
  std::array<std::array<std::uint64_t, 5>, 5> outcomes{};  // [kind][outcome]
  std::uint64_t requests = 0;
  std::uint64_t retries = 0;    // requests sent again, or answered by reading
  std::uint64_t waiting = 0;    // intents not complete, those under way included
  std::uint64_t in_flight = 0;  // requests
  std::uint64_t urgent_queued = 0;
  std::uint64_t background_queued = 0;
  /// Bind latency, from issue to decided: bucket i counts those below 2^i ms (the last one all others).
  std::array<std::uint64_t, 17> bind_latency{};
  std::uint64_t bind_latency_sum_ms = 0;
};

/// Carries out intents. Thread-safe.
///
/// - Lanes: Bind, Evict, Delete, and whatever one of these waits for, are urgent; events and other status
/// patches are
///   background. Intents of one object take effect in the order in which they were issued (an Event is an
///   object of its own); an intent with `after` starts when that one has taken effect, and ends as Refused if
///   it did not.
/// - An id that is still pending is not taken twice; if its bind is decided, the Effect is told again.
/// - Results: a Bind that carries an event gives Effect/Done when it is bound, and Complete/Done when the
/// event has
///   arrived (or was refused for good: then `message` says so); everything else gives one Complete. Stopped
///   means: not known to have taken effect, leave it in the journal (of a bind whose Effect was told: its
///   event is missing). Intents with id 0 belong to nobody and give no result.
class IntentExecutor {
 public:
  struct Hooks {
    AuthorityCheck authority;  // required
    /// Kind::intent_result, in the order in which they settled; one call at a time, on whatever thread caused
    /// it (issue's caller, the client's, the timer's). Required.
    std::function<void(std::vector<Message>)> settled;
    /// dry_run only: the intent (Kind::intent) that would have been carried out.
    std::function<void(const Message&)> would;
  };

  /// `http` and `timers` outlive the executor.
  IntentExecutor(HttpClient& http, Timers& timers, ExecutorOptions options, Hooks hooks);
  /// Waits for requests under way; abort the client first to make that short.
  ~IntentExecutor();
  IntentExecutor(const IntentExecutor&) = delete;
  IntentExecutor& operator=(const IntentExecutor&) = delete;

  /// Takes intents (Kind::intent, already durable). Never blocks on the network.
  void issue(std::vector<Message> intents);
  /// Orderly end: whatever is not on the wire, events apart, ends as Stopped at once; waits until what is on
  /// the wire is answered and the events have arrived, at most for `limit`; then the rest ends as Stopped.
  /// Later intents are Stopped.
  void stop(std::chrono::milliseconds limit);

  [[nodiscard]] ExecutorStats stats() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace troupe
