#include <gmock/gmock.h>

#include "messages/uid.hpp"
#include "unit/bridge/decode_support.hpp"

namespace troupe {
namespace {

using testing::HasSubstr;

TEST(WatchEvents, ObjectEvents) {
  Decoder d;
  for (const auto& [name, type] : {std::pair{"ADDED", WatchType::added},
                                   {"MODIFIED", WatchType::modified},
                                   {"DELETED", WatchType::deleted}}) {
    const auto e = d.watch_event(
        fb::ObjectKind::Pod,
        std::string(R"({"type":")") + name +
            R"(","object":{"metadata":{"name":"p","namespace":"ns","resourceVersion":"12"},"spec":{}}})");
    ASSERT_TRUE(e) << e.error().text();
    EXPECT_EQ(e->type, type);
    EXPECT_EQ(e->resource_version, "12");
    ASSERT_TRUE(e->object);
    EXPECT_EQ(identity(*e->object).name, "p");
  }
}

TEST(WatchEvents, OrderOfTheFieldsDoesNotMatter) {
  Decoder d;
  const auto e = d.watch_event(fb::ObjectKind::Node, R"({"object":{"status":{"allocatable":{"pods":"110"}},
    "metadata":{"resourceVersion":"9","name":"n1"},"kind":"Node"},"x":[1,{}],"type":"MODIFIED"})");
  ASSERT_TRUE(e) << e.error().text();
  ASSERT_TRUE(e->object);
  EXPECT_EQ(identity(*e->object).name, "n1");
  EXPECT_EQ(e->resource_version, "9");
}

TEST(WatchEvents, Bookmarks) {
  Decoder d;
  const auto plain = d.watch_event(
      fb::ObjectKind::Pod,
      R"({"type":"BOOKMARK","object":{"kind":"Pod","metadata":{"resourceVersion":"77","creationTimestamp":null}}})");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->type, WatchType::bookmark);
  EXPECT_EQ(plain->resource_version, "77");
  EXPECT_FALSE(plain->initial_events_end);
  const auto end = d.watch_event(fb::ObjectKind::Pod, R"({"type":"BOOKMARK","object":{"metadata":
    {"annotations":{"k8s.io/initial-events-end":"true"},"resourceVersion":"78"}}})");
  ASSERT_TRUE(end);
  EXPECT_TRUE(end->initial_events_end);
}

TEST(WatchEvents, ErrorsCarryTheStatus) {
  Decoder d;
  const auto e =
      d.watch_event(fb::ObjectKind::Pod, R"({"type":"ERROR","object":{"kind":"Status","status":"Failure",
    "message":"too old resource version: 1, oldest 2","reason":"Expired","code":410,
    "details":{
    "retryAfterSeconds" : 3}
}
})");
  ASSERT_TRUE(e);
  EXPECT_EQ(e->type, WatchType::error);
  EXPECT_EQ(e->status.code, 410);
  EXPECT_EQ(e->status.reason, "Expired");
  EXPECT_EQ(e->status.retry_after_seconds, 3);
  EXPECT_THAT(e->status.message, HasSubstr("too old"));
}

TEST(WatchEvents, AnObjectThatIsNotUnderstoodIsNamed) {
  Decoder d;
  const auto e = d.watch_event(fb::ObjectKind::Pod, R"({"type":"ADDED","object":{"spec":{"priority":[]},
    "metadata":{"name":"p","namespace":"ns","uid":"u","resourceVersion":"13"}}})");
  ASSERT_TRUE(e);
  ASSERT_FALSE(e->object);
  EXPECT_EQ(e->resource_version, "13");
  EXPECT_EQ(e->object.error().ref.uid, "u");
  EXPECT_EQ(e->object.error().error.text(), "expected a number, found a list: Pod ns/p: spec.priority");
}

TEST(WatchEvents, BrokenLines) {
  Decoder d;
  const std::string whole =
      R"({"type":"ADDED","object":{"metadata":{"name":"p","namespace":"ns"},"spec":{"containers":[{"name":"c"}]}}})";
  // Without its very last brace the object is whole; every other cut must be told.
  for (std::size_t n = 0; n + 1 < whole.size(); ++n) {
    EXPECT_FALSE(d.watch_event(fb::ObjectKind::Pod, whole.substr(0, n))) << whole.substr(0, n);
  }
  for (const char* line :
       {"null", "[]", R"({"type":"ADDED"})", R"({"type":"ADDED","object":3})",
        R"({"type":"SHRUNK","object":{}})", R"({"object":{}})", R"({"type":1,"object":{}})"}) {
    const auto e = d.watch_event(fb::ObjectKind::Pod, line);
    ASSERT_FALSE(e) << line;
    EXPECT_EQ(e.error().object, "watch of Pod");
  }
  EXPECT_TRUE(d.watch_event(fb::ObjectKind::Pod, whole));  // the decoder itself is fine
}

