#include "k8s-bridge/lease/lease_object.hpp"

#include <simdjson.h>

#include "messages/json_text.hpp"

namespace troupe {
namespace {

namespace json = simdjson::dom;

std::string string_at(const json::element& object, std::string_view key) {
  std::string_view value;
  return object[key].get(value) == simdjson::SUCCESS ? std::string(value) : std::string();
}

std::int64_t number_at(const json::element& object, std::string_view key) {
  std::int64_t value = 0;
  return object[key].get(value) == simdjson::SUCCESS ? value : 0;
}

void append_field(std::string& out, std::string_view key, std::string_view value) {
  if (value.empty()) return;
  out += '"';
  out += key;
  out += "\":";
  append_json_string(out, value);
  out += ',';
}

Result<LeaseObject> read_element(const json::element& lease) {
  json::element metadata;
  LeaseObject object;
  if (lease["metadata"].get(metadata) == simdjson::SUCCESS) {
    object.resource_version = string_at(metadata, "resourceVersion");
  }
  if (object.resource_version.empty()) {
    return fail(
        {ErrorCode::invalid, "the API server's answer is not a Lease", "", "metadata.resourceVersion", ""});
  }
  object.metadata = simdjson::minify(metadata);
  object.uid = string_at(metadata, "uid");
  json::element spec;
  if (lease["spec"].get(spec) == simdjson::SUCCESS) {
    object.record.holder = string_at(spec, "holderIdentity");
    object.record.duration_s = number_at(spec, "leaseDurationSeconds");
    object.record.acquire_time = string_at(spec, "acquireTime");
    object.record.renew_time = string_at(spec, "renewTime");
    object.record.transitions = number_at(spec, "leaseTransitions");
  }
  return object;
}

}  // namespace

Result<LeaseObject> read_lease(std::string_view text) {
  json::parser parser;
  json::element lease;
  if (parser.parse(text.data(), text.size()).get(lease) != simdjson::SUCCESS) {
    return fail({ErrorCode::invalid, "the API server's answer is not JSON", "", "", ""});
  }
  return read_element(lease);
}

Result<LeaseEvent> read_lease_event(std::string_view line) {
  json::parser parser;
  json::element event;
  json::element object;
  if (parser.parse(line.data(), line.size()).get(event) != simdjson::SUCCESS ||
      event["object"].get(object) != simdjson::SUCCESS) {
    return fail({ErrorCode::invalid, "not a watch event", "", "object", ""});
  }
  auto lease = read_element(object);
  if (!lease) return fail(std::move(lease.error()));
  return LeaseEvent{string_at(event, "type"), std::move(*lease)};
}

std::string encode_lease(const LeaseRecord& record, std::string_view metadata, std::string_view name_space,
                         std::string_view name) {
  std::string out;
  out.reserve(384 + metadata.size());
  out += R"({"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":)";
  if (metadata.empty()) {
    out += "{";
    append_field(out, "namespace", name_space);
    append_field(out, "name", name);
    out.back() = '}';
  } else {
    out += metadata;
  }
  out += R"(,"spec":{)";
  append_field(out, "holderIdentity", record.holder);  // nobody: absent (an empty one is not valid)
  append_field(out, "acquireTime", record.acquire_time);
  append_field(out, "renewTime", record.renew_time);
  out += "\"leaseDurationSeconds\":" + std::to_string(record.duration_s);
  out += ",\"leaseTransitions\":" + std::to_string(record.transitions);
  out += "}}";
  return out;
}

bool newer_version(std::string_view a, std::string_view b) {
  return a.size() != b.size() ? a.size() > b.size() : a > b;
}

}  // namespace troupe
