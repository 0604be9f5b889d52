// The nodes and pods that `troupe up` schedules.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "messages/error.hpp"
#include "messages/message.hpp"

namespace troupe::cli {

struct UpCluster {
  std::string source;  // one line: what this cluster is
  std::vector<Message> nodes;
  std::vector<Message> pods;  // in the order in which they arrive
};

/// The production cluster of the openb trace, from the table of its shapes; with `trace`, from its original
/// files.
Result<UpCluster> up_cluster(const std::vector<std::string>& trace, std::uint64_t seed);

}  // namespace troupe::cli
