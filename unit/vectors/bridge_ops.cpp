// List and watch (spec 5.10).
#include <cstdlib>
#include <optional>
#include <stdexcept>

#include "k8s-bridge/reflect/reflector_logic.hpp"
#include "unit/vectors/vectors.hpp"

namespace troupe::vectors {
namespace {

constexpr std::int64_t kStart = 1'000'000;
constexpr std::int64_t kLater = kStart + 60'000;  // a watch that has lasted

ListChunk chunk(std::string version) {
  ListChunk out;
  out.resource_version = std::move(version);
  return out;
}

WatchEvent event(WatchType type, std::string version, int code) {
  WatchEvent out;
  out.type = type;
  out.resource_version = std::move(version);
  out.status.code = code;
  return out;
}

// "410 Expired", "504 Too large resource version", "429": a status and its message.
ReflectFailure failure(const std::string& outcome) {
  ReflectFailure out;
  out.http_status = std::atoi(outcome.c_str());
  out.status.code = out.http_status;
  const auto space = outcome.find(' ');
  if (space != std::string::npos) out.status.message = outcome.substr(space + 1);
  return out;
}

bool begins(std::string& text, std::string_view start) {
  if (!text.starts_with(start)) return false;
  text.erase(0, start.size());
  return true;
}

void watch_from(ReflectorLogic& logic, const std::string& version) {
  Reflected out;
  logic.start();
  logic.page(chunk(version), kStart, out);
  logic.watch_started(kStart);
}

NextRequest after_watch(ReflectorLogic& logic, std::string outcome) {
  Reflected out;
  while (begins(outcome, "BOOKMARK ")) {
    const auto end = outcome.find(" then ");
    logic.event(event(WatchType::bookmark, outcome.substr(0, end), 0), kLater, out);
    if (end == std::string::npos) break;
    outcome.erase(0, end + 6);
  }
  if (begins(outcome, "ERROR event code ")) {
    const auto next = logic.event(event(WatchType::error, {}, std::atoi(outcome.c_str())), kLater, out);
    return next.value();
  }
  if (outcome.starts_with("closed within")) return logic.watch_ended(true, kStart + 500);
  if (outcome.starts_with("closed")) return logic.watch_ended(true, kLater);
  if (std::atoi(outcome.c_str()) == 0) return logic.watch_ended(false, kStart + 1);  // refused, reset, silent
  return logic.watch_refused(failure(outcome), kLater);
}

Json answer(const NextRequest& next, bool with_version) {
  Json out = {{"do", next.ask == NextRequest::Ask::list ? "list" : "watch"}};
  if (with_version) out["resourceVersion"] = next.resource_version;
  if (next.delay_ms > 0) out["afterBackoff"] = true;
  return out;
}

Json run_watch_outcome(const Json& row, const Json& /*given*/) {
  ReflectorLogic logic(fb::ObjectKind::Pod, {});
  const std::string outcome = row.at("outcome");
  if (row.at("phase") == "watch") {
    watch_from(logic, row.at("lastResourceVersion"));
    return answer(after_watch(logic, outcome), true);
  }
  const std::string version = row.at("resourceVersion");
  if (version.empty() || version == "0") {
    logic.start();
  } else {
    watch_from(logic, version);
    Reflected out;
    logic.event(event(WatchType::error, {}, 410), kLater, out);
  }
  if (outcome != "ok") return answer(logic.list_failed(failure(outcome), kLater), true);
  Reflected out;
  return answer(logic.page(chunk("700"), kLater, out), false);
}

Json run_rv_reached(const Json& row, const Json& /*given*/) {
  return version_reached(row.at(0).get<std::string>(), row.at(1).get<std::string>());
}

const bool watch_outcome = register_op("watch_outcome", run_watch_outcome);
const bool rv_reached = register_op("rv_reached", run_rv_reached);

}  // namespace
}  // namespace troupe::vectors
