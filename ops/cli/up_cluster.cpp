#include "ops/cli/up_cluster.hpp"

#include <fmt/format.h>

#include "ops/openb/openb.hpp"

namespace troupe::cli {

Result<UpCluster> up_cluster(const std::vector<std::string>& trace, std::uint64_t seed) {
  const OpenbOptions options{.seed = seed};
  OpenbWorkload workload;
  if (trace.empty()) {
    workload = openb_workload(options);
  } else {
    auto read = read_openb(trace, options);
    if (!read) return fail(read.error());
    workload = std::move(*read);
  }
  UpCluster out;
  out.source = fmt::format("openb: the nodes and pods of a production cluster (Alibaba, 2023), {} GPUs{}",
                           workload.gpus, trace.empty() ? "" : ", from the trace's files");
  out.nodes = std::move(workload.nodes);
  out.pods = std::move(workload.pods);
  return out;
}

}  // namespace troupe::cli
