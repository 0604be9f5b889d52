// ops/metrics/: what /metrics says, in the Prometheus text format. Names of the scheduler's own facts follow
// kube-scheduler (spec 5.14); what only Troupe has is prefixed troupe_. Everything is read when scraped:
// nothing is added to the hot path. The library behind it (prometheus-cpp) is seen by metrics.cpp alone.
#pragma once

#include <string>
#include <vector>

#include "actors/host/stats.hpp"
#include "actors/placement/placement.hpp"
#include "k8s-bridge/port.hpp"
#include "store/store.hpp"

namespace troupe {

struct MetricsInput {
  std::string profile = "koord-scheduler";  // the scheduler name that the placement serves first
  PlacementStats placement;
  std::vector<HostStats> hosts;
  StoreStats store;
  PortStats port;
  std::uint64_t rejected_objects = 0;
  std::uint64_t quarantined = 0;
  bool leader = false;
  bool ready = false;
};

/// The whole page.
std::string metrics_text(const MetricsInput& input);

}  // namespace troupe
