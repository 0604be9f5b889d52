#include "unit/bridge_write/fake_api.hpp"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "messages/fb/intent_generated.h"
#include "messages/uid.hpp"

namespace troupe::test {
namespace {

using nlohmann::json;

HttpResponse status_answer(int code, const std::string& message) {
  const json body = {{"kind", "Status"}, {"apiVersion", "v1"}, {"message", message}, {"code", code}};
  return {code, body.dump(), std::chrono::milliseconds(0)};
}

constexpr std::string_view kPods = "/api/v1/namespaces/ns/pods/";
constexpr std::string_view kEvents = "/apis/events.k8s.io/v1/namespaces/ns/events";

}  // namespace

FakePod& FakeApi::add_pod(const std::string& name) {
  FakePod pod;
  pod.name = name;
  char uid[40];
  std::snprintf(uid, sizeof uid, "00000000-0000-4000-8000-%012llx",
                static_cast<unsigned long long>(next_uid_++));
  pod.uid = uid;
  pod.version = ++version_;
  return pods_[name] = pod;
}

FakePod* FakeApi::find(const std::string& name) {
  const auto it = pods_.find(name);
  return it == pods_.end() ? nullptr : &it->second;
}

std::vector<SentRequest> FakeApi::sent(const std::string& method, const std::string& path_end) const {
  std::vector<SentRequest> found;
  for (const SentRequest& request : log) {
    if (request.method == method && request.path.ends_with(path_end)) found.push_back(request);
  }
  return found;
}

void FakeApi::answer(std::uint64_t flight, HttpOutcome outcome) {
  const auto it = flights_.find(flight);
  if (it == flights_.end()) return;  // aborted
  const auto done = std::move(it->second);
  flights_.erase(it);
  --in_flight;
  done(std::move(outcome));
}

void FakeApi::send(HttpRequest request, std::function<void(HttpOutcome)> done) {
  ++in_flight;
  most_in_flight = std::max(most_in_flight, in_flight);
  const std::uint64_t flight = next_flight_++;
  flights_[flight] = std::move(done);
  Fault f = fault ? fault(request) : Fault{};
  const bool admitted = !request.admit || request.admit();
  if (!admitted) f.kind = Fault::Kind::not_sent;
  if (f.kind != Fault::Kind::not_sent)
    log.push_back({timers_.now_ms(), request.method, request.path, request.body});
  const auto half = f.delay_ms / 2;
  timers_.at(timers_.now_ms() + half, [this, f, flight, request = std::move(request), half] {
    const auto reset = [this, flight] {
      answer(flight, tl::unexpected(HttpFailure{true, "connection reset"}));
    };
    const auto later = [this, half](std::function<void()> call) {
      timers_.at(timers_.now_ms() + half, std::move(call));
    };
    const HttpResponse wrong{f.status, status_answer(f.status, f.message).body,
                             std::chrono::milliseconds(f.retry_after_ms)};
    switch (f.kind) {
      case Fault::Kind::not_sent:
        return answer(flight, tl::unexpected(HttpFailure{false, "connection refused"}));
      case Fault::Kind::lost_request:
        return later(reset);
      case Fault::Kind::late:
        timers_.at(timers_.now_ms() + 3000, [this, request] { handle(request); });
        return later(reset);
      case Fault::Kind::lost_answer:
        handle(request);
        return later(reset);
      case Fault::Kind::answer_before:
        return later([this, flight, wrong] { answer(flight, wrong); });
      case Fault::Kind::answer_after:
        handle(request);
        return later([this, flight, wrong] { answer(flight, wrong); });
      case Fault::Kind::none: {
        const HttpResponse right = handle(request);
        return later([this, flight, right] { answer(flight, right); });
      }
    }
  });
}

std::unique_ptr<HttpStream> FakeApi::stream(HttpRequest, std::chrono::milliseconds, HttpStreamHandler) {
  return nullptr;
}

void FakeApi::abort() {
  while (!flights_.empty()) answer(flights_.begin()->first, tl::unexpected(HttpFailure{true, "aborted"}));
}

HttpResponse FakeApi::handle(const HttpRequest& request) {
  if (request.path == kEvents && request.method == "POST") return post_event(request);
  if (!request.path.starts_with(kPods)) return status_answer(404, "no such path " + request.path);
  std::string name = request.path.substr(kPods.size());
  std::string sub;
  if (const auto slash = name.find('/'); slash != std::string::npos) {
    sub = name.substr(slash + 1);
    name.resize(slash);
  }
  FakePod* pod = find(name);
  if (pod == nullptr) return status_answer(404, "pods \"" + name + "\" not found");
  if (request.method == "GET") {
    json body = {{"kind", "Pod"},
                 {"apiVersion", "v1"},
                 {"metadata",
                  {{"name", name},
                   {"namespace", "ns"},
                   {"uid", pod->uid},
                   {"resourceVersion", std::to_string(pod->version)},
                   {"generation", pod->generation}}},
                 {"spec", json::object()}};
    if (pod->deleting) body["metadata"]["deletionTimestamp"] = "2026-07-01T00:00:00Z";
    if (!pod->node.empty()) body["spec"]["nodeName"] = pod->node;
    return {200, body.dump(), std::chrono::milliseconds(0)};
  }
  if (pod->forbidden) return status_answer(403, "pods \"" + name + "\" is forbidden");
  if (sub == "binding") return bind(*pod, request);
  if (sub == "eviction") return evict(*pod, request);
  if (sub == "status" && request.method == "PATCH") return patch(*pod, request);
  if (sub.empty() && request.method == "DELETE") return erase(*pod, request);
  return status_answer(405, "method not allowed");
}

HttpResponse FakeApi::bind(FakePod& pod, const HttpRequest& request) {
  const json body = json::parse(request.body);
  const json& metadata = body.at("metadata");
  const std::string node = body.at("target").at("name");
  if (!metadata.contains("uid")) writes_without_uid = true;
  if (metadata.value("uid", pod.uid) != pod.uid)
    return status_answer(409, "Precondition failed: UID in precondition");
  if (metadata.value("resourceVersion", std::to_string(pod.version)) != std::to_string(pod.version)) {
    return status_answer(409, "Precondition failed: ResourceVersion in precondition");
  }
  if (pod.deleting)
    return status_answer(409, "pod " + pod.name + " is being deleted, cannot be assigned to a host");
  if (!pod.node.empty()) {
    return status_answer(409, "pod " + pod.name + " is already assigned to node \"" + pod.node + "\"");
  }
  pod.node = node;
  pod.nominated.clear();
  pod.conditions["PodScheduled"] = "True//";
  const json annotations = metadata.value("annotations", json::object());
  for (const auto& [key, value] : annotations.items()) pod.annotations[key] = value;
  change_spec(pod);
  applied.push_back({timers_.now_ms(), "bind", pod.uid, node});
  return status_answer(201, "");
}

void FakeApi::delete_now(FakePod& pod) {
  if (pod.keeps_running_when_deleted) {
    pod.deleting = true;
    touch(pod);
  } else {
    pods_.erase(std::string(pod.name));
  }
}

HttpResponse FakeApi::evict(FakePod& pod, const HttpRequest& request) {
  const json body = json::parse(request.body);
  const std::string uid =
      body.value("deleteOptions", json::object()).value("preconditions", json::object()).value("uid", "");
  if (uid.empty()) writes_without_uid = true;
  if (pod.several_budgets) {
    return status_answer(
        500,
        "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.");
  }
  if (uid != pod.uid) return status_answer(409, "Precondition failed: UID in precondition");
  if (!pod.deleting && pod.evictions_refused > 0) {
    --pod.evictions_refused;
    return status_answer(429, "Cannot evict pod as it would violate the pod's disruption budget.");
  }
  if (!pod.deleting) applied.push_back({timers_.now_ms(), "evict", pod.uid, ""});
  delete_now(pod);
  return status_answer(201, "");
}

HttpResponse FakeApi::erase(FakePod& pod, const HttpRequest& request) {
  const json body = json::parse(request.body);
  const std::string uid = body.value("preconditions", json::object()).value("uid", "");
  if (uid.empty()) writes_without_uid = true;
  if (uid != pod.uid) return status_answer(409, "Precondition failed: UID in precondition");
  if (!pod.deleting) applied.push_back({timers_.now_ms(), "delete", pod.uid, ""});
  delete_now(pod);
  return status_answer(200, "");
}

HttpResponse FakeApi::patch(FakePod& pod, const HttpRequest& request) {
  if (request.content_type != "application/strategic-merge-patch+json")
    return status_answer(415, "unsupported media type");
  const json body = json::parse(request.body);
  const std::string uid = body.value("metadata", json::object()).value("uid", "");
  if (uid.empty()) writes_without_uid = true;
  if (uid != pod.uid) return status_answer(409, "Precondition failed: UID in precondition");
  const json& status = body.at("status");
  std::string detail;
  for (const json& condition : status.value("conditions", json::array())) {
    detail = condition.value("reason", "");
    pod.conditions[condition.at("type")] =
        condition.value("status", "") + "/" + detail + "/" + condition.value("message", "");
  }
  if (status.contains("nominatedNodeName")) {
    pod.nominated = status["nominatedNodeName"].is_null() ? "" : std::string(status["nominatedNodeName"]);
  }
  touch(pod);
  applied.push_back({timers_.now_ms(), "patch", pod.uid, detail});
  return status_answer(200, "");
}

HttpResponse FakeApi::post_event(const HttpRequest& request) {
  const json body = json::parse(request.body);
  const std::string name = body.at("metadata").at("name");
  if (events.contains(name))
    return status_answer(409, "events.events.k8s.io \"" + name + "\" already exists");
  events[name] = request.body;
  applied.push_back({timers_.now_ms(), "event", name, body.value("reason", "")});
  return status_answer(201, "");
}

std::string numbered(const char* prefix, std::uint64_t n) {
  std::string name(prefix);
  name += std::to_string(n);
  return name;
}

IntentSpec intent_for(const FakePod& pod, std::uint64_t id, const std::string& kind) {
  IntentSpec spec;
  spec.id = id;
  spec.kind = kind;
  spec.name = pod.name;
  spec.uid = pod.uid;
  spec.version = std::to_string(pod.version);
  spec.generation = pod.generation;
  return spec;
}

Message make_intent(const IntentSpec& spec) {
  flatbuffers::FlatBufferBuilder b;
  fb::IntentKind kind = fb::IntentKind::Bind;
  for (const fb::IntentKind k : fb::EnumValuesIntentKind()) {
    if (spec.kind == fb::EnumNameIntentKind(k)) kind = k;
  }
  const auto owner = b.CreateString("owner");
  const auto ns = b.CreateString("ns");
  const auto name = b.CreateString(spec.name);
  const auto uid_text = b.CreateString(spec.uid);
  const auto version = b.CreateString(spec.version);
  const auto node = b.CreateString(spec.node);
  const auto nominated = b.CreateString(spec.nominated);
  flatbuffers::Offset<fb::EventNote> event;
  if (spec.event || kind == fb::IntentKind::Event) {
    char hex[24];
    std::snprintf(hex, sizeof hex, "%llx", static_cast<unsigned long long>(spec.id));
    const std::string event_name = spec.event_name.empty() ? spec.name + "." + hex : spec.event_name;
    event = fb::CreateEventNoteDirect(b, event_name.c_str(), spec.created_ms, "Normal", "Scheduled",
                                      "Binding", "Successfully assigned", "koord-scheduler");
  }
  flatbuffers::Offset<fb::PodCondition> condition;
  if (!spec.condition.empty()) {
    condition =
        fb::CreatePodConditionDirect(b, "PodScheduled", "False", spec.condition.c_str(), "no room", 0);
  }
  const fb::Uid uid = PodUid::parse(spec.uid).wire();
  fb::IntentBuilder intent(b);
  intent.add_id(spec.id);
  intent.add_kind(kind);
  intent.add_owner_kind(1);
  intent.add_owner_key(owner);
  intent.add_partition(spec.partition);
  intent.add_partition_epoch(spec.epoch);
  intent.add_after(spec.after);
  intent.add_namespace_(ns);
  intent.add_name(name);
  intent.add_uid(&uid);
  intent.add_uid_text(uid_text);
  intent.add_resource_version(version);
  intent.add_node(node);
  if (!condition.IsNull()) intent.add_condition(condition);
  if (spec.has_nominated) {
    intent.add_nominated_node(nominated);
    intent.add_has_nominated_node(true);
  }
  if (!event.IsNull()) intent.add_event(event);
  intent.add_created_ms(spec.created_ms);
  intent.add_generation(spec.generation);
  b.Finish(intent.Finish());
  return {Kind::intent, b};
}

}  // namespace troupe::test
