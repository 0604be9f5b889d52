#include "ops/api/api.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <utility>

#include "messages/fb/query_generated.h"
#include "messages/json_text.hpp"
#include "ops/metrics/metrics.hpp"

namespace troupe {
namespace {

constexpr std::chrono::seconds kQueryLimit{10};

ApiResponse text_response(int status, std::string body) {
  return {status, "text/plain; charset=utf-8", std::move(body), {}};
}

ApiResponse json_error(int status, std::string_view why) {
  std::string body = "{\"error\":";
  append_json_string(body, why);
  body += "}\n";
  return {status, "application/json", std::move(body), {}};
}

std::uint32_t limit_of(const ApiRequest& request) {
  const auto it = request.query.find("limit");
  std::uint32_t limit = 0;
  if (it != request.query.end())
    std::from_chars(it->second.data(), it->second.data() + it->second.size(), limit);
  return limit;
}

/// The path segments after `prefix`: {}, {name} or {namespace, name}.
std::pair<std::string, std::string> object_of(const ApiRequest& request, std::string_view prefix) {
  std::string_view rest = std::string_view(request.path).substr(std::min(prefix.size(), request.path.size()));
  while (rest.starts_with('/')) rest.remove_prefix(1);
  const std::size_t slash = rest.find('/');
  if (slash == std::string_view::npos) return {{}, std::string(rest)};
  return {std::string(rest.substr(0, slash)), std::string(rest.substr(slash + 1))};
}

ApiResponse ask(Service& service, std::string_view verb, const std::string& ns, const std::string& name,
                std::uint32_t limit) {
  auto answer = service.query(verb, ns, name, limit, kQueryLimit);
  if (answer) return {200, "application/json", *answer + "\n", {}};
  return json_error(answer.error().code == ErrorCode::not_found ? 404 : 503, answer.error().what);
}

}  // namespace

std::string event_json(const Message& event) {
  const auto& e = event.as<fb::PublicEvent>();
  std::string out = "{\"type\":";
  append_json_string(out, std::string(text(e.area())) + "." + std::string(text(e.type())));
  out += ",\"timeMs\":" + std::to_string(e.time_ms());
  const std::pair<const char*, std::string_view> fields[] = {{"namespace", text(e.namespace_())},
                                                             {"name", text(e.name())},
                                                             {"uid", text(e.uid())},
                                                             {"node", text(e.node())},
                                                             {"reason", text(e.reason())},
                                                             {"message", text(e.message())}};
  for (const auto& [key, value] : fields) {
    if (value.empty()) continue;
    out.append(",\"").append(key).append("\":");
    append_json_string(out, value);
  }
  return out + "}";
}

void register_api(HttpServer& server, Service& service, const std::string& profile) {
  server.route("/healthz", [&service](const ApiRequest&) {
    const std::string failure = service.failure();
    return failure.empty() ? text_response(200, "ok\n") : text_response(500, failure + "\n");
  });
  server.route("/livez", [&service](const ApiRequest&) {
    const std::string failure = service.failure();
    return failure.empty() ? text_response(200, "ok\n") : text_response(500, failure + "\n");
  });
  server.route("/readyz", [&service](const ApiRequest&) {
    const Readiness r = service.readiness();
    return text_response(r.ready ? 200 : 503, r.why + "\n");
  });
  server.route("/metrics", [&service, profile](const ApiRequest&) {
    MetricsInput in;
    in.profile = profile;
    in.placement = service.placement_stats();
    in.hosts = service.host_stats();
    in.store = service.store_stats();
    in.port = service.port_stats();
    in.rejected_objects = service.rejected_objects();
    in.quarantined = service.quarantined().size();
    in.leader = service.leading();
    in.ready = service.readiness().ready;
    return ApiResponse{200, "text/plain; version=0.0.4; charset=utf-8", metrics_text(in), {}};
  });
  for (const std::string verb : {"nodes", "pods", "pending", "decisions", "explain", "explain-text"}) {
    const std::string path = "/api/v1/" + verb;
    const ApiHandler handler = [&service, verb, path](const ApiRequest& request) {
      const auto [ns, name] = object_of(request, path);
      return ask(service, verb, ns, name, limit_of(request));
    };
    server.route(path, handler);
    server.route(path + "/*", handler);
  }
  server.route("/api/v1/events", [&service](const ApiRequest&) {
    ApiResponse response;
    response.content_type = "text/event-stream";
    response.stream = [&service](std::shared_ptr<BodyStream> stream) {
      service.events().subscribe(true, [stream = std::move(stream)](const Message& event) {
        return stream->write("data: " + event_json(event) + "\n\n");
      });
    };
    return response;
  });
}

}  // namespace troupe
