// Paths of the API server's resources.
#pragma once

#include <string>
#include <string_view>

namespace troupe {

/// Appends one path segment or query value, percent-encoded where needed.
void append_url_segment(std::string& out, std::string_view text);

/// /api/v1/namespaces/<namespace>/pods/<name>
std::string pod_path(std::string_view name_space, std::string_view name);

/// /apis/events.k8s.io/v1/namespaces/<namespace>/events; `default` for objects without a namespace.
std::string event_path(std::string_view name_space);

}  // namespace troupe
