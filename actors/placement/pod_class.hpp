// A pod class compiled for evaluation: what fb::PodClass says, with strings interned and amounts by resource
// id. Placement and every node partition compile the same bytes, each with its own Interner.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "messages/error.hpp"
#include "messages/fb/pod_generated.h"

namespace troupe {

using ResourceId = std::uint16_t;
inline constexpr ResourceId kCpu = 0;               // milli-CPU
inline constexpr ResourceId kMemory = 1;            // bytes
inline constexpr ResourceId kEphemeralStorage = 2;  // bytes
inline constexpr ResourceId kFirstOtherResource = 3;

using StringId = std::uint32_t;
inline constexpr StringId kEmptyString = 0;   // "" in every Interner
inline constexpr StringId kMetadataName = 1;  // "metadata.name" in every Interner
inline constexpr StringId kNoString = 0xFFFFFFFFU;

/// Strings to small numbers, for one actor; never shrinks. Not thread-safe: each actor has its own.
class Interner {
 public:
  Interner();
  StringId id(std::string_view text);
  /// The id of a string that is already known, else kNoString.
  [[nodiscard]] StringId find(std::string_view text) const {
    const auto it = ids_.find(text);
    return it == ids_.end() ? kNoString : it->second;
  }
  [[nodiscard]] std::string_view text(StringId id) const { return *texts_[id]; }
  /// Number of strings: every id is below it.
  [[nodiscard]] std::size_t size() const { return texts_.size(); }

  /// Resources have their own dense numbering; cpu, memory and ephemeral-storage are fixed. `pods` is not a
  /// resource here.
  ResourceId resource(std::string_view name);
  [[nodiscard]] std::string_view resource_name(ResourceId id) const { return *resource_names_[id]; }
  [[nodiscard]] std::size_t resources() const { return resource_names_.size(); }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view s) const noexcept;
  };
  std::unordered_map<std::string, StringId, Hash, std::equal_to<>> ids_;
  std::vector<const std::string*> texts_;
  std::unordered_map<std::string, ResourceId, Hash, std::equal_to<>> resource_ids_;
  std::vector<const std::string*> resource_names_;
};

struct ResourceRequest {
  ResourceId resource = 0;
  std::int64_t amount = 0;
};

struct Toleration {
  StringId key = 0;  // id of "" : any key (operator Exists)
  bool exists = false;
  StringId value = 0;
  fb::TaintEffect effect = fb::TaintEffect::Any;
};

struct Taint {
  StringId key = 0;
  StringId value = 0;
  fb::TaintEffect effect = fb::TaintEffect::NoSchedule;
};

struct Requirement {
  StringId key = 0;
  fb::SelectorOperator op = fb::SelectorOperator::In;
  std::vector<StringId> values;
  std::int64_t number = 0;    // Gt, Lt: the parsed value
  bool number_valid = false;  // false: Gt and Lt never match
};

struct NodeSelectorTerm {
  std::vector<Requirement> expressions;
  std::vector<Requirement> fields;  // metadata.name
};

struct PreferredTerm {
  std::int32_t weight = 0;
  NodeSelectorTerm term;
};

struct HostPort {
  StringId ip = 0;  // "" and "0.0.0.0" are both stored as the id of ""
  StringId protocol = 0;
  std::int32_t port = 0;

  friend bool operator==(const HostPort&, const HostPort&) = default;
};

struct PodClass {
  std::vector<ResourceRequest> requests;  // sorted by resource id, amounts > 0
  std::int64_t non_zero_cpu = 0;          // milli-CPU, what a node's account takes for scoring
  std::int64_t non_zero_memory = 0;       // bytes
  std::int64_t score_cpu = 0;             // milli-CPU, what NodeResourcesFit scores for the incoming pod
  std::int64_t score_memory = 0;          // bytes
  std::vector<ResourceRequest> score_requests;  // likewise for other resources; usually equal to requests
  std::vector<std::pair<StringId, StringId>> node_selector;
  bool has_required = false;
  std::vector<NodeSelectorTerm> required;
  std::vector<PreferredTerm> preferred;
  std::vector<Toleration> tolerations;
  std::vector<HostPort> host_ports;
  std::vector<StringId> images;  // one per init and app container

  [[nodiscard]] std::int64_t request(ResourceId resource) const;
};

PodClass compile(const fb::PodClass& wire, Interner& interner);

}  // namespace troupe
