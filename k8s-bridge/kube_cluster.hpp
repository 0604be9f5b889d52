// The ClusterPort of a real Kubernetes: one reflector per mirrored kind, the intent executor, and, where
// several instances stand by for each other, leader election by a Lease.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "k8s-bridge/http.hpp"
#include "k8s-bridge/intents/executor.hpp"
#include "k8s-bridge/lease/election.hpp"
#include "k8s-bridge/port.hpp"
#include "k8s-bridge/reflect/reflector.hpp"
#include "k8s-bridge/timers.hpp"

namespace troupe {

struct KubeClusterOptions {
  ApiServer server;
  HttpOptions http;  // `connections` is for intents; lists, watches and the Lease have their own
  ExecutorOptions executor;
  ReflectorOptions reflect;
  std::optional<LeaseOptions> lease;  // absent: no election, active from the start
  /// Reporter of LeaderElection events and of warnings about objects that cannot be understood.
  std::string component = "koord-scheduler";
  /// Whether this process still speaks for a partition; the Lease is looked at besides. Empty: it does.
  AuthorityCheck authority;
  /// executor.dry_run: what would have been carried out.
  std::function<void(const Message&)> would;
  /// A line for the log: who leads, what failed. May be empty.
  std::function<void(const std::string&)> note;
  std::chrono::milliseconds connect_timeout{10'000};
  std::chrono::milliseconds stop_limit{10'000};  // for requests under way; as long again for the Lease
};

/// The sink is called by one thread of this port. After `active(true)` a `synced()` follows as soon as a list
/// of every kind that was begun later has been handed over.
class KubeCluster final : public ClusterPort {
 public:
  /// Error: the URL or TLS material is not usable, or an option is not.
  static Result<std::unique_ptr<KubeCluster>> make(KubeClusterOptions options);

  /// Over given parts. `reads` serves lists, watches and the Lease; `writes` the intents.
  KubeCluster(KubeClusterOptions options, std::unique_ptr<HttpClient> reads,
              std::unique_ptr<HttpClient> writes, std::unique_ptr<Timers> timers);
  ~KubeCluster() override;

  /// Asks for one object of each kind first: an API server that cannot be reached, refuses us, or does not
  /// serve a kind is an error that says so. Later failures are tried again for ever and told to
  /// ClusterSink::trouble.
  Result<void> start(ClusterSink& sink) override;
  void issue(std::vector<Message> intents) override;
  void stop() override;
  [[nodiscard]] PortStats stats() const override;

  /// Whether this process may act, this very moment.
  [[nodiscard]] bool leading() const;
  /// False when the Lease has not been renewed for too long (spec 5.11); true without election.
  [[nodiscard]] bool healthy() const;
  /// Who holds the Lease, as far as known; empty: nobody, or no election.
  [[nodiscard]] std::string leader() const;
  [[nodiscard]] ExecutorStats executor_stats() const;
  /// In the order of object_kinds().
  [[nodiscard]] std::vector<ReflectorStats> reflector_stats() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace troupe