TEST(Lists, ObjectsVersionAndToken) {
  Decoder d;
  const auto l = d.list_chunk(fb::ObjectKind::Pod, R"({"kind":"PodList","apiVersion":"v1",
    "metadata":{"resourceVersion":"100","continue":"tok","remainingItemCount":2},
    "items":[{"metadata":{"name":"a","namespace":"x"}},{"metadata":{"name":"b","namespace":"x"}}]})");
  ASSERT_TRUE(l) << l.error().text();
  EXPECT_EQ(l->resource_version, "100");
  EXPECT_EQ(l->continue_token, "tok");
  ASSERT_EQ(l->objects.size(), 2U);
  EXPECT_EQ(identity(*l->objects[1]).name, "b");
}

TEST(Lists, OneBadItemHurtsNoOther) {
  Decoder d;
  const auto l = d.list_chunk(fb::ObjectKind::Pod, R"({"items":[
    {"metadata":{"name":"a","namespace":"x"}},
    {"spec":{"containers":[{"name":1,"later":{"more":[1,2,{"x":[]}]}},{"name":"z"}],"nodeName":"n"},
     "metadata":{"name":"b","namespace":"x","uid":"ub"}},
    7,
    {"metadata":{"name":"c","namespace":"x"},"spec":{"nodeName":"n1"}}],
    "metadata":{"resourceVersion":"5"}})");
  ASSERT_TRUE(l) << l.error().text();
  EXPECT_EQ(l->resource_version, "5");
  ASSERT_EQ(l->objects.size(), 4U);
  EXPECT_TRUE(l->objects[0]);
  ASSERT_FALSE(l->objects[1]);
  EXPECT_EQ(l->objects[1].error().ref.uid, "ub");
  EXPECT_EQ(l->objects[1].error().error.text(),
            "expected a string, found a number: Pod x/b: spec.containers[0].name");
  ASSERT_FALSE(l->objects[2]);
  EXPECT_EQ(l->objects[2].error().error.field, "items[2]");
  ASSERT_TRUE(l->objects[3]);
  EXPECT_EQ(text(l->objects[3]->as<fb::Pod>().node_name()), "n1");
}

TEST(Lists, BrokenBodies) {
  Decoder d;
  const std::string whole = R"({"items":[{"metadata":{"name":"a"}}],"metadata":{"resourceVersion":"5"}})";
  for (std::size_t n = 0; n < whole.size(); ++n) {
    EXPECT_FALSE(d.list_chunk(fb::ObjectKind::Pod, whole.substr(0, n))) << n;
  }
  EXPECT_TRUE(d.list_chunk(fb::ObjectKind::Pod, whole));
  EXPECT_FALSE(d.list_chunk(fb::ObjectKind::Pod, R"({"kind":"Status","code":500})"));
  EXPECT_FALSE(d.list_chunk(fb::ObjectKind::Pod, R"({"items":{}})"));
  EXPECT_EQ(d.list_chunk(fb::ObjectKind::Pod, R"({"items":null})")->objects.size(), 0U);
}

TEST(Statuses, BodyOfAnErrorAnswer) {
  Decoder d;
  const auto s =
      d.status(R"({"kind":"Status","status":"Failure","reason":"Conflict","message":"no","code":409})");
  ASSERT_TRUE(s);
  EXPECT_EQ(s->code, 409);
  EXPECT_EQ(s->reason, "Conflict");
  EXPECT_TRUE(d.status(R"({"code":"x","message":[]})"));
  EXPECT_FALSE(d.status("<html>"));
}

