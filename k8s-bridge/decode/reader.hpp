// Reading JSON for the decoders: each object and array is walked once, in the order of the text, and the
// first mistake ends it with the path of its field. Internal to decode/: the only header that includes
// simdjson.
#pragma once

#include <simdjson.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "k8s-bridge/decode/requests.hpp"
#include "messages/error.hpp"
#include "messages/pod_writer.hpp"

namespace troupe::decode {

namespace od = simdjson::ondemand;

/// key == literal, with a comparison of constant length: it is made some hundred times per object.
template <std::size_t N>
bool is(std::string_view key, const char (&literal)[N]) {
  return key.size() == N - 1 && std::memcmp(key.data(), literal, N - 1) == 0;
}

/// Where in an object the reader is: a list on the call stack, written out only for an error.
struct Path {
  const Path* parent = nullptr;
  std::string_view key;     // of a field; empty for an element
  std::int64_t index = -1;  // of an element

  /// "spec.containers[1].resources.requests.cpu"; keys with other characters than [A-Za-z0-9_-] are put in
  /// brackets: metadata.labels["app.kubernetes.io/name"].
  [[nodiscard]] std::string text() const;
};

class Reader {
 public:
  // A limit on everything: what one object may hold before it is refused (etcd holds 1.5 MiB per object).
  static constexpr std::size_t kMostEntries = 1'000'000;     // fields and elements that are read
  static constexpr std::size_t kMostTextBytes = 64U << 20U;  // of all texts that are kept

  /// Starts the next object: clears the failure and the limits.
  void begin();

  /// The JSON text itself is broken; nothing after it can be read.
  [[nodiscard]] bool is_broken() const { return broken_; }
  /// The failure, without `object`.
  [[nodiscard]] Error take_error() { return std::move(error_); }
  /// The field or element read last: where the failure is, in the JSON text.
  [[nodiscard]] const char* position() const { return position_; }

  /// Both return false, for `return wrong(...)`.
  bool wrong(const Path& at, std::string what, std::string remedy = {});
  bool broken(simdjson::error_code code);

  /// Calls f(key, value, path) for each field until it returns false. null: no call.
  template <class F>
  bool object(od::value v, const Path& at, F&& f) {
    od::json_type type{};
    if (!expect(v, od::json_type::object, at, type)) return false;
    if (type == od::json_type::null) return true;
    od::object o;
    if (const auto e = v.get_object().get(o)) return broken(e);
    return fields(o, at, std::forward<F>(f));
  }

  template <class F>
  bool fields(od::object& o, const Path& at, F&& f) {
    for (auto item : o) {
      od::field field;
      if (const auto e = std::move(item).get(field)) return broken(e);
      std::string_view key;
      position_ = field.key().raw();
      if (!read_key(field, key)) return false;
      const Path here{&at, key};
      if (++entries_ > kMostEntries) return too_many(at);
      if (!f(key, std::move(field).value(), here)) return false;
    }
    return true;
  }

  /// Calls f(value, path) for each element until it returns false. null: no call.
  template <class F>
  bool array(od::value v, const Path& at, F&& f) {
    od::json_type type{};
    if (!expect(v, od::json_type::array, at, type)) return false;
    if (type == od::json_type::null) return true;
    od::array a;
    if (const auto e = v.get_array().get(a)) return broken(e);
    std::int64_t index = 0;
    for (auto item : a) {
      od::value element;
      if (const auto e = std::move(item).get(element)) return broken(e);
      position_ = element.raw_json_token().data();
      const Path here{&at, {}, index++};
      if (++entries_ > kMostEntries) return too_many(at);
      if (!f(std::move(element), here)) return false;
    }
    return true;
  }

  /// Scalars: null leaves the default (empty, 0, false).
  bool text(od::value v, const Path& at, std::string_view& out);
  bool integer(od::value v, const Path& at, std::int64_t& out);
  bool integer32(od::value v, const Path& at, std::int32_t& out);
  bool boolean(od::value v, const Path& at, bool& out);
  /// RFC 3339 to Unix milliseconds.
  bool time(od::value v, const Path& at, std::int64_t& out);
  bool quantity(od::value v, const Path& at, Quantity& out);
  bool texts(od::value v, const Path& at, std::vector<std::string_view>& out);
  /// A map of texts. With `koordinator_only`, values of other domains are not even read.
  bool pairs(od::value v, const Path& at, std::vector<KeyValueView>& out, bool koordinator_only = false);
  /// A resource list of a container or pod; names that are not counted are left out.
  bool requests(od::value v, const Path& at, ResourceTable& table, ResourceTable::List& out);
  /// The same of a node: `pods` counts too, and less than nothing is nothing.
  bool room(od::value v, const Path& at, ResourceTable& table, ResourceTable::List& out);

 private:
  bool broken_ = false;
  const char* position_ = nullptr;
  Error error_;
  std::size_t entries_ = 0;
  std::size_t text_bytes_ = 0;

  bool expect(od::value& v, od::json_type wanted, const Path& at, od::json_type& type) {
    if (const auto e = v.type().get(type)) return broken(e);
    if (type == wanted) return true;
    if (type == od::json_type::null) return is_null(v);
    return wrong_type(at, wanted, type);
  }
  bool is_null(od::value& v);
  bool wrong_type(const Path& at, od::json_type wanted, od::json_type found);
  bool too_many(const Path& at);
  bool read_key(od::field& field, std::string_view& key);
  bool keep(const Path& at, std::string_view text);
  bool resources(od::value v, const Path& at, bool of_node, ResourceTable& table, ResourceTable::List& out);
};

/// RFC 3339 with any offset and fraction; nothing for another text.
std::optional<std::int64_t> parse_rfc3339(std::string_view text);

/// metadata, as far as a kind uses it.
struct MetadataFields {
  std::string_view name_space;
  std::string_view name;
  std::string_view uid;
  std::string_view resource_version;
  std::int64_t generation = 0;
  std::int64_t creation_ms = 0;
  std::int64_t deletion_ms = 0;
  std::vector<KeyValueView> labels;
  std::vector<KeyValueView> annotations;  // of koordinator.sh domains
  std::vector<OwnerView> owners;

  void clear();
};

bool read_metadata(Reader& r, od::value v, const Path& at, MetadataFields& out);
/// The name is there.
bool check_metadata(Reader& r, const MetadataFields& metadata);

}  // namespace troupe::decode
