// The part of a class's evaluation that changes with the accounts (NodeResourcesFit, BalancedAllocation), run
// over whole columns or on one slot. Gives bit for bit what the plugins' own templates give on one node.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "actors/placement/columns.hpp"
#include "actors/placement/plugins/default_plugins.hpp"

namespace troupe {

/// What a class compares and scores, per resource id. Made once per class and profile.
struct PassPlan {
  struct Compare {
    ResourceId resource = 0;
    double request = 0;
  };
  struct Term {
    ResourceId resource = 0;
    double request = 0;
    double weight = 1;
  };

  // Something that the columns do not carry: every node is evaluated by the plugins' templates.
  bool rows_only = false;
  bool counts_pods = false;  // the fit filter is on
  std::vector<Compare> compares;

  ScoringType scoring = ScoringType::least_allocated;
  std::vector<Term> fit;
  double fit_weight = 0;       // of the plugin; 0: off
  double fit_per_weights = 0;  // 1 / sum of the resources' weights
  const std::int32_t* ratio_score = nullptr;
  std::vector<Term> shares;  // BalancedAllocation
  double balanced_weight = 0;
};

PassPlan plan_pass(const PreparedClass& prepared);

/// A plan bound to the columns: valid until a column is added or the columns grow.
class ColumnPass {
 public:
  ColumnPass(const PassPlan& plan, const Columns& columns);

  /// Weighted scores of the 64 slots of a block, kInfeasible for those outside `candidates` and those where
  /// the requests do not fit. Neither pod counts nor `wide` slots are looked at: the caller leaves them out
  /// of `candidates`.
  void block(std::size_t block, std::uint64_t candidates, std::int32_t* out) const;
  [[nodiscard]] std::int32_t one(Slot slot) const;

 private:
  struct Column {
    const double* free = nullptr;  // for cpu and memory of the fit score: less the non-zero requests
    const double* capacity = nullptr;
    const double* per_capacity = nullptr;
    double request = 0;
    double weight = 1;
  };

  [[nodiscard]] double fit_score(std::size_t i) const;
  [[nodiscard]] double balanced_score(std::size_t i) const;
  void fit_block(std::size_t base, double* out) const;
  void balanced_block(std::size_t base, double* out) const;
  void standard_block(std::size_t base, std::int32_t* out) const;

  const PassPlan& plan_;
  bool never_ = false;     // asks for a resource that no node has
  bool standard_ = false;  // LeastAllocated and BalancedAllocation, both of cpu and memory: one fused loop
  static constexpr std::size_t kMostColumns = 16;
  std::size_t compares_ = 0;
  std::size_t fits_ = 0;
  std::size_t shares_ = 0;
  std::array<Column, kMostColumns> compare_;
  std::array<Column, kMostColumns> fit_;
  std::array<Column, kMostColumns> share_;
};

}  // namespace troupe
