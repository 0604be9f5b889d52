// NodeAffinity: nodeSelector, required and preferred node affinity, matchFields, and the profile's
// addedAffinity (spec 5.5, 5.6).
#pragma once

#include <algorithm>
#include <charconv>
#include <span>
#include <vector>

#include "actors/placement/plugins/profile.hpp"

namespace troupe {

/// Whether the node satisfies one requirement on a label.
template <NodeView V>
bool matches_label(const Requirement& r, const Interner& interner, const V& view) {
  const StringId value = view.label(r.key);
  const bool present = value != kNoString;
  const auto listed = [&] { return std::find(r.values.begin(), r.values.end(), value) != r.values.end(); };
  switch (r.op) {
    case fb::SelectorOperator::In:
      return present && listed();
    case fb::SelectorOperator::NotIn:
      return !present || !listed();
    case fb::SelectorOperator::Exists:
      return present;
    case fb::SelectorOperator::DoesNotExist:
      return !present;
    case fb::SelectorOperator::Gt:
    case fb::SelectorOperator::Lt: {
      if (!present || !r.number_valid) return false;
      const std::string_view text = interner.text(value);
      std::int64_t number = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
      if (error != std::errc{} || end != text.data() + text.size()) return false;
      return r.op == fb::SelectorOperator::Gt ? number > r.number : number < r.number;
    }
  }
  return false;
}

/// matchFields knows metadata.name with In or NotIn and exactly one value; anything else matches nothing.
inline bool matches_field(const Requirement& r, StringId node) {
  if (r.key != kMetadataName || r.values.size() != 1) return false;
  if (r.op == fb::SelectorOperator::In) return node == r.values.front();
  return r.op == fb::SelectorOperator::NotIn && node != r.values.front();
}

/// Requirements are ANDed; a term without any matches nothing.
template <NodeView V>
bool matches_term(const NodeSelectorTerm& term, const Interner& interner, const V& view) {
  if (term.expressions.empty() && term.fields.empty()) return false;
  for (const Requirement& r : term.expressions) {
    if (!matches_label(r, interner, view)) return false;
  }
  for (const Requirement& r : term.fields) {
    if (!matches_field(r, view.name())) return false;
  }
  return true;
}

/// Terms are ORed; no term at all matches nothing.
template <NodeView V>
bool matches_any_term(const std::vector<NodeSelectorTerm>& terms, const Interner& interner, const V& view) {
  return std::any_of(terms.begin(), terms.end(),
                     [&](const NodeSelectorTerm& term) { return matches_term(term, interner, view); });
}

/// Sum of the weights of the terms that the node matches.
template <NodeView V>
std::int64_t preferred_weight(const std::vector<PreferredTerm>& terms, const Interner& interner,
                              const V& view) {
  std::int64_t sum = 0;
  for (const PreferredTerm& t : terms) {
    if (t.weight != 0 && matches_term(t.term, interner, view)) sum += t.weight;
  }
  return sum;
}

struct NodeAffinity {
  static constexpr std::string_view name = "NodeAffinity";
  static constexpr PluginId id = PluginId::node_affinity;
  static constexpr Points points{Point::pre_filter, Point::filter, Point::pre_score, Point::score};
  static constexpr ReadSet filter_reads{Reads::node_facts, Reads::pod_facts};
  static constexpr ReadSet score_reads{Reads::node_facts};
  static constexpr Normalise normalise = Normalise::standard;
  static constexpr std::int32_t default_weight = 2;

  struct State {
    const Interner* interner = nullptr;
    const PodClass* added = nullptr;  // addedAffinity; null: none
    // PreFilter: every required term names nodes by metadata.name.
    bool restricts = false;
    bool conflict = false;                // and no node can satisfy any of them
    std::vector<StringId> allowed_nodes;  // the union of their nodes, sorted
    // Some term looks at the node's name, so nodes with equal labels may differ.
    bool filter_reads_name = false;
    bool score_reads_name = false;
  };
  static State prepare(const PluginContext& context, const PodClass& cls);

  static bool skips_filter(const State& state, const PodClass& cls) {
    return state.added == nullptr && !cls.has_required && cls.node_selector.empty();
  }

  /// PreFilter's node set: the pinned node, or the nodes that the class names. A node outside is refused
  /// before any filter runs.
  static bool in_node_set(const State& state, const PodFacts& facts, StringId node) {
    return is_pinned_to(facts, node) &&
           (!state.restricts ||
            std::binary_search(state.allowed_nodes.begin(), state.allowed_nodes.end(), node));
  }

  static bool is_pinned_to(const PodFacts& facts, StringId node) {
    return facts.pinned_node == kNoString || facts.pinned_node == node;
  }

  /// nodeSelector and required affinity of the pod, pinned node apart.
  template <NodeView V>
  static bool matches_own(const State& state, const PodClass& cls, const V& view) {
    for (const auto& [key, value] : cls.node_selector) {
      if (view.label(key) != value) return false;
    }
    return !cls.has_required || matches_any_term(cls.required, *state.interner, view);
  }

  template <NodeView V>
  static bool matches_added(const State& state, const V& view) {
    return state.added == nullptr || !state.added->has_required ||
           matches_any_term(state.added->required, *state.interner, view);
  }

  template <NodeView V>
  static bool passes(const State& state, const PodClass& cls, const PodFacts& facts, const V& view) {
    return is_pinned_to(facts, view.name()) && matches_added(state, view) && matches_own(state, cls, view);
  }

  template <NodeView V>
  static Verdict refuse(const State& state, const PodClass& cls, const PodFacts& facts, const V& view) {
    constexpr Code code = Code::unschedulable_and_unresolvable;
    if (!matches_added(state, view)) return refuse_if(true, code, Reason::Id::enforced_node_affinity);
    return refuse_if(!passes(state, cls, facts, view), code, Reason::Id::node_affinity);
  }

  static bool skips_score(const State& state, const PodClass& cls) {
    return cls.preferred.empty() && (state.added == nullptr || state.added->preferred.empty());
  }

  template <NodeView V>
  static std::int64_t score(const State& state, const PodClass& cls, const V& view) {
    const std::int64_t own = preferred_weight(cls.preferred, *state.interner, view);
    return state.added == nullptr ? own
                                  : own + preferred_weight(state.added->preferred, *state.interner, view);
  }
};

}  // namespace troupe
