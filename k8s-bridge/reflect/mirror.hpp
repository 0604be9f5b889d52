// What of each object of one kind was last told to the actors: enough to find what changed, what is gone, and
// what only looks changed. The objects themselves live with the actors that work on them; 50,000 pods take
// about 10 MB here.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "k8s-bridge/decode/decode.hpp"
#include "messages/message.hpp"
#include "messages/uid.hpp"

namespace troupe {

/// Appends to `changes` what the actors must hear, in order per object. Not thread-safe.
class Mirror {
 public:
  explicit Mirror(fb::ObjectKind kind) : kind_(kind) {}

  /// The object is as `object` says. Nothing is told when it is what was told last, but for the version of an
  /// object that no write of ours depends on: only unbound pods are patched by version.
  void put(const Message& object, std::vector<Message>& changes);
  /// The object exists but cannot be understood: what is known of it stays, unless it was recreated.
  void keep(const ObjectRef& ref, std::vector<Message>& changes);
  /// The object is gone. `last`: its final state if that is known.
  void remove(const ObjectRef& ref, const Message* last, std::vector<Message>& changes);

  /// A list begins: what is neither put nor kept until `end_list` is gone.
  void begin_list() { ++round_; }
  void end_list(std::vector<Message>& changes);

  [[nodiscard]] std::size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    PodUid uid;
    std::uint64_t content = 0;  // digest of the message without its resourceVersion
    std::uint64_t version = 0;  // digest of the resourceVersion
    std::uint32_t node = 0;     // index into nodes_
    std::uint32_t round = 0;
  };
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view key) const noexcept { return std::hash<std::string_view>{}(key); }
  };
  using Entries = std::unordered_map<std::string, Entry, Hash, std::equal_to<>>;

  std::string_view key(std::string_view name_space, std::string_view name);
  std::uint32_t node_index(std::string_view name);
  Message gone(std::string_view key, const Entry& entry);

  fb::ObjectKind kind_;
  Entries entries_;
  std::vector<std::string> nodes_{std::string()};  // 0: none
  std::unordered_map<std::string, std::uint32_t, Hash, std::equal_to<>> node_indices_;
  std::uint32_t round_ = 0;
  std::string key_;
  flatbuffers::FlatBufferBuilder builder_;
};

}  // namespace troupe
