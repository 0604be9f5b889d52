// k8s-bridge/: the one way in and out of Kubernetes. A ClusterPort mirrors objects into messages and carries
// out intents. Two implementations: KubeCluster (a real kube-apiserver) and EmbeddedCluster (in-memory nodes
// and pods behind the same port).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "messages/error.hpp"
#include "messages/message.hpp"

namespace troupe {

/// What a port tells the service. Calls come from the port's own threads, one at a time.
class ClusterSink {
 public:
  virtual ~ClusterSink() = default;
  /// Objects added or changed (Kind::pod, node, name_space, priority_class) or gone (Kind::gone); order kept
  /// per object. An object that was deleted and recreated arrives as gone, then added.
  virtual void changed(std::vector<Message> changes) = 0;
  /// The first consistent list of every kind has been handed to `changed`. Called again after each later gain
  /// of the role.
  virtual void synced() = 0;
  /// Kind::intent_result, in the order in which they settled.
  virtual void settled(std::vector<Message> results) = 0;
  /// An object that cannot be understood: a warning event has been queued; for metrics and logs.
  virtual void rejected(const Error& error) = 0;
  /// Something fails and is tried again: a list is refused, the API server cannot be reached. For logs; told
  /// once until it changes.
  virtual void trouble(const Error& error) { (void)error; }
  /// The role (active by Lease) was gained or lost. A port without election says `true` once, at start.
  virtual void active(bool active) = 0;
};

struct PortStats {
  std::uint64_t intents_done = 0;
  std::uint64_t intents_failed = 0;
  std::uint64_t intents_waiting = 0;
  std::uint64_t requests = 0;
  std::uint64_t relists = 0;
  std::uint64_t rejected_objects = 0;
};

class ClusterPort {
 public:
  virtual ~ClusterPort() = default;
  /// Begins to mirror. Returns when the first connection is made or an error tells why it cannot be.
  virtual Result<void> start(ClusterSink& sink) = 0;
  /// Takes durable intents (Kind::intent); each ends in exactly one IntentResult of stage Complete, whatever
  /// happens, unless the process dies. Thread-safe, never blocks on the network.
  virtual void issue(std::vector<Message> intents) = 0;
  /// Stops taking changes; finishes requests under way, returns the rest unsettled; then releases the Lease.
  virtual void stop() = 0;
  [[nodiscard]] virtual PortStats stats() const = 0;
};

}  // namespace troupe
