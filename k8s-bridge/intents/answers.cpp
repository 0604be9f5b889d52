#include "k8s-bridge/intents/answers.hpp"

#include <simdjson.h>

namespace troupe {
namespace {

namespace json = simdjson::dom;

constexpr std::size_t kMaxMessage = 1024;

std::string string_at(const json::element& object, std::string_view key) {
  std::string_view value;
  if (object[key].get(value) != simdjson::SUCCESS) return {};
  return std::string(value);
}

}  // namespace

Result<PodState> read_pod_state(std::string_view body) {
  const auto bad = [](std::string_view field) {
    return fail({ErrorCode::invalid, "the API server's answer is not a pod", "", std::string(field), ""});
  };
  json::parser parser;
  json::element pod;
  if (parser.parse(body.data(), body.size()).get(pod) != simdjson::SUCCESS) return bad("");
  json::element metadata;
  if (pod["metadata"].get(metadata) != simdjson::SUCCESS) return bad("metadata");
  PodState state;
  state.uid = string_at(metadata, "uid");
  if (state.uid.empty()) return bad("metadata.uid");
  state.resource_version = string_at(metadata, "resourceVersion");
  if (state.resource_version.empty()) return bad("metadata.resourceVersion");
  if (metadata["generation"].get(state.generation) != simdjson::SUCCESS) state.generation = 0;
  state.deleting = !string_at(metadata, "deletionTimestamp").empty();
  json::element spec;
  if (pod["spec"].get(spec) == simdjson::SUCCESS) state.node_name = string_at(spec, "nodeName");
  return state;
}

std::string status_message(std::string_view body) {
  json::parser parser;
  json::element status;
  std::string message;
  if (parser.parse(body.data(), body.size()).get(status) == simdjson::SUCCESS)
    message = string_at(status, "message");
  if (message.empty()) message = body;
  if (message.size() > kMaxMessage) {
    std::size_t end = kMaxMessage;
    while (end > 0 && (static_cast<unsigned char>(message[end]) & 0xC0U) == 0x80U) --end;  // whole characters
    message.resize(end);
  }
  return message;
}

std::int64_t status_retry_after_ms(std::string_view body) {
  json::parser parser;
  json::element status;
  std::int64_t seconds = 0;
  if (parser.parse(body.data(), body.size()).get(status) != simdjson::SUCCESS) return 0;
  if (status["details"]["retryAfterSeconds"].get(seconds) != simdjson::SUCCESS || seconds < 0) return 0;
  return seconds * 1000;
}

}  // namespace troupe
