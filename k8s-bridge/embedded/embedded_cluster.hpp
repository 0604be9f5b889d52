// embedded/: the cluster of `troupe up` and of the benchmarks. Nodes, pods, namespaces and priority classes
// live in memory behind the same ClusterPort as a real API server; binds, evictions, deletes, status patches
// and events take effect at once, with the API server's checks.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "k8s-bridge/port.hpp"
#include "messages/fb/node_generated.h"

namespace troupe {

struct EmbeddedOptions {
  std::size_t event_ring = 1024;  // how many of the latest events are kept
};

/// Names an object of the embedded cluster; `ns` is empty for kinds without a namespace.
struct ObjectName {
  fb::ObjectKind kind{};
  std::string ns;
  std::string name;
};

/// One worker thread takes everything in the order given and calls the sink, many changes at a time; every
/// method is thread-safe and returns without waiting for it, but for `stop` and `settle`. Before `start`,
/// what is put and removed waits.
class EmbeddedCluster final : public ClusterPort {
 public:
  explicit EmbeddedCluster(EmbeddedOptions options = {});
  ~EmbeddedCluster() override;

  /// Creates objects (Kind::pod, node, name_space, priority_class) or replaces those of the same name. A pod
  /// of a known name with another UID replaces it as delete and create would.
  void put(std::vector<Message> objects);
  void add_node(Message node) { put_one(std::move(node)); }
  void add_pod(Message pod) { put_one(std::move(pod)); }

  /// Objects that do not exist are passed over.
  void remove(std::vector<ObjectName> names);
  void delete_pod(std::string ns, std::string name);
  /// Its pods stay, as they do at an API server.
  void delete_node(std::string name);

  /// Returns when all that was put, removed and issued before has been handed to the sink.
  void settle();

  /// The latest events, oldest first: Kind::intent messages that carry an EventNote.
  [[nodiscard]] std::vector<Message> events() const;

  Result<void> start(ClusterSink& sink) override;
  /// An intent may name one in `after` that was issued before it or together with it.
  void issue(std::vector<Message> intents) override;
  void stop() override;
  [[nodiscard]] PortStats stats() const override;

 private:
  void put_one(Message object);

  class Worker;
  std::unique_ptr<Worker> worker_;
};

}  // namespace troupe
