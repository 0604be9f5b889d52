// What is known about each pod class on all nodes. Facts of the nodes (taints, labels, images) are evaluated
// once per class and again only where they change; what depends on the accounts is either computed in one
// pass over the columns, or kept in a tree of scores where only changed nodes are evaluated again, whichever
// is cheaper for the way the class is used. Nodes with equal raw scores of the normalised plugins form a
// bucket: a maximum that changes touches buckets, not nodes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "actors/placement/column_pass.hpp"
#include "actors/placement/evaluate.hpp"
#include "actors/placement/score_tree.hpp"
#include "actors/placement/snapshot_lane.hpp"

namespace troupe {

using ProfileId = std::uint16_t;

/// Raw scores of the normalised plugins of a class, in the order of ClassState::normalised.
using RawScores = std::vector<std::int64_t>;

/// One pod class under one profile. Reading it is for plan() and explain; changing it for ClassCache.
struct ClassState {
  ClassState(const CompiledProfile& of_profile, const PodClass& of_class, const Interner& interner)
      : prepared(of_profile, of_class, interner), pass(plan_pass(prepared)) {}

  ClassId cls = 0;
  ProfileId profile = 0;
  PreparedClass prepared;
  PassPlan pass;
  std::vector<PluginId> facts_filters;    // filters that read facts of the node only
  std::vector<PluginId> account_filters;  // the others
  std::vector<EnabledPlugin> normalised;  // scores with a normalisation
  std::int32_t image_weight = 0;          // 0: the class has no images, or the plugin is off
  bool ports = false;                     // NodePorts has a say

  // From the facts of the nodes.
  bool facts_valid = false;
  std::uint64_t facts_seen = 0;     // position in the facts log
  SlotSet passing;                  // exists and passes facts_filters
  std::vector<BucketId> bucket_of;  // by slot; empty: one bucket
  std::vector<RawScores> buckets;
  std::map<RawScores, BucketId> bucket_ids;
  std::uint64_t images_seen = 0;          // Snapshot::image_clock
  std::vector<std::uint8_t> image_score;  // by slot, 0 to 100; empty: all 0

  // From the accounts.
  std::unique_ptr<ScoreTree> tree;  // null: not kept between uses
  std::uint64_t tree_seen = 0;      // position in the account log
  std::uint8_t tree_missed = 0;     // uses in a row that needed a full pass all the same
  std::uint64_t used_at = 0;        // position in the account log at the last use
  std::size_t bytes = 0;            // as counted in the cache
  ClassState* older = nullptr;      // neighbours in the order of use
  ClassState* newer = nullptr;

  // The last refusal of the whole class (failure.cpp), valid at these positions of the logs.
  struct Failure {
    std::uint64_t account_position = ~std::uint64_t{0};
    std::uint64_t facts_position = ~std::uint64_t{0};
    std::shared_ptr<const std::string> message;
    PluginSet rejectors;
  };
  Failure failure;
  std::uint64_t facts_failures_position = ~std::uint64_t{0};
  std::map<std::string, std::uint64_t, std::less<>> facts_failures;  // reasons of the facts filters
  PluginSet facts_rejectors;
};

struct ClassCacheStats {
  std::uint64_t full_passes = 0;
  std::uint64_t updates = 0;  // nodes evaluated one by one
  std::uint64_t builds = 0;   // classes evaluated on all facts
};

class ClassCache {
 public:
  /// `profiles` and `snapshot` outlive the cache.
  ClassCache(const std::vector<CompiledProfile>& profiles, const Snapshot& snapshot,
             std::size_t budget_bytes);

  /// The class with scores as of the snapshot; scores() has them until the next call.
  ClassState& current(ClassId cls, ProfileId profile);
  /// The scores of the class that current() returned last.
  [[nodiscard]] const ScoreTree& scores() const { return *scores_; }
  /// The class without its scores: facts as of the snapshot.
  ClassState& facts(ClassId cls, ProfileId profile);

  /// The class with its facts as they were when it was used last.
  const PreparedClass& prepared(ClassId cls, ProfileId profile) { return state(cls, profile).prepared; }

  /// Weighted score of one slot without the normalised plugins, kInfeasible if it does not pass; nominations
  /// apart. For a class whose facts are current.
  [[nodiscard]] std::int32_t leaf(const ClassState& state, Slot slot) const;

  /// The class is freed: forget it.
  void drop(ClassId cls);

  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  [[nodiscard]] const ClassCacheStats& stats() const { return stats_; }

 private:
  ClassState& state(ClassId cls, ProfileId profile);
  void build_facts(ClassState& state);
  void update_facts(ClassState& state);
  [[nodiscard]] bool passes_facts(const ClassState& state, const SnapshotLane& lane) const;
  /// Evaluates the raw scores of a slot and enters it in its bucket.
  void enter_bucket(ClassState& state, Slot slot);
  void build_images(ClassState& state);
  [[nodiscard]] bool images_changed(const ClassState& state) const;
  [[nodiscard]] std::int32_t leaf(const ClassState& state, const ColumnPass& pass, Slot slot) const;
  [[nodiscard]] std::int32_t row_leaf(const ClassState& state, Slot slot) const;
  void full_pass(ClassState& state, ScoreTree& tree);
  /// Evaluates the slots logged since `seen`.
  void catch_up(const ClassState& state, ScoreTree& tree, std::uint64_t seen);
  /// The tree that holds this class's scores, if any does.
  ScoreTree* tree_of(ClassState& state);
  /// More changes than a full pass costs.
  [[nodiscard]] bool pass_is_cheaper(std::uint64_t changes) const;
  void use(ClassState& state);
  void unlink(ClassState& state);
  void recount(ClassState& state);
  /// Lets go of the evaluations used least recently until the budget holds, `keep` apart.
  void evict(const ClassState& keep);
  void forget(ClassState& state);

  const std::vector<CompiledProfile>& profiles_;
  const Snapshot& snapshot_;
  std::size_t budget_bytes_;
  std::vector<std::vector<std::unique_ptr<ClassState>>> states_;  // [profile][class]
  std::size_t bytes_ = 0;
  ClassState* oldest_ = nullptr;
  ClassState* newest_ = nullptr;

  ScoreTree scratch_;  // scores of the class used last that keeps none of its own
  ClassState* scratch_owner_ = nullptr;
  const ScoreTree* scores_ = nullptr;
  ClassCacheStats stats_;
};

}  // namespace troupe
