// What a node is, apart from what runs on it: the row form of fb::Node, for one owner. Placement keeps the
// same facts in columns.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "actors/placement/node_view.hpp"
#include "actors/placement/pod_class.hpp"
#include "messages/fb/node_generated.h"

namespace troupe {

struct NodeFacts {
  StringId name = 0;
  bool present = false;  // false: unknown, or deleted while pods remain
  bool unschedulable = false;
  std::int64_t allowed_pods = 0;
  std::vector<std::int64_t> allocatable;              // by ResourceId; missing ones are 0
  std::vector<Taint> taints;                          // declared order
  std::vector<std::pair<StringId, StringId>> labels;  // sorted by key
  std::vector<ImageState> images;

  [[nodiscard]] StringId label(StringId key) const;
  [[nodiscard]] std::int64_t allocatable_of(ResourceId resource) const {
    return resource < allocatable.size() ? allocatable[resource] : 0;
  }
};

/// Interns what `wire` says. `pods` becomes allowed_pods.
NodeFacts compile(const fb::Node& wire, Interner& interner);

}  // namespace troupe
