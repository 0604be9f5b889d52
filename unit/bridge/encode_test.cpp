#include "k8s-bridge/decode/encode.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "messages/message.hpp"

namespace troupe {
namespace {

using Json = nlohmann::json;

struct Event {
  std::string name = {};
  std::string type = {};
  std::string reason = {};
  std::string action = {};
  std::string note = {};
  std::string controller = {};
  std::string kind = {};
  std::string version = {};
  std::int64_t ms = 0;
};

struct Condition {
  std::string type, status, reason, message;
  std::int64_t transition_ms = 0;
};

// An intent for pod default/web-0 on node n1.
struct Spec {
  std::string name_space = "default";
  std::string name = "web-0";
  std::vector<std::pair<std::string, std::string>> annotations = {};
  std::optional<Event> event = {};
  std::optional<Condition> condition = {};
  std::optional<std::string> nominated = {};
};

Message intent(const Spec& spec) {
  flatbuffers::FlatBufferBuilder b;
  std::vector<flatbuffers::Offset<fb::KeyValue>> annotations;
  for (const auto& [k, v] : spec.annotations) {
    annotations.push_back(fb::CreateKeyValueDirect(b, k.c_str(), v.c_str()));
  }
  flatbuffers::Offset<fb::EventNote> event;
  if (const auto& e = spec.event) {
    event = fb::CreateEventNoteDirect(b, e->name.c_str(), e->ms, e->type.c_str(), e->reason.c_str(),
                                      e->action.c_str(), e->note.c_str(), e->controller.c_str(),
                                      e->kind.c_str(), e->version.c_str());
  }
  flatbuffers::Offset<fb::PodCondition> condition;
  if (const auto& c = spec.condition) {
    condition = fb::CreatePodConditionDirect(b, c->type.c_str(), c->status.c_str(), c->reason.c_str(),
                                             c->message.c_str(), c->transition_ms);
  }
  const auto wire_annotations = b.CreateVector(annotations);
  const auto name_space = b.CreateString(spec.name_space);
  const auto name = b.CreateString(spec.name);
  const auto uid = b.CreateString("3f1c2b4a-0001-4abc-8def-00ff00ff00ff");
  const auto version = b.CreateString("77");
  const auto node = b.CreateString("n1");
  const auto nominated = b.CreateString(spec.nominated.value_or(""));
  fb::IntentBuilder i(b);
  i.add_namespace_(name_space);
  i.add_name(name);
  i.add_uid_text(uid);
  i.add_resource_version(version);
  i.add_node(node);
  i.add_annotations(wire_annotations);
  if (spec.event) i.add_event(event);
  if (spec.condition) i.add_condition(condition);
  i.add_nominated_node(nominated);
  i.add_has_nominated_node(spec.nominated.has_value());
  b.Finish(i.Finish());
  return {Kind::intent, b};
}

TEST(EncodeBinding, CarriesIdentityTargetAndAnnotations) {
  const Message m =
      intent({.annotations = {{"scheduling.koordinator.sh/device-allocated", R"({"gpu":[{"minor":0}]})"}}});
  EXPECT_EQ(Json::parse(encode_binding(m.as<fb::Intent>())), Json::parse(R"({
    "apiVersion": "v1", "kind": "Binding",
    "metadata": {"namespace": "default", "name": "web-0", "uid": "3f1c2b4a-0001-4abc-8def-00ff00ff00ff",
                 "resourceVersion": "77",
                 "annotations": {"scheduling.koordinator.sh/device-allocated": "{\"gpu\":[{\"minor\":0}]}"}},
    "target": {"kind": "Node", "name": "n1"}})"));
  const Json fresh = Json::parse(encode_binding(m.as<fb::Intent>(), "78"));
  EXPECT_EQ(fresh["metadata"]["resourceVersion"], "78");
}

TEST(EncodeEvent, NamesPodTimeAndReporter) {
  const Message m = intent({.event = Event{"web-0.17a", "Normal", "Scheduled", "Binding",
                                           "Successfully assigned default/web-0 to n1", "koord-scheduler", "",
                                           "", 1782898200123}});
  EXPECT_EQ(Json::parse(encode_event(m.as<fb::Intent>(), "koord-scheduler-host")), Json::parse(R"({
    "apiVersion": "events.k8s.io/v1", "kind": "Event",
    "metadata": {"namespace": "default", "name": "web-0.17a"},
    "eventTime": "2026-07-01T09:30:00.123000Z", "reportingController": "koord-scheduler",
    "reportingInstance": "koord-scheduler-host", "action": "Binding", "reason": "Scheduled",
    "regarding": {"apiVersion": "v1", "kind": "Pod", "namespace": "default", "name": "web-0",
                  "uid": "3f1c2b4a-0001-4abc-8def-00ff00ff00ff", "resourceVersion": "77"},
    "note": "Successfully assigned default/web-0 to n1", "type": "Normal"})"));
}

TEST(EncodeEvent, OfAClusterScopedObjectGoesToDefault) {
  const Message m = intent({.name_space = "", .name = "n1", .event = Event{.kind = "Node", .version = "v1"}});
  const Json j = Json::parse(encode_event(m.as<fb::Intent>(), std::string(200, 'x')));
  EXPECT_EQ(j["metadata"]["namespace"], "default");
  EXPECT_EQ(j["regarding"]["kind"], "Node");
  EXPECT_FALSE(j["regarding"].contains("namespace"));
  EXPECT_EQ(j["reportingInstance"], std::string(128, 'x'));
}

TEST(EncodeEvent, WithoutAnEventIsEmpty) {
  const Message m = intent({});
  EXPECT_EQ(encode_event(m.as<fb::Intent>(), "x"), "");
}

TEST(EncodeStatusPatch, ConditionAndNomination) {
  const Message m = intent({.condition = Condition{"PodScheduled", "False", "Unschedulable",
                                                   "0/1 nodes are available: 1 \"x\".", 1782898200000},
                            .nominated = ""});
  EXPECT_EQ(Json::parse(encode_status_patch(m.as<fb::Intent>())), Json::parse(R"({
    "metadata": {"uid": "3f1c2b4a-0001-4abc-8def-00ff00ff00ff"},
    "status": {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                               "message": "0/1 nodes are available: 1 \"x\".",
                               "lastTransitionTime": "2026-07-01T09:30:00Z"}],
               "nominatedNodeName": null}})"));
}

