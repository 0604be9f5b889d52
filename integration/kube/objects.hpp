// Objects of the kube tests: how to make nodes and pods, and how to wait for what becomes of them.
#pragma once

#include <chrono>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "integration/kube/rig.hpp"

namespace troupe::rig {

/// Quantities as Kubernetes writes them.
struct NodeShape {
  std::string cpu = "32";
  std::string memory = "128Gi";
  std::string pods = "110";
  std::map<std::string, std::string> labels = {};
};

struct PodShape {
  std::string cpu = "100m";
  std::string memory = "64Mi";
  std::string scheduler = "koord-scheduler";
  std::map<std::string, std::string> labels = {};
};

/// A ready node as a kubelet registers it.
Json node_object(const std::string& name, const NodeShape& shape = {});
Json pod_object(const std::string& space, const std::string& name, const PodShape& shape = {});

std::string pod_path(const std::string& space, const std::string& name = {});
inline std::string node_path(const std::string& name) {
  return "/api/v1/nodes/" + name;
}

/// What one test makes: a namespace of its own and nodes with a prefix of their own. All of it is deleted at
/// the end, nodes and pods at once.
class Playground {
 public:
  explicit Playground(KubeRig& rig);
  Playground(const Playground&) = delete;
  Playground& operator=(const Playground&) = delete;
  ~Playground();

  [[nodiscard]] const std::string& space() const { return space_; }
  KubeRig& rig() { return rig_; }

  /// The node or pod as the API server answered. Node names get the playground's prefix; `node_name` is that
  /// rule.
  Json create_node(const std::string& name, const NodeShape& shape = {});
  [[nodiscard]] std::string node_name(const std::string& name) const { return space_ + "-" + name; }
  Json create_pod(const std::string& name, const PodShape& shape = {});
  Json create_pod_object(const Json& pod);
  /// <prefix>0, <prefix>1, ...
  void create_nodes(const std::string& prefix, int count, const NodeShape& shape = {});
  void create_pods(const std::string& prefix, int count, const PodShape& shape = {});

  Json pod(const std::string& name);
  void delete_pod(const std::string& name);
  /// POST binding as the administrator: the other scheduler of a test.
  KubeAnswer bind(const std::string& pod, const std::string& node);
  /// spec.nodeName per pod; an empty text for those without.
  std::map<std::string, std::string> placements();
  /// The events of this namespace, oldest first; only those about `pod` and of `reason`, where given.
  std::vector<Json> events(const std::string& pod = {}, const std::string& reason = {});

  /// Waits until `count` pods are bound; returns whether they were in time.
  bool wait_bound(std::size_t count, std::chrono::milliseconds limit = std::chrono::seconds(30));
  bool wait_event(const std::string& pod, const std::string& reason,
                  std::chrono::milliseconds limit = std::chrono::seconds(30));

 private:
  KubeRig& rig_;
  std::string space_;
  std::set<std::string> nodes_;
};

/// One finished command of the peer program (rig/peer): its JSON lines. Throws when it failed.
std::vector<Json> peer(KubeRig& rig, std::vector<std::string> arguments,
                       std::chrono::milliseconds limit = std::chrono::minutes(10));

}  // namespace troupe::rig
