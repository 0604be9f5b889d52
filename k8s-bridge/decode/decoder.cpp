#include "k8s-bridge/decode/decode.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "k8s-bridge/decode/kinds.hpp"
#include "messages/fb/pod_generated.h"
#include "messages/uid.hpp"

namespace troupe {
namespace {

using namespace decode;

// A page of 500 pods is a few megabytes; one list without pages of the largest clusters stays below.
constexpr std::size_t kMostBodyBytes = 1U << 30U;

struct KindEntry {
  ObjectKindInfo info;
  DecodeObject decode;
};

// In the order of fb::ObjectKind.
constexpr std::array kKinds{
    KindEntry{{fb::ObjectKind::Pod, Kind::pod, "v1", "Pod", "/api/v1/pods",
               "status.phase!=Succeeded,status.phase!=Failed", true},
              decode_pod},
    KindEntry{{fb::ObjectKind::Node, Kind::node, "v1", "Node", "/api/v1/nodes", "", false}, decode_node},
    KindEntry{
        {fb::ObjectKind::Namespace, Kind::name_space, "v1", "Namespace", "/api/v1/namespaces", "", false},
        decode_namespace},
    KindEntry{{fb::ObjectKind::PriorityClass, Kind::priority_class, "scheduling.k8s.io/v1", "PriorityClass",
               "/apis/scheduling.k8s.io/v1/priorityclasses", "", false},
              decode_priority_class},
};

constexpr auto kInfos = [] {
  std::array<ObjectKindInfo, kKinds.size()> infos{};
  for (std::size_t i = 0; i < kKinds.size(); ++i) infos[i] = kKinds[i].info;
  return infos;
}();

const KindEntry& entry(fb::ObjectKind kind) {
  return kKinds[static_cast<std::size_t>(kind)];
}

std::string display_name(const ObjectRef& ref) {
  std::string out(info(ref.kind).name);
  if (ref.name.empty()) return out;
  out += " ";
  if (!ref.name_space.empty()) out += ref.name_space + "/";
  return out + ref.name;
}

// Text of a field if it is one; what else it is does not matter here.
std::string lenient_text(od::value v) {
  std::string_view out;
  if (v.get_string().get(out) != simdjson::SUCCESS) return {};
  return std::string(out);
}

}  // namespace

struct Decoder::Impl {
  od::parser parser;
  od::parser ref_parser;
  Workspace work;
  std::unique_ptr<char[]> buffer;  // the JSON, padded as simdjson needs it
  std::size_t capacity = 0;
  std::size_t size = 0;

  bool load(std::string_view json) {
    if (json.size() > kMostBodyBytes) return false;
    const std::size_t needed = json.size() + simdjson::SIMDJSON_PADDING;
    if (capacity < needed) {
      capacity = std::max(needed, 2 * capacity);
      buffer = std::make_unique_for_overwrite<char[]>(capacity);
    }
    if (!json.empty()) std::memcpy(buffer.get(), json.data(), json.size());
    std::memset(buffer.get() + json.size(), ' ', simdjson::SIMDJSON_PADDING);
    size = json.size();
    return true;
  }

  [[nodiscard]] simdjson::padded_string_view padded() const {
    return simdjson::padded_string_view(buffer.get(), size, capacity);
  }

  // The root object of what was loaded.
  bool open(od::parser& with, od::document& document, od::object& root) {
    if (const auto e = with.iterate(padded()).get(document)) return work.reader.broken(e);
    if (const auto e = document.get_object().get(root)) return work.reader.broken(e);
    return true;
  }

  // `ref` from an object's metadata, as far as that can be read.
  static void read_ref(od::object object, ObjectRef& ref) {
    od::object metadata;
    if (object["metadata"].get_object().get(metadata) != simdjson::SUCCESS) return;
    for (auto item : metadata) {
      od::field field;
      std::string_view key;
      if (std::move(item).get(field) != simdjson::SUCCESS) return;
      if (field.unescaped_key().get(key) != simdjson::SUCCESS) return;
      if (key == "namespace") ref.name_space = lenient_text(field.value());
      if (key == "name") ref.name = lenient_text(field.value());
      if (key == "uid") ref.uid = lenient_text(field.value());
      if (key == "resourceVersion") ref.resource_version = lenient_text(field.value());
    }
  }

