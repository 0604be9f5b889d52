#include "actors/placement/failure.hpp"

#include <algorithm>

namespace troupe {
namespace {

struct Histogram {
  ReasonCounts counts;
  PluginSet rejectors;

  void add(const Refusal& refusal, const Interner& interner) {
    rejectors.insert(refusal.plugin);
    for (const Reason& reason : refusal.verdict.reasons) ++counts[text(reason, interner)];
  }
  void add(PluginId plugin, const Reason& reason, std::uint64_t nodes, const Interner& interner) {
    if (nodes == 0) return;
    rejectors.insert(plugin);
    counts[text(reason, interner)] += nodes;
  }
};

/// The status of one node as kube-scheduler takes it: with the nominated pods first, then without.
void add_row(Histogram& histogram, const ClassState& state, const Snapshot& snapshot, Slot slot,
             const PodDemand& pod, const PodFacts& facts) {
  const SnapshotLane with(snapshot, slot, pod.priority, pod.uid);
  std::vector<Refusal> refusals = check(state.prepared, facts, with);
  if (refusals.empty() && with.adds_nominated())
    refusals = check(state.prepared, facts, SnapshotLane(snapshot, slot));
  if (!refusals.empty()) histogram.add(refusals.front(), snapshot.interner());
}

/// True if the first plugin that refuses a node is found by asking the facts filters, then ports, then fit.
bool in_default_order(const ClassState& state) {
  const auto rank = [&state](PluginId id) {
    if (id == PluginId::node_resources_fit) return 2;
    if (id == PluginId::node_ports) return 1;
    const auto& facts = state.facts_filters;
    return std::find(facts.begin(), facts.end(), id) != facts.end() ? 0 : 3;
  };
  int last = 0;
  for (const PluginId id : state.prepared.filters()) {
    const int r = rank(id);
    if (r < last || r == 3) return false;
    last = r;
  }
  return true;
}

std::uint64_t count(std::uint64_t mask, const double* free, double request) {
  std::uint64_t lacking = 0;
  if (mask == ~std::uint64_t{0}) {
    std::int64_t n = 0;
    for (std::size_t i = 0; i < kBlock; ++i) n += free[i] >= request ? 0 : 1;
    return static_cast<std::uint64_t>(n);
  }
  for (; mask != 0; mask &= mask - 1) lacking += free[__builtin_ctzll(mask)] >= request ? 0 : 1;
  return lacking;
}

/// The nodes that pass the facts filters: what their accounts lack.
void add_accounts(Histogram& histogram, const ClassState& state, const Snapshot& snapshot,
                  const PodDemand& pod) {
  const Columns& columns = snapshot.columns();
  const Interner& interner = snapshot.interner();
  std::uint64_t full = 0;
  std::vector<std::uint64_t> lacking(state.pass.compares.size(), 0);
  for (std::size_t b = 0; b < state.passing.words(); ++b) {
    std::uint64_t rows =
        state.pass.rows_only ? ~std::uint64_t{0} : columns.wide().word(b) | snapshot.nominated().word(b);
    if (state.ports) rows |= snapshot.with_ports().word(b);
    const std::uint64_t plain = state.passing.word(b) & ~rows;
    for (rows &= state.passing.word(b); rows != 0; rows &= rows - 1) {
      add_row(histogram, state, snapshot,
              static_cast<Slot>(b * kBlock + static_cast<unsigned>(__builtin_ctzll(rows))), pod, PodFacts{});
    }
    if (plain == 0 || !state.pass.counts_pods) continue;
    full += static_cast<std::uint64_t>(__builtin_popcountll(plain & ~columns.room().word(b)));
    for (std::size_t k = 0; k < lacking.size(); ++k) {
      const PassPlan::Compare& c = state.pass.compares[k];
      const ResourceColumn* column = columns.resource(c.resource);
      lacking[k] += column == nullptr ? static_cast<std::uint64_t>(__builtin_popcountll(plain))
                                      : count(plain, column->free.data() + b * kBlock, c.request);
    }
  }
  histogram.add(PluginId::node_resources_fit, {Reason::Id::too_many_pods, 0}, full, interner);
  for (std::size_t k = 0; k < lacking.size(); ++k) {
    histogram.add(PluginId::node_resources_fit, {Reason::Id::insufficient, state.pass.compares[k].resource},
                  lacking[k], interner);
  }
}

/// The nodes that the facts filters refuse; kept with the class until facts change.
void add_facts(Histogram& histogram, ClassState& state, const Snapshot& snapshot) {
  if (state.facts_failures_position != snapshot.facts_log().head()) {
    Histogram refused;
    snapshot.alive().for_each([&](Slot slot) {
      if (state.passing.contains(slot)) return;
      const std::vector<Refusal> refusals = check(state.prepared, PodFacts{}, SnapshotLane(snapshot, slot));
      if (!refusals.empty()) refused.add(refusals.front(), snapshot.interner());
    });
    state.facts_failures = std::move(refused.counts);
    state.facts_rejectors = refused.rejectors;
    state.facts_failures_position = snapshot.facts_log().head();
  }
  for (const auto& [reason, nodes] : state.facts_failures) histogram.counts[reason] += nodes;
  histogram.rejectors |= state.facts_rejectors;
}

Refused refused_pinned(const ClassState& state, const Snapshot& snapshot, const PodDemand& pod) {
  Histogram histogram;
  const PodFacts facts{pod.pinned_node, kNoString};
  const Slot slot = snapshot.find(pod.pinned_node);
  const bool exists = slot != kNoSlot && snapshot.alive().contains(slot);
  if (exists) add_row(histogram, state, snapshot, slot, pod, facts);
  histogram.add(PluginId::node_affinity, {Reason::Id::outside_prefilter_nodes, 0},
                snapshot.node_count() - (exists ? 1U : 0U), snapshot.interner());
  histogram.rejectors.insert(PluginId::node_affinity);
  return {std::make_shared<const std::string>(failure_message(snapshot.node_count(), histogram.counts)),
          histogram.rejectors};
}

}  // namespace

Refused explain_refusal(ClassCache& cache, const Snapshot& snapshot, const PodDemand& pod) {
  if (snapshot.node_count() == 0) return {std::make_shared<const std::string>(kNoNodes), {}};
  ClassState& state = cache.facts(pod.cls, pod.profile);
  if (const auto reason = pre_filter_refusal(state.prepared)) {
    return {std::make_shared<const std::string>(
                failure_message(snapshot.node_count(), {}, text(*reason, snapshot.interner()))),
            {PluginId::node_affinity}};
  }
  const bool restricted = state.prepared.profile().pre_filters.contains(PluginId::node_affinity);
  if (pod.pinned_node != kNoString && restricted) return refused_pinned(state, snapshot, pod);

  ClassState::Failure& last = state.failure;
  const bool own = snapshot.any_nominated();  // counts differently for each pod
  if (!own && last.message != nullptr && last.account_position == snapshot.account_log().head() &&
      last.facts_position == snapshot.facts_log().head()) {
    return {last.message, last.rejectors};
  }
  Histogram histogram;
  const PodFacts facts{pod.pinned_node, kNoString};
  if (in_default_order(state) && pod.pinned_node == kNoString) {
    add_facts(histogram, state, snapshot);
    add_accounts(histogram, state, snapshot, pod);
  } else {
    snapshot.alive().for_each([&](Slot slot) { add_row(histogram, state, snapshot, slot, pod, facts); });
  }
  if (restricted && state.prepared.state<NodeAffinity>().restricts)
    histogram.rejectors.insert(PluginId::node_affinity);
  Refused refused{
      std::make_shared<const std::string>(failure_message(snapshot.node_count(), histogram.counts)),
      histogram.rejectors};
  if (!own && pod.pinned_node == kNoString) {
    last = {snapshot.account_log().head(), snapshot.facts_log().head(), refused.message, refused.rejectors};
  }
  return refused;
}

}  // namespace troupe
