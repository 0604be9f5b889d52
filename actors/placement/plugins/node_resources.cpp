#include <algorithm>

#include "actors/placement/plugins/node_resources_balanced_allocation.hpp"
#include "actors/placement/plugins/node_resources_fit.hpp"

namespace troupe {
namespace {

bool ignored(const CompiledProfile& profile, std::string_view resource) {
  if (!is_extended_resource(resource)) return false;
  const std::string_view group = resource.substr(0, resource.find('/'));
  const auto listed = [](const std::vector<std::string>& list, std::string_view name) {
    return std::find(list.begin(), list.end(), name) != list.end();
  };
  return listed(profile.ignored_resources, resource) || listed(profile.ignored_resource_groups, group);
}

std::int64_t amount_of(const std::vector<ResourceRequest>& requests, ResourceId resource) {
  for (const ResourceRequest& r : requests) {
    if (r.resource == resource) return r.amount;
  }
  return 0;
}

}  // namespace

NodeResourcesFit::State NodeResourcesFit::prepare(const PluginContext& context, const PodClass& cls) {
  const CompiledProfile& profile = context.profile;
  State state;
  state.scoring = profile.scoring;
  state.ratio_score = profile.ratio_score.data();
  state.scored.reserve(profile.fit_resources.size());
  for (const CompiledScoringResource& r : profile.fit_resources) {
    const std::int64_t request = r.resource == kCpu      ? cls.score_cpu
                                 : r.resource == kMemory ? cls.score_memory
                                                         : amount_of(cls.score_requests, r.resource);
    if (r.scalar && request == 0) continue;
    state.scored.push_back({r.resource, r.weight, request});
  }
  if (profile.ignored_resources.empty() && profile.ignored_resource_groups.empty()) return state;
  state.ignores_some = true;
  for (const ResourceRequest& r : cls.requests) {
    if (!ignored(profile, context.interner.resource_name(r.resource))) state.compared.push_back(r);
  }
  return state;
}

NodeResourcesBalancedAllocation::State NodeResourcesBalancedAllocation::prepare(const PluginContext& context,
                                                                                const PodClass& cls) {
  State state;
  state.scored.reserve(context.profile.balanced_resources.size());
  for (const CompiledScoringResource& r : context.profile.balanced_resources) {
    const std::int64_t request = cls.request(r.resource);
    if (request > 0) state.requests_any = true;
    if (r.scalar && request == 0) continue;
    state.scored.push_back({r.resource, 1, request});
  }
  return state;
}

}  // namespace troupe