TEST(DecodeNode, EveryField) {
  const Message m = decoded(fb::ObjectKind::Node, R"({
    "metadata": {"name": "n1", "uid": "3f1c2b4a-0001-4abc-8def-00ff00ff00ff", "resourceVersion": "5",
                 "creationTimestamp": "2026-07-01T09:30:00Z", "labels": {"z": "1"},
                 "annotations": {"node.koordinator.sh/a": "x", "other": "y"}},
    "spec": {"unschedulable": true, "podCIDR": "10.0.0.0/24",
             "taints": [{"key": "k", "value": "v", "effect": "NoSchedule", "timeAdded": "2026-07-01T09:30:00Z"},
                        {"key": "soft", "effect": "PreferNoSchedule"}]},
    "status": {"capacity": {"cpu": "9"},
               "allocatable": {"pods": "110", "cpu": "7900m", "memory": "31Gi", "koordinator.sh/batch-cpu": "4k",
                               "gizmo": "1", "a.com/neg": "-3"},
               "conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-07-01T09:30:00Z"}],
               "images": [{"names": ["app:1", "app@sha256:ab"], "sizeBytes": 1000}, {"sizeBytes": 5}]}})");
  const auto& node = m.as<fb::Node>();
  EXPECT_EQ(text(node.name()), "n1");
  EXPECT_EQ(PodUid::from(node.uid()).text(), "3f1c2b4a-0001-4abc-8def-00ff00ff00ff");
  EXPECT_EQ(text(node.resource_version()), "5");
  EXPECT_EQ(node.creation_ms(), 1782898200000);
  EXPECT_TRUE(node.unschedulable());
  EXPECT_EQ(pairs(node.annotations()), (std::map<std::string, std::string>{{"node.koordinator.sh/a", "x"}}));
  ASSERT_EQ(node.taints()->size(), 2U);
  EXPECT_EQ(text(node.taints()->Get(0)->value()), "v");
  EXPECT_EQ(node.taints()->Get(1)->effect(), fb::TaintEffect::PreferNoSchedule);
  EXPECT_EQ(amounts(node.allocatable()),
            (std::map<std::string, std::int64_t>{{"a.com/neg", 0},
                                                 {"cpu", 7900},
                                                 {"kubernetes.io/batch-cpu", 4000},
                                                 {"memory", 33285996544},
                                                 {"pods", 110}}));
  ASSERT_EQ(node.images()->size(), 2U);
  EXPECT_EQ(node.images()->Get(0)->size_bytes(), 1000);
  EXPECT_EQ(node.images()->Get(0)->names()->size(), 2U);
  EXPECT_EQ(text(node.conditions()->Get(0)->status()), "True");
}

TEST(DecodeNode, CapacityStandsInForAllocatable) {
  const Message m = decoded(fb::ObjectKind::Node,
                            R"({"metadata":{"name":"n"},"status":{"capacity":{"cpu":"2","pods":10}}})");
  EXPECT_EQ(amounts(m.as<fb::Node>().allocatable()),
            (std::map<std::string, std::int64_t>{{"cpu", 2000}, {"pods", 10}}));
}

TEST(DecodeNode, Errors) {
  EXPECT_EQ(
      failure(fb::ObjectKind::Node, R"({"metadata":{"name":"n"},"spec":{"taints":[{"effect":"Never"}]}})"),
      "unknown effect \"Never\" | Node n | spec.taints[0].effect");
  EXPECT_EQ(
      failure(fb::ObjectKind::Node, R"({"metadata":{"name":"n"},"status":{"allocatable":{"cpu":"x"}}})"),
      "\"x\" is no quantity: its shape is wrong | Node n | status.allocatable.cpu");
  EXPECT_EQ(failure(fb::ObjectKind::Node, R"({"metadata":{"name":7}})"),
            "expected a string, found a number | Node | metadata.name");
}

TEST(DecodeSmallKinds, NamespaceAndPriorityClass) {
  const Message ns = decoded(fb::ObjectKind::Namespace,
                             R"({"metadata":{"name":"shop","resourceVersion":"3","labels":{"team":"a"}}})");
  EXPECT_EQ(text(ns.as<fb::Namespace>().name()), "shop");
  EXPECT_EQ(pairs(ns.as<fb::Namespace>().labels()), (std::map<std::string, std::string>{{"team", "a"}}));
  const Message pc =
      decoded(fb::ObjectKind::PriorityClass, R"({"metadata":{"name":"high","resourceVersion":"4"},
    "value":1000000,"globalDefault":true,"preemptionPolicy":"Never"})");
  EXPECT_EQ(pc.as<fb::PriorityClass>().value(), 1000000);
  EXPECT_TRUE(pc.as<fb::PriorityClass>().global_default());
  EXPECT_TRUE(pc.as<fb::PriorityClass>().preemption_never());
  EXPECT_EQ(identity(pc).kind, fb::ObjectKind::PriorityClass);
  EXPECT_EQ(identity(pc).resource_version, "4");
}

TEST(Gone, NamesTheObjectAndItsNode) {
  const Message pod = decoded_pod(
      R"({"metadata":{"name":"p","namespace":"x","uid":"3f1c2b4a-0001-4abc-8def-00ff00ff00ff"},"spec":{"nodeName":"n"}})");
  const Message m = gone_message(pod);
  const auto& gone = m.as<fb::Gone>();
  EXPECT_EQ(m.kind(), Kind::gone);
  EXPECT_EQ(gone.kind(), fb::ObjectKind::Pod);
  EXPECT_EQ(text(gone.namespace_()), "x");
  EXPECT_EQ(text(gone.name()), "p");
  EXPECT_EQ(text(gone.node_name()), "n");
  EXPECT_EQ(PodUid::from(gone.uid()).text(), "3f1c2b4a-0001-4abc-8def-00ff00ff00ff");
}

TEST(Kinds, TableIsInTheOrderOfTheEnum) {
  for (const ObjectKindInfo& k : object_kinds()) EXPECT_EQ(info(k.kind).name, k.name);
  EXPECT_EQ(object_kinds().size(), 4U);
}

}  // namespace
}  // namespace troupe
