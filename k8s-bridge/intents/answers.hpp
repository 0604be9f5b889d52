// What the API server's answers say about a pod, and why it refused.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "messages/error.hpp"

namespace troupe {

/// The part of a pod that tells whether an intent took effect, or still can.
struct PodState {
  std::string uid;
  std::string resource_version;
  std::int64_t generation = 0;
  bool deleting = false;
  std::string node_name;
};

/// Reads a v1 Pod. Error: not a JSON object with metadata.uid and metadata.resourceVersion.
Result<PodState> read_pod_state(std::string_view json);

/// The message of a v1 Status; of anything else the beginning of the text. At most 1 KiB.
std::string status_message(std::string_view body);

/// details.retryAfterSeconds of a v1 Status, in ms; 0 when absent.
std::int64_t status_retry_after_ms(std::string_view body);

}  // namespace troupe
