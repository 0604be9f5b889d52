#include "k8s-bridge/decode/requests.hpp"

#include <algorithm>
#include <array>
#include <limits>

namespace troupe::decode {
namespace {

constexpr int128 kNanoPerMilli = 1'000'000;
constexpr int128 kNanoPerUnit = 1'000'000'000;
constexpr int128 kDefaultCpu = 100 * kNanoPerMilli;                    // 100m, rule 3
constexpr int128 kDefaultMemory = int128{209'715'200} * kNanoPerUnit;  // 200Mi, rule 3

struct Renamed {
  std::string_view from;
  std::string_view to;
};

// Koordinator's deprecated resource names.
constexpr std::array kRenamed{
    Renamed{"koordinator.sh/batch-cpu", "kubernetes.io/batch-cpu"},
    Renamed{"koordinator.sh/batch-memory", "kubernetes.io/batch-memory"},
    Renamed{"kubernetes.io/gpu", "koordinator.sh/gpu"},
    Renamed{"kubernetes.io/gpu-core", "koordinator.sh/gpu-core"},
    Renamed{"kubernetes.io/gpu-memory", "koordinator.sh/gpu-memory"},
    Renamed{"kubernetes.io/gpu-memory-ratio", "koordinator.sh/gpu-memory-ratio"},
    Renamed{"kubernetes.io/rdma", "koordinator.sh/rdma"},
    Renamed{"kubernetes.io/fpga", "koordinator.sh/fpga"},
};

// Resources that spec.resources may set for the whole pod.
bool pod_level_resource(std::string_view name) {
  return name == "cpu" || name == "memory" || name.starts_with("hugepages-");
}

}  // namespace

std::string_view counted_resource(std::string_view name) {
  if (name == "cpu" || name == "memory" || name == "ephemeral-storage") return name;
  if (name.starts_with("hugepages-") || name.starts_with("attachable-volumes-")) return name;
  if (name.find('/') == std::string_view::npos) return {};
  for (const Renamed& r : kRenamed) {
    if (r.from == name) return r.to;
  }
  if (name.find("kubernetes.io/") != std::string_view::npos) return name;
  // The prefix of quota names; never a resource of a container.
  return name.starts_with("requests.") ? std::string_view{} : name;
}

std::int64_t base_units(std::string_view resource, int128 nano) {
  const int128 unit = resource == "cpu" ? kNanoPerMilli : kNanoPerUnit;
  int128 units = 0;
  if (nano >= 0 && nano <= std::numeric_limits<std::int64_t>::max()) {
    const auto small = static_cast<std::int64_t>(nano);
    const auto divisor = static_cast<std::int64_t>(unit);
    units = small / divisor + (small % divisor != 0 ? 1 : 0);
  } else {
    units = nano / unit;
    if (nano % unit != 0) units += nano < 0 ? -1 : 1;
  }
  constexpr int128 kMost = std::numeric_limits<std::int64_t>::max();
  return static_cast<std::int64_t>(std::clamp(units, -kMost, kMost));
}

void ResourceTable::clear() {
  names_.clear();
  names_.push_back("cpu");
  names_.push_back("memory");
  entries_.clear();
}

ResourceTable::List ResourceTable::begin_list() {
  const auto at = static_cast<std::uint32_t>(entries_.size());
  return {at, at, true};
}

bool ResourceTable::add(List& list, std::string_view name, bool renamed, int128 nano) {
  const auto found = std::find(names_.begin(), names_.end(), name);
  const auto resource = static_cast<std::uint16_t>(found - names_.begin());
  if (found == names_.end()) {
    if (names_.size() == kMostNames) return false;
    names_.push_back(name);
  }
  for (std::uint32_t i = list.begin; i < list.end; ++i) {
    Entry& e = entries_[i];
    if (e.resource != resource) continue;
    if (!renamed || e.renamed) e = {resource, renamed, nano};
    return true;
  }
  entries_.push_back({resource, renamed, nano});
  ++list.end;
  return true;
}

void RequestCalculator::clear() {
  table.clear();
  containers.clear();
  statuses.clear();
  pod_level = {};
  overhead = {};
  assigned = false;
  resize_infeasible = false;
}

// own_: what the container counts with, rule 4 applied.
void RequestCalculator::own_requests(const ContainerFields& container) {
  std::fill(own_.begin(), own_.end(), 0);
  std::fill(own_stated_.begin(), own_stated_.end(), std::uint8_t{0});
  const auto take = [&](const ResourceTable::List& list) {
    for (const ResourceTable::Entry& e : table.entries(list)) {
      own_[e.resource] = own_stated_[e.resource] != 0 ? std::max(own_[e.resource], e.nano) : e.nano;
      own_stated_[e.resource] = 1;
    }
  };
  const ContainerStatusFields* status = nullptr;
  if (assigned && (!container.init || container.sidecar)) {
    const auto at =
        std::lower_bound(statuses.begin(), statuses.end(), container.name,
                         [](const ContainerStatusFields& s, std::string_view name) { return s.name < name; });
    if (at != statuses.end() && at->name == container.name && at->actual.present) status = &*at;
  }
  if (status == nullptr || !resize_infeasible) take(container.requests);
  if (status != nullptr) {
    take(status->actual);
    take(status->allocated);
  }
}

// Rule 1, with the fill-in of rule 3 where asked for.
void RequestCalculator::aggregate(bool fill_cpu, bool fill_memory, Totals& out) {
  const std::size_t n = table.names();
  out.amount.assign(n, 0);
  out.stated.assign(n, 0);
  sidecars_.assign(n, 0);
  init_.assign(n, 0);
  own_.resize(n);
  own_stated_.resize(n);
  for (const ContainerFields& c : containers) {
    own_requests(c);
    const auto fill = [&](std::uint16_t resource, int128 amount) {
      if (own_stated_[resource] != 0) return;
      own_[resource] = amount;
      own_stated_[resource] = 1;
    };
    if (fill_cpu) fill(ResourceTable::kCpu, kDefaultCpu);
    if (fill_memory) fill(ResourceTable::kMemory, kDefaultMemory);
    for (std::size_t r = 0; r < n; ++r) {
      out.stated[r] |= own_stated_[r];
      if (!c.init) {
        out.amount[r] += own_[r];
      } else if (c.sidecar) {
        out.amount[r] += own_[r];
        sidecars_[r] += own_[r];
        init_[r] = std::max(init_[r], sidecars_[r]);
      } else {
        init_[r] = std::max(init_[r], sidecars_[r] + own_[r]);
      }
    }
  }
  for (std::size_t r = 0; r < n; ++r) out.amount[r] = std::max(out.amount[r], init_[r]);
}

bool RequestCalculator::replace_by_pod_level(Totals& totals) const {
  bool any = false;
  for (const ResourceTable::Entry& e : table.entries(pod_level)) {
    if (!pod_level_resource(table.name(e.resource))) continue;
    totals.amount[e.resource] = e.nano;
    totals.stated[e.resource] = 1;
    any = true;
  }
  return any;
}

void RequestCalculator::add_overhead(Totals& totals) const {
  for (const ResourceTable::Entry& e : table.entries(overhead)) {
    totals.amount[e.resource] += e.nano;
    totals.stated[e.resource] = 1;
  }
}

void RequestCalculator::export_amounts(const Totals& totals, std::vector<AmountView>& out) const {
  out.clear();
  for (std::size_t r = 0; r < table.names(); ++r) {
    if (totals.amount[r] != 0) {
      out.push_back({table.name(r), base_units(table.name(r), totals.amount[r])});
    }
  }
}

void RequestCalculator::compute(PodClassFields& out) {
  constexpr std::size_t kCpu = ResourceTable::kCpu;
  constexpr std::size_t kMemory = ResourceTable::kMemory;
  if (assigned) {
    std::stable_sort(
        statuses.begin(), statuses.end(),
        [](const ContainerStatusFields& a, const ContainerStatusFields& b) { return a.name < b.name; });
  }
  aggregate(false, false, containers_);
  whole_ = containers_;
  const bool pod_level_set = replace_by_pod_level(whole_);
  add_overhead(whole_);
  export_amounts(whole_, out.requests);

  aggregate(!pod_level_set || whole_.stated[kCpu] == 0, !pod_level_set || whole_.stated[kMemory] == 0,
            filled_);
  replace_by_pod_level(filled_);
  add_overhead(filled_);
  out.non_zero_cpu_milli = base_units("cpu", filled_.amount[kCpu]);
  out.non_zero_memory_bytes = base_units("memory", filled_.amount[kMemory]);
  out.score_cpu_milli = -1;
  out.score_memory_bytes = -1;
  out.has_score_requests = false;
  if (!pod_level_set) return;

  // NodeResourcesFit of 1.35 scores the incoming pod by its containers (5.6).
  aggregate(true, true, filled_);
  add_overhead(filled_);
  const std::int64_t cpu = base_units("cpu", filled_.amount[kCpu]);
  const std::int64_t memory = base_units("memory", filled_.amount[kMemory]);
  if (cpu != out.non_zero_cpu_milli) out.score_cpu_milli = cpu;
  if (memory != out.non_zero_memory_bytes) out.score_memory_bytes = memory;
  add_overhead(containers_);
  for (std::size_t r = kMemory + 1; r < table.names(); ++r) {
    if (containers_.amount[r] != whole_.amount[r]) out.has_score_requests = true;
  }
  if (out.has_score_requests) export_amounts(containers_, out.score_requests);
}

}  // namespace troupe::decode
