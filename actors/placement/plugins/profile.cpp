#include "actors/placement/plugins/profile.hpp"

#include <algorithm>

#include "actors/placement/plugins/default_plugins.hpp"

namespace troupe {
namespace {

std::vector<CompiledScoringResource> compile_resources(const std::vector<ScoringResource>& resources,
                                                       Interner& interner) {
  std::vector<CompiledScoringResource> out;
  for (const ScoringResource& r : resources) {
    const bool native = r.name == "cpu" || r.name == "memory" || r.name == "ephemeral-storage";
    const bool scalar = is_scalar_resource(r.name);
    if (!native && !scalar) continue;  // kube-scheduler keeps no account of other names
    out.push_back({interner.resource(r.name), std::max(r.weight, 1), scalar});
  }
  return out;
}

}  // namespace

Profile Profile::standard(std::string scheduler_name) {
  Profile profile;
  profile.scheduler_name = std::move(scheduler_name);
  for_each_plugin([&profile]<class P>(P) {
    for (std::size_t i = 0; i < kPoints; ++i) {
      const auto point = static_cast<Point>(i);
      if (!P::points.contains(point)) continue;
      std::int32_t weight = 0;
      if constexpr (ScorePlugin<P>) weight = point == Point::score ? P::default_weight : 0;
      profile.at(point).push_back({P::id, weight});
    }
  });
  return profile;
}

bool Profile::disable(Point point, PluginId plugin) {
  return std::erase_if(at(point), [plugin](const EnabledPlugin& p) { return p.plugin == plugin; }) > 0;
}

void Profile::enable(Point point, PluginId plugin, std::int32_t weight) {
  for (EnabledPlugin& p : at(point)) {
    if (p.plugin != plugin) continue;
    p.weight = weight;
    return;
  }
  at(point).push_back({plugin, weight});
}

CompiledProfile compile(const Profile& profile, Interner& interner) {
  CompiledProfile out;
  out.scheduler_name = profile.scheduler_name;
  for (const EnabledPlugin& p : profile.at(Point::pre_enqueue)) out.pre_enqueue.insert(p.plugin);
  for (const EnabledPlugin& p : profile.at(Point::pre_filter)) out.pre_filters.insert(p.plugin);
  for (const EnabledPlugin& p : profile.at(Point::filter)) out.filters.push_back(p.plugin);
  for (const EnabledPlugin& p : profile.at(Point::score))
    out.scores.push_back({p.plugin, std::max(p.weight, 1)});
  out.unschedulable_taint = {interner.id("node.kubernetes.io/unschedulable"), kEmptyString,
                             fb::TaintEffect::NoSchedule};

  const NodeResourcesFitArgs& fit = profile.node_resources_fit;
  out.scoring = fit.type;
  out.fit_resources = compile_resources(fit.resources, interner);
  out.ratio_score = ratio_scores(fit.shape);
  out.ignored_resources = fit.ignored_resources;
  out.ignored_resource_groups = fit.ignored_resource_groups;
  std::vector<ScoringResource> balanced;
  for (const std::string& name : profile.balanced_allocation.resources) balanced.push_back({name, 1});
  out.balanced_resources = compile_resources(balanced, interner);

  if (!profile.node_affinity.added_affinity.empty()) {
    out.has_added_affinity = true;
    out.added_affinity =
        compile(*flatbuffers::GetRoot<fb::PodClass>(profile.node_affinity.added_affinity.data()), interner);
  }
  return out;
}

bool is_extended_resource(std::string_view name) {
  return name.find('/') != std::string_view::npos && name.find("kubernetes.io/") == std::string_view::npos &&
         !name.starts_with("requests.");
}

bool is_scalar_resource(std::string_view name) {
  return is_extended_resource(name) || name.starts_with("hugepages-") ||
         name.find("kubernetes.io/") != std::string_view::npos || name.starts_with("attachable-volumes-");
}

std::array<std::int32_t, 101> ratio_scores(const std::vector<UtilizationPoint>& shape) {
  constexpr std::int32_t kScale = 10;  // a shape scores 0 to 10, a node 0 to 100
  std::array<std::int32_t, 101> scores{};
  for (std::int32_t u = 0; u <= 100; ++u) {
    const auto right = std::find_if(shape.begin(), shape.end(),
                                    [u](const UtilizationPoint& p) { return u <= p.utilization; });
    std::int32_t& score = scores[static_cast<std::size_t>(u)];
    if (shape.empty()) continue;
    if (right == shape.end()) {
      score = shape.back().score * kScale;
    } else if (right == shape.begin()) {
      score = right->score * kScale;
    } else {
      const UtilizationPoint& left = *(right - 1);
      score = left.score * kScale + (right->score - left.score) * kScale * (u - left.utilization) /
                                        (right->utilization - left.utilization);
    }
  }
  return scores;
}

}  // namespace troupe
