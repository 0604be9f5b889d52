// Evaluation of one pod on one node, and the naive evaluation on many: every filter in the profile's order,
// then every score. The node's owner (commit check), `explain` and tests use it; the column pass of placement
// must agree with it.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "actors/placement/plugins/default_plugins.hpp"

namespace troupe {

struct Refusal {
  PluginId plugin{};
  Verdict verdict;
};

/// PreFilter refuses the pod whatever the node. No text: it does not.
inline std::optional<Reason> pre_filter_refusal(const PreparedClass& prepared) {
  if (prepared.profile().pre_filters.contains(PluginId::node_affinity) &&
      prepared.state<NodeAffinity>().conflict) {
    return Reason{Reason::Id::affinity_conflict, 0};
  }
  return std::nullopt;
}

/// Whether PreFilter leaves `node` to the filters.
inline bool in_pre_filter_nodes(const PreparedClass& prepared, const PodFacts& facts, StringId node) {
  return !prepared.profile().pre_filters.contains(PluginId::node_affinity) ||
         NodeAffinity::in_node_set(prepared.state<NodeAffinity>(), facts, node);
}

/// The filters' answer, without allocation: what the commit check runs.
template <NodeView V>
bool passes(const PreparedClass& prepared, const PodFacts& facts, const V& view) {
  if (!in_pre_filter_nodes(prepared, facts, view.name())) return false;
  for (const PluginId id : prepared.filters()) {
    const bool pass = with_plugin(id, [&]<class P>(P) {
      if constexpr (FilterPlugin<P>) {
        return P::passes(prepared.state<P>(), prepared.cls(), facts, view);
      } else {
        return true;
      }
    });
    if (!pass) return false;
  }
  return true;
}

/// The verdict of one filter.
template <NodeView V>
Verdict filter(PluginId id, const PreparedClass& prepared, const PodFacts& facts, const V& view) {
  return with_plugin(id, [&]<class P>(P) -> Verdict {
    if constexpr (FilterPlugin<P>) {
      return P::refuse(prepared.state<P>(), prepared.cls(), facts, view);
    } else {
      return {};
    }
  });
}

/// The raw score of one plugin.
template <NodeView V>
std::int64_t raw_score(PluginId id, const PreparedClass& prepared, const V& view) {
  return with_plugin(id, [&]<class P>(P) -> std::int64_t {
    if constexpr (ScorePlugin<P>) {
      return P::score(prepared.state<P>(), prepared.cls(), view);
    } else {
      return 0;
    }
  });
}

inline Normalise normalisation(PluginId id) {
  return with_plugin(id, []<class P>(P) {
    if constexpr (ScorePlugin<P>) {
      return P::normalise;
    } else {
      return Normalise::none;
    }
  });
}

/// Every plugin that refuses the node, in the profile's order; the first is the one that kube-scheduler
/// reports. Empty: the pod fits. With `first_only` it stops at that one.
template <NodeView V>
std::vector<Refusal> check(const PreparedClass& prepared, const PodFacts& facts, const V& view,
                           bool first_only = true) {
  std::vector<Refusal> refusals;
  const auto refuse = [&](PluginId plugin, Verdict verdict) {
    if (!verdict.ok()) refusals.push_back({plugin, std::move(verdict)});
    return first_only && !refusals.empty();
  };
  constexpr Code unresolvable = Code::unschedulable_and_unresolvable;
  bool outside = false;
  if (const std::optional<Reason> reason = pre_filter_refusal(prepared)) {
    outside = true;
    if (refuse(PluginId::node_affinity, {unresolvable, {*reason}})) return refusals;
  } else if (!in_pre_filter_nodes(prepared, facts, view.name())) {
    outside = true;
    if (refuse(PluginId::node_affinity, {unresolvable, {{Reason::Id::outside_prefilter_nodes, 0}}}))
      return refusals;
  }
  for (const PluginId id : prepared.filters()) {
    if (outside && id == PluginId::node_affinity) continue;
    if (refuse(id, filter(id, prepared, facts, view))) return refusals;
  }
  return refusals;
}

/// One normalised score, given the highest raw score over the feasible nodes (at least 0).
constexpr std::int64_t normalised(Normalise how, std::int64_t raw, std::int64_t max) {
  if (how == Normalise::none) return raw;
  const bool reversed = how == Normalise::reversed;
  if (max <= 0) return reversed ? kMaxNodeScore : raw;
  const std::int64_t share = kMaxNodeScore * raw / max;
  return reversed ? kMaxNodeScore - share : share;
}

/// The same for all feasible nodes at once, in place.
inline void normalise(Normalise how, std::span<std::int64_t> scores) {
  std::int64_t max = 0;
  for (const std::int64_t s : scores) max = std::max(max, s);
  for (std::int64_t& s : scores) s = normalised(how, s, max);
}

struct NodeEvaluation {
  std::vector<Refusal> refusals;       // empty: feasible
  std::vector<std::int64_t> weighted;  // feasible: normalised score times weight, by Evaluation::scores
  std::int64_t total = 0;
};

struct Evaluation {
  std::vector<EnabledPlugin> scores;   // the scoring plugins, in order
  std::vector<NodeEvaluation> nodes;   // as the views were given
  std::vector<std::uint32_t> winners;  // indices of the feasible nodes with the highest total
};

/// The plain reading of the rules, node by node: the reference of the column pass, and the whole of
/// `explain`.
template <NodeView V>
Evaluation reference_evaluate(const PreparedClass& prepared, const PodFacts& facts, std::span<const V> views,
                              bool all_refusals = false) {
  Evaluation result;
  result.scores.assign(prepared.scores().begin(), prepared.scores().end());
  result.nodes.resize(views.size());
  std::vector<std::uint32_t> feasible;
  for (std::size_t i = 0; i < views.size(); ++i) {
    result.nodes[i].refusals = check(prepared, facts, views[i], !all_refusals);
    if (result.nodes[i].refusals.empty()) feasible.push_back(static_cast<std::uint32_t>(i));
  }
  for (const EnabledPlugin& plugin : result.scores) {
    std::vector<std::int64_t> scores;
    scores.reserve(feasible.size());
    for (const std::uint32_t i : feasible) scores.push_back(raw_score(plugin.plugin, prepared, views[i]));
    normalise(normalisation(plugin.plugin), scores);
    for (std::size_t k = 0; k < feasible.size(); ++k) {
      NodeEvaluation& node = result.nodes[feasible[k]];
      node.weighted.push_back(scores[k] * plugin.weight);
      node.total += node.weighted.back();
    }
  }
  std::int64_t best = -1;
  for (const std::uint32_t i : feasible) {
    if (result.nodes[i].total > best) result.winners.clear();
    best = std::max(best, result.nodes[i].total);
    if (result.nodes[i].total == best) result.winners.push_back(i);
  }
  return result;
}

}  // namespace troupe
