// Operations on pods and nodes: objects go through the decoder, accounts through the ledger, answers through
// the plugins.
#include <deque>
#include <stdexcept>

#include "actors/node/ledger.hpp"
#include "actors/placement/evaluate.hpp"
#include "actors/placement/hints.hpp"
#include "k8s-bridge/decode/decode.hpp"
#include "unit/vectors/vectors.hpp"

namespace troupe::vectors {
namespace {

struct DecodedPod {
  PodClass cls;
  PodFacts facts;
};

/// Nodes with their pods, decoded and compiled with one interner.
class World {
 public:
  Interner interner;

  DecodedPod pod(const Json& spec) {
    const Message message =
        decode(fb::ObjectKind::Pod,
               {{"metadata", {{"name", "p"}, {"namespace", "default"}, {"uid", "p"}}}, {"spec", spec}});
    const auto& wire = message.as<fb::Pod>();
    DecodedPod out{compile(*flatbuffers::GetRoot<fb::PodClass>(wire.class_bytes()->data()), interner), {}};
    if (!text(wire.pinned_node()).empty()) out.facts.pinned_node = interner.id(text(wire.pinned_node()));
    return out;
  }

  /// A pod with one container that requests this.
  DecodedPod pod_requesting(const Json& requests) {
    return pod({{"containers", Json::array({{{"name", "a"}, {"resources", {{"requests", requests}}}}})}});
  }

  LedgerView node(const Json& node, const Json& pods = Json::array()) {
    Json object = {
        {"metadata", {{"name", node.value("name", "n")}, {"labels", node.value("labels", Json::object())}}},
        {"spec",
         {{"taints", node.value("taints", Json::array())},
          {"unschedulable", node.value("unschedulable", false)}}},
        {"status", {{"allocatable", node.value("allocatable", Json::object())}}}};
    const Message message = decode(fb::ObjectKind::Node, object);
    facts_.push_back(compile(message.as<fb::Node>(), interner));
    ledgers_.emplace_back(versions_.emplace_back(0));
    for (const Json& spec : pods) {
      auto cls = std::make_shared<LedgerClass>();
      cls->compiled = pod(spec).cls;
      LedgerPod entry;
      entry.cls = std::move(cls);
      ledgers_.back().apply(nullptr, &entry);
    }
    return {facts_.back(), ledgers_.back()};
  }

 private:
  Decoder decoder_;
  std::deque<NodeFacts> facts_;
  std::deque<std::uint64_t> versions_;
  std::deque<Ledger> ledgers_;

