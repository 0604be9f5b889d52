// Operations of the decoders: quantities, pod requests, image names.
#include <stdexcept>

#include "k8s-bridge/decode/decode.hpp"
#include "messages/fb/pod_generated.h"
#include "messages/quantity.hpp"
#include "unit/vectors/vectors.hpp"

namespace troupe::vectors {
namespace {

Json quantity(const Json& row, const Json& /*given*/) {
  const auto source = row.get<std::string>();
  const auto q = Quantity::parse(source);
  if (!q) return {{"error", to_string(q.error())}};
  Json out = {{"canonical", q->printed(source)}};
  if (const auto v = q->value()) out["value"] = *v;
  if (const auto v = q->milli_value()) out["milliValue"] = *v;
  return out;
}

Json quantity_sum(const Json& row, const Json& /*given*/) {
  const auto left = Quantity::parse(row.at(0).get<std::string>());
  const auto right = Quantity::parse(row.at(1).get<std::string>());
  const auto sum = add(left.value(), right.value());
  if (!sum) return {{"error", to_string(sum.error())}};
  return sum->canonical();
}

void add_stated(Json& out, const Json& list) {
  if (!list.is_object()) return;
  for (const auto& [name, amount] : list.items()) out.emplace(name == "cpu" ? "cpuMilli" : name, 0);
}

Json requests_of(const Json& spec, const Json& status) {
  const Json pod = {
      {"metadata", {{"name", "p"}, {"namespace", "default"}}}, {"spec", spec}, {"status", status}};
  Decoder decoder;
  const DecodedObject decoded = decoder.object(fb::ObjectKind::Pod, pod.dump());
  if (!decoded) throw std::runtime_error(decoded.error().error.text());
  const auto* bytes = decoded->as<fb::Pod>().class_bytes();
  const fb::PodClass& spec_class = *flatbuffers::GetRoot<fb::PodClass>(bytes->data());

  Json requests = Json::object();
  if (spec_class.requests() != nullptr) {
    for (const fb::ResourceAmount* a : *spec_class.requests()) {
      const auto name = std::string(text(a->name()));
      requests[name == "cpu" ? "cpuMilli" : name] = a->amount();
    }
  }
  // A class leaves zero amounts out; the vectors list what is stated as zero too.
  for (const char* kind : {"containers", "initContainers"}) {
    for (const Json& c : spec.value(kind, Json::array())) {
      add_stated(requests, c.value("resources", Json::object()).value("requests", Json()));
    }
  }
  add_stated(requests, spec.value("overhead", Json()));
  return {{"requests", requests},
          {"nonZeroCpuMilli", spec_class.non_zero_cpu_milli()},
          {"nonZeroMemory", spec_class.non_zero_memory_bytes()}};
}

Json pod_request(const Json& row, const Json& /*given*/) {
  return requests_of(row.at("podSpec"), Json::object());
}

// A running pod: its spec, and its status as a whole or in single fields of the row.
Json assigned_pod_request(const Json& row, const Json& /*given*/) {
  Json spec = row.at("podSpec");
  spec["nodeName"] = "n";
  Json status = row.value("podStatus", row.value("status", Json::object()));
  for (const char* field : {"containerStatuses", "initContainerStatuses", "conditions"}) {
    if (row.contains(field)) status[field] = row.at(field);
  }
  return requests_of(spec, status);
}

Json image_name(const Json& row, const Json& /*given*/) {
  return normalised_image(row.get<std::string>());
}

const bool kRegistered = register_op("quantity", quantity) && register_op("quantity_add", quantity_sum) &&
                         register_op("pod_request", pod_request) &&
                         register_op("assigned_pod_request", assigned_pod_request) &&
                         register_op("image_name", image_name);

}  // namespace
}  // namespace troupe::vectors
