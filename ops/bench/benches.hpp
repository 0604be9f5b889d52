// The measurements of troupe-bench. Each prints its lines and returns the exit code.
#pragma once

#include <cstdint>
#include <string>

#include "ops/bench/workload.hpp"

namespace troupe::bench {

struct DecideOptions {
  WorkloadOptions workload;
  double seconds = 30;
  std::uint64_t live = 50'000;    // pods alive at a time, besides `existing`
  std::uint64_t existing = 0;     // pods bound by another scheduler before the start
  std::uint64_t window = 16'000;  // pods created and not yet bound
  std::string directory;          // of the store; empty: a directory in build or the working directory
};

/// Queue, class, overlay, node owners, synced journal, result, settlement and trimming, with deletes and
/// deltas: no API server.
int decide(const DecideOptions& options);

struct SizeOptions {
  std::uint32_t nodes = 5000;
  std::uint64_t pods = 50'000;
  std::string directory;
};

/// Resident memory with everything mirrored, bound and idle.
int memory(const SizeOptions& options);
/// Time to ready, with an empty store and with one of that size (before the first list).
int start(const SizeOptions& options);

}  // namespace troupe::bench
