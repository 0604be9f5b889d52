// Runs a LeaseElection against the API server.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "k8s-bridge/http.hpp"
#include "k8s-bridge/lease/election.hpp"
#include "k8s-bridge/timers.hpp"

namespace troupe {

/// Thread-safe; the hooks must not call it. A standby polls every retry period and watches the Lease besides,
/// so that it sees a release at once (where it may not watch, polling alone does). Role changes leave
/// LeaderElection events on the Lease (spec 2.3).
class LeaseElector {
 public:
  struct Hooks {
    /// The role was gained or lost; one call at a time, in order, on the client's or the timer's thread.
    /// Lost: stop at once; `leading()` was false already. Required.
    std::function<void(bool leading)> role;
    /// Something to log: what failed, or who leads. May be empty.
    std::function<void(const std::string& line)> note;
  };

  /// `component`: source of the LeaderElection events, e.g. koord-scheduler. `http` and `timers` outlive the
  /// elector.
  LeaseElector(HttpClient& http, Timers& timers, LeaseOptions options, std::string component, Hooks hooks);
  /// Releases nothing; no hook is called any more.
  ~LeaseElector();
  LeaseElector(const LeaseElector&) = delete;
  LeaseElector& operator=(const LeaseElector&) = delete;

  void start();
  /// Whether this process may act as leader, this very moment. One atomic load and the clock.
  [[nodiscard]] bool leading() const;
  /// Gives the Lease up (drain first) and waits for it, at most for `limit`; whether a standby can take over
  /// at once. The role hook is not called for it. It is no candidate any more afterwards.
  bool release(std::chrono::milliseconds limit);
  /// False when this process leads by what it told but has not renewed for lease_duration + 20 s (spec 5.11).
  [[nodiscard]] bool healthy() const;
  /// Who holds the Lease, as far as known; empty: nobody.
  [[nodiscard]] std::string holder() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace troupe
