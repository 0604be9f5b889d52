#include "ops/openb/objects.hpp"

#include <algorithm>

#include "messages/uid.hpp"

namespace troupe::openb {
namespace {

constexpr std::string_view kGpuCore = "koordinator.sh/gpu-core";
constexpr std::string_view kGpuModel = "node.koordinator.sh/gpu-model";
constexpr std::string_view kQosClass = "koordinator.sh/qosClass";
constexpr std::int64_t kMiB = std::int64_t{1} << 20;
constexpr std::int64_t kPodsPerNode = 110;
constexpr std::int64_t kCorePerGpu = 100;
constexpr std::int64_t kMilliPerGpu = 1000;

// A UID of the object's own that is the same in every run.
std::string uid_of(std::string_view kind, std::string_view name) {
  return PodUid::parse(std::string("openb/").append(kind).append("/").append(name)).text();
}

std::int64_t gpu_core(const OpenbPodShape& shape) {
  if (shape.gpus != 1) return shape.gpus * kCorePerGpu;
  const std::int64_t per_core = kMilliPerGpu / kCorePerGpu;
  return (shape.gpu_milli + per_core - 1) / per_core;
}

std::string_view qos_class(std::string_view qos) {
  if (qos == "Guaranteed") return "LSR";
  if (qos == "Burstable") return "LS";
  if (qos == "BestEffort") return "BE";
  return qos;
}

}  // namespace

Message ObjectMaker::node(std::string_view name, const OpenbNodeShape& shape) {
  node_.clear();
  const std::string uid = uid_of("node", name);
  node_.name = name;
  node_.uid = uid;
  node_.resource_version = "1";
  node_.labels.push_back({"kubernetes.io/hostname", name});
  if (!shape.model.empty()) node_.labels.push_back({kGpuModel, shape.model});
  node_.allocatable.push_back({"cpu", shape.cpu_milli});
  node_.allocatable.push_back({"memory", shape.memory_mib * kMiB});
  node_.allocatable.push_back({"pods", kPodsPerNode});
  if (shape.gpus > 0) node_.allocatable.push_back({kGpuCore, shape.gpus * kCorePerGpu});
  node_.conditions.push_back({"Ready", "True"});
  return node_writer_.write(node_);
}

Message ObjectMaker::pod(const PodLine& line) {
  pod_.clear();
  const std::string uid = uid_of("pod", line.name);
  pod_.name_space = options_.name_space;
  pod_.name = line.name;
  pod_.uid = uid;
  pod_.resource_version = "1";
  pod_.generation = 1;
  pod_.creation_ms = line.creation_ms;
  pod_.scheduler_name = options_.scheduler_name;
  pod_.phase = "Pending";
  if (!line.shape.qos.empty()) pod_.labels.push_back({kQosClass, qos_class(line.shape.qos)});

  PodClassFields& spec = pod_.spec;
  const std::int64_t memory = line.shape.memory_mib * kMiB;
  spec.requests.push_back({"cpu", line.shape.cpu_milli});
  spec.requests.push_back({"memory", memory});
  spec.requests.push_back({kGpuCore, gpu_core(line.shape)});
  // Each pod is one container that states both.
  spec.non_zero_cpu_milli = line.shape.cpu_milli;
  spec.non_zero_memory_bytes = memory;
  if (!line.gpu_spec.empty()) {
    for (std::string_view rest = line.gpu_spec; !rest.empty();) {
      const std::size_t bar = std::min(rest.find('|'), rest.size());
      if (bar > 0) spec.values.push_back(rest.substr(0, bar));
      rest.remove_prefix(std::min(bar + 1, rest.size()));
    }
    const auto values = static_cast<std::uint32_t>(spec.values.size());
    spec.requirements.push_back({kGpuModel, fb::SelectorOperator::In, {0, values}});
    spec.required.push_back({{0, 1}, {}});
    spec.has_required = true;
  }
  return pod_writer_.write(pod_);
}

}  // namespace troupe::openb
