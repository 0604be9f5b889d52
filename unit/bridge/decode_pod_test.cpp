#include <gmock/gmock.h>

#include "messages/uid.hpp"
#include "unit/bridge/decode_support.hpp"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Amounts = std::map<std::string, std::int64_t>;

std::string with_spec(std::string_view spec, std::string_view status = "{}") {
  return std::string(R"({"metadata":{"name":"web-0","namespace":"shop"},"spec":)")
      .append(spec)
      .append(R"(,"status":)")
      .append(status)
      .append("}");
}

TEST(DecodePod, EveryField) {
  const Message m = decoded_pod(R"({
    "apiVersion": "v1", "kind": "Pod",
    "metadata": {
      "name": "web-0", "namespace": "shop", "uid": "3f1c2b4a-0001-4abc-8def-00ff00ff00ff",
      "resourceVersion": "4711", "generation": 3, "creationTimestamp": "2026-07-01T09:30:00Z",
      "deletionTimestamp": "2026-07-01T09:31:00Z",
      "labels": {"b": "2", "a": "1"},
      "annotations": {"koordinator.sh/x": "1", "node.koordinator.sh/y": "2", "notkoordinator.sh/z": "3",
                      "kubectl.kubernetes.io/last-applied-configuration": "{}"},
      "ownerReferences": [{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": "u1",
                           "controller": true, "blockOwnerDeletion": true}],
      "managedFields": [{"manager": "kubectl", "fieldsV1": {"f:metadata": {"f:labels": {}}}}]},
    "spec": {
      "schedulerName": "koord-scheduler", "nodeName": "n1", "priority": 1000, "preemptionPolicy": "Never",
      "schedulingGates": [{"name": "g1"}, {"name": "g2"}],
      "nodeSelector": {"zone": "z1", "disk": "ssd"},
      "tolerations": [{"key": "k", "operator": "Equal", "value": "v", "effect": "NoSchedule"},
                      {"operator": "Exists"}, {"key": "p", "effect": "PreferNoSchedule"}],
      "containers": [{"name": "app", "image": "reg:5000/app", "resources": {"requests": {"cpu": "1500m",
                      "memory": "1Gi", "nvidia.com/gpu": 2}},
                      "ports": [{"containerPort": 80}, {"containerPort": 81, "hostPort": 8081},
                                {"containerPort": 82, "hostPort": 8082, "protocol": "UDP", "hostIP": "10.0.0.1"}]}]},
    "status": {
      "phase": "Running", "startTime": "2026-07-01T09:30:05Z", "nominatedNodeName": "n2",
      "conditions": [{"type": "Ready", "status": "True"},
                     {"type": "PodScheduled", "status": "True", "reason": "r", "message": "m",
                      "lastTransitionTime": "2026-07-01T09:30:04Z"}]}})");
  const auto& pod = m.as<fb::Pod>();
  EXPECT_EQ(text(pod.namespace_()), "shop");
  EXPECT_EQ(text(pod.name()), "web-0");
  EXPECT_EQ(text(pod.uid_text()), "3f1c2b4a-0001-4abc-8def-00ff00ff00ff");
  EXPECT_EQ(PodUid::from(pod.uid()).text(), "3f1c2b4a-0001-4abc-8def-00ff00ff00ff");
  EXPECT_EQ(text(pod.resource_version()), "4711");
  EXPECT_EQ(pod.generation(), 3);
  EXPECT_EQ(pod.creation_ms(), 1782898200000);
  EXPECT_EQ(pod.deletion_ms(), 1782898260000);
  EXPECT_EQ(pod.start_ms(), 1782898205000);
  EXPECT_EQ(text(pod.labels()->Get(0)->key()), "a");  // sorted
  EXPECT_EQ(pairs(pod.labels()), (std::map<std::string, std::string>{{"a", "1"}, {"b", "2"}}));
  EXPECT_EQ(pairs(pod.annotations()),
            (std::map<std::string, std::string>{{"koordinator.sh/x", "1"}, {"node.koordinator.sh/y", "2"}}));
  EXPECT_EQ(text(pod.scheduler_name()), "koord-scheduler");
  EXPECT_EQ(text(pod.node_name()), "n1");
  EXPECT_EQ(text(pod.nominated_node_name()), "n2");
  EXPECT_EQ(pod.priority(), 1000);
  EXPECT_TRUE(pod.preemption_never());
  EXPECT_EQ(text(pod.phase()), "Running");
  EXPECT_THAT(texts(pod.scheduling_gates()), ElementsAre("g1", "g2"));
  EXPECT_EQ(text(pod.pinned_node()), "");
  ASSERT_NE(pod.scheduled_condition(), nullptr);
  EXPECT_EQ(text(pod.scheduled_condition()->status()), "True");
  EXPECT_EQ(text(pod.scheduled_condition()->reason()), "r");
  EXPECT_EQ(text(pod.scheduled_condition()->message()), "m");
  EXPECT_EQ(pod.scheduled_condition()->transition_ms(), 1782898204000);
  ASSERT_EQ(pod.owners()->size(), 1U);
  EXPECT_EQ(text(pod.owners()->Get(0)->kind()), "StatefulSet");
  EXPECT_TRUE(pod.owners()->Get(0)->controller());

  const fb::PodClass& c = class_of(m);
  EXPECT_EQ(amounts(c.requests()), (Amounts{{"cpu", 1500}, {"memory", 1073741824}, {"nvidia.com/gpu", 2}}));
  EXPECT_EQ(c.non_zero_cpu_milli(), 1500);
  EXPECT_EQ(c.non_zero_memory_bytes(), 1073741824);
  EXPECT_EQ(c.score_cpu_milli(), -1);
  EXPECT_EQ(text(c.node_selector()->Get(0)->key()), "disk");
  EXPECT_FALSE(c.has_required());
  ASSERT_EQ(c.tolerations()->size(), 3U);
  EXPECT_EQ(c.tolerations()->Get(1)->operator_(), fb::TolerationOperator::Exists);
  EXPECT_EQ(c.tolerations()->Get(1)->effect(), fb::TaintEffect::Any);
  EXPECT_EQ(c.tolerations()->Get(2)->operator_(), fb::TolerationOperator::Equal);
  EXPECT_EQ(c.tolerations()->Get(2)->effect(), fb::TaintEffect::PreferNoSchedule);
  ASSERT_EQ(c.host_ports()->size(), 2U);
  EXPECT_EQ(text(c.host_ports()->Get(0)->protocol()), "TCP");
  EXPECT_EQ(text(c.host_ports()->Get(1)->protocol()), "UDP");
  EXPECT_EQ(text(c.host_ports()->Get(1)->ip()), "10.0.0.1");
  EXPECT_THAT(texts(c.images()), ElementsAre("reg:5000/app:latest"));
}

