// Why no node passed: the text of kube-scheduler's FailedScheduling, and the plugins that refused, by which
// the queue knows what could help.
#pragma once

#include <memory>
#include <string>

#include "actors/placement/failure_text.hpp"
#include "actors/placement/plan.hpp"

namespace troupe {

struct Refused {
  std::shared_ptr<const std::string> message;  // shared by equal pods; never null
  PluginSet rejectors;                         // empty: there are no nodes, an error (spec 5.4.4)
};

/// For a pod for which plan() found no node, with the snapshot unchanged since. Counted once per class and
/// state of the snapshot.
Refused explain_refusal(ClassCache& cache, const Snapshot& snapshot, const PodDemand& pod);

}  // namespace troupe