  RejectedObject rejected(fb::ObjectKind kind) {
    RejectedObject out;
    out.ref.kind = kind;
    out.error = work.reader.take_error();
    out.offset = offset();
    out.broken = work.reader.is_broken();
    out.error.object = display_name(out.ref);
    return out;
  }

  // After a failure: read the names of the object again, by themselves.
  void name_rejected(od::object object, RejectedObject& out) {
    read_ref(object, out.ref);
    out.error.object = display_name(out.ref);
  }

  // Where the reader was when it failed.
  [[nodiscard]] std::size_t offset() const {
    const char* const at = work.reader.position();
    return at == nullptr ? 0 : std::min(size, static_cast<std::size_t>(at - buffer.get()));
  }

  // Names the rejected ones among the items of the loaded list. item_of(i): the place of objects[i] in it.
  template <class ItemOf>
  void name_rejected_items(std::vector<DecodedObject>& objects, ItemOf&& item_of) {
    od::document document;
    od::object root;
    od::array items;
    if (!open(ref_parser, document, root) || root["items"].get_array().get(items)) return;
    std::size_t item_index = 0;
    std::size_t i = 0;
    for (auto item : items) {
      if (i == objects.size()) return;
      if (item_of(i) != item_index++) continue;
      od::object object;
      if (!objects[i] && item.get_object().get(object) == simdjson::SUCCESS) {
        name_rejected(object, objects[i].error());
      }
      ++i;
    }
  }

  static Error too_large(fb::ObjectKind kind) {
    return {ErrorCode::invalid,
            "larger than " + std::to_string(kMostBodyBytes) + " bytes",
            std::string(info(kind).name),
            {},
            "read it in pages"};
  }

  static RejectedObject too_large_object(fb::ObjectKind kind) {
    RejectedObject out;
    out.ref.kind = kind;
    out.error = too_large(kind);
    return out;
  }

