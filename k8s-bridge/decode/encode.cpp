#include "k8s-bridge/decode/encode.hpp"

#include <array>
#include <charconv>
#include <cstdio>

#include "messages/message.hpp"

namespace troupe {
namespace {

constexpr std::size_t kInstanceBytes = 128;

// Writes one JSON object; commas are placed by what came before.
class Writer {
 public:
  explicit Writer(std::size_t reserve) { out_.reserve(reserve); }

  Writer& open(std::string_view key = {}, char bracket = '{') {
    name(key);
    out_.push_back(bracket);
    return *this;
  }
  Writer& close(char bracket = '}') {
    out_.push_back(bracket);
    return *this;
  }
  Writer& field(std::string_view key, std::string_view value) {
    name(key);
    append_json_string(out_, value);
    return *this;
  }
  Writer& field(std::string_view key, const flatbuffers::String* value) { return field(key, text(value)); }
  Writer& field_unless_empty(std::string_view key, std::string_view value) {
    return value.empty() ? *this : field(key, value);
  }
  Writer& null(std::string_view key) {
    name(key);
    out_ += "null";
    return *this;
  }
  std::string finish() { return std::move(out_); }

 private:
  std::string out_;

  void name(std::string_view key) {
    if (!out_.empty() && out_.back() != '{' && out_.back() != '[') out_.push_back(',');
    if (key.empty()) return;
    append_json_string(out_, key);
    out_.push_back(':');
  }
};

// Year, month, day of a count of days since 1970-01-01 (proleptic Gregorian calendar).
struct Date {
  std::int64_t year;
  unsigned month;
  unsigned day;
};

Date date_of(std::int64_t days) {
  // Counted from 0000-03-01, so that the leap day ends a year.
  const std::int64_t shifted = days + 719468;
  const std::int64_t era = (shifted >= 0 ? shifted : shifted - 146096) / 146097;
  const std::int64_t day_of_era = shifted - era * 146097;
  const std::int64_t year_of_era =
      (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
  const std::int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const std::int64_t month = (5 * day_of_year + 2) / 153;  // March is 0
  const auto day = static_cast<unsigned>(day_of_year - (153 * month + 2) / 5 + 1);
  const auto calendar_month = static_cast<unsigned>(month < 10 ? month + 3 : month - 9);
  return {year_of_era + era * 400 + (calendar_month <= 2 ? 1 : 0), calendar_month, day};
}

std::string format_time(std::int64_t unix_ms, bool micro) {
  constexpr std::int64_t kDayMs = 86'400'000;
  std::int64_t days = unix_ms / kDayMs;
  std::int64_t rest = unix_ms % kDayMs;
  if (rest < 0) {
    rest += kDayMs;
    --days;
  }
  const Date date = date_of(days);
  std::array<char, 64> buffer{};
  const auto part = [&](std::int64_t unit, std::int64_t modulus) {
    return static_cast<int>(rest / unit % modulus);
  };
  int n = std::snprintf(buffer.data(), buffer.size(), "%04lld-%02u-%02uT%02d:%02d:%02d",
                        static_cast<long long>(date.year), date.month, date.day, part(3'600'000, 24),
                        part(60'000, 60), part(1'000, 60));
  std::string out(buffer.data(), static_cast<std::size_t>(n));
  if (micro) {
    n = std::snprintf(buffer.data(), buffer.size(), ".%03d000", part(1, 1000));
    out.append(buffer.data(), static_cast<std::size_t>(n));
  }
  out.push_back('Z');
  return out;
}

}  // namespace

std::string rfc3339(std::int64_t unix_ms) {
  return format_time(unix_ms, false);
}

std::string rfc3339_micro(std::int64_t unix_ms) {
  return format_time(unix_ms, true);
}

std::string encode_binding(const fb::Intent& intent) {
  return encode_binding(intent, text(intent.resource_version()));
}

std::string encode_binding(const fb::Intent& intent, std::string_view resource_version) {
  Writer w(384);
  w.open().field("apiVersion", "v1").field("kind", "Binding").open("metadata");
  w.field("namespace", intent.namespace_()).field("name", intent.name());
  w.field_unless_empty("uid", text(intent.uid_text()))
      .field_unless_empty("resourceVersion", resource_version);
  if (intent.annotations() != nullptr && intent.annotations()->size() > 0) {
    w.open("annotations");
    for (const fb::KeyValue* kv : *intent.annotations()) w.field(text(kv->key()), kv->value());
    w.close();
  }
  w.close().open("target").field("kind", "Node").field("name", intent.node()).close().close();
  return w.finish();
}

std::string encode_event(const fb::Intent& intent, std::string_view instance) {
  const fb::EventNote* event = intent.event();
  if (event == nullptr) return {};
  const std::string_view name_space = text(intent.namespace_());
  Writer w(1024);
  w.open().field("apiVersion", "events.k8s.io/v1").field("kind", "Event").open("metadata");
  w.field("namespace", name_space.empty() ? "default" : name_space).field("name", event->name()).close();
  w.field("eventTime", rfc3339_micro(event->event_ms()));
  w.field("reportingController", event->controller());
  w.field("reportingInstance", instance.substr(0, kInstanceBytes));
  w.field("action", event->action()).field("reason", event->reason());
  const std::string_view kind = text(event->regarding_kind());
  const std::string_view version = text(event->regarding_api_version());
  w.open("regarding").field("apiVersion", version.empty() ? "v1" : version);
  w.field("kind", kind.empty() ? "Pod" : kind).field_unless_empty("namespace", name_space);
  w.field("name", intent.name());
  w.field_unless_empty("uid", text(intent.uid_text()));
  w.field_unless_empty("resourceVersion", text(intent.resource_version())).close();
  w.field("note", event->note()).field("type", event->type()).close();
  return w.finish();
}

std::string encode_status_patch(const fb::Intent& intent) {
  Writer w(512);
  w.open();
  if (const std::string_view uid = text(intent.uid_text()); !uid.empty()) {
    w.open("metadata").field("uid", uid).close();
  }
  w.open("status");
  if (const fb::PodCondition* condition = intent.condition(); condition != nullptr) {
    w.open("conditions", '[').open().field("type", condition->type()).field("status", condition->status());
    w.field("reason", condition->reason()).field("message", condition->message());
    if (condition->transition_ms() != 0) w.field("lastTransitionTime", rfc3339(condition->transition_ms()));
    w.close().close(']');
  }
  if (intent.has_nominated_node()) {
    const std::string_view node = text(intent.nominated_node());
    if (node.empty()) {
      w.null("nominatedNodeName");
    } else {
      w.field("nominatedNodeName", node);
    }
  }
  w.close().close();
  return w.finish();
}

std::string encode_eviction(const fb::Intent& intent) {
  Writer w(256);
  w.open().field("apiVersion", "policy/v1").field("kind", "Eviction").open("metadata");
  w.field("namespace", intent.namespace_()).field("name", intent.name()).close();
  if (const std::string_view uid = text(intent.uid_text()); !uid.empty()) {
    w.open("deleteOptions").open("preconditions").field("uid", uid).close().close();
  }
  w.close();
  return w.finish();
}

std::string encode_delete_options(const fb::Intent& intent) {
  Writer w(128);
  w.open().field("apiVersion", "v1").field("kind", "DeleteOptions");
  if (const std::string_view uid = text(intent.uid_text()); !uid.empty()) {
    w.open("preconditions").field("uid", uid).close();
  }
  w.close();
  return w.finish();
}

}  // namespace troupe
