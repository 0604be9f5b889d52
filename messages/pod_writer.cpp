#include "messages/pod_writer.hpp"

#include <algorithm>
#include <string>

#include "messages/uid.hpp"
#include "messages/wire.hpp"

namespace troupe {

void PodClassFields::clear() {
  requests.clear();
  non_zero_cpu_milli = 0;
  non_zero_memory_bytes = 0;
  score_cpu_milli = -1;
  score_memory_bytes = -1;
  has_score_requests = false;
  score_requests.clear();
  node_selector.clear();
  has_required = false;
  required.clear();
  preferred.clear();
  requirements.clear();
  values.clear();
  tolerations.clear();
  host_ports.clear();
  images.clear();
}

void PodFields::clear() {
  name_space = name = uid = resource_version = {};
  generation = 0;
  labels.clear();
  annotations.clear();
  creation_ms = deletion_ms = start_ms = 0;
  scheduler_name = node_name = nominated_node_name = {};
  priority = 0;
  preemption_never = false;
  phase = {};
  scheduling_gates.clear();
  pinned_node = {};
  scheduled_condition.reset();
  owners.clear();
  spec.clear();
}

void sort_pairs(std::vector<KeyValueView>& pairs) {
  const auto by_key = [](const KeyValueView& a, const KeyValueView& b) { return a.key < b.key; };
  const auto not_below = [](const KeyValueView& a, const KeyValueView& b) { return a.key >= b.key; };
  if (std::adjacent_find(pairs.begin(), pairs.end(), not_below) == pairs.end()) return;
  std::stable_sort(pairs.begin(), pairs.end(), by_key);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    if (i + 1 < pairs.size() && pairs[i + 1].key == pairs[i].key) continue;
    pairs[kept++] = pairs[i];
  }
  pairs.resize(kept);
}

flatbuffers::Offset<flatbuffers::String> ClassWriter::text(std::string_view s) {
  return wire_text(builder_, s);
}

flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<fb::ResourceAmount>>> ClassWriter::amounts(
    std::vector<AmountView>& amounts) {
  std::erase_if(amounts, [](const AmountView& a) { return a.amount == 0; });
  std::sort(amounts.begin(), amounts.end(),
            [](const AmountView& a, const AmountView& b) { return a.name < b.name; });
  amounts_.clear();
  for (const AmountView& a : amounts) {
    const auto name = builder_.CreateString(a.name.data(), a.name.size());
    amounts_.push_back(fb::CreateResourceAmount(builder_, name, a.amount));
  }
  return builder_.CreateVector(amounts_);
}

flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<fb::Requirement>>> ClassWriter::requirements(
    const PodClassFields& fields, PoolRange range) {
  if (range.empty()) return 0;
  requirements_.clear();
  for (std::uint32_t i = range.begin; i < range.end; ++i) {
    const RequirementView& r = fields.requirements[i];
    strings_.clear();
    for (std::uint32_t v = r.values.begin; v < r.values.end; ++v) {
      strings_.push_back(builder_.CreateString(fields.values[v].data(), fields.values[v].size()));
    }
    const auto key = builder_.CreateString(r.key.data(), r.key.size());
    const auto values = wire_vector(builder_, strings_);
    requirements_.push_back(fb::CreateRequirement(builder_, key, r.op, values));
  }
  return builder_.CreateVector(requirements_);
}

flatbuffers::Offset<fb::NodeSelectorTerm> ClassWriter::term(const PodClassFields& fields,
                                                            const TermView& term) {
  const auto expressions = requirements(fields, term.expressions);
  const auto match_fields = requirements(fields, term.fields);
  return fb::CreateNodeSelectorTerm(builder_, expressions, match_fields);
}

std::span<const std::uint8_t> ClassWriter::write(PodClassFields& fields) {
  builder_.Clear();
  const auto requests = amounts(fields.requests);
  // Present even when empty: absent means "as requests".
  const auto score_requests = fields.has_score_requests ? amounts(fields.score_requests) : 0;

  sort_pairs(fields.node_selector);
  pairs_.clear();
  for (const KeyValueView& kv : fields.node_selector) pairs_.push_back(wire_pair(builder_, kv.key, kv.value));
  const auto node_selector = wire_vector(builder_, pairs_);

  terms_.clear();
  for (const TermView& t : fields.required) terms_.push_back(term(fields, t));
  const auto required = wire_vector(builder_, terms_);

  preferred_.clear();
  for (const PreferredTermView& p : fields.preferred) {
    const auto t = term(fields, p.term);
    preferred_.push_back(fb::CreatePreferredTerm(builder_, p.weight, t));
  }
  const auto preferred = wire_vector(builder_, preferred_);

  tolerations_.clear();
  for (const TolerationView& t : fields.tolerations) {
    const auto key = text(t.key);
    const auto value = text(t.value);
    tolerations_.push_back(fb::CreateToleration(
        builder_, key, t.exists ? fb::TolerationOperator::Exists : fb::TolerationOperator::Equal, value,
        t.effect));
  }
  const auto tolerations = wire_vector(builder_, tolerations_);

  ports_.clear();
  for (const HostPortView& p : fields.host_ports) {
    const auto ip = text(p.ip);
    const auto protocol = text(p.protocol.empty() ? "TCP" : p.protocol);
    ports_.push_back(fb::CreateHostPort(builder_, ip, protocol, p.port));
  }
  const auto ports = wire_vector(builder_, ports_);

  strings_.clear();
  for (const std::string_view image : fields.images) {
    strings_.push_back(builder_.CreateString(image.data(), image.size()));
  }
  const auto images = wire_vector(builder_, strings_);

  fb::PodClassBuilder c(builder_);
  c.add_non_zero_cpu_milli(fields.non_zero_cpu_milli);
  c.add_non_zero_memory_bytes(fields.non_zero_memory_bytes);
  c.add_score_cpu_milli(fields.score_cpu_milli);
  c.add_score_memory_bytes(fields.score_memory_bytes);
  c.add_requests(requests);
  c.add_score_requests(score_requests);
  c.add_node_selector(node_selector);
  c.add_required(required);
  c.add_preferred(preferred);
  c.add_tolerations(tolerations);
  c.add_host_ports(ports);
  c.add_images(images);
  c.add_has_required(fields.has_required);
  builder_.Finish(c.Finish());
  return {builder_.GetBufferPointer(), builder_.GetSize()};
}

