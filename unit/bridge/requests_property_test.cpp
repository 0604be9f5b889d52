// Pod requests of random specs against spec 5.2, written down as plainly as it reads.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "unit/bridge/decode_support.hpp"

namespace troupe {
namespace {

using Json = nlohmann::json;
using List = std::map<std::string, std::int64_t>;  // milli-CPU for cpu, else units; only what is stated

struct Container {
  List spec;
  bool init = false;
  bool sidecar = false;
  std::optional<List> actual;
  List allocated;
};

struct PodSpec {
  std::vector<Container> containers;  // app and init containers, in declared order of their kind
  List pod_level;
  List overhead;
  bool assigned = false;
  bool infeasible = false;
};

const std::vector<std::string> kNames = {"cpu", "memory", "example.com/gpu", "hugepages-2Mi"};

rc::Gen<List> any_list() {
  return rc::gen::exec([] {
    List out;
    for (const std::string& name : kNames) {
      if (*rc::gen::inRange(0, 2) == 0) out[name] = *rc::gen::inRange<std::int64_t>(0, 5000);
    }
    return out;
  });
}

rc::Gen<PodSpec> any_pod() {
  return rc::gen::exec([] {
    PodSpec out;
    out.assigned = *rc::gen::arbitrary<bool>();
    out.infeasible = *rc::gen::inRange(0, 4) == 0;
    const int n = *rc::gen::inRange(1, 7);
    for (int i = 0; i < n; ++i) {
      Container c;
      c.spec = *any_list();
      c.init = *rc::gen::arbitrary<bool>();
      c.sidecar = c.init && *rc::gen::arbitrary<bool>();
      if (*rc::gen::inRange(0, 3) == 0) c.actual = *any_list();
      c.allocated = *any_list();
      out.containers.push_back(std::move(c));
    }
    if (*rc::gen::inRange(0, 3) == 0) out.pod_level = *any_list();
    if (*rc::gen::inRange(0, 2) == 0) out.overhead = *any_list();
    return out;
  });
}

Json json_of(const List& list) {
  Json out = Json::object();
  for (const auto& [name, amount] : list) {
    out[name] = std::to_string(amount) + (name == "cpu" ? "m" : "");
  }
  return out;
}

Json json_of(const PodSpec& pod) {
  Json spec = {{"containers", Json::array()}, {"initContainers", Json::array()}};
  Json status = {{"containerStatuses", Json::array()}, {"initContainerStatuses", Json::array()}};
  for (std::size_t i = 0; i < pod.containers.size(); ++i) {
    const Container& c = pod.containers[i];
    std::string name = "c";
    name += std::to_string(i);
    Json container = {{"name", name}, {"image", "i:1"}, {"resources", {{"requests", json_of(c.spec)}}}};
    if (c.sidecar) container["restartPolicy"] = "Always";
    spec[c.init ? "initContainers" : "containers"].push_back(container);
    Json state = {{"name", name}, {"allocatedResources", json_of(c.allocated)}};
    if (c.actual) state["resources"] = {{"requests", json_of(*c.actual)}};
    status[c.init ? "initContainerStatuses" : "containerStatuses"].push_back(state);
  }
  if (pod.assigned) spec["nodeName"] = "n";
  if (!pod.pod_level.empty()) spec["resources"] = {{"requests", json_of(pod.pod_level)}};
  spec["overhead"] = json_of(pod.overhead);
  if (pod.infeasible) {
    status["conditions"] = Json::array({{{"type", "PodResizePending"}, {"reason", "Infeasible"}}});
  }
  return {{"metadata", {{"name", "p"}}}, {"spec", spec}, {"status", status}};
}

// Rule 4, then the fill-in of rule 3.
List own(const PodSpec& pod, const Container& c, const List& fill) {
  List out = c.spec;
  if (pod.assigned && c.actual && (!c.init || c.sidecar)) {
    if (pod.infeasible) out.clear();
    for (const List* more : {&*c.actual, &c.allocated}) {
      for (const auto& [name, amount] : *more) {
        out[name] = out.count(name) > 0 ? std::max(out[name], amount) : amount;
      }
    }
  }
  for (const auto& [name, amount] : fill) out.try_emplace(name, amount);
  return out;
}

std::int64_t at(const List& list, const std::string& name) {
  const auto it = list.find(name);
  return it == list.end() ? 0 : it->second;
}

// Rule 1 for one resource.
std::int64_t rule_1(const PodSpec& pod, const std::string& name, const List& fill) {
  std::int64_t steady = 0;
  for (const Container& c : pod.containers) {
    if (!c.init || c.sidecar) steady += at(own(pod, c, fill), name);
  }
  std::int64_t most = steady;
  std::int64_t sidecars_before = 0;
  for (const Container& c : pod.containers) {
    if (!c.init) continue;
    most = std::max(most, sidecars_before + at(own(pod, c, fill), name));
    if (c.sidecar) sidecars_before += at(own(pod, c, fill), name);
  }
  return most;
}

bool stated(const PodSpec& pod, const std::string& name) {
  for (const Container& c : pod.containers) {
    if (own(pod, c, {}).count(name) > 0) return true;
  }
  return pod.overhead.count(name) > 0;
}

bool pod_level(const PodSpec& pod, const std::string& name) {
  return name != "example.com/gpu" && pod.pod_level.count(name) > 0;
}

RC_GTEST_PROP(PodRequests, AreThoseOfThePlainFormula, ()) {
  const PodSpec pod = *any_pod();
  const Message m = decoded_pod(json_of(pod).dump());
  const fb::PodClass& c = class_of(m);
  const auto got = amounts(c.requests());

  bool pod_level_set = false;
  for (const std::string& name : kNames) pod_level_set = pod_level_set || pod_level(pod, name);
  const auto whole = [&](const std::string& name, const List& fill) {
    const std::int64_t base = pod_level(pod, name) ? at(pod.pod_level, name) : rule_1(pod, name, fill);
    return base + at(pod.overhead, name);
  };
  for (const std::string& name : kNames) RC_ASSERT(at(got, name) == whole(name, {}));

  const List defaults = {{"cpu", 100}, {"memory", 209715200}};
  const auto non_zero = [&](const std::string& name) {
    const bool fill = !pod_level_set || !(pod_level(pod, name) || stated(pod, name));
    return whole(name, fill ? List{{name, at(defaults, name)}} : List{});
  };
  RC_ASSERT(c.non_zero_cpu_milli() == non_zero("cpu"));
  RC_ASSERT(c.non_zero_memory_bytes() == non_zero("memory"));

  const auto scored = [&](const std::string& name) {
    return rule_1(pod, name, {{name, at(defaults, name)}}) + at(pod.overhead, name);
  };
  const auto effective = [](std::int64_t score, std::int64_t otherwise) {
    return score >= 0 ? score : otherwise;
  };
  RC_ASSERT(effective(c.score_cpu_milli(), c.non_zero_cpu_milli()) ==
            (pod_level_set ? scored("cpu") : c.non_zero_cpu_milli()));
  RC_ASSERT(effective(c.score_memory_bytes(), c.non_zero_memory_bytes()) ==
            (pod_level_set ? scored("memory") : c.non_zero_memory_bytes()));
}

}  // namespace
}  // namespace troupe
