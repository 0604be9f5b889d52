#include "actors/placement/class_cache.hpp"

#include <algorithm>

namespace troupe {
namespace {

// A full pass over this many nodes costs about as much as the evaluation of one changed node (measured with
// placement_bench).
constexpr std::uint64_t kNodesPerUpdate = 24;

template <class T>
std::size_t bytes_of(const std::vector<T>& v) {
  return v.capacity() * sizeof(T);
}

ReadSet filter_reads(PluginId id) {
  return with_plugin(id, []<class P>(P) {
    if constexpr (FilterPlugin<P>) {
      return P::filter_reads;
    } else {
      return ReadSet{};
    }
  });
}

}  // namespace

ClassCache::ClassCache(const std::vector<CompiledProfile>& profiles, const Snapshot& snapshot,
                       std::size_t budget_bytes)
    : profiles_(profiles), snapshot_(snapshot), budget_bytes_(budget_bytes), states_(profiles.size()) {}

ClassState& ClassCache::state(ClassId cls, ProfileId profile) {
  auto& of_profile = states_[profile];
  if (of_profile.size() <= cls) of_profile.resize(snapshot_.classes().limit());
  std::unique_ptr<ClassState>& place = of_profile[cls];
  if (place == nullptr) {
    place =
        std::make_unique<ClassState>(profiles_[profile], snapshot_.classes().get(cls), snapshot_.interner());
    ClassState& s = *place;
    s.cls = cls;
    s.profile = profile;
    for (const PluginId id : s.prepared.filters()) {
      const ReadSet reads = filter_reads(id);
      const bool facts = !reads.contains(Reads::ledger) && !reads.contains(Reads::cluster);
      (facts ? s.facts_filters : s.account_filters).push_back(id);
      s.ports = s.ports || id == PluginId::node_ports;
    }
    for (const EnabledPlugin& p : s.prepared.scores()) {
      if (normalisation(p.plugin) != Normalise::none) s.normalised.push_back(p);
      if (p.plugin == PluginId::image_locality && !s.prepared.cls().images.empty()) s.image_weight = p.weight;
    }
  }
  use(*place);
  return *place;
}

void ClassCache::unlink(ClassState& s) {
  if (s.older == nullptr && s.newer == nullptr && oldest_ != &s) return;
  (s.older == nullptr ? oldest_ : s.older->newer) = s.newer;
  (s.newer == nullptr ? newest_ : s.newer->older) = s.older;
  s.older = s.newer = nullptr;
}

void ClassCache::use(ClassState& s) {
  if (newest_ == &s) return;
  unlink(s);
  s.older = newest_;
  (newest_ == nullptr ? oldest_ : newest_->newer) = &s;
  newest_ = &s;
}

void ClassCache::recount(ClassState& s) {
  std::size_t bytes = s.passing.bytes() + bytes_of(s.bucket_of) + bytes_of(s.image_score);
  if (s.tree != nullptr) bytes += s.tree->bytes();
  bytes_ = bytes_ - s.bytes + bytes;
  s.bytes = bytes;
}

void ClassCache::forget(ClassState& s) {
  s.facts_valid = false;
  s.passing = {};
  s.bucket_of = {};
  s.image_score = {};
  s.tree = nullptr;
  if (scratch_owner_ == &s) scratch_owner_ = nullptr;
  recount(s);
}

void ClassCache::evict(const ClassState& keep) {
  for (ClassState* s = oldest_; s != nullptr && bytes_ > budget_bytes_; s = s->newer) {
    if (s != &keep && s->bytes != 0) forget(*s);
  }
}

void ClassCache::drop(ClassId cls) {
  for (auto& of_profile : states_) {
    if (of_profile.size() <= cls || of_profile[cls] == nullptr) continue;
    ClassState& s = *of_profile[cls];
    forget(s);
    unlink(s);
    of_profile[cls] = nullptr;
  }
}

bool ClassCache::passes_facts(const ClassState& s, const SnapshotLane& lane) const {
  if (!in_pre_filter_nodes(s.prepared, PodFacts{}, lane.name())) return false;
  return std::all_of(s.facts_filters.begin(), s.facts_filters.end(), [&](PluginId id) {
    return with_plugin(id, [&]<class P>(P) {
      if constexpr (FilterPlugin<P>) {
        return P::passes(s.prepared.state<P>(), s.prepared.cls(), PodFacts{}, lane);
      } else {
        return true;
      }
    });
  });
}

void ClassCache::enter_bucket(ClassState& s, Slot slot) {
  const SnapshotLane lane(snapshot_, slot);
  RawScores raw;
  for (const EnabledPlugin& p : s.normalised) raw.push_back(raw_score(p.plugin, s.prepared, lane));
  const auto [it, created] = s.bucket_ids.try_emplace(raw, static_cast<BucketId>(s.buckets.size()));
  if (created) {
    s.buckets.push_back(std::move(raw));
    if (ScoreTree* tree = tree_of(s)) tree->add_bucket();
  }
  if (s.bucket_of.empty()) {
    if (it->second == 0) return;  // a single bucket so far
    s.bucket_of.assign(snapshot_.columns().blocks() * kBlock, 0);
  }
  s.bucket_of[slot] = it->second;
}

void ClassCache::build_facts(ClassState& s) {
  ++stats_.builds;
  if (scratch_owner_ == &s) scratch_owner_ = nullptr;
  s.tree = nullptr;
  s.facts_seen = snapshot_.facts_log().head();
  s.facts_valid = true;
  s.passing = {};
  s.passing.resize(snapshot_.columns().blocks() * kBlock);
  s.bucket_of.clear();
  s.buckets.clear();
  s.bucket_ids.clear();
  if (!pre_filter_refusal(s.prepared)) {
    snapshot_.alive().for_each(
        [&](Slot slot) { s.passing.set(slot, passes_facts(s, SnapshotLane(snapshot_, slot))); });
  }
  // Nodes with one set of taints and no preferred affinity to tell them apart share a bucket: most classes
  // have one.
  bool alike = true;
  for (const EnabledPlugin& p : s.normalised) {
    alike = alike && p.plugin == PluginId::taint_toleration;
  }
  for (TaintSetId id = 0; id < snapshot_.taint_sets() && alike; ++id) {
    alike = TaintToleration::score_taints(s.prepared.cls(), snapshot_.taints(id)) == 0;
  }
  if (alike) {
    s.buckets.emplace_back(s.normalised.size(), 0);
    s.bucket_ids.emplace(s.buckets.front(), 0);
  } else {
    s.passing.for_each([&](Slot slot) { enter_bucket(s, slot); });
    if (s.buckets.empty()) {
      s.buckets.emplace_back(s.normalised.size(), 0);
      s.bucket_ids.emplace(s.buckets.front(), 0);
    }
  }
  build_images(s);
  recount(s);
}

void ClassCache::update_facts(ClassState& s) {
  const ChangeLog& log = snapshot_.facts_log();
  if (!s.facts_valid || !log.covers(s.facts_seen) || (log.head() - s.facts_seen) * 2 > snapshot_.slots()) {
    build_facts(s);
    return;
  }
  // Ledger entries of nodes that are not known yet take slots, too, without a change of facts.
  const std::size_t padded = snapshot_.columns().blocks() * kBlock;
  if (s.passing.words() * kBlock != padded) {
    s.passing.resize(padded);
    if (!s.bucket_of.empty()) s.bucket_of.resize(padded, 0);
    if (!s.image_score.empty()) s.image_score.resize(padded, 0);
    s.tree = nullptr;
    if (scratch_owner_ == &s) scratch_owner_ = nullptr;
  }
  if (log.head() != s.facts_seen) {
    const std::uint64_t from = s.facts_seen;
    s.facts_seen = log.head();
    const bool refused = pre_filter_refusal(s.prepared).has_value();
    for (std::uint64_t p = from; p < log.head(); ++p) {
      if (!log.is_newest(p)) continue;
      const Slot slot = log.at(p);
      if (ScoreTree* tree = tree_of(s)) tree->set(slot, kInfeasible, s.bucket_of);
      const bool passes =
          !refused && snapshot_.alive().contains(slot) && passes_facts(s, SnapshotLane(snapshot_, slot));
      s.passing.set(slot, passes);
      if (passes) enter_bucket(s, slot);
      if (ScoreTree* tree = tree_of(s)) {
        tree->set(slot, snapshot_.nominated().contains(slot) ? kInfeasible : leaf(s, slot), s.bucket_of);
      }
    }
    recount(s);
  }
  if (images_changed(s)) {
    build_images(s);
    s.tree = nullptr;
    if (scratch_owner_ == &s) scratch_owner_ = nullptr;
    recount(s);
  }
}

bool ClassCache::images_changed(const ClassState& s) const {
  if (s.image_weight == 0 || s.images_seen == snapshot_.image_clock()) return false;
  const bool counted = snapshot_.node_count_changed() > s.images_seen;
  const std::vector<StringId>& images = s.prepared.cls().images;
  return std::any_of(images.begin(), images.end(), [&](StringId image) {
    return snapshot_.image_changed(image) > s.images_seen ||
           (counted && !snapshot_.image_uses(image).empty());
  });
}

void ClassCache::build_images(ClassState& s) {
  s.images_seen = snapshot_.image_clock();
  s.image_score.clear();
  if (s.image_weight == 0) return;
  const std::vector<StringId>& images = s.prepared.cls().images;
  std::vector<std::int64_t> sums;
  std::vector<Slot> touched;
  for (const StringId image : images) {
    const std::span<const ImageUse> uses = snapshot_.image_uses(image);
    for (const ImageUse& use : uses) {
      if (sums.empty()) sums.resize(snapshot_.columns().blocks() * kBlock, 0);
      std::int64_t& sum = sums[use.slot];
      if (sum == 0) touched.push_back(use.slot);
      sum = saturating_add(
          sum, image_share(use.size_bytes, static_cast<std::uint32_t>(uses.size()), snapshot_.node_count()));
    }
  }
  for (const Slot slot : touched) {
    const std::int64_t score = image_locality(sums[slot], static_cast<std::int64_t>(images.size()));
    if (score == 0) continue;
    if (s.image_score.empty()) s.image_score.resize(sums.size(), 0);
    s.image_score[slot] = static_cast<std::uint8_t>(score);
  }
}

std::int32_t ClassCache::row_leaf(const ClassState& s, Slot slot) const {
  const SnapshotLane lane(snapshot_, slot);
  for (const PluginId id : s.account_filters) {
    const bool pass = with_plugin(id, [&]<class P>(P) {
      if constexpr (FilterPlugin<P>) {
        return P::passes(s.prepared.state<P>(), s.prepared.cls(), PodFacts{}, lane);
      } else {
        return true;
      }
    });
    if (!pass) return kInfeasible;
  }
  std::int64_t sum = 0;
  for (const EnabledPlugin& p : s.prepared.scores()) {
    // Images have a column of their own.
    if (normalisation(p.plugin) != Normalise::none || p.plugin == PluginId::image_locality) continue;
    sum += raw_score(p.plugin, s.prepared, lane) * p.weight;
  }
  return static_cast<std::int32_t>(sum);
}

std::int32_t ClassCache::leaf(const ClassState& s, const ColumnPass& pass, Slot slot) const {
  if (!s.passing.contains(slot)) return kInfeasible;
  const Columns& columns = snapshot_.columns();
  std::int32_t value = 0;
  if (s.pass.rows_only || columns.wide().contains(slot)) {
    value = row_leaf(s, slot);
  } else {
    if (s.pass.counts_pods && !columns.room().contains(slot)) return kInfeasible;
    value = pass.one(slot);
    if (value != kInfeasible && s.ports && snapshot_.with_ports().contains(slot) &&
        !NodePorts::passes({}, s.prepared.cls(), {}, SnapshotLane(snapshot_, slot))) {
      return kInfeasible;
    }
  }
  if (value == kInfeasible || s.image_score.empty()) return value;
  return value + s.image_weight * s.image_score[slot];
}

std::int32_t ClassCache::leaf(const ClassState& s, Slot slot) const {
  return leaf(s, ColumnPass(s.pass, snapshot_.columns()), slot);
}

void ClassCache::full_pass(ClassState& s, ScoreTree& tree) {
  ++stats_.full_passes;
  const Columns& columns = snapshot_.columns();
  const std::size_t blocks = columns.blocks();
  if (tree.blocks() != blocks || tree.buckets() != s.buckets.size()) tree.reset(blocks, s.buckets.size());
  const ColumnPass pass(s.pass, columns);
  std::int32_t* leaves = tree.leaves().data();
  for (std::size_t b = 0; b < blocks; ++b) {
    const std::uint64_t passing = s.passing.word(b) & ~snapshot_.nominated().word(b);
    std::int32_t* out = leaves + b * kBlock;
    std::uint64_t plain = passing;
    std::uint64_t apart = 0;  // evaluated one by one
    if (s.pass.rows_only) {
      apart = passing;
      plain = 0;
    } else {
      apart = passing & columns.wide().word(b);
      plain = passing & ~apart;
      if (s.pass.counts_pods) plain &= columns.room().word(b);
      if (s.ports) {
        const std::uint64_t ports = plain & snapshot_.with_ports().word(b);
        apart |= ports;
        plain &= ~ports;
      }
    }
    pass.block(b, plain, out);
    if (!s.image_score.empty()) {
      const std::uint8_t* image = s.image_score.data() + b * kBlock;
      for (std::size_t i = 0; i < kBlock; ++i) {
        out[i] += out[i] == kInfeasible ? 0 : s.image_weight * image[i];
      }
    }
    for (; apart != 0; apart &= apart - 1) {
      const auto i = static_cast<unsigned>(__builtin_ctzll(apart));
      out[i] = leaf(s, pass, static_cast<Slot>(b * kBlock + i));
    }
  }
  tree.rebuild(s.bucket_of);
}

void ClassCache::catch_up(const ClassState& s, ScoreTree& tree, std::uint64_t seen) {
  const ChangeLog& log = snapshot_.account_log();
  const ColumnPass pass(s.pass, snapshot_.columns());
  for (std::uint64_t p = seen; p < log.head(); ++p) {
    if (!log.is_newest(p)) continue;
    const Slot slot = log.at(p);
    tree.set(slot, snapshot_.nominated().contains(slot) ? kInfeasible : leaf(s, pass, slot), s.bucket_of);
    ++stats_.updates;
  }
}

bool ClassCache::pass_is_cheaper(std::uint64_t changes) const {
  return changes * kNodesPerUpdate > snapshot_.slots() + kNodesPerUpdate * 8;
}

ScoreTree* ClassCache::tree_of(ClassState& s) {
  if (s.tree != nullptr) return s.tree.get();
  return scratch_owner_ == &s ? &scratch_ : nullptr;
}

ClassState& ClassCache::facts(ClassId cls, ProfileId profile) {
  ClassState& s = state(cls, profile);
  update_facts(s);
  evict(s);
  return s;
}

ClassState& ClassCache::current(ClassId cls, ProfileId profile) {
  ClassState& s = facts(cls, profile);
  const ChangeLog& log = snapshot_.account_log();
  const std::uint64_t head = log.head();
  const bool returns_soon = s.used_at != 0 && !pass_is_cheaper(head - s.used_at);
  s.used_at = head;
  ScoreTree* tree = tree_of(s);
  if (tree != nullptr && log.covers(s.tree_seen) && !pass_is_cheaper(head - s.tree_seen)) {
    catch_up(s, *tree, s.tree_seen);
    s.tree_missed = 0;
  } else {
    // Scores are kept for classes whose pods come often enough that catching up is cheaper than a pass; the
    // others are computed anew, each time in the same memory.
    if (s.tree != nullptr && ++s.tree_missed == 3) s.tree = nullptr;
    if (s.tree == nullptr && returns_soon) {
      s.tree = std::make_unique<ScoreTree>();
      s.tree_missed = 0;
    }
    if (s.tree == nullptr) scratch_owner_ = &s;
    tree = tree_of(s);
    full_pass(s, *tree);
    recount(s);
    evict(s);
  }
  s.tree_seen = head;
  scores_ = tree;
  return s;
}

}  // namespace troupe