TEST(EncodeStatusPatch, LeavesOutWhatTheIntentDoesNotSay) {
  const Message m = intent({.nominated = "n2"});
  EXPECT_EQ(Json::parse(encode_status_patch(m.as<fb::Intent>())), Json::parse(R"({
    "metadata": {"uid": "3f1c2b4a-0001-4abc-8def-00ff00ff00ff"}, "status": {"nominatedNodeName": "n2"}})"));
}

TEST(EncodeEviction, CarriesTheUidAsPrecondition) {
  const Message m = intent({});
  EXPECT_EQ(Json::parse(encode_eviction(m.as<fb::Intent>())), Json::parse(R"({
    "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"namespace": "default", "name": "web-0"},
    "deleteOptions": {"preconditions": {"uid": "3f1c2b4a-0001-4abc-8def-00ff00ff00ff"}}})"));
  EXPECT_EQ(Json::parse(encode_delete_options(m.as<fb::Intent>())), Json::parse(R"({
    "apiVersion": "v1", "kind": "DeleteOptions",
    "preconditions": {"uid": "3f1c2b4a-0001-4abc-8def-00ff00ff00ff"}})"));
}

TEST(JsonString, EveryByteStringBecomesValidJson) {
  // Every pair of bytes: controls, quotes, lone continuation bytes, cut sequences.
  for (int a = 0; a < 256; ++a) {
    for (int b = 0; b < 256; ++b) {
      const std::string in{static_cast<char>(a), static_cast<char>(b)};
      std::string out;
      append_json_string(out, in);
      const Json j = Json::parse(out, nullptr, false);
      ASSERT_TRUE(j.is_string()) << a << " " << b;
      if (a < 0x80 && b < 0x80) {
        ASSERT_EQ(j.get<std::string>(), in);
      }
    }
  }
}

TEST(JsonString, KeepsValidUtf8) {
  for (const std::string in : {"gr\xC3\xBC\xC3\x9F", "\xE2\x82\xAC", "\xF0\x9F\x98\x80", "\xED\x9F\xBF"}) {
    std::string out;
    append_json_string(out, in);
    EXPECT_EQ(out, "\"" + in + "\"");
  }
  // an overlong slash, a surrogate, and a code point beyond Unicode
  for (const std::string in : {"\xE0\x80\xAF", "\xED\xA0\x80", "\xF4\x90\x80\x80"}) {
    std::string out;
    append_json_string(out, in);
    EXPECT_EQ(Json::parse(out).get<std::string>().substr(0, 3), "\xEF\xBF\xBD");
  }
}

TEST(Rfc3339, KnownInstants) {
  EXPECT_EQ(rfc3339(0), "1970-01-01T00:00:00Z");
  EXPECT_EQ(rfc3339(951782400000), "2000-02-29T00:00:00Z");
  EXPECT_EQ(rfc3339(4107542399000), "2100-02-28T23:59:59Z");
  EXPECT_EQ(rfc3339(4107542400000), "2100-03-01T00:00:00Z");
  EXPECT_EQ(rfc3339(-1), "1969-12-31T23:59:59Z");
  EXPECT_EQ(rfc3339_micro(1782898200007), "2026-07-01T09:30:00.007000Z");
}

}  // namespace
}  // namespace troupe
