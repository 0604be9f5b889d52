// The embedded cluster's objects and what intents do to them, without threads.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "messages/fb/intent_generated.h"
#include "messages/fb/node_generated.h"
#include "messages/fb/pod_generated.h"
#include "messages/message.hpp"
#include "messages/uid.hpp"

namespace troupe {

/// How an intent ended, as an API server would have it.
struct EmbeddedAnswer {
  fb::IntentOutcome outcome{};
  int http_status = 0;
  std::string message;  // empty on success
};

/// Changes are appended to the vector that each call is given. Not thread-safe.
class EmbeddedStore {
 public:
  EmbeddedStore();

  void put(const Message& object, std::vector<Message>& changes);
  void remove(fb::ObjectKind kind, std::string_view ns, std::string_view name, std::vector<Message>& changes);
  EmbeddedAnswer execute(const fb::Intent& intent, std::vector<Message>& changes);

 private:
  struct Pod {
    Message base;           // as it was put
    std::string node_name;  // what differs from base by binds and patches
    std::string nominated;
    bool node_changed = false;
    bool nominated_changed = false;
    Bytes condition;  // fb::PodCondition; empty: base's own
    std::uint64_t version = 0;
  };
  struct ByName {
    using is_transparent = void;
    struct Name {
      std::string_view ns;
      std::string_view name;
    };
    static Name of(const Pod* pod);
    std::size_t operator()(const Name& name) const;
    std::size_t operator()(const Pod* pod) const { return (*this)(of(pod)); }
    static bool equal(const Name& a, const Name& b) { return a.name == b.name && a.ns == b.ns; }
    bool operator()(const Pod* a, const Pod* b) const { return equal(of(a), of(b)); }
    bool operator()(const Pod* a, const Name& b) const { return equal(of(a), b); }
    bool operator()(const Name& a, const Pod* b) const { return equal(a, of(b)); }
  };

  Message present(const Pod& pod);
  void put_pod(const Message& object, std::vector<Message>& changes);
  void erase_pod(std::unordered_map<PodUid, Pod, PodUidHash>::iterator it, std::vector<Message>& changes);
  Message gone(fb::ObjectKind kind, std::string_view ns, std::string_view name, PodUid uid,
               std::string_view node);
  EmbeddedAnswer bind(Pod& pod, const fb::Intent& intent, std::vector<Message>& changes);
  EmbeddedAnswer patch(Pod& pod, const fb::Intent& intent, std::vector<Message>& changes);

  std::unordered_map<PodUid, Pod, PodUidHash> pods_;
  std::unordered_set<const Pod*, ByName, ByName> pod_names_;
  std::unordered_map<std::string, Message> others_[3];  // nodes, namespaces, priority classes, by name
  std::uint64_t version_ = 0;                           // resourceVersion: counts all changes
  Bytes scheduled_;                                     // PodScheduled=True
  flatbuffers::FlatBufferBuilder builder_;
  std::vector<std::uint8_t> scratch_;
};

}  // namespace troupe
