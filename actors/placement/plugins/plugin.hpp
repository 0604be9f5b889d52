// actors/placement/plugins/: what may run where (filters) and what is better (scores), one definition per
// plugin of kube-scheduler. Each is a stateless struct of templates over NodeView, so the column pass, the
// commit check at the node's owner and `explain` share it. docs/plugins.md says how to add one.
//
// A plugin has:
//   name, id, points      its name in a configuration, its number here, the extension points it implements
//   filter_reads          what its filter looks at; facts of the node only, or its account too
//   State                 what it computes once per class (PreFilter and PreScore), and
//   prepare(context, cls) the function that does; both are absent where there is nothing to compute
// and, for the points that it implements:
//   skips_filter(state, cls)                 true: passes on every node, its filter need not run (PreFilter
//   Skip) passes(state, cls, facts, view)          the filter's answer, without allocation refuse(state, cls,
//   facts, view)          the same with the reasons score_reads, normalise, default_weight,
//   skips_score(state, cls), score(state, cls, view)
#pragma once

#include <bit>
#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "actors/placement/node_view.hpp"
#include "actors/placement/pod_class.hpp"

namespace troupe {

/// Extension points of kube-scheduler, in the order in which one attempt meets them.
enum class Point : std::uint8_t {
  pre_enqueue,
  queue_sort,
  pre_filter,
  filter,
  post_filter,
  pre_score,
  score,
  reserve,
  permit,
  pre_bind,
  bind,
  post_bind,
};
inline constexpr std::size_t kPoints = 12;

/// The plugins, in kube-scheduler's default order (spec 4.3). Values are for this process only.
enum class PluginId : std::uint8_t {
  scheduling_gates,
  priority_sort,
  node_unschedulable,
  node_name,
  taint_toleration,
  node_affinity,
  node_ports,
  node_resources_fit,
  node_resources_balanced_allocation,
  image_locality,
  default_binder,
};
inline constexpr std::size_t kPlugins = 11;

/// A set of small enum values.
template <class E>
class Set {
 public:
  constexpr Set() = default;
  constexpr Set(std::initializer_list<E> members) {
    for (const E e : members) insert(e);
  }
  constexpr void insert(E e) { bits_ |= bit(e); }
  constexpr void erase(E e) { bits_ &= ~bit(e); }
  [[nodiscard]] constexpr bool contains(E e) const { return (bits_ & bit(e)) != 0; }
  [[nodiscard]] constexpr bool empty() const { return bits_ == 0; }
  [[nodiscard]] constexpr int size() const { return std::popcount(bits_); }
  [[nodiscard]] constexpr bool intersects(Set other) const { return (bits_ & other.bits_) != 0; }
  constexpr Set& operator|=(Set other) {
    bits_ |= other.bits_;
    return *this;
  }
  /// Calls `f` for each member, lowest first.
  template <class F>
  constexpr void for_each(F&& f) const {
    for (std::uint64_t rest = bits_; rest != 0; rest &= rest - 1) {
      f(static_cast<E>(std::countr_zero(rest)));
    }
  }
  friend constexpr bool operator==(Set, Set) = default;

 private:
  static constexpr std::uint64_t bit(E e) { return std::uint64_t{1} << static_cast<unsigned>(e); }
  std::uint64_t bits_ = 0;
};

using PluginSet = Set<PluginId>;
using Points = Set<Point>;

/// What an evaluation looks at. A result that reads only facts of the node changes with the node object; one
/// that reads the ledger changes with every commit; one that reads the pod's facts is no property of a class.
enum class Reads : std::uint8_t { node_facts, ledger, pod_facts, cluster };
using ReadSet = Set<Reads>;

/// How raw scores become 0 to 100 over the feasible nodes (spec 5.6).
enum class Normalise : std::uint8_t {
  none,      // raw is the score
  standard,  // floor(100 * raw / max), unchanged when max is 0
  reversed,  // 100 - that, 100 when max is 0
};

/// What the check of one pod needs besides its class: pods of one class may differ in these.
struct PodFacts {
  StringId pinned_node = kNoString;  // the node that the only required term names by metadata.name
  StringId node_name = kNoString;    // spec.nodeName
};

struct CompiledProfile;

struct PluginContext {
  const CompiledProfile& profile;
  const Interner& interner;
};

/// State of a plugin that computes nothing per class.
struct NoState {};

/// The verdict of a filter with at most one reason.
inline Verdict refuse_if(bool refused, Code code, Reason::Id reason) {
  if (!refused) return {};
  return {code, {Reason{reason, 0}}};
}

/// Spec 5.5: an empty effect matches every effect, an empty key every key; Exists ignores the value.
inline bool tolerates(const Toleration& toleration, const Taint& taint) {
  if (toleration.effect != fb::TaintEffect::Any && toleration.effect != taint.effect) return false;
  if (toleration.key != kEmptyString && toleration.key != taint.key) return false;
  return toleration.exists || toleration.value == taint.value;
}

inline bool tolerated(const Taint& taint, const PodClass& cls) {
  for (const Toleration& t : cls.tolerations) {
    if (tolerates(t, taint)) return true;
  }
  return false;
}

}  // namespace troupe
