#include "actors/placement/pod_class.hpp"

#include <xxhash.h>

#include <algorithm>
#include <charconv>

#include "messages/message.hpp"

namespace troupe {
namespace {

std::vector<ResourceRequest> compile_amounts(
    const flatbuffers::Vector<flatbuffers::Offset<fb::ResourceAmount>>* wire, Interner& interner) {
  std::vector<ResourceRequest> out;
  if (wire == nullptr) return out;
  out.reserve(wire->size());
  for (const fb::ResourceAmount* a : *wire) {
    if (a->amount() > 0) out.push_back({interner.resource(text(a->name())), a->amount()});
  }
  std::sort(out.begin(), out.end(),
            [](const ResourceRequest& x, const ResourceRequest& y) { return x.resource < y.resource; });
  return out;
}

Requirement compile_requirement(const fb::Requirement& wire, Interner& interner) {
  Requirement r;
  r.key = interner.id(text(wire.key()));
  r.op = wire.operator_();
  if (wire.values() == nullptr) return r;
  for (const flatbuffers::String* v : *wire.values()) r.values.push_back(interner.id(text(v)));
  if ((r.op == fb::SelectorOperator::Gt || r.op == fb::SelectorOperator::Lt) && wire.values()->size() == 1) {
    const std::string_view v = text(wire.values()->Get(0));
    const auto [end, error] = std::from_chars(v.data(), v.data() + v.size(), r.number);
    // kube-scheduler wants a valid label value too, which starts with a letter or digit: no sign.
    r.number_valid = error == std::errc{} && end == v.data() + v.size() && r.number >= 0;
  }
  return r;
}

NodeSelectorTerm compile_term(const fb::NodeSelectorTerm& wire, Interner& interner) {
  NodeSelectorTerm term;
  if (wire.match_expressions() != nullptr) {
    for (const fb::Requirement* r : *wire.match_expressions())
      term.expressions.push_back(compile_requirement(*r, interner));
  }
  if (wire.match_fields() != nullptr) {
    for (const fb::Requirement* r : *wire.match_fields())
      term.fields.push_back(compile_requirement(*r, interner));
  }
  return term;
}

}  // namespace

std::size_t Interner::Hash::operator()(std::string_view s) const noexcept {
  return XXH3_64bits(s.data(), s.size());
}

Interner::Interner() {
  id("");
  id("metadata.name");
  resource("cpu");
  resource("memory");
  resource("ephemeral-storage");
}

StringId Interner::id(std::string_view text) {
  if (const auto it = ids_.find(text); it != ids_.end()) return it->second;
  const auto id = static_cast<StringId>(texts_.size());
  const auto it = ids_.emplace(std::string(text), id).first;
  texts_.push_back(&it->first);
  return id;
}

ResourceId Interner::resource(std::string_view name) {
  if (const auto it = resource_ids_.find(name); it != resource_ids_.end()) return it->second;
  const auto id = static_cast<ResourceId>(resource_names_.size());
  const auto it = resource_ids_.emplace(std::string(name), id).first;
  resource_names_.push_back(&it->first);
  return id;
}

std::int64_t PodClass::request(ResourceId resource) const {
  for (const ResourceRequest& r : requests) {
    if (r.resource == resource) return r.amount;
  }
  return 0;
}

PodClass compile(const fb::PodClass& wire, Interner& interner) {
  PodClass c;
  c.requests = compile_amounts(wire.requests(), interner);
  c.non_zero_cpu = wire.non_zero_cpu_milli();
  c.non_zero_memory = wire.non_zero_memory_bytes();
  c.score_cpu = wire.score_cpu_milli() >= 0 ? wire.score_cpu_milli() : c.non_zero_cpu;
  c.score_memory = wire.score_memory_bytes() >= 0 ? wire.score_memory_bytes() : c.non_zero_memory;
  c.score_requests =
      wire.score_requests() != nullptr ? compile_amounts(wire.score_requests(), interner) : c.requests;
  if (wire.node_selector() != nullptr) {
    for (const fb::KeyValue* kv : *wire.node_selector()) {
      c.node_selector.emplace_back(interner.id(text(kv->key())), interner.id(text(kv->value())));
    }
  }
  c.has_required = wire.has_required();
  if (wire.required() != nullptr) {
    for (const fb::NodeSelectorTerm* t : *wire.required()) c.required.push_back(compile_term(*t, interner));
  }
  if (wire.preferred() != nullptr) {
    for (const fb::PreferredTerm* t : *wire.preferred()) {
      if (t->term() != nullptr) c.preferred.push_back({t->weight(), compile_term(*t->term(), interner)});
    }
  }
  if (wire.tolerations() != nullptr) {
    for (const fb::Toleration* t : *wire.tolerations()) {
      c.tolerations.push_back({interner.id(text(t->key())), t->operator_() == fb::TolerationOperator::Exists,
                               interner.id(text(t->value())), t->effect()});
    }
  }
  if (wire.host_ports() != nullptr) {
    for (const fb::HostPort* p : *wire.host_ports()) {
      const std::string_view ip = text(p->ip());
      c.host_ports.push_back({interner.id(ip == "0.0.0.0" ? std::string_view{} : ip),
                              interner.id(text(p->protocol())), p->port()});
    }
  }
  if (wire.images() != nullptr) {
    for (const flatbuffers::String* image : *wire.images()) c.images.push_back(interner.id(text(image)));
  }
  return c;
}

}  // namespace troupe
