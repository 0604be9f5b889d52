// DefaultBinder: writes the Binding. The node's owner journals the bind in the write batch of its grant, and
// the bridge issues it, so the plugin here is its name and place in a profile.
#pragma once

#include "actors/placement/plugins/plugin.hpp"

namespace troupe {

struct DefaultBinder {
  static constexpr std::string_view name = "DefaultBinder";
  static constexpr PluginId id = PluginId::default_binder;
  static constexpr Points points{Point::bind};
};

}  // namespace troupe