TEST(DecodePod, NullCountsAsAbsent) {
  const Message m = decoded_pod(R"({
    "metadata": {"name": "p", "namespace": null, "uid": null, "labels": null, "annotations": null,
                 "ownerReferences": null, "creationTimestamp": null, "generation": null},
    "spec": {"nodeName": null, "priority": null, "tolerations": null, "nodeSelector": {"a": null},
             "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": null,
                                           "preferredDuringSchedulingIgnoredDuringExecution": null}},
             "overhead": null, "resources": null, "schedulingGates": null,
             "containers": [null, {"name": null, "resources": {"requests": {"cpu": null}}, "ports": null}]},
    "status": null})");
  EXPECT_EQ(text(m.as<fb::Pod>().namespace_()), "default");
  EXPECT_EQ(text(m.as<fb::Pod>().scheduler_name()), "default-scheduler");
  EXPECT_FALSE(m.as<fb::Pod>().uid()->hi() == 0 && m.as<fb::Pod>().uid()->lo() == 0);
  EXPECT_FALSE(class_of(m).has_required());
  EXPECT_EQ(class_of(m).non_zero_cpu_milli(), 100);  // the second container states 0
}

TEST(DecodePod, OverrideLabelNamesTheScheduler) {
  const Message m = decoded_pod(R"({"metadata": {"name": "p",
    "labels": {"scheduling.koordinator.sh/scheduler-name": "koord-scheduler"}},
    "spec": {"schedulerName": "default-scheduler"}})");
  EXPECT_EQ(text(m.as<fb::Pod>().scheduler_name()), "koord-scheduler");
  const Message empty = decoded_pod(R"({"metadata": {"name": "p",
    "labels": {"scheduling.koordinator.sh/scheduler-name": ""}}, "spec": {"schedulerName": "s"}})");
  EXPECT_EQ(text(empty.as<fb::Pod>().scheduler_name()), "s");
}