  Error broken_text(std::string object) {
    Error error = work.reader.take_error();
    error.object = std::move(object);
    return error;
  }
};

std::span<const ObjectKindInfo> object_kinds() {
  return kInfos;
}

const ObjectKindInfo& info(fb::ObjectKind kind) {
  return kInfos[static_cast<std::size_t>(kind)];
}

Decoder::Decoder() : impl_(std::make_unique<Impl>()) {}
Decoder::~Decoder() = default;
Decoder::Decoder(Decoder&&) noexcept = default;
Decoder& Decoder::operator=(Decoder&&) noexcept = default;

DecodedObject Decoder::object(fb::ObjectKind kind, std::string_view json) {
  Impl& d = *impl_;
  d.work.reader.begin();
  if (!d.load(json)) return tl::unexpected(d.too_large_object(kind));
  od::document document;
  od::object root;
  Message message;
  if (d.open(d.parser, document, root) && entry(kind).decode(d.work, root, message)) return message;
  RejectedObject out = d.rejected(kind);
  if (d.open(d.ref_parser, document, root)) d.name_rejected(root, out);
  return tl::unexpected(std::move(out));
}

namespace {

void read_status(od::object object, ApiStatus& out) {
  for (auto item : object) {
    od::field field;
    std::string_view key;
    if (std::move(item).get(field) != simdjson::SUCCESS) return;
    if (field.unescaped_key().get(key) != simdjson::SUCCESS) return;
    std::int64_t number = 0;
    if (key == "status") out.status = lenient_text(field.value());
    if (key == "reason") out.reason = lenient_text(field.value());
    if (key == "message") out.message = lenient_text(field.value());
    if (key == "code" && field.value().get_int64().get(number) == simdjson::SUCCESS && number >= 0 &&
        number < 1000) {
      out.code = static_cast<int>(number);
    }
    if (key == "details") {
      constexpr std::int64_t kMostSeconds = 24 * 3600;
      if (field.value()["retryAfterSeconds"].get_int64().get(number) == simdjson::SUCCESS && number > 0) {
        out.retry_after_seconds = static_cast<int>(std::min(number, kMostSeconds));
      }
    }
  }
}

// Version and end-of-initial-list mark of a bookmark's object.
bool read_bookmark(Reader& r, od::object& object, WatchEvent& out) {
  return r.fields(object, Path{}, [&](std::string_view key, od::value value, const Path& at) {
    if (key != "metadata") return true;
    return r.object(std::move(value), at, [&](std::string_view name, od::value field, const Path& here) {
      std::string_view text;
      if (name == "resourceVersion") {
        if (!r.text(std::move(field), here, text)) return false;
        out.resource_version = text;
      }
      if (name != "annotations") return true;
      return r.object(std::move(field), here,
                      [&](std::string_view annotation, od::value v, const Path& there) {
                        if (annotation != "k8s.io/initial-events-end") return true;
                        if (!r.text(std::move(v), there, text)) return false;
                        out.initial_events_end = text == "true";
                        return true;
                      });
    });
  });
}

Result<WatchType> watch_type(std::string_view type) {
  if (type == "ADDED") return WatchType::added;
  if (type == "MODIFIED") return WatchType::modified;
  if (type == "DELETED") return WatchType::deleted;
  if (type == "BOOKMARK") return WatchType::bookmark;
  if (type == "ERROR") return WatchType::error;
  return fail({ErrorCode::invalid,
               "unknown watch event type \"" + std::string(type.substr(0, 64)) + "\"",
               {},
               "type",
               "watch again"});
}

}  // namespace

Result<WatchEvent> Decoder::watch_event(fb::ObjectKind kind, std::string_view line) {
  Impl& d = *impl_;
  Reader& r = d.work.reader;
  r.begin();
  if (!d.load(line)) return fail(Impl::too_large(kind));
  const auto what = [&] { return "watch of " + std::string(info(kind).name); };
  od::document document;
  od::object root;
  if (!d.open(d.parser, document, root)) return fail(d.broken_text(what()));
  std::string_view type_text;
  if (const auto e = root["type"].get_string().get(type_text)) {
    r.broken(e);
    return fail(d.broken_text(what()));
  }
  Result<WatchType> type = watch_type(type_text);
  if (!type) {
    type.error().object = what();
    return fail(std::move(type.error()));
  }
  od::object object;
  if (const auto e = root["object"].get_object().get(object)) {
    r.broken(e);
    return fail(d.broken_text(what()));
  }
  WatchEvent out;
  out.type = *type;
  if (*type == WatchType::error) {
    read_status(object, out.status);
    return out;
  }
  if (*type == WatchType::bookmark) {
    if (read_bookmark(r, object, out)) return out;
    return fail(d.broken_text(what()));
  }
  Message message;
  if (entry(kind).decode(d.work, object, message)) {
    out.resource_version = d.work.metadata.resource_version;
    out.object = std::move(message);
    return out;
  }
  if (r.is_broken()) return fail(d.broken_text(what()));
  RejectedObject rejected = d.rejected(kind);
  if (d.open(d.ref_parser, document, root) && root["object"].get_object().get(object) == simdjson::SUCCESS) {
    d.name_rejected(object, rejected);
  }
  out.resource_version = rejected.ref.resource_version;
  out.object = tl::unexpected(std::move(rejected));
  return out;
}

Result<ListChunk> Decoder::list_chunk(fb::ObjectKind kind, std::string_view body) {
  Impl& d = *impl_;
  Reader& r = d.work.reader;
  r.begin();
  if (!d.load(body)) return fail(Impl::too_large(kind));
  const auto what = [&] { return "list of " + std::string(info(kind).name); };
  ListChunk out;
  bool has_items = false;
  bool any_rejected = false;
  od::document document;
  od::object root;
  // A failure here is of the body; failures of single items are kept with them.
  const auto read_list_metadata = [&](std::string_view key, od::value value, const Path& at) {
    std::string_view text;
    if (key == "resourceVersion") {
      if (!r.text(std::move(value), at, text)) return false;
      out.resource_version = text;
    } else if (key == "continue") {
      if (!r.text(std::move(value), at, text)) return false;
      out.continue_token = text;
    }
    return true;
  };
  const auto read_item = [&](od::value& item, const Path& at) {
    r.begin();
    od::object object;
    Message message;
    if (item.get_object().get(object) != simdjson::SUCCESS) {
      r.wrong(at, "expected an object");
    } else if (entry(kind).decode(d.work, object, message)) {
      out.objects.emplace_back(std::move(message));
      return true;
    }
    if (r.is_broken()) return false;
    any_rejected = true;
    out.objects.emplace_back(tl::unexpected(d.rejected(kind)));
    return true;
  };
  const auto read_items = [&](od::value value, const Path& at) {
    od::json_type type{};
    if (const auto e = value.type().get(type)) return r.broken(e);
    has_items = true;
    out.objects.clear();
    if (type == od::json_type::null) return true;
    od::array items;
    if (type != od::json_type::array) return r.wrong(at, "expected a list");
    if (const auto e = value.get_array().get(items)) return r.broken(e);
    std::int64_t index = 0;
    for (auto item : items) {
      od::value element;
      if (const auto e = std::move(item).get(element)) return r.broken(e);
      if (!read_item(element, Path{&at, {}, index++})) return false;
    }
    r.begin();
    return true;
  };
  const bool ok = d.open(d.parser, document, root) &&
                  r.fields(root, Path{}, [&](std::string_view key, od::value value, const Path& at) {
                    if (key == "metadata") return r.object(std::move(value), at, read_list_metadata);
                    if (key == "items") return read_items(std::move(value), at);
                    return true;
                  });
  if (!ok) return fail(d.broken_text(what()));
  if (!has_items) return fail({ErrorCode::invalid, "no items in it", what(), "items", "ask again"});

  if (any_rejected) d.name_rejected_items(out.objects, [](std::size_t i) { return i; });
  return out;
}

namespace {

// kind and apiVersion of an object, which is then read from its start.
bool read_kind(Reader& r, od::object& object, std::string_view& kind, std::string_view& api_version) {
  if (object["kind"].get_string().get(kind) != simdjson::SUCCESS) kind = {};
  if (object["apiVersion"].get_string().get(api_version) != simdjson::SUCCESS) api_version = {};
  if (const auto e = object.reset().error()) return r.broken(e);
  return true;
}

std::string_view group(std::string_view api_version) {
  const std::size_t slash = api_version.find('/');
  return slash == std::string_view::npos ? std::string_view{} : api_version.substr(0, slash);
}

// The mirrored kind of that name and API group, if there is one.
const KindEntry* find_kind(std::string_view name, std::string_view api_version) {
  for (const KindEntry& k : kKinds) {
    if (k.info.name != name) continue;
    if (api_version.empty() || group(k.info.api_version) == group(api_version)) return &k;
  }
  return nullptr;
}

}  // namespace

tl::expected<MixedList, RejectedObject> Decoder::mixed(std::string_view json) {
  Impl& d = *impl_;
  Reader& r = d.work.reader;
  MixedList out;
  std::vector<std::size_t> item_of;  // of each object, its place in the list
  bool any_rejected = false;
  const auto failed = [&](std::string object) {
    RejectedObject rejected = d.rejected(fb::ObjectKind::Pod);
    rejected.error.object = std::move(object);
    return tl::unexpected(std::move(rejected));
  };
  r.begin();
  if (!d.load(json)) return tl::unexpected(d.too_large_object(fb::ObjectKind::Pod));
  od::document document;
  od::object root;
  std::string_view kind;
  std::string_view api_version;
  if (!d.open(d.parser, document, root) || !read_kind(r, root, kind, api_version)) return failed({});
  if (kind.empty()) {
    r.wrong(Path{nullptr, "kind"}, "missing", "this is no Kubernetes object; each one says its kind");
    return failed({});
  }

  const auto take = [&](od::object& object, std::string_view of_kind, std::string_view of_version,
                        std::size_t item) {
    const KindEntry* const known = find_kind(of_kind, of_version);
    if (known == nullptr) {
      ++out.ignored[std::string(of_kind)];
      return true;
    }
    Message message;
    if (known->decode(d.work, object, message)) {
      out.objects.emplace_back(std::move(message));
    } else {
      if (r.is_broken()) return false;
      any_rejected = true;
      out.objects.emplace_back(tl::unexpected(d.rejected(known->info.kind)));
    }
    item_of.push_back(item);
    return true;
  };
  if (!kind.ends_with("List")) {
    if (!take(root, kind, api_version, 0)) return failed({});
    if (any_rejected && d.open(d.ref_parser, document, root)) d.name_rejected(root, out.objects[0].error());
    return out;
  }

  // A PodList and its like need not name the kind of their items again.
  const std::string_view item_kind = kind.substr(0, kind.size() - 4);
  const auto take_items = [&](od::value value, const Path& at) {
    out = {};
    item_of.clear();
    return r.array(std::move(value), at, [&](od::value item, const Path& here) {
      r.begin();
      od::object object;
      if (item.get_object().get(object) != simdjson::SUCCESS) return r.wrong(here, "expected an object");
      std::string_view own_kind = item_kind;
      std::string_view own_version = api_version;
      if (own_kind.empty() && !read_kind(r, object, own_kind, own_version)) return false;
      if (own_kind.empty())
        return r.wrong(Path{&here, "kind"}, "missing", "each item of a List says its kind");
      return take(object, own_kind, own_version, static_cast<std::size_t>(here.index));
    });
  };
  const bool ok = r.fields(root, Path{}, [&](std::string_view key, od::value value, const Path& at) {
    return key != "items" || take_items(std::move(value), at);
  });
  if (!ok) return failed(std::string(kind));
  if (any_rejected) d.name_rejected_items(out.objects, [&](std::size_t i) { return item_of[i]; });
  return out;
}

Result<ApiStatus> Decoder::status(std::string_view body) {
  Impl& d = *impl_;
  d.work.reader.begin();
  od::document document;
  od::object root;
  ApiStatus out;
  if (d.load(body) && d.open(d.parser, document, root)) {
    read_status(root, out);
    return out;
  }
  return fail(d.broken_text("Status"));
}

ObjectIdentity identity(const Message& message) {
  switch (message.kind()) {
    case Kind::pod: {
      const auto& pod = message.as<fb::Pod>();
      return {fb::ObjectKind::Pod, text(pod.namespace_()), text(pod.name()), text(pod.uid_text()),
              text(pod.resource_version())};
    }
    case Kind::node: {
      const auto& node = message.as<fb::Node>();
      return {
          fb::ObjectKind::Node, {}, text(node.name()), text(node.uid_text()), text(node.resource_version())};
    }
    case Kind::name_space: {
      const auto& ns = message.as<fb::Namespace>();
      return {fb::ObjectKind::Namespace, {}, text(ns.name()), {}, text(ns.resource_version())};
    }
    case Kind::priority_class: {
      const auto& pc = message.as<fb::PriorityClass>();
      return {fb::ObjectKind::PriorityClass, {}, text(pc.name()), {}, text(pc.resource_version())};
    }
    default:
      return {};
  }
}

Message gone_message(const Message& last) {
  const ObjectIdentity who = identity(last);
  flatbuffers::FlatBufferBuilder b(256);
  fb::Uid uid;
  std::string_view node;
  if (last.kind() == Kind::pod) {
    const auto& pod = last.as<fb::Pod>();
    uid = PodUid::from(pod.uid()).wire();
    node = text(pod.node_name());
  } else if (last.kind() == Kind::node) {
    uid = PodUid::from(last.as<fb::Node>().uid()).wire();
  }
  const auto name_space = b.CreateString(who.name_space.data(), who.name_space.size());
  const auto name = b.CreateString(who.name.data(), who.name.size());
  const auto node_name = b.CreateString(node.data(), node.size());
  fb::GoneBuilder gone(b);
  gone.add_uid(&uid);
  gone.add_kind(who.kind);
  gone.add_namespace_(name_space);
  gone.add_name(name);
  gone.add_node_name(node_name);
  b.Finish(gone.Finish());
  return {Kind::gone, b};
}

}  // namespace troupe
