#include "unit/bridge_write/fake_lease_api.hpp"

#include <nlohmann/json.hpp>

namespace troupe::test {
namespace {

using nlohmann::json;

constexpr const char* kCollection = "/apis/coordination.k8s.io/v1/namespaces/koordinator-system/leases";

HttpResponse answer(int status, std::string body = "{}") {
  return {status, std::move(body), {}};
}

}  // namespace

std::string LeaseServer::body() const {
  return encode_lease(lease->record, lease->metadata, {}, {});
}

void LeaseServer::notify(const char* type) {
  const std::string line = std::string(R"({"type":")") + type + R"(","object":)" + body() + "}";
  for (const auto& [id, take] : watches) take(line);
}

void LeaseServer::erase() {
  if (!lease) return;
  const json metadata = {{"resourceVersion", std::to_string(++version)}, {"uid", lease->uid}};
  lease->metadata = metadata.dump();
  notify("DELETED");
  lease.reset();
}

HttpResponse LeaseServer::handle(const HttpRequest& request) {
  if (request.path.ends_with("/events")) {
    events.push_back(json::parse(request.body).at("message"));
    return answer(201);
  }
  const std::string path = std::string(kCollection) + "/koord-scheduler";
  if (request.method == "GET") return request.path == path && lease ? answer(200, body()) : answer(404);
  const json sent = json::parse(request.body);
  const json& spec = sent.at("spec");
  LeaseObject object;
  object.record = {spec.value("holderIdentity", ""), spec.at("leaseDurationSeconds"), spec.at("acquireTime"),
                   spec.at("renewTime"), spec.at("leaseTransitions")};
  json metadata = sent.at("metadata");
  if (request.method == "POST") {
    if (request.path != kCollection || lease) return answer(409);
    metadata["uid"] = "lease-uid-" + std::to_string(version);
  } else {
    if (request.path != path || !lease) return answer(404);
    if (metadata.at("resourceVersion") != lease->resource_version) return answer(409);
  }
  object.resource_version = std::to_string(++version);
  object.uid = metadata.at("uid");
  metadata["resourceVersion"] = object.resource_version;
  object.metadata = metadata.dump();
  lease = std::move(object);
  ++writes;
  notify(request.method == "POST" ? "ADDED" : "MODIFIED");
  return answer(request.method == "POST" ? 201 : 200, body());
}

void LeaseClient::send(HttpRequest request, std::function<void(HttpOutcome)> done) {
  const LeaseFault f = fault ? fault(request) : LeaseFault{};
  const auto back = [this, f, done = std::move(done)](HttpOutcome outcome) {
    timers_.at(timers_.now_ms() + f.back_ms, [done, outcome = std::move(outcome)] { done(outcome); });
  };
  timers_.at(timers_.now_ms() + f.there_ms, [this, f, back, request = std::move(request)] {
    if (f.lost_request) return back(tl::unexpected(HttpFailure{true, "connection reset"}));
    if (f.status != 0) return back(answer(f.status));
    const HttpResponse response = server_.handle(request);
    if (f.lost_answer) return back(tl::unexpected(HttpFailure{true, "connection reset"}));
    back(response);
  });
}

namespace {

struct Watch final : HttpStream {
  explicit Watch(LeaseServer& s) : server(s), id(s.next_watch++), open(std::make_shared<bool>(true)) {}
  ~Watch() override {
    *open = false;
    server.watches.erase(id);
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  LeaseServer& server;
  int id;
  std::shared_ptr<bool> open;
};

}  // namespace

std::unique_ptr<HttpStream> LeaseClient::stream(HttpRequest request, std::chrono::milliseconds,
                                                HttpStreamHandler handler) {
  auto watch = std::make_unique<Watch>(server_);
  const bool right = request.path.starts_with(std::string(kCollection) + "?watch=true&") &&
                     request.path.find("fieldSelector=metadata.name%3Dkoord-scheduler") != std::string::npos;
  const int refused = right ? refuse_watch : 400;
  if (refused != 0) {
    timers_.at(timers_.now_ms() + 1, [open = watch->open, refused, call = handler.refused] {
      if (*open) call(refused, "");
    });
    return watch;
  }
  auto last_ms = std::make_shared<std::int64_t>(0);  // lines keep their order
  server_.watches[watch->id] = [this, open = watch->open, last_ms, call = handler.line](std::string line) {
    *last_ms = std::max(*last_ms, timers_.now_ms() + (watch_delay ? watch_delay() : 1));
    timers_.at(*last_ms, [open, call, line = std::move(line)] {
      if (*open) call(line);
    });
  };
  if (server_.lease) {
    const std::string line = R"({"type":"ADDED","object":)" + server_.body() + "}";
    server_.watches[watch->id](line);
  }
  return watch;
}

}  // namespace troupe::test
