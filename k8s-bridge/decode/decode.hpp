// k8s-bridge/decode/: Kubernetes JSON to messages (decode.hpp) and intents to JSON (encode.hpp). Pure: text
// in, values out. Quantities become integers here, once: milli-CPU for cpu, whole units (bytes, counts) for
// all else.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "messages/error.hpp"
#include "messages/fb/node_generated.h"
#include "messages/message.hpp"

namespace troupe {

/// What the bridge knows about one mirrored kind. Adding a kind is one decoder and one line in kinds.cpp.
struct ObjectKindInfo {
  fb::ObjectKind kind{};
  Kind message{};                // of the messages that it decodes to
  std::string_view api_version;  // "v1", "scheduling.k8s.io/v1"
  std::string_view name;         // "Pod"
  std::string_view path;         // list and watch over all namespaces: "/api/v1/pods"
  std::string_view selector;     // fieldSelector of list and watch; empty: none
  bool namespaced = false;
};

/// Every mirrored kind, in the order of fb::ObjectKind.
std::span<const ObjectKindInfo> object_kinds();
const ObjectKindInfo& info(fb::ObjectKind kind);

/// Names an object, also one that cannot be decoded; then as far as its metadata can be read.
struct ObjectRef {
  fb::ObjectKind kind{};
  std::string name_space;
  std::string name;
  std::string uid;
  std::string resource_version;
};

/// An object that cannot be understood: `error` names the object, the field (spec.containers[1].resources...)
/// and the remedy.
struct RejectedObject {
  ObjectRef ref;
  Error error;
  std::size_t offset = 0;  // of the field, in the text that was decoded
  bool broken = false;     // the text is no JSON
};

using DecodedObject = tl::expected<Message, RejectedObject>;

/// A `Status` answer of the API server (body of an error response, object of an ERROR event).
struct ApiStatus {
  int code = 0;         // HTTP status; 0: not said
  std::string status;   // Success or Failure
  std::string reason;   // Expired, Conflict, AlreadyExists, ...
  std::string message;  // for people
  int retry_after_seconds = 0;
};

enum class WatchType : std::uint8_t { added, modified, deleted, bookmark, error };

/// One line of a watch.
struct WatchEvent {
  WatchType type{};
  /// added, modified: the object; deleted: its last state. Default for bookmark and error.
  DecodedObject object;
  std::string resource_version;     // of the object or bookmark: watch again from here
  bool initial_events_end = false;  // bookmark: the initial list of a streaming watch is complete
  ApiStatus status;                 // error
};

/// One page of a list.
struct ListChunk {
  std::vector<DecodedObject> objects;
  std::string resource_version;
  std::string continue_token;  // empty: the last page
};

/// Objects that say their kinds themselves: what `kubectl get -o json` prints, one object or a List.
struct MixedList {
  std::vector<DecodedObject> objects;
  std::map<std::string, std::size_t> ignored;  // kinds that are not mirrored, and how many of each
};

/// Decodes the JSON of the API server. Keeps buffers: reuse one per thread; not thread-safe. Never throws.
/// null counts as absent, unknown fields are ignored, of repeated fields the last counts. Errors (code
/// invalid) name what, object, field path and remedy.
class Decoder {
 public:
  Decoder();
  ~Decoder();
  Decoder(Decoder&&) noexcept;
  Decoder& operator=(Decoder&&) noexcept;

  /// One object, e.g. the answer to a GET. kind and apiVersion inside are not looked at.
  DecodedObject object(fb::ObjectKind kind, std::string_view json);
  /// One line `{"type":...,"object":{...}}`. Error: the line itself is broken; watch again from the last
  /// version.
  Result<WatchEvent> watch_event(fb::ObjectKind kind, std::string_view line);
  /// A PodList, NodeList, ... body. Error: the body itself is broken; ask again.
  Result<ListChunk> list_chunk(fb::ObjectKind kind, std::string_view body);
  /// An object or a List of any kinds. Error: broken JSON, or a document that is no Kubernetes object.
  tl::expected<MixedList, RejectedObject> mixed(std::string_view json);
  /// A Status body; fields that are missing or of another type stay empty.
  Result<ApiStatus> status(std::string_view body);

  struct Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

/// Whether an image name has a tag or digest: a colon after the last slash.
bool has_tag(std::string_view image);
/// The name under which kube-scheduler 1.35 compares images: with ":latest" where there is no tag.
std::string normalised_image(std::string_view image);

/// Kind::gone for the object of `last` (a pod, node, ... message).
Message gone_message(const Message& last);

/// Who a mirrored object is.
struct ObjectIdentity {
  fb::ObjectKind kind{};
  std::string_view name_space;  // empty for cluster-scoped kinds
  std::string_view name;
  std::string_view uid;  // empty for kinds that do not carry it
  std::string_view resource_version;
};

/// Views into `message`.
ObjectIdentity identity(const Message& message);

}  // namespace troupe
