// Pods and pod classes from native fields to messages. Who builds a pod (the decoders, the trace reader) goes
// through here, so that equal specs give equal class bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "messages/fb/pod_generated.h"
#include "messages/message.hpp"

namespace troupe {

struct KeyValueView {
  std::string_view key;
  std::string_view value;
};

/// An amount as fb::ResourceAmount has it: milli-CPU for cpu, whole units for all else.
struct AmountView {
  std::string_view name;
  std::int64_t amount = 0;
};

/// A half-open range of indices into a pool.
struct PoolRange {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  [[nodiscard]] bool empty() const { return begin == end; }
  [[nodiscard]] std::uint32_t size() const { return end - begin; }
};

struct RequirementView {
  std::string_view key;
  fb::SelectorOperator op = fb::SelectorOperator::In;
  PoolRange values;  // into PodClassFields::values
};

struct TermView {
  PoolRange expressions;  // into PodClassFields::requirements
  PoolRange fields;
};

struct PreferredTermView {
  std::int32_t weight = 0;
  TermView term;
};

struct TolerationView {
  std::string_view key;
  bool exists = false;
  std::string_view value;
  fb::TaintEffect effect = fb::TaintEffect::Any;
};

struct HostPortView {
  std::string_view ip;
  std::string_view protocol;  // empty: TCP
  std::int32_t port = 0;
};

/// What fb::PodClass says, as views: texts must outlive the call that writes them. Terms share two pools.
struct PodClassFields {
  std::vector<AmountView> requests;  // any order; zero amounts are left out
  std::int64_t non_zero_cpu_milli = 0;
  std::int64_t non_zero_memory_bytes = 0;
  std::int64_t score_cpu_milli = -1;     // -1: as non_zero_cpu_milli
  std::int64_t score_memory_bytes = -1;  // -1: as non_zero_memory_bytes
  bool has_score_requests = false;
  std::vector<AmountView> score_requests;
  std::vector<KeyValueView> node_selector;  // any order
  bool has_required = false;
  std::vector<TermView> required;
  std::vector<PreferredTermView> preferred;
  std::vector<RequirementView> requirements;
  std::vector<std::string_view> values;
  std::vector<TolerationView> tolerations;
  std::vector<HostPortView> host_ports;
  std::vector<std::string_view> images;  // normalised

  void clear();
};

/// Writes fb::PodClass in its canonical form: amounts and selector sorted by name, all else as given.
class ClassWriter {
 public:
  /// Sorts `fields`' amounts and selector. The bytes are valid until the next call.
  std::span<const std::uint8_t> write(PodClassFields& fields);

 private:
  flatbuffers::FlatBufferBuilder builder_{1024};
  std::vector<flatbuffers::Offset<flatbuffers::String>> strings_;
  std::vector<flatbuffers::Offset<fb::Requirement>> requirements_;
  std::vector<flatbuffers::Offset<fb::ResourceAmount>> amounts_;
  std::vector<flatbuffers::Offset<fb::KeyValue>> pairs_;
  std::vector<flatbuffers::Offset<fb::NodeSelectorTerm>> terms_;
  std::vector<flatbuffers::Offset<fb::PreferredTerm>> preferred_;
  std::vector<flatbuffers::Offset<fb::Toleration>> tolerations_;
  std::vector<flatbuffers::Offset<fb::HostPort>> ports_;

  flatbuffers::Offset<flatbuffers::String> text(std::string_view s);
  flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<fb::ResourceAmount>>> amounts(
      std::vector<AmountView>& amounts);
  flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<fb::Requirement>>> requirements(
      const PodClassFields& fields, PoolRange range);
  flatbuffers::Offset<fb::NodeSelectorTerm> term(const PodClassFields& fields, const TermView& term);
};

struct ConditionView {
  std::string_view type;
  std::string_view status;
  std::string_view reason;
  std::string_view message;
  std::int64_t transition_ms = 0;
};

struct OwnerView {
  std::string_view kind;
  std::string_view name;
  std::string_view uid;
  bool controller = false;
};

/// What fb::Pod says, as views. Without a uid the pod is known by the hash of "namespace/name".
struct PodFields {
  std::string_view name_space;
  std::string_view name;
  std::string_view uid;
  std::string_view resource_version;
  std::int64_t generation = 0;
  std::vector<KeyValueView> labels;  // any order
  std::vector<KeyValueView> annotations;
  std::int64_t creation_ms = 0;
  std::int64_t deletion_ms = 0;
  std::int64_t start_ms = 0;
  std::string_view scheduler_name;
  std::string_view node_name;
  std::string_view nominated_node_name;
  std::int32_t priority = 0;
  bool preemption_never = false;
  std::string_view phase;
  std::vector<std::string_view> scheduling_gates;
  std::string_view pinned_node;
  std::optional<ConditionView> scheduled_condition;
  std::vector<OwnerView> owners;
  PodClassFields spec;

  void clear();
};

/// Reused buffers for many pods; not thread-safe.
class PodWriter {
 public:
  /// Kind::pod. Sorts labels and annotations by key; of repeated keys the last counts.
  Message write(PodFields& fields);

 private:
  ClassWriter class_writer_;
  flatbuffers::FlatBufferBuilder builder_{2048};
  std::vector<flatbuffers::Offset<fb::KeyValue>> pairs_;
  std::vector<flatbuffers::Offset<flatbuffers::String>> strings_;
  std::vector<flatbuffers::Offset<fb::OwnerReference>> owners_;
};

/// Sorts by key; of repeated keys the last counts.
void sort_pairs(std::vector<KeyValueView>& pairs);

}  // namespace troupe