TEST(DecodePod, EqualSpecsShareClassBytes) {
  const std::string a = class_text(decoded_pod(R"({"metadata": {"name": "a", "labels": {"x": "1"}},
    "spec": {"nodeSelector": {"p": "1", "q": "2"}, "containers": [{"name": "c", "image": "i:1",
      "resources": {"requests": {"memory": "1Gi", "cpu": "1", "ephemeral-storage": "0"}}}]}})"));
  const std::string b = class_text(decoded_pod(R"({"spec": {"containers": [{"image": "i:1", "resources":
      {"limits": {"cpu": "4"}, "requests": {"cpu": "1000m", "memory": "1024Mi"}}, "name": "other"}],
      "nodeSelector": {"q": "2", "p": "1"}, "priority": 7}, "metadata": {"name": "b", "uid": "u"}})"));
  EXPECT_EQ(a, b);
  const std::string c = class_text(decoded_pod(R"({"metadata": {"name": "c"},
    "spec": {"nodeSelector": {"p": "1", "q": "2"}, "containers": [{"image": "i:1",
      "resources": {"requests": {"memory": "1Gi", "cpu": "1001m"}}}]}})"));
  EXPECT_NE(a, c);
}

TEST(DecodePod, RepeatedFieldsCountOnce) {
  const Message m = decoded_pod(R"({"metadata": {"name": "p", "labels": {"a": "1", "a": "2"}},
    "spec": {"containers": [{"image": "old:1", "resources": {"requests": {"cpu": "4"}},
                             "ports": [{"hostPort": 1}]}],
             "containers": [{"image": "new:1", "resources": {"requests": {"cpu": "1", "cpu": "2"}}}]}})");
  EXPECT_EQ(pairs(m.as<fb::Pod>().labels()), (std::map<std::string, std::string>{{"a", "2"}}));
  EXPECT_EQ(amounts(class_of(m).requests()), (Amounts{{"cpu", 2000}}));
  EXPECT_THAT(texts(class_of(m).images()), ElementsAre("new:1"));
  EXPECT_EQ(class_of(m).host_ports(), nullptr);
}

TEST(DecodePod, NodeAffinity) {
  const Message m = decoded_pod(with_spec(R"({"affinity": {"nodeAffinity": {
    "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
      {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]},
                            {"key": "cores", "operator": "Gt", "values": ["8"]},
                            {"key": "gpu", "operator": "Exists"}]},
      {"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["n9"]}]}, {}]},
    "preferredDuringSchedulingIgnoredDuringExecution": [
      {"weight": 7, "preference": {"matchExpressions": [{"key": "d", "operator": "DoesNotExist"}]}}]}}})"));
  const fb::PodClass& c = class_of(m);
  EXPECT_TRUE(c.has_required());
  ASSERT_EQ(c.required()->size(), 3U);
  const auto* first = c.required()->Get(0)->match_expressions();
  ASSERT_EQ(first->size(), 3U);
  EXPECT_EQ(text(first->Get(0)->key()), "zone");
  EXPECT_THAT(texts(first->Get(0)->values()), ElementsAre("a", "b"));
  EXPECT_EQ(first->Get(1)->operator_(), fb::SelectorOperator::Gt);
  EXPECT_EQ(first->Get(2)->operator_(), fb::SelectorOperator::Exists);
  EXPECT_EQ(c.required()->Get(1)->match_fields()->Get(0)->operator_(), fb::SelectorOperator::NotIn);
  EXPECT_EQ(c.required()->Get(2)->match_expressions(), nullptr);
  ASSERT_EQ(c.preferred()->size(), 1U);
  EXPECT_EQ(c.preferred()->Get(0)->weight(), 7);
  EXPECT_EQ(text(m.as<fb::Pod>().pinned_node()), "");
}

TEST(DecodePod, RequiredWithoutTermsMatchesNothing) {
  for (const char* list : {"{}", R"({"nodeSelectorTerms": []})"}) {
    const Message m = decoded_pod(with_spec(
        std::string(R"({"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":)") +
        list + "}}}"));
    EXPECT_TRUE(class_of(m).has_required()) << list;
    EXPECT_EQ(class_of(m).required(), nullptr) << list;
  }
}

std::string pinned(std::string_view terms) {
  return with_spec(
      std::string(R"({"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":
    {"nodeSelectorTerms":)")
          .append(terms)
          .append("}}}}"));
}

TEST(DecodePod, SingleNodeIsTakenOutOfTheClass) {
  const Message only =
      decoded_pod(pinned(R"([{"matchFields":[{"key":"metadata.name","operator":"In","values":["n1"]}]}])"));
  EXPECT_EQ(text(only.as<fb::Pod>().pinned_node()), "n1");
  EXPECT_EQ(class_text(only), class_text(decoded_pod(with_spec("{}"))));

  const Message with_expression = decoded_pod(pinned(R"([{"matchFields":[{"key":"metadata.name",
    "operator":"In","values":["n1"]}],"matchExpressions":[{"key":"z","operator":"Exists"}]}])"));
  EXPECT_EQ(text(with_expression.as<fb::Pod>().pinned_node()), "n1");
  EXPECT_EQ(class_text(with_expression),
            class_text(decoded_pod(pinned(R"([{"matchExpressions":[{"key":"z","operator":"Exists"}]}])"))));
}

