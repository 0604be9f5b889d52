// integration/bench/e2e: how fast pods are bound through a real API server, and what of that is ours. In one
// run, alternating: a bare loop of POST binding, the same with one POST event per pod, Troupe, and
// kube-scheduler.
#pragma once

#include <string>
#include <vector>

namespace troupe::bench {

struct E2eOptions {
  int nodes = 5000;
  int pods = 10000;
  int rounds = 3;
  /// Any of bind-loop, bind-event-loop, troupe, kube-scheduler, in this order in every round.
  std::vector<std::string> contenders = {"bind-loop", "bind-event-loop", "troupe", "kube-scheduler"};
  std::string trouped;     // the service to measure; empty: the one beside this program
  bool two_cores = false;  // bound to CPUs 0 and 1, on machines that have more
};

/// Every measurement has an API server, etcd, nodes and pods of its own; all pods exist before the contender
/// starts. Times count from the first bind that a watch shows. Prints a JSON line per measurement and one
/// with the medians and their ratios. Returns 0, or 1 when a contender failed, an event of Troupe's is
/// missing included.
int e2e(const E2eOptions& options);

}  // namespace troupe::bench
