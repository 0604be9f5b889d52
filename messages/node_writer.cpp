#include "messages/node_writer.hpp"

#include <algorithm>

#include "messages/uid.hpp"
#include "messages/wire.hpp"

namespace troupe {

void NodeFields::clear() {
  name = uid = resource_version = {};
  labels.clear();
  annotations.clear();
  taints.clear();
  unschedulable = false;
  allocatable.clear();
  images.clear();
  image_names.clear();
  conditions.clear();
  creation_ms = 0;
}

Message NodeWriter::write(NodeFields& f) {
  flatbuffers::FlatBufferBuilder& b = builder_;
  b.Clear();
  const auto pairs = [&](std::vector<KeyValueView>& from) {
    sort_pairs(from);
    pairs_.clear();
    for (const KeyValueView& kv : from) pairs_.push_back(wire_pair(b, kv.key, kv.value));
    return wire_vector(b, pairs_);
  };
  const auto labels = pairs(f.labels);
  const auto annotations = pairs(f.annotations);

  taints_.clear();
  for (const TaintView& t : f.taints) {
    const auto key = b.CreateString(t.key.data(), t.key.size());
    const auto value = wire_text(b, t.value);
    taints_.push_back(fb::CreateTaint(b, key, value, t.effect));
  }
  const auto taints = wire_vector(b, taints_);

  std::sort(f.allocatable.begin(), f.allocatable.end(),
            [](const AmountView& x, const AmountView& y) { return x.name < y.name; });
  amounts_.clear();
  for (const AmountView& a : f.allocatable) {
    const auto name = b.CreateString(a.name.data(), a.name.size());
    amounts_.push_back(fb::CreateResourceAmount(b, name, a.amount));
  }
  const auto allocatable = wire_vector(b, amounts_);

  images_.clear();
  for (const NodeImageView& image : f.images) {
    strings_.clear();
    for (std::uint32_t i = image.names.begin; i < image.names.end; ++i) {
      strings_.push_back(b.CreateString(f.image_names[i].data(), f.image_names[i].size()));
    }
    const auto names = wire_vector(b, strings_);
    images_.push_back(fb::CreateNodeImage(b, names, image.size_bytes));
  }
  const auto images = wire_vector(b, images_);

  conditions_.clear();
  for (const NodeConditionView& c : f.conditions) {
    const auto type = b.CreateString(c.type.data(), c.type.size());
    const auto status = wire_text(b, c.status);
    conditions_.push_back(fb::CreateNodeCondition(b, type, status));
  }
  const auto conditions = wire_vector(b, conditions_);

  const auto name = b.CreateString(f.name.data(), f.name.size());
  const auto uid_text = wire_text(b, f.uid);
  const auto resource_version = wire_text(b, f.resource_version);
  const fb::Uid uid = PodUid::parse(f.uid.empty() ? f.name : f.uid).wire();

  fb::NodeBuilder n(b);
  n.add_uid(&uid);
  n.add_creation_ms(f.creation_ms);
  n.add_name(name);
  n.add_uid_text(uid_text);
  n.add_resource_version(resource_version);
  n.add_labels(labels);
  n.add_annotations(annotations);
  n.add_taints(taints);
  n.add_allocatable(allocatable);
  n.add_images(images);
  n.add_conditions(conditions);
  n.add_unschedulable(f.unschedulable);
  b.Finish(n.Finish());
  return {Kind::node, b};
}

}  // namespace troupe
