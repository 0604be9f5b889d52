#include "actors/placement/plan.hpp"

#include <algorithm>

namespace troupe {

bool passes_with_nominated(const ClassState& state, const Snapshot& snapshot, Slot slot,
                           const PodDemand& pod) {
  const SnapshotLane lane(snapshot, slot, pod.priority, pod.uid);
  return !lane.adds_nominated() || passes(state.prepared, PodFacts{}, lane);
}

void Planner::look_at_nominated(const ClassState& state, const PodDemand& pod) {
  apart_.clear();
  for (std::size_t w = 0; w < state.passing.words(); ++w) {
    for (std::uint64_t rest = state.passing.word(w) & snapshot_.nominated().word(w); rest != 0;
         rest &= rest - 1) {
      const auto slot = static_cast<Slot>(w * kBlock + static_cast<unsigned>(__builtin_ctzll(rest)));
      const std::int32_t leaf = cache_.leaf(state, slot);
      if (leaf == kInfeasible || !passes_with_nominated(state, snapshot_, slot, pod)) continue;
      apart_.push_back({slot, leaf, state.bucket_of.empty() ? 0 : state.bucket_of[slot]});
    }
  }
}

void Planner::normalise_buckets(const ClassState& state) {
  bucket_score_.assign(state.buckets.size(), 0);
  for (std::size_t k = 0; k < state.normalised.size(); ++k) {
    const EnabledPlugin& plugin = state.normalised[k];
    std::int64_t max = 0;
    for (std::size_t b = 0; b < state.buckets.size(); ++b) {
      if (occupied_[b]) max = std::max(max, state.buckets[b][k]);
    }
    const Normalise how = normalisation(plugin.plugin);
    for (std::size_t b = 0; b < state.buckets.size(); ++b) {
      if (occupied_[b]) bucket_score_[b] += plugin.weight * normalised(how, state.buckets[b][k], max);
    }
  }
}

Choice Planner::plan(const PodDemand& pod) {
  if (pod.pinned_node != kNoString) return plan_pinned(pod);
  const ClassState& state = cache_.current(pod.cls, pod.profile);
  const ScoreTree& tree = cache_.scores();
  apart_.clear();
  if (snapshot_.any_nominated()) look_at_nominated(state, pod);

  Choice choice;
  choice.feasible = tree.feasible() + static_cast<std::uint32_t>(apart_.size());
  if (choice.feasible == 0) return choice;

  const std::size_t buckets = state.buckets.size();
  best_.resize(buckets);
  occupied_.assign(buckets, false);
  for (std::size_t b = 0; b < buckets; ++b) {
    best_[b] = tree.best(b);
    occupied_[b] = best_[b].leaf != kInfeasible;
  }
  for (const Apart& a : apart_) occupied_[a.bucket] = true;
  normalise_buckets(state);

  std::int64_t top = -1;
  std::uint64_t ties = 0;
  const auto offer = [&](std::int64_t total, std::uint64_t count) {
    if (total > top) {
      top = total;
      ties = 0;
    }
    if (total == top) ties += count;
  };
  for (std::size_t b = 0; b < buckets; ++b) {
    if (best_[b].count != 0) offer(best_[b].leaf + bucket_score_[b], best_[b].count);
  }
  for (const Apart& a : apart_) offer(a.leaf + bucket_score_[a.bucket], 1);
  choice.score = top;

  std::uint64_t k = ties == 1 ? 0 : random_.below(ties);
  for (std::size_t b = 0; b < buckets; ++b) {
    if (best_[b].count == 0 || best_[b].leaf + bucket_score_[b] != top) continue;
    if (k < best_[b].count) {
      choice.slot = tree.pick(b, best_[b].leaf, static_cast<std::uint32_t>(k), state.bucket_of);
      return choice;
    }
    k -= best_[b].count;
  }
  for (const Apart& a : apart_) {
    if (a.leaf + bucket_score_[a.bucket] != top) continue;
    if (k-- == 0) {
      choice.slot = a.slot;
      return choice;
    }
  }
  return choice;
}

Choice Planner::plan_pinned(const PodDemand& pod) {
  const Slot slot = snapshot_.find(pod.pinned_node);
  if (slot == kNoSlot || !snapshot_.alive().contains(slot)) return {};
  const ClassState& state = cache_.facts(pod.cls, pod.profile);
  const std::int32_t leaf = cache_.leaf(state, slot);
  if (leaf == kInfeasible) return {};
  if (snapshot_.nominated().contains(slot) && !passes_with_nominated(state, snapshot_, slot, pod)) return {};
  Choice choice{slot, leaf, 1};
  const RawScores& raw = state.buckets[state.bucket_of.empty() ? 0 : state.bucket_of[slot]];
  for (std::size_t k = 0; k < state.normalised.size(); ++k) {
    const EnabledPlugin& plugin = state.normalised[k];
    choice.score += plugin.weight * normalised(normalisation(plugin.plugin), raw[k], raw[k]);
  }
  return choice;
}

}  // namespace troupe
