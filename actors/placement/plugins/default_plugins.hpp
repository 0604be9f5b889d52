// All plugins in kube-scheduler's default order, calls by PluginId, and a class prepared for a profile.
#pragma once

#include <array>
#include <concepts>
#include <span>
#include <tuple>
#include <utility>

#include "actors/placement/plugins/default_binder.hpp"
#include "actors/placement/plugins/image_locality.hpp"
#include "actors/placement/plugins/node_affinity.hpp"
#include "actors/placement/plugins/node_name.hpp"
#include "actors/placement/plugins/node_ports.hpp"
#include "actors/placement/plugins/node_resources_balanced_allocation.hpp"
#include "actors/placement/plugins/node_resources_fit.hpp"
#include "actors/placement/plugins/node_unschedulable.hpp"
#include "actors/placement/plugins/plugin.hpp"
#include "actors/placement/plugins/priority_sort.hpp"
#include "actors/placement/plugins/profile.hpp"
#include "actors/placement/plugins/scheduling_gates.hpp"
#include "actors/placement/plugins/taint_toleration.hpp"

namespace troupe {

using AllPlugins =
    std::tuple<SchedulingGates, PrioritySort, NodeUnschedulable, NodeName, TaintToleration, NodeAffinity,
               NodePorts, NodeResourcesFit, NodeResourcesBalancedAllocation, ImageLocality, DefaultBinder>;
static_assert(std::tuple_size_v<AllPlugins> == kPlugins);

template <class P>
concept FilterPlugin = P::points.contains(Point::filter);
template <class P>
concept ScorePlugin = P::points.contains(Point::score);

namespace detail {

template <class P>
struct StateOf {
  using type = NoState;
};
template <class P>
requires requires {
  typename P::State;
}
struct StateOf<P> {
  using type = typename P::State;
};

template <std::size_t I, class F>
decltype(auto) call_plugin(F& f) {
  using P = std::tuple_element_t<I, AllPlugins>;
  static_assert(static_cast<std::size_t>(P::id) == I, "PluginId and AllPlugins must have one order");
  return f(P{});
}

}  // namespace detail

/// Calls f(P{}) for every plugin, in default order.
template <class F>
void for_each_plugin(F&& f) {
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (detail::call_plugin<I>(f), ...);
  }
  (std::make_index_sequence<kPlugins>{});
}

/// f(P{}) for the plugin with this id. `f` answers the same type for every plugin.
template <class F>
decltype(auto) with_plugin(PluginId id, F&& f) {
  switch (id) {
    case PluginId::scheduling_gates:
      return detail::call_plugin<0>(f);
    case PluginId::priority_sort:
      return detail::call_plugin<1>(f);
    case PluginId::node_unschedulable:
      return detail::call_plugin<2>(f);
    case PluginId::node_name:
      return detail::call_plugin<3>(f);
    case PluginId::taint_toleration:
      return detail::call_plugin<4>(f);
    case PluginId::node_affinity:
      return detail::call_plugin<5>(f);
    case PluginId::node_ports:
      return detail::call_plugin<6>(f);
    case PluginId::node_resources_fit:
      return detail::call_plugin<7>(f);
    case PluginId::node_resources_balanced_allocation:
      return detail::call_plugin<8>(f);
    case PluginId::image_locality:
      return detail::call_plugin<9>(f);
    case PluginId::default_binder:
      break;
  }
  return detail::call_plugin<10>(f);
}

inline std::string_view plugin_name(PluginId id) {
  return with_plugin(id, []<class P>(P) { return P::name; });
}

/// False when there is no plugin of that name.
inline bool find_plugin(std::string_view name, PluginId& id) {
  bool found = false;
  for_each_plugin([&]<class P>(P) {
    if (P::name != name) return;
    id = P::id;
    found = true;
  });
  return found;
}

/// A class prepared for a profile: what PreFilter and PreScore compute once, and which plugins have a say. It
/// refers to the profile, the class and the interner, which must stay where they are.
class PreparedClass {
 public:
  PreparedClass(const CompiledProfile& profile, const PodClass& cls, const Interner& interner)
      : profile_(&profile), cls_(&cls), interner_(&interner) {
    const PluginContext context{profile, interner};
    for_each_plugin([&]<class P>(P) {
      if constexpr (requires { P::prepare(context, cls); })
        std::get<index<P>>(states_) = P::prepare(context, cls);
    });
    for (const PluginId id : profile.filters) {
      with_plugin(id, [&]<class P>(P) {
        if constexpr (FilterPlugin<P>) {
          // To skip the filter is PreFilter's answer: without that point the filter runs.
          const bool may_skip = !P::points.contains(Point::pre_filter) || profile.pre_filters.contains(id);
          if (!may_skip || !P::skips_filter(state<P>(), cls)) filters_[filter_count_++] = id;
        }
      });
    }
    for (const EnabledPlugin& s : profile.scores) {
      with_plugin(s.plugin, [&]<class P>(P) {
        if constexpr (ScorePlugin<P>) {
          if (!P::skips_score(state<P>(), cls)) scores_[score_count_++] = s;
        }
      });
    }
  }

  [[nodiscard]] const CompiledProfile& profile() const { return *profile_; }
  [[nodiscard]] const PodClass& cls() const { return *cls_; }
  [[nodiscard]] const Interner& interner() const { return *interner_; }

  /// Filters of the profile that may refuse this class, in order.
  [[nodiscard]] std::span<const PluginId> filters() const { return {filters_.data(), filter_count_}; }
  /// Scores of the profile that tell nodes apart for this class, in order.
  [[nodiscard]] std::span<const EnabledPlugin> scores() const { return {scores_.data(), score_count_}; }

  template <class P>
  [[nodiscard]] const typename detail::StateOf<P>::type& state() const {
    return std::get<index<P>>(states_);
  }

 private:
  template <class P>
  static constexpr std::size_t index = static_cast<std::size_t>(P::id);

  template <class Tuple>
  struct States;
  template <class... P>
  struct States<std::tuple<P...>> {
    using type = std::tuple<typename detail::StateOf<P>::type...>;
  };

  const CompiledProfile* profile_;
  const PodClass* cls_;
  const Interner* interner_;
  std::array<PluginId, kPlugins> filters_{};
  std::array<EnabledPlugin, kPlugins> scores_{};
  std::size_t filter_count_ = 0;
  std::size_t score_count_ = 0;
  typename States<AllPlugins>::type states_;
};

}  // namespace troupe
