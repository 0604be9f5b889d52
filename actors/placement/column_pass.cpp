#include "actors/placement/column_pass.hpp"

#include <algorithm>
#include <cmath>

#include "actors/placement/score_tree.hpp"

namespace troupe {
namespace {

// floor(part * 100 / capacity) without a division: part * (100 / capacity) is off by less than 2.3e-14 (two
// roundings, quotients up to 100). For capacities up to 2^44 a quotient that is no integer is at
// least 5.6e-14 below the next one, so adding the bound before the floor lifts a quotient that came out just
// below its integer, and never another one.
constexpr double kPercentError = 2.3e-14;
// Means of scores up to 100 by weights up to 100 per resource: their fractions are far coarser.
constexpr double kMeanError = 1e-9;

/// floor of a small non-negative value: by way of an int, because the compiler vectorises std::floor only
/// where it may ignore floating-point traps.
inline double whole(double x) {
  return static_cast<double>(static_cast<std::int32_t>(x));
}

inline double at_least_zero(double x) {
  return x > 0.0 ? x : 0.0;
}
inline double smaller(double a, double b) {
  return a < b ? a : b;
}

/// LeastAllocated: `left` is the capacity less what is used without the pod.
inline double least(double left, double request, double per_capacity) {
  return whole(at_least_zero(left - request) * per_capacity + kPercentError);
}

/// MostAllocated, and the utilization of RequestedToCapacityRatio: min(used, capacity) = capacity - max(left,
/// 0).
inline double most(double left, double request, double capacity, double per_capacity) {
  return whole((capacity - at_least_zero(left - request)) * per_capacity + kPercentError);
}

/// Share of a capacity in use with the pod, at most 1.
inline double share(double free, double request, double capacity) {
  return smaller(capacity - free + request, capacity) / capacity;
}

inline double balanced(double std) {
  return whole((1.0 - std) * 100.0);
}

double weight_of(const PreparedClass& prepared, PluginId plugin) {
  for (const EnabledPlugin& s : prepared.scores()) {
    if (s.plugin == plugin) return static_cast<double>(s.weight);
  }
  return 0.0;
}

bool filters_by(const PreparedClass& prepared, PluginId plugin) {
  const auto filters = prepared.filters();
  return std::find(filters.begin(), filters.end(), plugin) != filters.end();
}

}  // namespace

PassPlan plan_pass(const PreparedClass& prepared) {
  PassPlan plan;
  const auto& fit = prepared.state<NodeResourcesFit>();
  plan.counts_pods = filters_by(prepared, PluginId::node_resources_fit);
  if (plan.counts_pods) {
    for (const ResourceRequest& r : NodeResourcesFit::compared(fit, prepared.cls())) {
      plan.compares.push_back({r.resource, static_cast<double>(r.amount)});
    }
  }
  // A feasible node has some of every resource that is compared; the native ones count for every pod, and a
  // node without them is `wide`. Of anything else a feasible node may have none, which changes the mean.
  const auto always_there = [&](ResourceId r) {
    if (r < kFirstOtherResource) return true;
    return std::any_of(plan.compares.begin(), plan.compares.end(),
                       [r](const PassPlan::Compare& c) { return c.resource == r; });
  };
  plan.scoring = fit.scoring;
  plan.ratio_score = fit.ratio_score;
  plan.fit_weight = weight_of(prepared, PluginId::node_resources_fit);
  if (plan.fit_weight > 0) {
    double weights = 0;
    for (const ScoredResource& r : fit.scored) {
      plan.fit.push_back({r.resource, static_cast<double>(r.request), static_cast<double>(r.weight)});
      weights += r.weight;
      plan.rows_only = plan.rows_only || !always_there(r.resource);
    }
    plan.fit_per_weights = weights > 0 ? 1.0 / weights : 0.0;
  }
  plan.balanced_weight = weight_of(prepared, PluginId::node_resources_balanced_allocation);
  if (plan.balanced_weight > 0) {
    for (const ScoredResource& r : prepared.state<NodeResourcesBalancedAllocation>().scored) {
      plan.shares.push_back({r.resource, static_cast<double>(r.request), 1.0});
      plan.rows_only = plan.rows_only || !always_there(r.resource);
    }
  }
  constexpr std::size_t kMost = 16;
  if (plan.compares.size() > kMost || plan.fit.size() > kMost || plan.shares.size() > kMost)
    plan.rows_only = true;
  return plan;
}

ColumnPass::ColumnPass(const PassPlan& plan, const Columns& columns) : plan_(plan) {
  if (plan.rows_only) return;
  for (const PassPlan::Compare& c : plan.compares) {
    const ResourceColumn* column = columns.resource(c.resource);
    if (column == nullptr) {
      never_ = true;
      return;
    }
    compare_[compares_++] = {column->free.data(), nullptr, nullptr, c.request, 1};
  }
  for (const PassPlan::Term& t : plan.fit) {
    const ResourceColumn* column = columns.resource(t.resource);
    const double* free =
        t.resource <= kMemory ? columns.non_zero_free(t.resource).data() : column->free.data();
    fit_[fits_++] = {free, column->capacity.data(), column->per_capacity.data(), t.request, t.weight};
  }
  for (const PassPlan::Term& t : plan.shares) {
    const ResourceColumn* column = columns.resource(t.resource);
    share_[shares_++] = {column->free.data(), column->capacity.data(), nullptr, t.request, 1};
  }
  const auto cpu_and_memory = [](const std::vector<PassPlan::Term>& terms) {
    return terms.size() == 2 && terms[0].resource == kCpu && terms[1].resource == kMemory;
  };
  standard_ =
      plan.scoring == ScoringType::least_allocated && cpu_and_memory(plan.fit) && cpu_and_memory(plan.shares);
}

double ColumnPass::fit_score(std::size_t i) const {
  if (plan_.scoring == ScoringType::requested_to_capacity_ratio) {
    std::int64_t sum = 0;
    std::int64_t weights = 0;
    for (std::size_t k = 0; k < fits_; ++k) {
      const Column& c = fit_[k];
      const auto utilization =
          static_cast<std::size_t>(most(c.free[i], c.request, c.capacity[i], c.per_capacity[i]));
      const std::int32_t score = plan_.ratio_score[std::min<std::size_t>(utilization, 100)];
      if (score == 0) continue;
      sum += score * static_cast<std::int64_t>(c.weight);
      weights += static_cast<std::int64_t>(c.weight);
    }
    return static_cast<double>(weighted_mean_half_up(sum, weights));
  }
  double sum = 0;
  for (std::size_t k = 0; k < fits_; ++k) {
    const Column& c = fit_[k];
    sum += c.weight * (plan_.scoring == ScoringType::least_allocated
                           ? least(c.free[i], c.request, c.per_capacity[i])
                           : most(c.free[i], c.request, c.capacity[i], c.per_capacity[i]));
  }
  return whole(sum * plan_.fit_per_weights + kMeanError);
}

double ColumnPass::balanced_score(std::size_t i) const {
  if (shares_ < 2) return balanced(0.0);
  const auto share_of = [&](std::size_t k) {
    return share(share_[k].free[i], share_[k].request, share_[k].capacity[i]);
  };
  if (shares_ == 2) return balanced(std_of_two(share_of(0), share_of(1)));
  double total = 0;
  for (std::size_t k = 0; k < shares_; ++k) total += share_of(k);
  const auto count = static_cast<int>(shares_);
  const double mean = total / count;
  double squares = 0;
  for (std::size_t k = 0; k < shares_; ++k) {
    const double distance = share_of(k) - mean;
    squares += distance * distance;
  }
  return balanced(std::sqrt(squares / count));
}

// The loops below run over one block each and keep what they read in local variables, so that nothing that
// they write can alias it and the compiler vectorises them.

void ColumnPass::fit_block(std::size_t base, double* out) const {
  double sum[kBlock] = {};
  for (std::size_t k = 0; k < fits_; ++k) {
    const Column& c = fit_[k];
    const double* left = c.free + base;
    const double* capacity = c.capacity + base;
    const double* per = c.per_capacity + base;
    const double request = c.request;
    const double weight = c.weight;
    if (plan_.scoring == ScoringType::least_allocated) {
      for (std::size_t i = 0; i < kBlock; ++i) sum[i] += weight * least(left[i], request, per[i]);
    } else {
      for (std::size_t i = 0; i < kBlock; ++i) sum[i] += weight * most(left[i], request, capacity[i], per[i]);
    }
  }
  const double per_weights = plan_.fit_per_weights;
  for (std::size_t i = 0; i < kBlock; ++i) out[i] = whole(sum[i] * per_weights + kMeanError);
}

void ColumnPass::balanced_block(std::size_t base, double* out) const {
  if (shares_ < 2) {
    std::fill_n(out, kBlock, balanced(0.0));
    return;
  }
  double shares[kMostColumns][kBlock];
  for (std::size_t k = 0; k < shares_; ++k) {
    const double* free = share_[k].free + base;
    const double* capacity = share_[k].capacity + base;
    const double request = share_[k].request;
    double* to = shares[k];
    for (std::size_t i = 0; i < kBlock; ++i) to[i] = share(free[i], request, capacity[i]);
  }
  if (shares_ == 2) {
    for (std::size_t i = 0; i < kBlock; ++i) out[i] = balanced(std_of_two(shares[0][i], shares[1][i]));
    return;
  }
  // The sums in the order of the resources, as on one node.
  double mean[kBlock] = {};
  double squares[kBlock] = {};
  const auto count = static_cast<double>(shares_);
  for (std::size_t k = 0; k < shares_; ++k) {
    for (std::size_t i = 0; i < kBlock; ++i) mean[i] += shares[k][i];
  }
  for (std::size_t i = 0; i < kBlock; ++i) mean[i] /= count;
  for (std::size_t k = 0; k < shares_; ++k) {
    for (std::size_t i = 0; i < kBlock; ++i) {
      squares[i] += (shares[k][i] - mean[i]) * (shares[k][i] - mean[i]);
    }
  }
  for (std::size_t i = 0; i < kBlock; ++i) out[i] = balanced(std::sqrt(squares[i] / count));
}

void ColumnPass::standard_block(std::size_t base, std::int32_t* out) const {
  const double* left_cpu = fit_[0].free + base;
  const double* left_memory = fit_[1].free + base;
  const double* per_cpu = fit_[0].per_capacity + base;
  const double* per_memory = fit_[1].per_capacity + base;
  const double* free_cpu = share_[0].free + base;
  const double* free_memory = share_[1].free + base;
  const double* cpu = share_[0].capacity + base;
  const double* memory = share_[1].capacity + base;
  const double score_cpu = fit_[0].request;
  const double score_memory = fit_[1].request;
  const double cpu_weight = fit_[0].weight;
  const double memory_weight = fit_[1].weight;
  const double request_cpu = share_[0].request;
  const double request_memory = share_[1].request;
  const double per_weights = plan_.fit_per_weights;
  const double fit_weight = plan_.fit_weight;
  const double balanced_weight = plan_.balanced_weight;
  for (std::size_t i = 0; i < kBlock; ++i) {
    const double sum = cpu_weight * least(left_cpu[i], score_cpu, per_cpu[i]) +
                       memory_weight * least(left_memory[i], score_memory, per_memory[i]);
    const double spread =
        std_of_two(share(free_cpu[i], request_cpu, cpu[i]), share(free_memory[i], request_memory, memory[i]));
    out[i] = static_cast<std::int32_t>(fit_weight * whole(sum * per_weights + kMeanError) +
                                       balanced_weight * balanced(spread));
  }
}

void ColumnPass::block(std::size_t block, std::uint64_t candidates, std::int32_t* out) const {
  const std::size_t base = block * kBlock;
  if (candidates == 0 || never_) {
    std::fill_n(out, kBlock, kInfeasible);
    return;
  }
  std::int32_t scores[kBlock] = {};
  if (standard_) {
    standard_block(base, scores);
  } else {
    double part[kBlock];
    if (plan_.fit_weight > 0 && plan_.scoring == ScoringType::requested_to_capacity_ratio) {
      for (std::size_t i = 0; i < kBlock; ++i)
        scores[i] = static_cast<std::int32_t>(plan_.fit_weight * fit_score(base + i));
    } else if (plan_.fit_weight > 0) {
      const double weight = plan_.fit_weight;
      fit_block(base, part);
      for (std::size_t i = 0; i < kBlock; ++i) scores[i] = static_cast<std::int32_t>(weight * part[i]);
    }
    if (plan_.balanced_weight > 0) {
      const double weight = plan_.balanced_weight;
      balanced_block(base, part);
      for (std::size_t i = 0; i < kBlock; ++i) scores[i] += static_cast<std::int32_t>(weight * part[i]);
    }
  }
  for (std::size_t k = 0; k < compares_; ++k) {
    const double* free = compare_[k].free + base;
    const double request = compare_[k].request;
    for (std::size_t i = 0; i < kBlock; ++i) scores[i] = free[i] >= request ? scores[i] : kInfeasible;
  }
  std::copy_n(scores, kBlock, out);
  for (std::uint64_t rest = ~candidates; rest != 0; rest &= rest - 1)
    out[__builtin_ctzll(rest)] = kInfeasible;
}

std::int32_t ColumnPass::one(Slot slot) const {
  if (never_) return kInfeasible;
  for (std::size_t k = 0; k < compares_; ++k) {
    if (!(compare_[k].free[slot] >= compare_[k].request)) return kInfeasible;
  }
  double score = 0;
  if (plan_.fit_weight > 0) score += plan_.fit_weight * fit_score(slot);
  if (plan_.balanced_weight > 0) score += plan_.balanced_weight * balanced_score(slot);
  return static_cast<std::int32_t>(score);
}

}  // namespace troupe
