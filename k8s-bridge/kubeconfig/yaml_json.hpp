// YAML values as JSON text.
#pragma once

#include <string>

namespace YAML {
class Node;
}

namespace troupe {

/// Empty when the value is undefined, deeper than 64 levels or larger than 1 MiB as JSON (aliases can
/// multiply).
std::string yaml_to_json(const YAML::Node& node);

}  // namespace troupe
