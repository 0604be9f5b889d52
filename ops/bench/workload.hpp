// ops/bench/: troupe-bench, the benchmarks of the whole way through the house. Prints one JSON line per
// measurement on standard output and words on standard error. This header makes the nodes and pods that they
// schedule.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "messages/message.hpp"
#include "messages/uid.hpp"

namespace troupe::bench {

struct WorkloadOptions {
  std::uint32_t nodes = 5000;
  std::uint32_t classes = 20;
  bool unique_labels = false;  // every pod has labels of its own
  bool soft_taints =
      false;  // PreferNoSchedule taints on a third of the nodes, and preferred affinity on every other class
};

/// Makes fb::Node and fb::Pod messages as the decoder would. Deterministic.
class Workload {
 public:
  explicit Workload(const WorkloadOptions& options);

  [[nodiscard]] std::vector<Message> nodes() const;
  /// Pod number `i`, of class i * 2654435761 mod classes (so that neighbours differ), unbound.
  Message pod(std::uint64_t i) { return make_pod(i, {}); }
  /// Pod number `i` bound to node i mod nodes by another scheduler.
  Message bound_pod(std::uint64_t i);

  static std::string pod_name(std::uint64_t i) { return "pod-" + std::to_string(i); }
  static std::string node_name(std::uint32_t i) { return "node-" + std::to_string(i); }

 private:
  Message make_pod(std::uint64_t i, const std::string& node);

  WorkloadOptions options_;
  std::vector<std::vector<std::uint8_t>> class_bytes_;
  flatbuffers::FlatBufferBuilder builder_{1024};
};

}  // namespace troupe::bench
