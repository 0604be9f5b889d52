// PrioritySort: the order of the active queue (spec 5.3.1).
#pragma once

#include "actors/placement/plugins/plugin.hpp"

namespace troupe {

struct PrioritySort {
  static constexpr std::string_view name = "PrioritySort";
  static constexpr PluginId id = PluginId::priority_sort;
  static constexpr Points points{Point::queue_sort};

  struct Key {
    std::int32_t priority = 0;  // spec.priority, 0 where absent
    std::int64_t time = 0;      // when the pod entered the queue, or re-entered after an attempt
  };

  /// Whether a goes before b: higher priority, then earlier.
  static constexpr bool before(const Key& a, const Key& b) {
    return a.priority != b.priority ? a.priority > b.priority : a.time < b.time;
  }
};

}  // namespace troupe
