#include "k8s-bridge/decode/reader.hpp"

#include <algorithm>
#include <bit>
#include <limits>

namespace troupe::decode {
namespace {

std::string_view name_of(od::json_type type) {
  switch (type) {
    case od::json_type::array:
      return "a list";
    case od::json_type::object:
      return "an object";
    case od::json_type::number:
      return "a number";
    case od::json_type::string:
      return "a string";
    case od::json_type::boolean:
      return "true or false";
    case od::json_type::null:
      return "null";
  }
  return "something else";
}

std::string_view kind_text(QuantityError error) {
  switch (error) {
    case QuantityError::format:
      return "its shape is wrong";
    case QuantityError::suffix:
      return "its suffix is unknown";
    case QuantityError::numeric:
      return "its number is too long";
  }
  return {};
}

bool plain_key(std::string_view key) {
  return std::all_of(key.begin(), key.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

// The part of a label or annotation key before the slash, if it is koordinator.sh or below.
bool koordinator_key(std::string_view key) {
  const std::size_t slash = key.find('/');
  if (slash == std::string_view::npos) return false;
  const std::string_view domain = key.substr(0, slash);
  constexpr std::string_view kDomain = "koordinator.sh";
  if (!domain.ends_with(kDomain)) return false;
  return domain.size() == kDomain.size() || domain[domain.size() - kDomain.size() - 1] == '.';
}

// Bytes before the first quote or backslash, eight at a time: the text is padded, and ends in one of them.
std::size_t key_length(const char* text) {
  constexpr std::uint64_t kOnes = 0x0101010101010101U;
  constexpr std::uint64_t kHighs = 0x8080808080808080U;
  const auto zero_bytes = [](std::uint64_t v) { return (v - kOnes) & ~v & kHighs; };
  for (std::size_t n = 0;; n += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, text + n, sizeof(word));
    const std::uint64_t found = zero_bytes(word ^ (kOnes * '"')) | zero_bytes(word ^ (kOnes * '\\'));
    if (found == 0) continue;
    // Above the lowest hit a borrow may mark too much; the lowest is exact.
    if constexpr (std::endian::native == std::endian::little) {
      return n + static_cast<std::size_t>(std::countr_zero(found)) / 8;
    }
    while (text[n] != '"' && text[n] != '\\') ++n;
    return n;
  }
}

// Texts in messages to people: one line, not endless.
std::string quoted(std::string_view text) {
  constexpr std::size_t kMost = 64;
  std::string out = "\"";
  for (const char c : text.substr(0, kMost)) out.push_back(static_cast<unsigned char>(c) < 0x20 ? ' ' : c);
  if (text.size() > kMost) out += "...";
  return out + "\"";
}

}  // namespace

std::string Path::text() const {
  std::vector<const Path*> chain;
  for (const Path* p = this; p != nullptr; p = p->parent) chain.push_back(p);
  std::string out;
  for (auto it = chain.rbegin(); it != chain.rend(); ++it) {
    const Path& p = **it;
    if (p.index >= 0) {
      out += "[" + std::to_string(p.index) + "]";
    } else if (p.key.empty()) {
      continue;  // the root
    } else if (plain_key(p.key)) {
      if (!out.empty()) out += ".";
      out += p.key;
    } else {
      out += "[" + quoted(p.key) + "]";
    }
  }
  return out;
}

void Reader::begin() {
  broken_ = false;
  position_ = nullptr;
  error_ = {};
  entries_ = 0;
  text_bytes_ = 0;
}

bool Reader::wrong(const Path& at, std::string what, std::string remedy) {
  error_ = {ErrorCode::invalid, std::move(what), {}, at.text(), std::move(remedy)};
  return false;
}

bool Reader::broken(simdjson::error_code code) {
  broken_ = true;
  error_ = {ErrorCode::invalid, std::string("not JSON: ") + simdjson::error_message(code), {}, {}, {}};
  return false;
}

bool Reader::wrong_type(const Path& at, od::json_type wanted, od::json_type found) {
  return wrong(at,
               std::string("expected ").append(name_of(wanted)).append(", found ").append(name_of(found)));
}

bool Reader::too_many(const Path& at) {
  return wrong(at, "more than " + std::to_string(kMostEntries) + " entries in one object", "make it smaller");
}

bool Reader::is_null(od::value& v) {
  bool null = false;
  if (const auto e = v.is_null().get(null)) return broken(e);
  return null || broken(simdjson::N_ATOM_ERROR);
}

bool Reader::read_key(od::field& field, std::string_view& key) {
  // In place: keys are short and hold no escapes, but for odd ones.
  const char* const raw = field.key().raw();
  const std::size_t n = key_length(raw);
  if (raw[n] == '"') {
    key = {raw, n};
    return true;
  }
  if (const auto e = field.unescaped_key().get(key)) return broken(e);
  return true;
}

bool Reader::keep(const Path& at, std::string_view text) {
  text_bytes_ += text.size();
  if (text_bytes_ <= kMostTextBytes) return true;
  return wrong(at, "more than " + std::to_string(kMostTextBytes) + " bytes of text in one object",
               "make it smaller");
}

bool Reader::text(od::value v, const Path& at, std::string_view& out) {
  out = {};
  od::json_type type{};
  if (!expect(v, od::json_type::string, at, type)) return false;
  if (type == od::json_type::null) return true;
  if (const auto e = v.get_string().get(out)) return broken(e);
  return keep(at, out);
}

bool Reader::integer(od::value v, const Path& at, std::int64_t& out) {
  out = 0;
  od::json_type type{};
  if (!expect(v, od::json_type::number, at, type)) return false;
  if (type == od::json_type::null) return true;
  if (v.get_int64().get(out) != simdjson::SUCCESS) {
    return wrong(at, "expected a 64-bit integer", "write it without fraction or exponent");
  }
  return true;
}

bool Reader::integer32(od::value v, const Path& at, std::int32_t& out) {
  std::int64_t wide = 0;
  if (!integer(std::move(v), at, wide)) return false;
  if (wide < std::numeric_limits<std::int32_t>::min() || wide > std::numeric_limits<std::int32_t>::max()) {
    return wrong(at, std::to_string(wide) + " is no 32-bit integer");
  }
  out = static_cast<std::int32_t>(wide);
  return true;
}

bool Reader::boolean(od::value v, const Path& at, bool& out) {
  out = false;
  od::json_type type{};
  if (!expect(v, od::json_type::boolean, at, type)) return false;
  if (type == od::json_type::null) return true;
  if (const auto e = v.get_bool().get(out)) return broken(e);
  return true;
}

bool Reader::time(od::value v, const Path& at, std::int64_t& out) {
  std::string_view text_value;
  out = 0;
  if (!text(std::move(v), at, text_value)) return false;
  if (text_value.empty()) return true;
  const std::optional<std::int64_t> ms = parse_rfc3339(text_value);
  if (!ms) {
    return wrong(at, quoted(text_value) + " is no time", "write it as RFC 3339, e.g. 2026-07-01T09:30:00Z");
  }
  out = *ms;
  return true;
}

bool Reader::quantity(od::value v, const Path& at, Quantity& out) {
  out = {};
  od::json_type type{};
  if (const auto e = v.type().get(type)) return broken(e);
  std::string_view source;
  if (type == od::json_type::number) {
    double checked = 0;
    source = v.raw_json_token();
    if (const auto e = v.get_double().get(checked); e && e != simdjson::NUMBER_OUT_OF_RANGE) return broken(e);
  } else if (type == od::json_type::null) {
    return is_null(v);
  } else if (type != od::json_type::string) {
    return wrong(at, std::string("expected a quantity (a string or a number), found ").append(name_of(type)));
  } else if (!text(std::move(v), at, source)) {
    return false;
  }
  const auto space = [](char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; };
  while (!source.empty() && space(source.front())) source.remove_prefix(1);
  while (!source.empty() && space(source.back())) source.remove_suffix(1);
  const auto parsed = Quantity::parse(source);
  if (!parsed) {
    return wrong(at, quoted(source).append(" is no quantity: ").append(kind_text(parsed.error())),
                 "write it like 2, 500m, 1.5Gi or 1e3");
  }
  out = *parsed;
  return true;
}

bool Reader::texts(od::value v, const Path& at, std::vector<std::string_view>& out) {
  return array(std::move(v), at, [&](od::value element, const Path& here) {
    return text(std::move(element), here, out.emplace_back());
  });
}

bool Reader::pairs(od::value v, const Path& at, std::vector<KeyValueView>& out, bool koordinator_only) {
  out.clear();
  return object(std::move(v), at, [&](std::string_view key, od::value value, const Path& here) {
    if (koordinator_only && !koordinator_key(key)) return true;
    out.push_back({key, {}});
    return keep(here, key) && text(std::move(value), here, out.back().value);
  });
}

bool Reader::requests(od::value v, const Path& at, ResourceTable& table, ResourceTable::List& out) {
  return resources(std::move(v), at, false, table, out);
}

bool Reader::room(od::value v, const Path& at, ResourceTable& table, ResourceTable::List& out) {
  return resources(std::move(v), at, true, table, out);
}

bool Reader::resources(od::value v, const Path& at, bool of_node, ResourceTable& table,
                       ResourceTable::List& out) {
  out = table.begin_list();
  return object(std::move(v), at, [&](std::string_view key, od::value value, const Path& here) {
    Quantity q;
    if (!quantity(std::move(value), here, q)) return false;
    const std::string_view counted = of_node && is(key, "pods") ? key : counted_resource(key);
    if (counted.empty()) return true;
    if (q.negative()) {
      if (!of_node) return wrong(here, "must not be negative");
      q = {};
    }
    if (!(counted == "cpu" ? q.milli_value() : q.value())) {
      return wrong(here, "beyond 64 bits", "no machine has as much; correct the amount");
    }
    if (table.add(out, counted, counted.data() != key.data(), *q.nano_value())) return true;
    return wrong(at, "more than " + std::to_string(ResourceTable::kMostNames) + " different resources");
  });
}

std::optional<std::int64_t> parse_rfc3339(std::string_view s) {
  // "2026-07-01T09:30:00" is 19 bytes; then a fraction, then Z or an offset.
  if (s.size() < 20 || s[4] != '-' || s[7] != '-' || (s[10] != 'T' && s[10] != 't' && s[10] != ' ') ||
      s[13] != ':' || s[16] != ':') {
    return std::nullopt;
  }
  bool digits = true;
  const auto number = [&](std::size_t at, std::size_t n) {
    std::int64_t out = 0;
    for (std::size_t i = at; i < at + n; ++i) {
      digits = digits && s[i] >= '0' && s[i] <= '9';
      out = out * 10 + (s[i] - '0');
    }
    return out;
  };
  std::int64_t year = number(0, 4);
  const std::int64_t month = number(5, 2);
  const std::int64_t day = number(8, 2);
  const std::int64_t hour = number(11, 2);
  const std::int64_t minute = number(14, 2);
  const std::int64_t second = number(17, 2);
  if (!digits || month < 1 || month > 12 || day < 1 || day > 31 || hour > 23 || minute > 59 || second > 60) {
    return std::nullopt;
  }
  std::size_t at = 19;
  std::int64_t ms = 0;
  if (s[at] == '.') {
    std::int64_t unit = 100;
    const std::size_t start = ++at;
    for (; at < s.size() && s[at] >= '0' && s[at] <= '9'; ++at, unit /= 10) ms += unit * (s[at] - '0');
    if (at == start) return std::nullopt;
  }
  if (at == s.size()) return std::nullopt;
  std::int64_t offset_minutes = 0;
  if (s[at] == 'Z' || s[at] == 'z') {
    ++at;
  } else {
    if ((s[at] != '+' && s[at] != '-') || s.size() - at < 6 || s[at + 3] != ':') return std::nullopt;
    offset_minutes = number(at + 1, 2) * 60 + number(at + 4, 2);
    if (!digits) return std::nullopt;
    if (s[at] == '-') offset_minutes = -offset_minutes;
    at += 6;
  }
  if (at != s.size()) return std::nullopt;
  // Days since 1970-01-01; years begin in March, so that the leap day comes last.
  if (month <= 2) --year;
  const std::int64_t era = (year >= 0 ? year : year - 399) / 400;
  const std::int64_t year_of_era = year - era * 400;
  const std::int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  const std::int64_t days =
      era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719468;
  return ((days * 24 + hour) * 60 + minute - offset_minutes) * 60'000 + second * 1000 + ms;
}

void MetadataFields::clear() {
  name_space = name = uid = resource_version = {};
  generation = creation_ms = deletion_ms = 0;
  labels.clear();
  annotations.clear();
  owners.clear();
}

bool read_metadata(Reader& r, od::value v, const Path& at, MetadataFields& out) {
  out.clear();
  return r.object(std::move(v), at, [&](std::string_view key, od::value value, const Path& here) {
    if (is(key, "name")) return r.text(std::move(value), here, out.name);
    if (is(key, "namespace")) return r.text(std::move(value), here, out.name_space);
    if (is(key, "uid")) return r.text(std::move(value), here, out.uid);
    if (is(key, "resourceVersion")) return r.text(std::move(value), here, out.resource_version);
    if (is(key, "generation")) return r.integer(std::move(value), here, out.generation);
    if (is(key, "creationTimestamp")) return r.time(std::move(value), here, out.creation_ms);
    if (is(key, "deletionTimestamp")) return r.time(std::move(value), here, out.deletion_ms);
    if (is(key, "labels")) return r.pairs(std::move(value), here, out.labels);
    if (is(key, "annotations")) return r.pairs(std::move(value), here, out.annotations, true);
    if (is(key, "ownerReferences")) {
      out.owners.clear();
      return r.array(std::move(value), here, [&](od::value element, const Path& owner_at) {
        OwnerView& owner = out.owners.emplace_back();
        return r.object(std::move(element), owner_at,
                        [&](std::string_view owner_key, od::value owner_value, const Path& there) {
                          if (is(owner_key, "kind")) return r.text(std::move(owner_value), there, owner.kind);
                          if (is(owner_key, "name")) return r.text(std::move(owner_value), there, owner.name);
                          if (is(owner_key, "uid")) return r.text(std::move(owner_value), there, owner.uid);
                          if (is(owner_key, "controller")) {
                            return r.boolean(std::move(owner_value), there, owner.controller);
                          }
                          return true;
                        });
      });
    }
    return true;
  });
}

bool check_metadata(Reader& r, const MetadataFields& metadata) {
  if (!metadata.name.empty()) return true;
  const Path root;
  const Path at{&root, "metadata"};
  return r.wrong(Path{&at, "name"}, "missing", "give the object a name");
}

}  // namespace troupe::decode
