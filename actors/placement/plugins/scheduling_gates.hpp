// SchedulingGates: a pod with gates does not enter the queue (spec 5.3.2).
#pragma once

#include <ranges>
#include <string>

#include "actors/placement/plugins/plugin.hpp"

namespace troupe {

struct SchedulingGates {
  static constexpr std::string_view name = "SchedulingGates";
  static constexpr PluginId id = PluginId::scheduling_gates;
  static constexpr Points points{Point::pre_enqueue};
  static constexpr Code code = Code::unschedulable_and_unresolvable;

  /// Empty when the pod may enter; else why not.
  template <std::ranges::input_range Gates>
  static std::string refuse(const Gates& gates) {
    std::string message;
    for (const auto& gate : gates) {
      message += message.empty() ? "waiting for scheduling gates: [" : " ";
      message += std::string_view(gate);
    }
    if (!message.empty()) message += ']';
    return message;
  }
};

}  // namespace troupe
