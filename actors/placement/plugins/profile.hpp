// A scheduling profile: which plugins run at which point, with which weights and arguments (spec 4.1 to 4.3).
// `Profile` is what a configuration says, in strings; `CompiledProfile` is the same with ids of one Interner.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "actors/placement/plugins/plugin.hpp"
#include "messages/message.hpp"

namespace troupe {

struct EnabledPlugin {
  PluginId plugin{};
  std::int32_t weight = 0;  // score only; 0 counts as 1
};

enum class ScoringType : std::uint8_t { least_allocated, most_allocated, requested_to_capacity_ratio };

struct ScoringResource {
  std::string name;
  std::int32_t weight = 1;  // 1 to 100; 0 counts as 1
};

struct UtilizationPoint {
  std::int32_t utilization = 0;  // per cent, strictly increasing along a shape
  std::int32_t score = 0;        // 0 to 10
};

struct NodeResourcesFitArgs {
  std::vector<std::string> ignored_resources;        // extended resources that the filter leaves out
  std::vector<std::string> ignored_resource_groups;  // likewise, by domain
  ScoringType type = ScoringType::least_allocated;
  std::vector<ScoringResource> resources = {{"cpu", 1}, {"memory", 1}};
  std::vector<UtilizationPoint> shape;  // requested_to_capacity_ratio
};

struct NodeResourcesBalancedAllocationArgs {
  std::vector<std::string> resources = {"cpu", "memory"};  // every weight is 1
};

struct NodeAffinityArgs {
  /// addedAffinity, ANDed to every pod of the profile: the bytes of an fb::PodClass of which has_required,
  /// required and preferred count. Empty: none.
  Bytes added_affinity;
};

struct Profile {
  std::string scheduler_name = "koord-scheduler";
  std::array<std::vector<EnabledPlugin>, kPoints> plugins;  // by Point, in order
  NodeResourcesFitArgs node_resources_fit;
  NodeResourcesBalancedAllocationArgs balanced_allocation;
  NodeAffinityArgs node_affinity;

  /// Every plugin at every point that it implements, default order, weights and arguments.
  static Profile standard(std::string scheduler_name = "koord-scheduler");

  [[nodiscard]] std::vector<EnabledPlugin>& at(Point point) {
    return plugins[static_cast<std::size_t>(point)];
  }
  [[nodiscard]] const std::vector<EnabledPlugin>& at(Point point) const {
    return plugins[static_cast<std::size_t>(point)];
  }
  /// Takes the plugin out of that point; false if it was not there.
  bool disable(Point point, PluginId plugin);
  /// Sets the weight of a plugin at `point`, appending it where it is absent.
  void enable(Point point, PluginId plugin, std::int32_t weight = 0);
};

/// A resource of a scoring strategy.
struct CompiledScoringResource {
  ResourceId resource = 0;
  std::int32_t weight = 1;
  bool scalar = false;  // left out for pods that do not request it
};

struct CompiledProfile {
  std::string scheduler_name;
  std::vector<PluginId> filters;      // in order
  std::vector<EnabledPlugin> scores;  // in order; weights >= 1
  PluginSet pre_enqueue;
  PluginSet pre_filters;
  Taint unschedulable_taint;  // node.kubernetes.io/unschedulable:NoSchedule

  ScoringType scoring = ScoringType::least_allocated;
  std::vector<CompiledScoringResource> fit_resources;
  std::array<std::int32_t, 101> ratio_score{};  // requested_to_capacity_ratio by utilization
  std::vector<std::string> ignored_resources;
  std::vector<std::string> ignored_resource_groups;
  std::vector<CompiledScoringResource> balanced_resources;

  bool has_added_affinity = false;
  PodClass added_affinity;
};

/// The profile must be valid (spec 4.2).
CompiledProfile compile(const Profile& profile, Interner& interner);

/// Whether a resource is extended, hugepages-*, prefixed by a native domain, or attachable-volumes-* (spec
/// 3).
bool is_scalar_resource(std::string_view name);
/// A scalar of a foreign domain: the only kind that ignoredResources may name.
bool is_extended_resource(std::string_view name);

/// Piecewise linear score by utilization (0 to 100), constant outside the shape; scores times ten, segment
/// arithmetic in integers, truncating (spec 5.6).
std::array<std::int32_t, 101> ratio_scores(const std::vector<UtilizationPoint>& shape);

}  // namespace troupe
