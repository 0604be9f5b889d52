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

inline double at_least_zero(double x) {
  return x > 0.0 ? x : 0.0;
}
inline double smaller(double a, double b) {
  return a < b ? a : b;
}

/// LeastAllocated: `left` is the capacity less what is used without the pod.
inline double least(double left, double request, double per_capacity) {
  return std::floor(at_least_zero(left - request) * per_capacity + kPercentError);
}

/// MostAllocated, and the utilization of RequestedToCapacityRatio: min(used, capacity) = capacity - max(left,
/// 0).
inline double most(double left, double request, double capacity, double per_capacity) {
  return std::floor((capacity - at_least_zero(left - request)) * per_capacity + kPercentError);
}

/// Share of a capacity in use with the pod, at most 1.
inline double share(double free, double request, double capacity) {
  return smaller(capacity - free + request, capacity) / capacity;
}

inline double balanced(double std) {
  return std::floor((1.0 - std) * 100.0);
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
  return std::floor(sum * plan_.fit_per_weights + kMeanError);
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

inline double ColumnPass::standard_score(std::size_t i) const {
  const double spread = std_of_two(share(share_[0].free[i], share_[0].request, share_[0].capacity[i]),
                                   share(share_[1].free[i], share_[1].request, share_[1].capacity[i]));
  const double sum = fit_[0].weight * least(fit_[0].free[i], fit_[0].request, fit_[0].per_capacity[i]) +
                     fit_[1].weight * least(fit_[1].free[i], fit_[1].request, fit_[1].per_capacity[i]);
  return plan_.fit_weight * std::floor(sum * plan_.fit_per_weights + kMeanError) +
         plan_.balanced_weight * balanced(spread);
}

template <class Lane>
void ColumnPass::fill(std::size_t base, std::int32_t* out, Lane&& lane) const {
  for (std::size_t i = 0; i < kBlock; ++i) out[i] = static_cast<std::int32_t>(lane(base + i));
}

void ColumnPass::block(std::size_t block, std::uint64_t candidates, std::int32_t* out) const {
  const std::size_t base = block * kBlock;
  if (candidates == 0 || never_) {
    std::fill_n(out, kBlock, kInfeasible);
    return;
  }
  if (standard_) {
    fill(base, out, [this](std::size_t i) { return standard_score(i); });
  } else {
    std::fill_n(out, kBlock, 0);
    if (fits_ != 0) fill(base, out, [this](std::size_t i) { return plan_.fit_weight * fit_score(i); });
    if (plan_.balanced_weight > 0) {
      std::int32_t more[kBlock];
      fill(base, more, [this](std::size_t i) { return plan_.balanced_weight * balanced_score(i); });
      for (std::size_t i = 0; i < kBlock; ++i) out[i] += more[i];
    }
  }
  for (std::size_t k = 0; k < compares_; ++k) {
    const double* free = compare_[k].free + base;
    const double request = compare_[k].request;
    for (std::size_t i = 0; i < kBlock; ++i) out[i] = free[i] >= request ? out[i] : kInfeasible;
  }
  for (std::uint64_t rest = ~candidates; rest != 0; rest &= rest - 1)
    out[__builtin_ctzll(rest)] = kInfeasible;
}

std::int32_t ColumnPass::one(Slot slot) const {
  if (never_) return kInfeasible;
  for (std::size_t k = 0; k < compares_; ++k) {
    if (!(compare_[k].free[slot] >= compare_[k].request)) return kInfeasible;
  }
  if (standard_) return static_cast<std::int32_t>(standard_score(slot));
  double score = 0;
  if (fits_ != 0) score += plan_.fit_weight * fit_score(slot);
  if (plan_.balanced_weight > 0) score += plan_.balanced_weight * balanced_score(slot);
  return static_cast<std::int32_t>(score);
}

}  // namespace troupe