  Message decode(fb::ObjectKind kind, const Json& object) {
    const DecodedObject decoded = decoder_.object(kind, object.dump());
    if (!decoded) throw std::runtime_error(decoded.error().error.text());
    return *decoded;
  }
};

/// A node whose number of pods is given.
struct CountedNode : LedgerView {
  std::int64_t pods = 0;
  [[nodiscard]] std::int64_t pod_count() const { return pods; }
};

std::string code_text(Code code) {
  switch (code) {
    case Code::success:
      return "Success";
    case Code::unschedulable:
      return "Unschedulable";
    case Code::unschedulable_and_unresolvable:
      break;
  }
  return "UnschedulableAndUnresolvable";
}

Json fit(const Json& row, const Json& /*given*/) {
  World world;
  Profile profile = Profile::standard();
  profile.node_resources_fit.ignored_resources = row.value("ignoredResources", std::vector<std::string>{});
  profile.node_resources_fit.ignored_resource_groups =
      row.value("ignoredResourceGroups", std::vector<std::string>{});
  const CompiledProfile compiled = compile(profile, world.interner);
  const DecodedPod pod = world.pod(row.at("podSpec"));
  const Json used = {
      {"containers", Json::array({{{"name", "a"}, {"resources", {{"requests", row.at("requested")}}}}})}};
  const CountedNode node{world.node(row, Json::array({used})), row.value("podCount", std::int64_t{0})};
  const PreparedClass prepared(compiled, pod.cls, world.interner);
  const Verdict verdict = filter(PluginId::node_resources_fit, prepared, pod.facts, node);
  std::vector<std::string> reasons;
  for (const Reason& r : verdict.reasons) reasons.push_back(text(r, world.interner));
  std::sort(reasons.begin(), reasons.end());
  return {{"code", code_text(verdict.code)}, {"reasons", reasons}};
}

Json score_nodes(const Json& row, const Json& /*given*/) {
  World world;
  Profile profile = Profile::standard();
  profile.at(Point::filter).clear();
  profile.at(Point::score) = {{PluginId::node_resources_fit, 1},
                              {PluginId::node_resources_balanced_allocation, 1}};
  const CompiledProfile compiled = compile(profile, world.interner);
  const DecodedPod pod = world.pod(row.at("podSpec"));
  std::vector<LedgerView> nodes;
  for (const Json& node : row.at("nodes")) nodes.push_back(world.node(node, node.at("pods")));
  const PreparedClass prepared(compiled, pod.cls, world.interner);
  const Evaluation e = reference_evaluate<LedgerView>(prepared, pod.facts, nodes);
  const auto name = [&](std::size_t i) { return std::string(world.interner.text(nodes[i].name())); };
  Json scores = Json::object();
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    Json& node = scores[name(i)];
    for (const EnabledPlugin& p : compiled.scores)
      node[std::string(plugin_name(p.plugin))] = nullptr;  // skipped
    for (std::size_t k = 0; k < e.scores.size(); ++k) {
      node[std::string(plugin_name(e.scores[k].plugin))] = e.nodes[i].weighted[k];
    }
    node["total"] = e.nodes[i].total;
  }
  std::vector<std::string> choice;
  for (const std::uint32_t i : e.winners) choice.push_back(name(i));
  return {{"scores", scores}, {"choice", choice}};
}

/// Verdict of one plugin on each node, its raw scores on those that pass, and these normalised.
struct PluginAnswers {
  std::vector<std::pair<std::string, Verdict>> verdicts;
  std::vector<std::string> passing;
  std::vector<std::int64_t> raw;
  std::vector<std::int64_t> normal;
  bool scores = false;
};

PluginAnswers ask(World& world, PluginId plugin, const Json& spec, const Json& nodes) {
  const CompiledProfile compiled = compile(Profile::standard(), world.interner);
  const DecodedPod pod = world.pod(spec);
  const PreparedClass prepared(compiled, pod.cls, world.interner);
  PluginAnswers out;
  for (const EnabledPlugin& p : prepared.scores()) out.scores = out.scores || p.plugin == plugin;
  for (const Json& json : nodes) {
    const LedgerView node = world.node(json);
    const std::string name(world.interner.text(node.name()));
    const Verdict verdict = filter(plugin, prepared, pod.facts, node);
    out.verdicts.emplace_back(name, verdict);
    if (!verdict.ok()) continue;
    out.passing.push_back(name);
    out.raw.push_back(raw_score(plugin, prepared, node));
  }
  out.normal = out.raw;
  normalise(normalisation(plugin), out.normal);
  return out;
}

Json by_node(const std::vector<std::string>& nodes, const std::vector<std::int64_t>& values) {
  Json out = Json::object();
  for (std::size_t i = 0; i < nodes.size(); ++i) out[nodes[i]] = values[i];
  return out;
}

Json taints(const Json& row, const Json& /*given*/) {
  World world;
  const PluginAnswers answers =
      ask(world, PluginId::taint_toleration, {{"tolerations", row.at("tolerations")}}, row.at("nodes"));
  Json filter_texts = Json::object();
  for (const auto& [node, verdict] : answers.verdicts) {
    filter_texts[node] = verdict.ok() ? "" : text(verdict.reasons.front(), world.interner);
  }
  return {{"filter", filter_texts},
          {"rawScore", by_node(answers.passing, answers.raw)},
          {"score", by_node(answers.passing, answers.normal)}};
}

Json node_affinity(const Json& row, const Json& /*given*/) {
  World world;
  const Json& pod = row.at("pod");
  Json affinity = Json::object();
  if (pod.contains("required")) {
    affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {{"nodeSelectorTerms", pod["required"]}};
  }
  if (pod.contains("preferred"))
    affinity["preferredDuringSchedulingIgnoredDuringExecution"] = pod["preferred"];
  const PluginAnswers answers = ask(world, PluginId::node_affinity,
                                    {{"nodeSelector", pod.value("nodeSelector", Json::object())},
                                     {"affinity", {{"nodeAffinity", affinity}}}},
                                    row.at("nodes"));
  Json match = Json::object();
  for (const auto& [node, verdict] : answers.verdicts) match[node] = verdict.ok();
  Json out = {{"match", match}};
  if (answers.scores) out["score"] = by_node(answers.passing, answers.normal);
  return out;
}

Json host_ports(const Json& row, const Json& /*given*/) {
  World world;
  const CompiledProfile compiled = compile(Profile::standard(), world.interner);
  const auto spec = [](Json ports) {
    for (Json& p : ports) p.emplace("containerPort", 80);
    return Json{{"containers", Json::array({{{"name", "a"}, {"ports", ports}}})}};
  };
  const DecodedPod pod = world.pod(spec(row.at("want")));
  const PreparedClass prepared(compiled, pod.cls, world.interner);
  const LedgerView node = world.node(Json::object(), Json::array({spec(row.at("used"))}));
  return !filter(PluginId::node_ports, prepared, pod.facts, node).ok();
}

Json hint(const Json& row, const Json& /*given*/) {
  PluginId plugin{};
  const auto name = row.at("plugin").get<std::string>();
  if (!find_plugin(name, plugin)) throw std::runtime_error("no plugin " + name);
  const PluginSet rejected_by{plugin};
  World world;
  const CompiledProfile compiled = compile(Profile::standard(), world.interner);
  const DecodedPod pod = world.pod(row.at("podSpec"));
  const PreparedClass prepared(compiled, pod.cls, world.interner);
  const auto answer = [](bool wakes) { return wakes ? "Queue" : "QueueSkip"; };
  const auto type = row.at("type").get<std::string>();
  if (type == "NodeAdd") return answer(added_node_wakes(rejected_by, prepared, pod.facts, world.node(row)));
  if (type == "NodeUpdate") {
    const LedgerView now = world.node(row);
    const LedgerView before = world.node({{"allocatable", row.at("oldAllocatable")}});
    return answer(node_wakes(rejected_by, prepared, pod.facts, {Event::node_allocatable}, now, &before));
  }
  const bool has_node = !row.at("nodeName").get<std::string>().empty();
  if (type == "PodDelete") return answer(deleted_pod_wakes(rejected_by, prepared, has_node, PodClass{}));
  if (type == "PodScaleDown") {
    return answer(scaled_down_pod_wakes(rejected_by, prepared, false, has_node,
                                        world.pod_requesting(row.at("oldRequests")).cls,
                                        world.pod_requesting(row.at("requests")).cls));
  }
  throw std::runtime_error("no event " + type);
}

const bool registered[] = {
    register_op("fit", fit),
    register_op("score_nodes", score_nodes),
    register_op("taints", taints),
    register_op("node_affinity", node_affinity),
    register_op("host_ports", host_ports),
    register_op("hint", hint),
};

}  // namespace
}  // namespace troupe::vectors
