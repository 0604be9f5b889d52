// Nodes and the small mirrored kinds from native fields to messages.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "messages/fb/node_generated.h"
#include "messages/message.hpp"
#include "messages/pod_writer.hpp"

namespace troupe {

struct TaintView {
  std::string_view key;
  std::string_view value;
  fb::TaintEffect effect = fb::TaintEffect::NoSchedule;
};

struct NodeImageView {
  PoolRange names;  // into NodeFields::image_names
  std::int64_t size_bytes = 0;
};

struct NodeConditionView {
  std::string_view type;
  std::string_view status;
};

/// What fb::Node says, as views: texts must outlive the call that writes them.
struct NodeFields {
  std::string_view name;
  std::string_view uid;
  std::string_view resource_version;
  std::vector<KeyValueView> labels;  // any order
  std::vector<KeyValueView> annotations;
  std::vector<TaintView> taints;
  bool unschedulable = false;
  std::vector<AmountView> allocatable;  // any order
  std::vector<NodeImageView> images;
  std::vector<std::string_view> image_names;
  std::vector<NodeConditionView> conditions;
  std::int64_t creation_ms = 0;

  void clear();
};

/// Reused buffers for many nodes; not thread-safe.
class NodeWriter {
 public:
  /// Kind::node. Sorts labels, annotations and allocatable by name; of repeated keys the last counts.
  Message write(NodeFields& fields);

 private:
  flatbuffers::FlatBufferBuilder builder_{4096};
  std::vector<flatbuffers::Offset<fb::KeyValue>> pairs_;
  std::vector<flatbuffers::Offset<fb::Taint>> taints_;
  std::vector<flatbuffers::Offset<fb::ResourceAmount>> amounts_;
  std::vector<flatbuffers::Offset<flatbuffers::String>> strings_;
  std::vector<flatbuffers::Offset<fb::NodeImage>> images_;
  std::vector<flatbuffers::Offset<fb::NodeCondition>> conditions_;
};

}  // namespace troupe
