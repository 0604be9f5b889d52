#include "ops/bench/workload.hpp"

#include <utility>

#include "messages/fb/node_generated.h"
#include "messages/fb/pod_generated.h"

namespace troupe::bench {
namespace {

constexpr std::int64_t kMi = 1LL << 20;
constexpr std::int64_t kGi = 1LL << 30;
constexpr const char* kNamespace = "bench";

using Amounts = std::vector<std::pair<const char*, std::int64_t>>;

flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<fb::ResourceAmount>>> amounts(
    flatbuffers::FlatBufferBuilder& b, const Amounts& list) {
  std::vector<flatbuffers::Offset<fb::ResourceAmount>> out;
  for (const auto& [name, amount] : list)
    out.push_back(fb::CreateResourceAmount(b, b.CreateString(name), amount));
  return b.CreateVector(out);
}

flatbuffers::Offset<fb::KeyValue> label(flatbuffers::FlatBufferBuilder& b, const std::string& key,
                                        const std::string& value) {
  const auto k = b.CreateString(key);
  return fb::CreateKeyValue(b, k, b.CreateString(value));
}

std::vector<std::uint8_t> make_class(std::uint32_t k, const WorkloadOptions& options) {
  flatbuffers::FlatBufferBuilder b;
  const std::int64_t cpu = 100 + 1000 * static_cast<std::int64_t>(k) / options.classes;
  const std::int64_t memory = (64 + k % 37 * 16) * kMi;
  const auto requests = amounts(b, {{"cpu", cpu}, {"memory", memory}});
  flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<fb::PreferredTerm>>> preferred = 0;
  if (options.soft_taints && k % 2 == 1) {
    const auto key = b.CreateString("disk");
    std::vector<flatbuffers::Offset<flatbuffers::String>> values{b.CreateString("ssd")};
    const auto values_at = b.CreateVector(values);
    std::vector<flatbuffers::Offset<fb::Requirement>> terms{
        fb::CreateRequirement(b, key, fb::SelectorOperator::In, values_at)};
    const auto terms_at = b.CreateVector(terms);
    std::vector<flatbuffers::Offset<fb::PreferredTerm>> list{
        fb::CreatePreferredTerm(b, 10, fb::CreateNodeSelectorTerm(b, terms_at))};
    preferred = b.CreateVector(list);
  }
  fb::PodClassBuilder c(b);
  c.add_requests(requests);
  c.add_non_zero_cpu_milli(cpu);
  c.add_non_zero_memory_bytes(memory);
  c.add_preferred(preferred);
  b.Finish(c.Finish());
  return {b.GetBufferPointer(), b.GetBufferPointer() + b.GetSize()};
}

}  // namespace

Workload::Workload(const WorkloadOptions& options) : options_(options) {
  for (std::uint32_t k = 0; k < options.classes; ++k) class_bytes_.push_back(make_class(k, options));
}

std::vector<Message> Workload::nodes() const {
  std::vector<Message> out;
  out.reserve(options_.nodes);
  flatbuffers::FlatBufferBuilder b;
  for (std::uint32_t i = 0; i < options_.nodes; ++i) {
    b.Clear();
    const std::string text = node_name(i);
    const auto name = b.CreateString(text);
    const auto uid_text = b.CreateString(PodUid{0xA0DEULL, i + 1}.text());
    const auto rv = b.CreateString("1");
    std::vector<flatbuffers::Offset<fb::KeyValue>> labels{
        label(b, "kubernetes.io/hostname", text),
        label(b, "topology.kubernetes.io/zone", "zone-" + std::to_string(i % 3)),
        label(b, "disk", i % 4 == 0 ? "ssd" : "hdd")};
    const auto labels_at = b.CreateVector(labels);
    std::vector<flatbuffers::Offset<fb::Taint>> taints;
    if (options_.soft_taints && i % 3 == 0) {
      const auto key = b.CreateString("maintenance");
      taints.push_back(fb::CreateTaint(b, key, b.CreateString("soon"), fb::TaintEffect::PreferNoSchedule));
    }
    const auto taints_at = b.CreateVector(taints);
    const auto allocatable =
        amounts(b, {{"cpu", 32000}, {"ephemeral-storage", 100 * kGi}, {"memory", 128 * kGi}, {"pods", 256}});
    const fb::Uid uid(0xA0DEULL, i + 1);
    fb::NodeBuilder n(b);
    n.add_name(name);
    n.add_uid(&uid);
    n.add_uid_text(uid_text);
    n.add_resource_version(rv);
    n.add_labels(labels_at);
    n.add_taints(taints_at);
    n.add_allocatable(allocatable);
    b.Finish(n.Finish());
    out.emplace_back(Kind::node, b);
  }
  return out;
}

Message Workload::bound_pod(std::uint64_t i) {
  return make_pod((1ULL << 40U) + i, node_name(static_cast<std::uint32_t>(i % options_.nodes)));
}

Message Workload::make_pod(std::uint64_t i, const std::string& node) {
  flatbuffers::FlatBufferBuilder& b = builder_;
  b.Clear();
  const std::vector<std::uint8_t>& bytes = class_bytes_[(i * 2654435761ULL) % class_bytes_.size()];
  b.ForceVectorAlignment(bytes.size(), 1, 8);
  const auto class_at = b.CreateVector(bytes);
  const PodUid uid{0xB0D0000000000000ULL, i + 1};
  const auto ns = b.CreateString(kNamespace);
  const auto name = b.CreateString(pod_name(i));
  const auto uid_text = b.CreateString(uid.text());
  const auto rv = b.CreateString("1");
  const auto scheduler = b.CreateString("koord-scheduler");
  const auto phase = b.CreateString("Pending");
  flatbuffers::Offset<flatbuffers::String> node_at = 0;
  if (!node.empty()) node_at = b.CreateString(node);
  std::vector<flatbuffers::Offset<fb::KeyValue>> labels{label(
      b, "app", options_.unique_labels ? pod_name(i) : "app-" + std::to_string(i % class_bytes_.size()))};
  const auto labels_at = b.CreateVector(labels);
  const fb::Uid wire = uid.wire();
  fb::PodBuilder p(b);
  p.add_namespace_(ns);
  p.add_name(name);
  p.add_uid(&wire);
  p.add_uid_text(uid_text);
  p.add_resource_version(rv);
  p.add_labels(labels_at);
  p.add_creation_ms(1'700'000'000'000);
  p.add_scheduler_name(scheduler);
  p.add_node_name(node_at);
  p.add_phase(phase);
  p.add_class_bytes(class_at);
  b.Finish(p.Finish());
  return {Kind::pod, b};
}

}  // namespace troupe::bench