Message PodWriter::write(PodFields& f) {
  const std::span<const std::uint8_t> class_bytes = class_writer_.write(f.spec);
  flatbuffers::FlatBufferBuilder& b = builder_;
  b.Clear();
  // The nested table is read in place: its 64-bit fields need their alignment.
  b.ForceVectorAlignment(class_bytes.size(), sizeof(std::uint8_t), sizeof(std::int64_t));
  const auto spec = b.CreateVector(class_bytes.data(), class_bytes.size());

  const auto pairs = [&](std::vector<KeyValueView>& from) {
    sort_pairs(from);
    pairs_.clear();
    for (const KeyValueView& kv : from) pairs_.push_back(wire_pair(b, kv.key, kv.value));
    return wire_vector(b, pairs_);
  };
  const auto labels = pairs(f.labels);
  const auto annotations = pairs(f.annotations);

  strings_.clear();
  for (const std::string_view gate : f.scheduling_gates) {
    strings_.push_back(b.CreateString(gate.data(), gate.size()));
  }
  const auto gates = wire_vector(b, strings_);

  owners_.clear();
  for (const OwnerView& o : f.owners) {
    const auto kind = wire_text(b, o.kind);
    const auto name = wire_text(b, o.name);
    const auto uid = wire_text(b, o.uid);
    owners_.push_back(fb::CreateOwnerReference(b, kind, name, uid, o.controller));
  }
  const auto owners = wire_vector(b, owners_);

  flatbuffers::Offset<fb::PodCondition> condition = 0;
  if (f.scheduled_condition) {
    const ConditionView& c = *f.scheduled_condition;
    const auto type = b.CreateString(c.type.data(), c.type.size());
    const auto status = wire_text(b, c.status);
    const auto reason = wire_text(b, c.reason);
    const auto message = wire_text(b, c.message);
    condition = fb::CreatePodCondition(b, type, status, reason, message, c.transition_ms);
  }
  const auto name_space = b.CreateString(f.name_space.data(), f.name_space.size());
  const auto name = b.CreateString(f.name.data(), f.name.size());
  const auto uid_text = wire_text(b, f.uid);
  const auto resource_version = wire_text(b, f.resource_version);
  const auto scheduler_name = wire_text(b, f.scheduler_name);
  const auto node_name = wire_text(b, f.node_name);
  const auto nominated = wire_text(b, f.nominated_node_name);
  const auto phase = wire_text(b, f.phase);
  const auto pinned = wire_text(b, f.pinned_node);
  const std::string full_name = f.uid.empty() ? std::string(f.name_space).append("/").append(f.name) : "";
  const fb::Uid uid = PodUid::parse(f.uid.empty() ? std::string_view(full_name) : f.uid).wire();

  fb::PodBuilder p(b);
  p.add_uid(&uid);
  p.add_creation_ms(f.creation_ms);
  p.add_deletion_ms(f.deletion_ms);
  p.add_start_ms(f.start_ms);
  p.add_generation(f.generation);
  p.add_namespace_(name_space);
  p.add_name(name);
  p.add_uid_text(uid_text);
  p.add_resource_version(resource_version);
  p.add_labels(labels);
  p.add_annotations(annotations);
  p.add_scheduler_name(scheduler_name);
  p.add_node_name(node_name);
  p.add_nominated_node_name(nominated);
  p.add_priority(f.priority);
  p.add_phase(phase);
  p.add_scheduling_gates(gates);
  p.add_class_bytes(spec);
  p.add_pinned_node(pinned);
  p.add_scheduled_condition(condition);
  p.add_owners(owners);
  p.add_preemption_never(f.preemption_never);
  b.Finish(p.Finish());
  return {Kind::pod, b};
}

}  // namespace troupe
