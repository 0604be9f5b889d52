// The service as a process, against a real API server.
#pragma once

#include "ops/daemon/options.hpp"

namespace troupe {

/// Runs until SIGTERM or SIGINT (drains, exit code 0) or until it cannot go on (exit code 1). `options` are
/// valid.
int run_daemon(const DaemonOptions& options);

}  // namespace troupe
