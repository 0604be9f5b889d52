// Rows and compiled classes written as the messages that placement reads.
#pragma once

#include <string>
#include <vector>

#include "messages/fb/ledger_generated.h"
#include "messages/fb/node_generated.h"
#include "messages/message.hpp"
#include "messages/uid.hpp"
#include "unit/placement/random_cluster.hpp"

namespace troupe::testing {

using Builder = flatbuffers::FlatBufferBuilder;
template <class T>
using Offsets = std::vector<flatbuffers::Offset<T>>;

inline auto make_string(Builder& b, std::string_view s) {
  return b.CreateString(s.data(), s.size());
}

inline std::vector<std::uint8_t> finished(const Builder& b) {
  return {b.GetBufferPointer(), b.GetBufferPointer() + b.GetSize()};
}

inline flatbuffers::Offset<fb::Requirement> write(Builder& b, const Requirement& r,
                                                  const Interner& interner) {
  Offsets<flatbuffers::String> values;
  for (const StringId v : r.values) values.push_back(make_string(b, interner.text(v)));
  // Gt and Lt compile their number from the value: an invalid one is written as a word.
  if (!values.empty() && !r.number_valid &&
      (r.op == fb::SelectorOperator::Gt || r.op == fb::SelectorOperator::Lt)) {
    values = {make_string(b, "x")};
  }
  const auto list = b.CreateVector(values);
  const auto key = make_string(b, interner.text(r.key));
  fb::RequirementBuilder out(b);
  out.add_key(key);
  out.add_operator_(r.op);
  out.add_values(list);
  return out.Finish();
}

inline flatbuffers::Offset<fb::NodeSelectorTerm> write(Builder& b, const NodeSelectorTerm& t,
                                                       const Interner& interner) {
  Offsets<fb::Requirement> expressions;
  Offsets<fb::Requirement> fields;
  for (const Requirement& r : t.expressions) expressions.push_back(write(b, r, interner));
  for (const Requirement& r : t.fields) fields.push_back(write(b, r, interner));
  const auto e = b.CreateVector(expressions);
  const auto f = b.CreateVector(fields);
  fb::NodeSelectorTermBuilder out(b);
  out.add_match_expressions(e);
  out.add_match_fields(f);
  return out.Finish();
}

inline flatbuffers::Offset<fb::ResourceAmount> write_amount(Builder& b, std::string_view name,
                                                            std::int64_t amount) {
  const auto n = make_string(b, name);
  fb::ResourceAmountBuilder out(b);
  out.add_name(n);
  out.add_amount(amount);
  return out.Finish();
}

inline flatbuffers::Offset<fb::KeyValue> write_pair(Builder& b, std::string_view key,
                                                    std::string_view value) {
  const auto k = make_string(b, key);
  const auto v = make_string(b, value);
  fb::KeyValueBuilder out(b);
  out.add_key(k);
  out.add_value(v);
  return out.Finish();
}

/// The bytes of an fb::PodClass that compiles to `c`.
inline std::vector<std::uint8_t> class_bytes(const PodClass& c, const Interner& interner) {
  Builder b;
  const auto amounts = [&](const std::vector<ResourceRequest>& list) {
    Offsets<fb::ResourceAmount> out;
    for (const ResourceRequest& r : list)
      out.push_back(write_amount(b, interner.resource_name(r.resource), r.amount));
    return b.CreateVector(out);
  };
  Offsets<fb::KeyValue> selector;
  for (const auto& [k, v] : c.node_selector)
    selector.push_back(write_pair(b, interner.text(k), interner.text(v)));
  Offsets<fb::NodeSelectorTerm> required;
  for (const NodeSelectorTerm& t : c.required) required.push_back(write(b, t, interner));
  Offsets<fb::PreferredTerm> preferred;
  for (const PreferredTerm& t : c.preferred) {
    const auto term = write(b, t.term, interner);
    fb::PreferredTermBuilder out(b);
    out.add_weight(t.weight);
    out.add_term(term);
    preferred.push_back(out.Finish());
  }
  Offsets<fb::Toleration> tolerations;
  for (const Toleration& t : c.tolerations) {
    const auto key = make_string(b, interner.text(t.key));
    const auto value = make_string(b, interner.text(t.value));
    fb::TolerationBuilder out(b);
    out.add_key(key);
    out.add_operator_(t.exists ? fb::TolerationOperator::Exists : fb::TolerationOperator::Equal);
    out.add_value(value);
    out.add_effect(t.effect);
    tolerations.push_back(out.Finish());
  }
  Offsets<fb::HostPort> ports;
  for (const HostPort& p : c.host_ports) {
    const auto ip = make_string(b, interner.text(p.ip));
    const auto protocol = make_string(b, interner.text(p.protocol));
    fb::HostPortBuilder out(b);
    out.add_ip(ip);
    out.add_protocol(protocol);
    out.add_port(p.port);
    ports.push_back(out.Finish());
  }
  Offsets<flatbuffers::String> images;
  for (const StringId i : c.images) images.push_back(make_string(b, interner.text(i)));
  const auto requests = amounts(c.requests);
  const auto score_requests = amounts(c.score_requests);
  const auto selector_list = b.CreateVector(selector);
  const auto required_list = b.CreateVector(required);
  const auto preferred_list = b.CreateVector(preferred);
  const auto toleration_list = b.CreateVector(tolerations);
  const auto port_list = b.CreateVector(ports);
  const auto image_list = b.CreateVector(images);
  fb::PodClassBuilder out(b);
  out.add_requests(requests);
  out.add_non_zero_cpu_milli(c.non_zero_cpu);
  out.add_non_zero_memory_bytes(c.non_zero_memory);
  out.add_score_cpu_milli(c.score_cpu);
  out.add_score_memory_bytes(c.score_memory);
  out.add_score_requests(score_requests);
  out.add_node_selector(selector_list);
  out.add_has_required(c.has_required);
  out.add_required(required_list);
  out.add_preferred(preferred_list);
  out.add_tolerations(toleration_list);
  out.add_host_ports(port_list);
  out.add_images(image_list);
  b.Finish(out.Finish());
  return finished(b);
}

/// The node object of a row; its pods are the ledger's.
inline Message node_message(const RowNode& n, const Interner& interner) {
  Builder b;
  Offsets<fb::KeyValue> labels;
  for (const auto& [k, v] : n.labels) labels.push_back(write_pair(b, interner.text(k), interner.text(v)));
  Offsets<fb::Taint> taints;
  for (const Taint& t : n.taint_list) {
    const auto key = make_string(b, interner.text(t.key));
    const auto value = make_string(b, interner.text(t.value));
    fb::TaintBuilder out(b);
    out.add_key(key);
    out.add_value(value);
    out.add_effect(t.effect);
    taints.push_back(out.Finish());
  }
  Offsets<fb::ResourceAmount> allocatable;
  for (const auto& [r, amount] : n.allocatable_amounts)
    allocatable.push_back(write_amount(b, interner.resource_name(r), amount));
  allocatable.push_back(write_amount(b, "pods", n.pods_allowed));
  Offsets<fb::NodeImage> images;
  for (const ImageState& i : n.image_list) {
    const auto names = b.CreateVector(Offsets<flatbuffers::String>{make_string(b, interner.text(i.name))});
    fb::NodeImageBuilder out(b);
    out.add_names(names);
    out.add_size_bytes(i.size_bytes);
    images.push_back(out.Finish());
  }
  const auto name = make_string(b, interner.text(n.node_name));
  const auto label_list = b.CreateVector(labels);
  const auto taint_list = b.CreateVector(taints);
  const auto allocatable_list = b.CreateVector(allocatable);
  const auto image_list = b.CreateVector(images);
  fb::NodeBuilder out(b);
  out.add_name(name);
  out.add_labels(label_list);
  out.add_taints(taint_list);
  out.add_unschedulable(n.cordoned);
  out.add_allocatable(allocatable_list);
  out.add_images(image_list);
  b.Finish(out.Finish());
  return {Kind::node, b};
}

/// One ledger change, as a node's owner writes it.
struct DeltaSpec {
  std::string node;
  PodUid uid;
  std::uint64_t ledger_version = 0;
  fb::LedgerChange change = fb::LedgerChange::Added;
  CommitKey commit;
  fb::EntryState state = fb::EntryState::Granted;
  std::int32_t priority = 0;
  std::vector<std::uint8_t> class_bytes;
  std::string ns = "default";
  std::string name = "p";
};

inline std::vector<std::uint8_t> delta_bytes(const DeltaSpec& d) {
  Builder b;
  b.ForceVectorAlignment(d.class_bytes.size(), 1, 8);
  const auto cls = b.CreateVector(d.class_bytes);
  const auto node = make_string(b, d.node);
  const auto ns = make_string(b, d.ns);
  const auto name = make_string(b, d.name);
  const fb::Uid uid = d.uid.wire();
  const fb::CommitId commit = d.commit.wire();
  fb::DeltaEntryBuilder out(b);
  out.add_node(node);
  out.add_ledger_version(d.ledger_version);
  out.add_change(d.change);
  out.add_uid(&uid);
  out.add_commit(&commit);
  if (d.change != fb::LedgerChange::Removed) {
    out.add_state(d.state);
    out.add_priority(d.priority);
    out.add_class_bytes(cls);
    out.add_namespace_(ns);
    out.add_name(name);
  }
  b.Finish(out.Finish());
  return finished(b);
}

inline const fb::DeltaEntry& as_delta(const std::vector<std::uint8_t>& bytes) {
  return *flatbuffers::GetRoot<fb::DeltaEntry>(bytes.data());
}

}  // namespace troupe::testing
