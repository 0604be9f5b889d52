#include "actors/placement/plugins/node_affinity.hpp"

#include <iterator>

namespace troupe {
namespace {

/// The nodes that a term allows by metadata.name, sorted: its In requirements intersected. False when it has
/// none, so that its nodes are open.
bool pinned_nodes(const NodeSelectorTerm& term, std::vector<StringId>& nodes) {
  bool pins = false;
  for (const Requirement& r : term.fields) {
    if (r.key != kMetadataName || r.op != fb::SelectorOperator::In) continue;
    std::vector<StringId> values = r.values;
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
    if (!pins) {
      nodes = std::move(values);
    } else {
      std::vector<StringId> both;
      std::set_intersection(nodes.begin(), nodes.end(), values.begin(), values.end(),
                            std::back_inserter(both));
      nodes = std::move(both);
    }
    pins = true;
  }
  return pins;
}

bool names_nodes(const std::vector<NodeSelectorTerm>& terms) {
  return std::any_of(terms.begin(), terms.end(), [](const NodeSelectorTerm& t) { return !t.fields.empty(); });
}

bool names_nodes(const std::vector<PreferredTerm>& terms) {
  return std::any_of(terms.begin(), terms.end(),
                     [](const PreferredTerm& t) { return !t.term.fields.empty(); });
}

}  // namespace

NodeAffinity::State NodeAffinity::prepare(const PluginContext& context, const PodClass& cls) {
  State state;
  state.interner = &context.interner;
  state.added = context.profile.has_added_affinity ? &context.profile.added_affinity : nullptr;
  state.filter_reads_name =
      names_nodes(cls.required) || (state.added != nullptr && names_nodes(state.added->required));
  state.score_reads_name =
      names_nodes(cls.preferred) || (state.added != nullptr && names_nodes(state.added->preferred));
  if (!cls.has_required || cls.required.empty()) return state;
  std::vector<StringId> all;
  for (const NodeSelectorTerm& term : cls.required) {
    std::vector<StringId> nodes;
    if (!pinned_nodes(term, nodes)) return state;  // terms are ORed: every node is open
    all.insert(all.end(), nodes.begin(), nodes.end());
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  state.restricts = true;
  state.conflict = all.empty();
  state.allowed_nodes = std::move(all);
  return state;
}

}  // namespace troupe
