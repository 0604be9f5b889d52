// ops/openb/: a production cluster to schedule. The openb trace (Alibaba, 2023: 1,523 nodes, 6,212 GPUs,
// 8,152 pods) as nodes and pending pods: from a built-in table of its shapes, or from the trace's own CSV
// files.
//
// GPUs are the scalar resource koordinator.sh/gpu-core, 100 per GPU; a pod that shares one asks for gpu_milli
// / 10, rounded up. Memory is MiB in the trace. A node takes 110 pods, the kubelet's default (the trace names
// no limit). A node's GPU model is its label node.koordinator.sh/gpu-model, a pod's gpu_spec a required node
// affinity on that label. QoS is the pod's label koordinator.sh/qosClass: LS and BE as they are, Guaranteed
// -> LSR and Burstable -> LS, as Koordinator maps the Kubernetes classes.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "messages/error.hpp"
#include "messages/message.hpp"

namespace troupe {

struct OpenbNodeShape {
  std::int64_t cpu_milli = 0;
  std::int64_t memory_mib = 0;
  std::int64_t gpus = 0;
  std::string_view model;  // empty: no GPU
  std::uint32_t count = 0;
};

struct OpenbPodShape {
  std::int64_t cpu_milli = 0;
  std::int64_t memory_mib = 0;
  std::int64_t gpus = 0;
  std::int64_t gpu_milli = 0;  // of each GPU; below 1000: a share of one
  std::string_view qos;        // LS, BE, Burstable, Guaranteed
  std::uint32_t count = 0;
};

/// Nodes and pods in the order in which they come; pods are pending.
struct OpenbWorkload {
  std::vector<Message> nodes;  // Kind::node
  std::vector<Message> pods;   // Kind::pod
  std::int64_t gpus = 0;       // of all nodes
};

struct OpenbOptions {
  std::uint64_t seed = 1;  // orders the built-in shapes; the same seed gives the same bytes
  std::string scheduler_name = "koord-scheduler";
  std::string name_space = "openb";
};

std::span<const OpenbNodeShape> openb_node_shapes();
std::span<const OpenbPodShape> openb_pod_shapes();

/// The whole cluster from the built-in table.
OpenbWorkload openb_workload(const OpenbOptions& options);

/// From the trace's files, node lists and pod lists in any order (told apart by their header), in the order
/// of their lines. What no file gives (nodes or pods) comes from the table. Errors: `field` is "line N,
/// column NAME".
Result<OpenbWorkload> read_openb(std::span<const std::string> files, const OpenbOptions& options);

}  // namespace troupe
