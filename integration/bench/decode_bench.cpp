// What outside text costs: one watch event, one page of a list, one quantity; and the bodies that go out.
#include <benchmark/benchmark.h>

#include <string>

#include "k8s-bridge/decode/decode.hpp"
#include "k8s-bridge/decode/encode.hpp"
#include "messages/quantity.hpp"

namespace troupe {
namespace {

// A pod as the API server sends it, about 2 KB: owned, tolerating, with the usual managedFields.
constexpr std::string_view kPod =
    R"({"kind":"Pod","apiVersion":"v1","metadata":{"name":"web-6d4cf56db6-7xk2p",
"generateName":"web-6d4cf56db6-","namespace":"shop","uid":"3f1c2b4a-0001-4abc-8def-00ff00ff00ff",
"resourceVersion":"184467","generation":1,"creationTimestamp":"2026-07-01T09:30:00Z","labels":{"app":"web",
"pod-template-hash":"6d4cf56db6","koordinator.sh/qosClass":"LS"},"ownerReferences":[{"apiVersion":"apps/v1",
"kind":"ReplicaSet","name":"web-6d4cf56db6","uid":"9a1c2b4a-0001-4abc-8def-00ff00ff00ff","controller":true,
"blockOwnerDeletion":true}],"managedFields":[{"manager":"kube-controller-manager","operation":"Update",
"apiVersion":"v1","time":"2026-07-01T09:30:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{
"f:generateName":{},"f:labels":{".":{},"f:app":{},"f:pod-template-hash":{}},"f:ownerReferences":{".":{},
"k:{\"uid\":\"9a1c2b4a-0001-4abc-8def-00ff00ff00ff\"}":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{
".":{},"f:image":{},"f:imagePullPolicy":{},"f:name":{},"f:ports":{},"f:resources":{}}},"f:dnsPolicy":{}}}}]},
"spec":{"volumes":[{"name":"kube-api-access-8k2xw","projected":{"sources":[{"serviceAccountToken":{
"expirationSeconds":3607,"path":"token"}}],"defaultMode":420}}],"containers":[{"name":"web",
"image":"registry.example.com/shop/web:1.42.0","ports":[{"containerPort":8080,"protocol":"TCP"}],
"resources":{"limits":{"cpu":"2","memory":"4Gi"},"requests":{"cpu":"500m","memory":"1Gi"}},"volumeMounts":[{
"name":"kube-api-access-8k2xw","readOnly":true,"mountPath":"/var/run/secrets"}],"imagePullPolicy":"IfNotPresent"}],
"restartPolicy":"Always","nodeSelector":{"pool":"general"},"serviceAccountName":"default","securityContext":{},
"schedulerName":"koord-scheduler","tolerations":[{"key":"node.kubernetes.io/not-ready","operator":"Exists",
"effect":"NoExecute","tolerationSeconds":300},{"key":"node.kubernetes.io/unreachable","operator":"Exists",
"effect":"NoExecute","tolerationSeconds":300}],"priority":1000,"preemptionPolicy":"PreemptLowerPriority"},
"status":{"phase":"Pending","qosClass":"Burstable"}})";

std::string watch_line() {
  std::string line = R"({"type":"ADDED","object":)";
  line.append(kPod).append("}");
  std::erase(line, '\n');
  return line;
}

void watch_event(benchmark::State& state) {
  const std::string line = watch_line();
  Decoder decoder;
  for (auto _ : state) {
    auto event = decoder.watch_event(fb::ObjectKind::Pod, line);
    if (!event || !event->object) state.SkipWithError("not decoded");
    benchmark::DoNotOptimize(event);
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(line.size()));
}
BENCHMARK(watch_event);

void list_page(benchmark::State& state) {
  std::string body = R"({"kind":"PodList","metadata":{"resourceVersion":"1"},"items":[)";
  for (int i = 0; i < 500; ++i) {
    if (i > 0) body.push_back(',');
    body.append(kPod);
  }
  body.append("]}");
  Decoder decoder;
  for (auto _ : state) {
    auto page = decoder.list_chunk(fb::ObjectKind::Pod, body);
    if (!page || page->objects.size() != 500) state.SkipWithError("not decoded");
    benchmark::DoNotOptimize(page);
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(body.size()));
  state.SetItemsProcessed(state.iterations() * 500);
}
BENCHMARK(list_page);

void quantity(benchmark::State& state) {
  constexpr std::string_view kTexts[] = {"500m", "1Gi", "2", "1.5Gi", "100m", "128Mi", "0.5", "4k"};
  std::size_t i = 0;
  for (auto _ : state) {
    auto q = Quantity::parse(kTexts[i++ % 8]);
    benchmark::DoNotOptimize(q->milli_value());
  }
}
BENCHMARK(quantity);

Message bind_intent() {
  flatbuffers::FlatBufferBuilder b;
  const auto event = fb::CreateEventNoteDirect(
      b, "web-6d4cf56db6-7xk2p.17a2b3c4d5e6f708", 1782898200123, "Normal", "Scheduled", "Binding",
      "Successfully assigned shop/web-6d4cf56db6-7xk2p to worker-0042", "koord-scheduler");
  const auto name_space = b.CreateString("shop");
  const auto name = b.CreateString("web-6d4cf56db6-7xk2p");
  const auto uid = b.CreateString("3f1c2b4a-0001-4abc-8def-00ff00ff00ff");
  const auto version = b.CreateString("184467");
  const auto node = b.CreateString("worker-0042");
  fb::IntentBuilder i(b);
  i.add_namespace_(name_space);
  i.add_name(name);
  i.add_uid_text(uid);
  i.add_resource_version(version);
  i.add_node(node);
  i.add_event(event);
  b.Finish(i.Finish());
  return {Kind::intent, b};
}

void binding_body(benchmark::State& state) {
  const Message intent = bind_intent();
  for (auto _ : state) benchmark::DoNotOptimize(encode_binding(intent.as<fb::Intent>()));
}
BENCHMARK(binding_body);

void event_body(benchmark::State& state) {
  const Message intent = bind_intent();
  for (auto _ : state)
    benchmark::DoNotOptimize(encode_event(intent.as<fb::Intent>(), "koord-scheduler-host"));
}
BENCHMARK(event_body);

}  // namespace
}  // namespace troupe

BENCHMARK_MAIN();
