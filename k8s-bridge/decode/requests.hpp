// What a pod asks of a node (spec 5.2), from the resource lists of its containers. Amounts are kept exact, in
// units of 10^-9, until the sums are made; then they round up once.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "messages/pod_writer.hpp"
#include "messages/quantity.hpp"

namespace troupe::decode {

/// The name under which a resource is counted (deprecated names become today's), or empty where the scheduler
/// does not count it. `pods` is not a resource here.
std::string_view counted_resource(std::string_view name);

/// Names and amounts of one pod or node. Indices 0 and 1 are cpu and memory.
class ResourceTable {
 public:
  static constexpr std::uint16_t kCpu = 0;
  static constexpr std::uint16_t kMemory = 1;
  /// More different names than this in one object are refused, so that look-ups may be linear.
  static constexpr std::size_t kMostNames = 256;

  struct Entry {
    std::uint16_t resource = 0;
    bool renamed = false;  // stated under its deprecated name
    int128 nano = 0;
  };
  /// A resource list: a range of entries; `present` tells an empty list from none.
  struct List {
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
    bool present = false;
  };

  ResourceTable() { clear(); }
  void clear();
  List begin_list();
  /// Adds to the list begun last. Of repeated names the last counts; today's name wins over its deprecated
  /// one. False: too many names.
  bool add(List& list, std::string_view name, bool renamed, int128 nano);

  [[nodiscard]] std::size_t names() const { return names_.size(); }
  [[nodiscard]] std::string_view name(std::size_t i) const { return names_[i]; }
  [[nodiscard]] std::span<const Entry> entries(const List& list) const {
    return std::span(entries_).subspan(list.begin, list.end - list.begin);
  }

 private:
  std::vector<std::string_view> names_;
  std::vector<Entry> entries_;
};

struct ContainerFields {
  std::string_view name;
  ResourceTable::List requests;
  bool init = false;
  bool sidecar = false;  // an init container with restartPolicy Always
};

struct ContainerStatusFields {
  std::string_view name;
  ResourceTable::List actual;     // resources.requests; `present`: resources is there
  ResourceTable::List allocated;  // allocatedResources
};

class RequestCalculator {
 public:
  ResourceTable table;
  std::vector<ContainerFields> containers;  // app and init containers, each kind in declared order
  std::vector<ContainerStatusFields> statuses;
  ResourceTable::List pod_level;
  ResourceTable::List overhead;
  bool assigned = false;           // the pod has a node: statuses count (rule 4)
  bool resize_infeasible = false;  // PodResizePending, Infeasible: the spec does not

  void clear();
  /// Fills requests, non_zero_* and score_* of `out`. Sums beyond 64 bits become the largest number.
  void compute(PodClassFields& out);

 private:
  struct Totals {
    std::vector<int128> amount;        // by resource
    std::vector<std::uint8_t> stated;  // somewhere, be it as zero
  };
  Totals containers_;  // without fill-in
  Totals filled_;
  Totals whole_;
  std::vector<int128> sidecars_;
  std::vector<int128> init_;
  std::vector<int128> own_;
  std::vector<std::uint8_t> own_stated_;

  void own_requests(const ContainerFields& container);
  void aggregate(bool fill_cpu, bool fill_memory, Totals& out);
  void add_overhead(Totals& totals) const;
  bool replace_by_pod_level(Totals& totals) const;
  void export_amounts(const Totals& totals, std::vector<AmountView>& out) const;
};

/// Milli for cpu, whole units for all else; rounds up, the largest number when beyond 64 bits.
std::int64_t base_units(std::string_view resource, int128 nano);

}  // namespace troupe::decode
