#include "k8s-bridge/embedded/embedded_store.hpp"

#include <xxhash.h>

#include <array>
#include <charconv>
#include <optional>

#include "k8s-bridge/embedded/pod_splice.hpp"

namespace troupe {
namespace {

constexpr int kCreated = 201;
constexpr int kOk = 200;
constexpr int kNotFound = 404;
constexpr int kConflict = 409;

struct Decimal {
  explicit Decimal(std::uint64_t n) { end = std::to_chars(digits.begin(), digits.end(), n).ptr; }
  std::array<char, 20> digits{};
  char* end = nullptr;
  [[nodiscard]] std::string_view view() const { return {digits.data(), end}; }
};

std::size_t others_index(fb::ObjectKind kind) {
  return static_cast<std::size_t>(kind) - static_cast<std::size_t>(fb::ObjectKind::Node);
}

struct OtherName {
  fb::ObjectKind kind{};
  std::string_view name;
};

std::optional<OtherName> other_name(const Message& object) {
  switch (object.kind()) {
    case Kind::node:
      return OtherName{fb::ObjectKind::Node, text(object.as<fb::Node>().name())};
    case Kind::name_space:
      return OtherName{fb::ObjectKind::Namespace, text(object.as<fb::Namespace>().name())};
    case Kind::priority_class:
      return OtherName{fb::ObjectKind::PriorityClass, text(object.as<fb::PriorityClass>().name())};
    default:
      return std::nullopt;
  }
}

std::string quoted(std::string_view s) {
  return '"' + std::string(s) + '"';
}

Bytes condition_bytes(std::string_view type, std::string_view status, std::string_view reason,
                      std::string_view message, std::int64_t transition_ms) {
  flatbuffers::FlatBufferBuilder b(256);
  const auto t = b.CreateString(type);
  const auto s = b.CreateString(status);
  const auto r = b.CreateString(reason);
  const auto m = b.CreateString(message);
  b.Finish(fb::CreatePodCondition(b, t, s, r, m, transition_ms));
  return Bytes(std::span<const std::uint8_t>(b.GetBufferPointer(), b.GetSize()));
}

bool same(const fb::PodCondition* a, const fb::PodCondition& b) {
  return a != nullptr && text(a->type()) == text(b.type()) && text(a->status()) == text(b.status()) &&
         text(a->reason()) == text(b.reason()) && text(a->message()) == text(b.message());
}

EmbeddedAnswer done(int status) {
  return {fb::IntentOutcome::Done, status, {}};
}

}  // namespace

EmbeddedStore::ByName::Name EmbeddedStore::ByName::of(const Pod* pod) {
  const auto& table = pod->base.as<fb::Pod>();
  return {text(table.namespace_()), text(table.name())};
}

std::size_t EmbeddedStore::ByName::operator()(const Name& name) const {
  return XXH3_64bits_withSeed(name.name.data(), name.name.size(),
                              XXH3_64bits(name.ns.data(), name.ns.size()));
}

EmbeddedStore::EmbeddedStore() : scheduled_(condition_bytes("PodScheduled", "True", {}, {}, 0)) {}

Message EmbeddedStore::present(const Pod& pod) {
  const Decimal version(pod.version);
  PodChanges changes;
  changes.resource_version = version.view();
  if (pod.node_changed) changes.node_name = pod.node_name;
  if (pod.nominated_changed) changes.nominated_node_name = pod.nominated;
  changes.scheduled_condition = pod.condition.span();
  return with_changes(pod.base, changes, scratch_);
}

Message EmbeddedStore::gone(fb::ObjectKind kind, std::string_view ns, std::string_view name, PodUid uid,
                            std::string_view node) {
  builder_.Clear();
  const auto n = builder_.CreateString(ns);
  const auto m = builder_.CreateString(name);
  const auto o = builder_.CreateString(node);
  const fb::Uid wire = uid.wire();
  builder_.Finish(fb::CreateGone(builder_, kind, n, m, &wire, o));
  return {Kind::gone, builder_};
}

void EmbeddedStore::erase_pod(std::unordered_map<PodUid, Pod, PodUidHash>::iterator it,
                              std::vector<Message>& changes) {
  const Pod& pod = it->second;
  const auto& table = pod.base.as<fb::Pod>();
  changes.push_back(gone(fb::ObjectKind::Pod, text(table.namespace_()), text(table.name()), it->first,
                         pod.node_changed ? std::string_view(pod.node_name) : text(table.node_name())));
  pod_names_.erase(&pod);
  pods_.erase(it);
  ++version_;
}

void EmbeddedStore::put_pod(const Message& object, std::vector<Message>& changes) {
  const auto& table = object.as<fb::Pod>();
  const PodUid uid = PodUid::from(table.uid());
  const auto named = pod_names_.find(ByName::Name{text(table.namespace_()), text(table.name())});
  if (named != pod_names_.end()) {
    const PodUid old = PodUid::from((*named)->base.as<fb::Pod>().uid());
    if (old != uid) erase_pod(pods_.find(old), changes);
  }
  const auto known = pods_.find(uid);
  if (known != pods_.end()) {
    pod_names_.erase(&known->second);  // its views move to the fresh bytes
    known->second = {};
  }
  Pod& pod = known != pods_.end() ? known->second : pods_[uid];
  pod.base = object;
  pod.version = ++version_;
  pod_names_.insert(&pod);
  changes.push_back(present(pod));
}

void EmbeddedStore::put(const Message& object, std::vector<Message>& changes) {
  if (object.kind() == Kind::pod) {
    put_pod(object, changes);
  } else if (const auto other = other_name(object)) {
    others_[others_index(other->kind)].insert_or_assign(std::string(other->name), object);
    ++version_;
    changes.push_back(object);
  }
}

void EmbeddedStore::remove(fb::ObjectKind kind, std::string_view ns, std::string_view name,
                           std::vector<Message>& changes) {
  if (kind == fb::ObjectKind::Pod) {
    const auto named = pod_names_.find(ByName::Name{ns, name});
    if (named == pod_names_.end()) return;
    erase_pod(pods_.find(PodUid::from((*named)->base.as<fb::Pod>().uid())), changes);
    return;
  }
  auto& objects = others_[others_index(kind)];
  const auto it = objects.find(std::string(name));
  if (it == objects.end()) return;
  const PodUid uid = kind == fb::ObjectKind::Node ? PodUid::from(it->second.as<fb::Node>().uid()) : PodUid{};
  objects.erase(it);
  ++version_;
  changes.push_back(gone(kind, {}, name, uid, {}));
}

EmbeddedAnswer EmbeddedStore::execute(const fb::Intent& intent, std::vector<Message>& changes) {
  if (intent.kind() == fb::IntentKind::Event) return done(kCreated);
  const auto it = pods_.find(PodUid::from(intent.uid()));
  if (it == pods_.end()) {
    const std::string name(text(intent.name()));
    if (pod_names_.contains(ByName::Name{text(intent.namespace_()), text(intent.name())})) {
      return {fb::IntentOutcome::Gone, kConflict, "pod " + name + " was recreated with another uid"};
    }
    return {fb::IntentOutcome::Gone, kNotFound, "pods " + quoted(name) + " not found"};
  }
  switch (intent.kind()) {
    case fb::IntentKind::Bind:
      return bind(it->second, intent, changes);
    case fb::IntentKind::PatchStatus:
      return patch(it->second, intent, changes);
    case fb::IntentKind::Evict:
      erase_pod(it, changes);
      return done(kCreated);
    case fb::IntentKind::Delete:
      erase_pod(it, changes);
      return done(kOk);
    case fb::IntentKind::Event:
      break;
  }
  return {fb::IntentOutcome::Refused, 400, "unknown intent kind"};
}

// The refusals of the API server's binding subresource (spec 5.9).
EmbeddedAnswer EmbeddedStore::bind(Pod& pod, const fb::Intent& intent, std::vector<Message>& changes) {
  const auto& table = pod.base.as<fb::Pod>();
  const auto name = [&] { return std::string(text(table.name())); };
  const std::string_view current =
      pod.node_changed ? std::string_view(pod.node_name) : text(table.node_name());
  if (table.deletion_ms() != 0) {
    return {fb::IntentOutcome::Gone, kConflict,
            "pod " + name() + " is being deleted, cannot be assigned to a host"};
  }
  if (!current.empty()) {
    const bool here = current == text(intent.node());
    return {here ? fb::IntentOutcome::Done : fb::IntentOutcome::Elsewhere, kConflict,
            "pod " + name() + " is already assigned to node " + quoted(current)};
  }
  if (table.scheduling_gates() != nullptr && table.scheduling_gates()->size() != 0) {
    return {fb::IntentOutcome::Refused, kConflict, "pod " + name() + " has non-empty .spec.schedulingGates"};
  }
  if (intent.generation() != 0 && table.generation() != 0 && intent.generation() != table.generation()) {
    return {fb::IntentOutcome::Refused, kConflict, "pod " + name() + " has changed since it was decided"};
  }
  pod.node_name = text(intent.node());
  pod.node_changed = true;
  pod.nominated.clear();
  pod.nominated_changed = pod.nominated_changed || table.nominated_node_name() != nullptr;
  pod.condition = scheduled_;
  pod.version = ++version_;
  changes.push_back(present(pod));
  return done(kCreated);
}

EmbeddedAnswer EmbeddedStore::patch(Pod& pod, const fb::Intent& intent, std::vector<Message>& changes) {
  const auto& table = pod.base.as<fb::Pod>();
  bool differs = false;
  if (const auto* wanted = intent.condition(); wanted != nullptr && text(wanted->type()) == "PodScheduled") {
    const auto* current = pod.condition.empty()
                              ? table.scheduled_condition()
                              : flatbuffers::GetRoot<fb::PodCondition>(pod.condition.data());
    if (!same(current, *wanted)) {
      // A patch that keeps the status leaves the time of its last transition out.
      const std::int64_t kept = current == nullptr ? 0 : current->transition_ms();
      pod.condition = condition_bytes(text(wanted->type()), text(wanted->status()), text(wanted->reason()),
                                      text(wanted->message()),
                                      wanted->transition_ms() != 0 ? wanted->transition_ms() : kept);
      differs = true;
    }
  }
  if (intent.has_nominated_node()) {
    const std::string_view current =
        pod.nominated_changed ? std::string_view(pod.nominated) : text(table.nominated_node_name());
    if (current != text(intent.nominated_node())) {
      pod.nominated = text(intent.nominated_node());
      pod.nominated_changed = true;
      differs = true;
    }
  }
  if (differs) {
    pod.version = ++version_;
    changes.push_back(present(pod));
  }
  return done(kOk);
}

}  // namespace troupe
