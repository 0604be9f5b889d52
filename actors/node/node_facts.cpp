#include "actors/node/node_facts.hpp"

#include <algorithm>

#include "messages/message.hpp"

namespace troupe {

StringId NodeFacts::label(StringId key) const {
  const auto it = std::lower_bound(labels.begin(), labels.end(), key,
                                   [](const auto& label, StringId wanted) { return label.first < wanted; });
  return it != labels.end() && it->first == key ? it->second : kNoString;
}

NodeFacts compile(const fb::Node& wire, Interner& interner) {
  NodeFacts facts;
  facts.name = interner.id(text(wire.name()));
  facts.present = true;
  facts.unschedulable = wire.unschedulable();
  if (wire.allocatable() != nullptr) {
    for (const fb::ResourceAmount* a : *wire.allocatable()) {
      if (text(a->name()) == "pods") {
        facts.allowed_pods = a->amount();
        continue;
      }
      const ResourceId id = interner.resource(text(a->name()));
      if (facts.allocatable.size() <= id) facts.allocatable.resize(id + 1U, 0);
      facts.allocatable[id] = a->amount();
    }
  }
  if (wire.taints() != nullptr) {
    for (const fb::Taint* t : *wire.taints()) {
      facts.taints.push_back({interner.id(text(t->key())), interner.id(text(t->value())), t->effect()});
    }
  }
  if (wire.labels() != nullptr) {
    for (const fb::KeyValue* kv : *wire.labels()) {
      facts.labels.emplace_back(interner.id(text(kv->key())), interner.id(text(kv->value())));
    }
    std::sort(facts.labels.begin(), facts.labels.end());
  }
  if (wire.images() != nullptr) {
    for (const fb::NodeImage* image : *wire.images()) {
      if (image->names() == nullptr) continue;
      for (const flatbuffers::String* name : *image->names()) {
        facts.images.push_back({interner.id(text(name)), image->size_bytes(), 1});
      }
    }
  }
  return facts;
}

}  // namespace troupe
