#include "integration/kube/objects.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <sstream>
#include <stdexcept>

namespace troupe::rig {

Json node_object(const std::string& name, const NodeShape& shape) {
  Json labels = {{"kubernetes.io/hostname", name}, {"kubernetes.io/os", "linux"}};
  for (const auto& [key, value] : shape.labels) labels[key] = value;
  const Json resources = {{"cpu", shape.cpu}, {"memory", shape.memory}, {"pods", shape.pods}};
  return {{"apiVersion", "v1"},
          {"kind", "Node"},
          {"metadata", {{"name", name}, {"labels", labels}}},
          {"status",
           {{"capacity", resources},
            {"allocatable", resources},
            {"conditions", {{{"type", "Ready"}, {"status", "True"}, {"reason", "KubeletReady"}}}}}}};
}

Json pod_object(const std::string& space, const std::string& name, const PodShape& shape) {
  Json labels = Json::object();
  for (const auto& [key, value] : shape.labels) labels[key] = value;
  Json requests = Json::object();
  if (!shape.cpu.empty()) requests["cpu"] = shape.cpu;
  if (!shape.memory.empty()) requests["memory"] = shape.memory;
  return {{"apiVersion", "v1"},
          {"kind", "Pod"},
          {"metadata", {{"namespace", space}, {"name", name}, {"labels", labels}}},
          {"spec",
           {{"schedulerName", shape.scheduler},
            {"automountServiceAccountToken", false},
            {"containers",
             {{{"name", "main"},
               {"image", "registry.example/app:1"},
               {"resources", {{"requests", requests}}}}}}}}};
}

std::string pod_path(const std::string& space, const std::string& name) {
  return "/api/v1/namespaces/" + space + "/pods" + (name.empty() ? "" : "/" + name);
}

Playground::Playground(KubeRig& rig) : rig_(rig) {
  static std::atomic<int> count{0};
  space_ = "t" + std::to_string(::getpid()) + "-" + std::to_string(++count);
  rig_.admin().create("/api/v1/namespaces",
                      {{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", space_}}}});
}

Playground::~Playground() {
  try {
    rig_.admin().remove(pod_path(space_));
    for (const auto& node : nodes_) rig_.admin().remove(node_path(node));
    rig_.admin().remove("/api/v1/namespaces/" + space_);
  } catch (const std::exception&) {
    // The cluster of this test is gone; so are its objects.
  }
}

Json Playground::create_node(const std::string& name, const NodeShape& shape) {
  nodes_.insert(node_name(name));
  return rig_.admin().create("/api/v1/nodes", node_object(node_name(name), shape));
}

Json Playground::create_pod(const std::string& name, const PodShape& shape) {
  return create_pod_object(pod_object(space_, name, shape));
}

Json Playground::create_pod_object(const Json& pod) {
  return rig_.admin().create(pod_path(space_), pod);
}

void Playground::create_nodes(const std::string& prefix, int count, const NodeShape& shape) {
  for (int i = 0; i < count; ++i) create_node(prefix + std::to_string(i), shape);
}

void Playground::create_pods(const std::string& prefix, int count, const PodShape& shape) {
  for (int i = 0; i < count; ++i) create_pod(prefix + std::to_string(i), shape);
}

Json Playground::pod(const std::string& name) {
  return rig_.admin().get(pod_path(space_, name));
}

void Playground::delete_pod(const std::string& name) {
  rig_.admin().remove(pod_path(space_, name));
}

KubeAnswer Playground::bind(const std::string& pod, const std::string& node) {
  const Json binding = {{"apiVersion", "v1"},
                        {"kind", "Binding"},
                        {"metadata", {{"namespace", space_}, {"name", pod}}},
                        {"target", {{"kind", "Node"}, {"name", node}}}};
  return rig_.admin().request("POST", pod_path(space_, pod) + "/binding", binding.dump());
}

std::map<std::string, std::string> Playground::placements() {
  std::map<std::string, std::string> placements;
  const auto list = rig_.admin().get(pod_path(space_));
  for (const auto& pod : list.at("items")) {
    placements[pod.at("metadata").at("name")] = pod.at("spec").value("nodeName", "");
  }
  return placements;
}

std::vector<Json> Playground::events(const std::string& pod, const std::string& reason) {
  std::vector<Json> chosen;
  const auto list = rig_.admin().get("/apis/events.k8s.io/v1/namespaces/" + space_ + "/events");
  for (const auto& event : list.at("items")) {
    const bool about = pod.empty() || event.at("regarding").value("name", "") == pod;
    if (about && (reason.empty() || event.value("reason", "") == reason)) chosen.push_back(event);
  }
  std::stable_sort(chosen.begin(), chosen.end(), [](const Json& a, const Json& b) {
    return a.at("metadata").value("creationTimestamp", "") < b.at("metadata").value("creationTimestamp", "");
  });
  return chosen;
}

bool Playground::wait_bound(std::size_t count, std::chrono::milliseconds limit) {
  return wait_until(
      [&] {
        const auto all = placements();
        return static_cast<std::size_t>(std::count_if(
                   all.begin(), all.end(), [](const auto& pod) { return !pod.second.empty(); })) >= count;
      },
      limit);
}

bool Playground::wait_event(const std::string& pod, const std::string& reason,
                            std::chrono::milliseconds limit) {
  return wait_until([&] { return !events(pod, reason).empty(); }, limit);
}

std::vector<Json> peer(KubeRig& rig, std::vector<std::string> arguments, std::chrono::milliseconds limit) {
  std::vector<std::string> argv = {(rig.programs() / "peer").string()};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  argv.push_back("--kubeconfig=" + rig.admin_kubeconfig().string());
  const auto finished = run(argv, limit);
  if (finished.status.code != 0) throw std::runtime_error(finished.err);
  std::vector<Json> lines;
  std::istringstream out(finished.out);
  for (std::string line; std::getline(out, line);) lines.push_back(Json::parse(line));
  return lines;
}

}  // namespace troupe::rig
