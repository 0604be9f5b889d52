#include "k8s-bridge/reflect/mirror.hpp"

#include <xxhash.h>

#include "messages/fb/node_generated.h"
#include "messages/fb/pod_generated.h"

namespace troupe {
namespace {

std::uint64_t digest(std::string_view bytes, std::uint64_t seed = 0) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

// The bytes around the text of the resourceVersion.
std::uint64_t content_digest(const Message& message, std::string_view version) {
  const std::string_view all = message.bytes().view();
  if (version.data() < all.data() || version.data() > all.data() + all.size()) return digest(all);
  const auto at = static_cast<std::size_t>(version.data() - all.data());
  return digest(all.substr(at + version.size()), digest(all.substr(0, at)));
}

std::string_view node_of(const Message& message) {
  return message.kind() == Kind::pod ? text(message.as<fb::Pod>().node_name()) : std::string_view{};
}

}  // namespace

std::string_view Mirror::key(std::string_view name_space, std::string_view name) {
  key_.assign(name_space);
  key_ += '/';
  key_ += name;
  return key_;
}

std::uint32_t Mirror::node_index(std::string_view name) {
  if (name.empty()) return 0;
  if (const auto it = node_indices_.find(name); it != node_indices_.end()) return it->second;
  const auto index = static_cast<std::uint32_t>(nodes_.size());
  nodes_.emplace_back(name);
  node_indices_.emplace(name, index);
  return index;
}

Message Mirror::gone(std::string_view key, const Entry& entry) {
  const auto slash = key.find('/');
  builder_.Clear();
  const auto name_space = builder_.CreateString(key.substr(0, slash));
  const auto name = builder_.CreateString(key.substr(slash + 1));
  const auto node = builder_.CreateString(nodes_[entry.node]);
  const fb::Uid uid = entry.uid.wire();
  builder_.Finish(fb::CreateGone(builder_, kind_, name_space, name, &uid, node));
  return {Kind::gone, builder_};
}

void Mirror::put(const Message& object, std::vector<Message>& changes) {
  const ObjectIdentity who = identity(object);
  Entry fresh;
  fresh.uid = PodUid::parse(who.uid);
  fresh.content = content_digest(object, who.resource_version);
  fresh.version = digest(who.resource_version);
  fresh.node = node_index(node_of(object));
  fresh.round = round_;

  const std::string_view name = key(who.name_space, who.name);
  const auto it = entries_.find(name);
  if (it == entries_.end()) {
    entries_.emplace(name, fresh);
    changes.push_back(object);
    return;
  }
  const Entry old = it->second;
  it->second = fresh;
  if (old.uid != fresh.uid) {
    changes.push_back(gone(name, old));
  } else if (old.content == fresh.content) {
    const bool version_matters = kind_ == fb::ObjectKind::Pod && fresh.node == 0;
    if (!version_matters || old.version == fresh.version) return;
  }
  changes.push_back(object);
}

void Mirror::keep(const ObjectRef& ref, std::vector<Message>& changes) {
  const auto it = entries_.find(key(ref.name_space, ref.name));
  if (it == entries_.end()) return;
  if (!ref.uid.empty() && !it->second.uid.zero() && PodUid::parse(ref.uid) != it->second.uid) {
    changes.push_back(gone(it->first, it->second));
    entries_.erase(it);
    return;
  }
  it->second.round = round_;
}

void Mirror::remove(const ObjectRef& ref, const Message* last, std::vector<Message>& changes) {
  const auto it = entries_.find(key(ref.name_space, ref.name));
  if (it == entries_.end()) return;
  Entry& entry = it->second;
  // A bind whose own event was missed shows in the object's last state.
  if (last != nullptr && PodUid::parse(identity(*last).uid) == entry.uid)
    entry.node = node_index(node_of(*last));
  changes.push_back(gone(it->first, entry));
  entries_.erase(it);
}

void Mirror::end_list(std::vector<Message>& changes) {
  for (auto it = entries_.begin(); it != entries_.end();) {
    if (it->second.round == round_) {
      ++it;
      continue;
    }
    changes.push_back(gone(it->first, it->second));
    it = entries_.erase(it);
  }
}

}  // namespace troupe