TEST(DecodePod, OtherNodeNamesStayInTheClass) {
  for (const char* terms :
       {R"([{"matchFields":[{"key":"metadata.name","operator":"NotIn","values":["n1"]}]}])",
        R"([{"matchFields":[{"key":"metadata.name","operator":"In","values":["n1"]}]},{}])",
        R"([{"matchFields":[{"key":"metadata.name","operator":"In","values":["n1"]},
                               {"key":"metadata.name","operator":"In","values":["n1"]}]}])"}) {
    const Message m = decoded_pod(pinned(terms));
    EXPECT_EQ(text(m.as<fb::Pod>().pinned_node()), "") << terms;
    EXPECT_NE(class_of(m).required()->Get(0)->match_fields(), nullptr) << terms;
  }
}

TEST(DecodePod, HostPortsOfContainersAndSidecarsOnly) {
  const Message m = decoded_pod(with_spec(R"({
    "initContainers": [{"name": "i", "image": "i1", "ports": [{"hostPort": 1}]},
                       {"name": "s", "image": "s1:2", "ports": [{"hostPort": 2}], "restartPolicy": "Always"}],
    "containers": [{"name": "c", "image": "c1@sha256:ab", "ports": [{"hostPort": 3}, {"hostPort": 0}]}]})"));
  ASSERT_EQ(class_of(m).host_ports()->size(), 2U);
  EXPECT_EQ(class_of(m).host_ports()->Get(0)->port(), 3);
  EXPECT_EQ(class_of(m).host_ports()->Get(1)->port(), 2);
  EXPECT_THAT(texts(class_of(m).images()), ElementsAre("i1:latest", "s1:2", "c1@sha256:ab"));
}

TEST(DecodePod, ResourcesThatAreNotCountedAreLeftOut) {
  const Message m = decoded_pod(with_spec(R"({"containers": [{"resources": {"requests": {
    "pods": "1", "gizmo": "3", "requests.example.com/x": "1", "hugepages-2Mi": "4Mi",
    "attachable-volumes-ebs": "2", "ephemeral-storage": "1Gi", "example.com/x": "5"}}}]})"));
  EXPECT_EQ(amounts(class_of(m).requests()), (Amounts{{"attachable-volumes-ebs", 2},
                                                      {"ephemeral-storage", 1073741824},
                                                      {"example.com/x", 5},
                                                      {"hugepages-2Mi", 4194304}}));
}

TEST(DecodePod, DeprecatedResourceNames) {
  const Message m = decoded_pod(with_spec(R"({"containers": [
    {"resources": {"requests": {"koordinator.sh/batch-cpu": "1000", "kubernetes.io/gpu-core": "50",
                                "kubernetes.io/gpu": "1"}}},
    {"resources": {"requests": {"koordinator.sh/batch-cpu": "7", "kubernetes.io/batch-cpu": "500"}}}]})"));
  EXPECT_EQ(amounts(class_of(m).requests()), (Amounts{{"kubernetes.io/batch-cpu", 1500},
                                                      {"koordinator.sh/gpu", 1},
                                                      {"koordinator.sh/gpu-core", 50}}));
}

TEST(DecodePod, FractionsAreSummedBeforeTheyRound) {
  const Message m = decoded_pod(with_spec(R"({"containers": [
    {"resources": {"requests": {"cpu": "100u", "memory": "300m"}}},
    {"resources": {"requests": {"cpu": "100u", "memory": "300m"}}}]})"));
  EXPECT_EQ(amounts(class_of(m).requests()), (Amounts{{"cpu", 1}, {"memory", 1}}));
}

TEST(DecodePod, ComparingTolerationsTolerateNothing) {
  const Message m =
      decoded_pod(with_spec(R"({"tolerations": [{"key": "a", "operator": "Gt", "value": "1"}]})"));
  EXPECT_EQ(class_of(m).tolerations(), nullptr);
}

TEST(DecodePod, SumsBeyond64BitsStayTheLargestNumber) {
  const Message m = decoded_pod(with_spec(R"({"containers": [
    {"resources": {"requests": {"memory": "7Ei"}}}, {"resources": {"requests": {"memory": "7Ei"}}}]})"));
  EXPECT_EQ(amounts(class_of(m).requests()), (Amounts{{"memory", 9223372036854775807}}));
}

