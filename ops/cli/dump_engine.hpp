// A cluster dump loaded into the local engine: what simulate and explain -f share.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "k8s-bridge/dump/dump.hpp"
#include "ops/engine/local_engine.hpp"

namespace troupe::cli {

struct DumpOptions {
  std::vector<std::string> files;            // as read_dump takes them
  std::vector<std::string> scheduler_names;  // empty: every scheduler's pods are placed
  std::uint64_t seed = 1;
  bool decide = true;
};

struct LoadedDump {
  ClusterDump dump;
  std::unique_ptr<LocalEngine> engine;  // holds the objects; settled
};

/// Errors: what read_dump says.
Result<LoadedDump> load_dump(const DumpOptions& options);

/// Pods without a node that are not being deleted and have not finished.
bool is_pending(const Message& pod);

}  // namespace troupe::cli
