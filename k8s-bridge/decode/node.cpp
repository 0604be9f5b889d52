// v1 Node, and the kinds that are little more than metadata.
#include "k8s-bridge/decode/kinds.hpp"
#include "messages/wire.hpp"

namespace troupe::decode {
namespace {

bool read_taints(Workspace& w, od::value v, const Path& at) {
  Reader& r = w.reader;
  w.node.taints.clear();
  return r.array(std::move(v), at, [&](od::value element, const Path& here) {
    TaintView taint;
    const auto field = [&](std::string_view key, od::value value, const Path& there) {
      if (is(key, "key")) return r.text(std::move(value), there, taint.key);
      if (is(key, "value")) return r.text(std::move(value), there, taint.value);
      if (is(key, "effect")) {
        if (!read_effect(r, std::move(value), there, taint.effect)) return false;
        return taint.effect != fb::TaintEffect::Any || r.wrong(there, "missing");
      }
      return true;
    };
    if (!r.object(std::move(element), here, field)) return false;
    w.node.taints.push_back(taint);
    return true;
  });
}

bool read_images(Workspace& w, od::value v, const Path& at) {
  Reader& r = w.reader;
  w.node.images.clear();
  w.node.image_names.clear();
  return r.array(std::move(v), at, [&](od::value element, const Path& here) {
    NodeImageView image;
    const auto field = [&](std::string_view key, od::value value, const Path& there) {
      if (is(key, "sizeBytes")) return r.integer(std::move(value), there, image.size_bytes);
      if (!is(key, "names")) return true;
      image.names.begin = static_cast<std::uint32_t>(w.node.image_names.size());
      if (!r.texts(std::move(value), there, w.node.image_names)) return false;
      image.names.end = static_cast<std::uint32_t>(w.node.image_names.size());
      return true;
    };
    if (!r.object(std::move(element), here, field)) return false;
    w.node.images.push_back(image);
    return true;
  });
}

bool read_conditions(Workspace& w, od::value v, const Path& at) {
  Reader& r = w.reader;
  w.node.conditions.clear();
  return r.array(std::move(v), at, [&](od::value element, const Path& here) {
    NodeConditionView& c = w.node.conditions.emplace_back();
    return r.object(std::move(element), here, [&](std::string_view key, od::value value, const Path& there) {
      if (is(key, "type")) return r.text(std::move(value), there, c.type);
      if (is(key, "status")) return r.text(std::move(value), there, c.status);
      return true;
    });
  });
}

}  // namespace

bool decode_node(Workspace& w, od::object& object, Message& out) {
  NodeFields& node = w.node;
  Reader& r = w.reader;
  node.clear();
  w.metadata.clear();
  ResourceTable& table = w.node_resources;
  table.clear();
  ResourceTable::List allocatable;
  ResourceTable::List capacity;

  const auto spec_field = [&](std::string_view key, od::value value, const Path& at) {
    if (is(key, "unschedulable")) return r.boolean(std::move(value), at, node.unschedulable);
    if (is(key, "taints")) return read_taints(w, std::move(value), at);
    return true;
  };
  const auto status_field = [&](std::string_view key, od::value value, const Path& at) {
    if (is(key, "allocatable")) return r.room(std::move(value), at, table, allocatable);
    if (is(key, "capacity")) return r.room(std::move(value), at, table, capacity);
    if (is(key, "images")) return read_images(w, std::move(value), at);
    if (is(key, "conditions")) return read_conditions(w, std::move(value), at);
    return true;
  };
  const bool ok = r.fields(object, Path{}, [&](std::string_view key, od::value value, const Path& at) {
    if (is(key, "metadata")) return read_metadata(r, std::move(value), at, w.metadata);
    if (is(key, "spec")) return r.object(std::move(value), at, spec_field);
    if (is(key, "status")) return r.object(std::move(value), at, status_field);
    return true;
  });
  if (!ok || !check_metadata(r, w.metadata)) return false;

  node.name = w.metadata.name;
  node.uid = w.metadata.uid;
  node.resource_version = w.metadata.resource_version;
  node.creation_ms = w.metadata.creation_ms;
  std::swap(node.labels, w.metadata.labels);
  std::swap(node.annotations, w.metadata.annotations);
  // As the API server does for a kubelet that reports no allocatable.
  for (const ResourceTable::Entry& e : table.entries(allocatable.present ? allocatable : capacity)) {
    const std::string_view name = table.name(e.resource);
    node.allocatable.push_back({name, base_units(name, e.nano)});
  }
  out = w.node_writer.write(node);
  return true;
}

bool decode_namespace(Workspace& w, od::object& object, Message& out) {
  w.metadata.clear();
  const bool ok = w.reader.fields(object, Path{}, [&](std::string_view key, od::value value, const Path& at) {
    return !is(key, "metadata") || read_metadata(w.reader, std::move(value), at, w.metadata);
  });
  if (!ok || !check_metadata(w.reader, w.metadata)) return false;
  flatbuffers::FlatBufferBuilder& b = w.builder;
  b.Clear();
  sort_pairs(w.metadata.labels);
  std::vector<flatbuffers::Offset<fb::KeyValue>> pairs;
  for (const KeyValueView& kv : w.metadata.labels) pairs.push_back(wire_pair(b, kv.key, kv.value));
  const auto labels = wire_vector(b, pairs);
  const auto name = b.CreateString(w.metadata.name.data(), w.metadata.name.size());
  const auto version = wire_text(b, w.metadata.resource_version);
  b.Finish(fb::CreateNamespace(b, name, version, labels));
  out = Message(Kind::name_space, b);
  return true;
}

bool decode_priority_class(Workspace& w, od::object& object, Message& out) {
  Reader& r = w.reader;
  w.metadata.clear();
  std::int32_t priority = 0;
  bool global_default = false;
  std::string_view policy;
  const bool ok = r.fields(object, Path{}, [&](std::string_view key, od::value value, const Path& at) {
    if (is(key, "metadata")) return read_metadata(r, std::move(value), at, w.metadata);
    if (is(key, "value")) return r.integer32(std::move(value), at, priority);
    if (is(key, "globalDefault")) return r.boolean(std::move(value), at, global_default);
    if (is(key, "preemptionPolicy")) return r.text(std::move(value), at, policy);
    return true;
  });
  if (!ok || !check_metadata(r, w.metadata)) return false;
  flatbuffers::FlatBufferBuilder& b = w.builder;
  b.Clear();
  const auto name = b.CreateString(w.metadata.name.data(), w.metadata.name.size());
  const auto version = wire_text(b, w.metadata.resource_version);
  b.Finish(fb::CreatePriorityClass(b, name, version, priority, global_default, policy == "Never"));
  out = Message(Kind::priority_class, b);
  return true;
}

}  // namespace troupe::decode