TEST(DecodePod, ErrorsNameObjectAndField) {
  EXPECT_EQ(pod_failure(with_spec(R"({"containers": [{}, {"resources": {"requests": {"cpu": "1K"}}}]})")),
            "\"1K\" is no quantity: its suffix is unknown | Pod shop/web-0 | "
            "spec.containers[1].resources.requests.cpu");
  EXPECT_EQ(pod_failure(with_spec(R"({"containers": [{"resources": {"requests": {"a/b": {}}}}]})")),
            "expected a quantity (a string or a number), found an object | Pod shop/web-0 | "
            "spec.containers[0].resources.requests[\"a/b\"]");
  EXPECT_EQ(pod_failure(with_spec(R"({"priority": "high"})")),
            "expected a number, found a string | Pod shop/web-0 | spec.priority");
  EXPECT_EQ(pod_failure(with_spec(R"({"priority": 3000000000})")),
            "3000000000 is no 32-bit integer | Pod shop/web-0 | spec.priority");
  EXPECT_EQ(pod_failure(with_spec(R"({"overhead": {"cpu": "-1"}})")),
            "must not be negative | Pod shop/web-0 | spec.overhead.cpu");
  EXPECT_EQ(pod_failure(with_spec(R"({"overhead": {"cpu": "8Ei"}})")),
            "beyond 64 bits | Pod shop/web-0 | spec.overhead.cpu");
  EXPECT_EQ(pod_failure(with_spec("[]")), "expected an object, found a list | Pod shop/web-0 | spec");
  EXPECT_EQ(pod_failure(with_spec("{}", R"({"startTime": "yesterday"})")),
            "\"yesterday\" is no time | Pod shop/web-0 | status.startTime");
  EXPECT_EQ(pod_failure(with_spec(R"({"tolerations": [{"operator": "Maybe"}]})")),
            "unknown operator \"Maybe\" | Pod shop/web-0 | spec.tolerations[0].operator");
  EXPECT_EQ(pod_failure(with_spec(R"({"containers": [{"ports": [{"hostPort": 70000}]}]})")),
            "must be between 1 and 65535 | Pod shop/web-0 | spec.containers[0].ports[0].hostPort");
  EXPECT_EQ(pod_failure(R"({"spec": {}})"), "missing | Pod | metadata.name");
  const std::string terms =
      "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution."
      "nodeSelectorTerms[0].";
  EXPECT_EQ(
      pod_failure(pinned(R"([{"matchExpressions":[{"key":"a","operator":"In"}]}])")),
      "In and NotIn need at least one value | Pod shop/web-0 | " + terms + "matchExpressions[0].values");
  EXPECT_EQ(pod_failure(pinned(R"([{"matchFields":[{"key":"x","operator":"In","values":["n"]}]}])")),
            "only metadata.name can be matched by field | Pod shop/web-0 | " + terms + "matchFields[0].key");
}

TEST(DecodePod, ErrorsCarryARemedy) {
  Decoder decoder;
  const auto r = decoder.object(fb::ObjectKind::Pod, with_spec(R"({"overhead": {"cpu": "1 core"}})"));
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().error.code, ErrorCode::invalid);
  EXPECT_EQ(r.error().ref.name, "web-0");
  EXPECT_EQ(r.error().ref.name_space, "shop");
  EXPECT_THAT(r.error().error.remedy, HasSubstr("500m"));
}

TEST(DecodePod, BrokenJsonIsSaid) {
  for (const char* json :
       {"", "{", "[]", "null", "{\"metadata\"", R"({"metadata":{"name":"a)", "nonsense", "{} {}"}) {
    EXPECT_THAT(pod_failure(json),
                testing::StartsWith(std::string_view(json) == "{} {}" ? "missing" : "not JSON"))
        << json;
  }
}

TEST(DecodePod, TooManyResourceNamesAreRefused) {
  std::string requests;
  for (int i = 0; i < 300; ++i) {
    if (i > 0) requests.push_back(',');
    requests.append("\"e.com/").append(std::to_string(i)).append("\":1");
  }
  EXPECT_EQ(pod_failure(with_spec(R"({"containers":[{"resources":{"requests":{)" + requests + "}}}]}")),
            "more than 256 different resources | Pod shop/web-0 | spec.containers[0].resources.requests");
}

TEST(ImageName, GetsTheDefaultTag) {
  EXPECT_EQ(normalised_image("app"), "app:latest");
  EXPECT_EQ(normalised_image("reg:5000/app"), "reg:5000/app:latest");
  EXPECT_EQ(normalised_image("reg:5000/app:1"), "reg:5000/app:1");
  EXPECT_EQ(normalised_image(""), ":latest");
}

}  // namespace
}  // namespace troupe
