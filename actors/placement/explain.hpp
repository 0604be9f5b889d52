// Why a pod fits where it does, and what keeps it from the other nodes: one pod, alone, against all nodes.
// For people and tools; the hot path decides without it.
#pragma once

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "actors/placement/evaluate.hpp"
#include "actors/placement/failure_text.hpp"

namespace troupe {

/// The pod in question.
struct ExplainedPod {
  std::string_view name_space;
  std::string_view name;
  PodFacts facts;
  std::span<const std::string> gates;  // spec.schedulingGates
};

struct Explanation {
  struct Fit {
    std::string node;
    std::vector<std::int64_t> weighted;  // normalised score times weight, by `scores`
    std::int64_t total = 0;
  };
  struct Refuser {
    PluginId plugin{};
    std::vector<std::string> reasons;
  };
  struct Refused {
    std::string node;
    std::vector<Refuser> by;  // in the profile's order: kube-scheduler reports the first
  };

  std::string pod;  // namespace/name
  std::vector<PluginId>
      scores;  // every score plugin of the profile; one that has nothing to say for the pod gives 0
  std::vector<Fit> feasible;     // best first, then by name
  std::vector<Refused> refused;  // by name
  std::string message;  // the FailedScheduling text; empty when the pod fits somewhere and has no gates
  std::vector<std::string> remedies;  // what would make it fit, the one that helps most nodes first
};

/// One line of JSON: `pod`, `feasible` {node: {plugin: weighted normalised score, "total"}}, `refused` {node:
/// [reasons of the first refusing plugin]}, `alsoRefused` {node: {plugin: [reasons]}} (nodes that more than
/// one plugin refuses), `message`.
std::string to_json(const Explanation& explanation);

/// For people: the best nodes with their scores, reasons with their nodes, remedies. Lists show at most
/// `limit` entries.
std::string to_text(const Explanation& explanation, std::size_t limit = 5);

/// What one node lacks, in a form that does not depend on the view.
struct NodeLack {
  std::string_view node;
  std::vector<PluginId> by;                           // refusing plugins
  std::vector<ResourceRequest> missing;               // amounts that the node lacks for the pod
  bool never = false;                                 // some request is more than the whole node
  bool pods = false;                                  // the pod count is at its limit
  std::vector<const Taint*> taints;                   // not tolerated
  std::vector<HostPort> ports;                        // taken
  std::vector<std::pair<StringId, StringId>> labels;  // of nodeSelector, that the node has not
};

/// Sentences on what would make the pod fit, from what each refusing node lacks.
std::vector<std::string> remedies(const PreparedClass& prepared, const PodFacts& facts,
                                  std::span<const NodeLack> lacks, std::span<const std::string> gates);

template <NodeView V>
NodeLack lack_of(const PreparedClass& prepared, const std::vector<Refusal>& refusals, const V& view) {
  const PodClass& cls = prepared.cls();
  NodeLack lack;
  lack.node = prepared.interner().text(view.name());
  for (const Refusal& refusal : refusals) {
    lack.by.push_back(refusal.plugin);
    switch (refusal.plugin) {
      case PluginId::node_resources_fit:
        lack.pods = view.pod_count() + 1 > view.allowed_pods();
        for (const ResourceRequest& r : NodeResourcesFit::compared(prepared.state<NodeResourcesFit>(), cls)) {
          const std::int64_t left = view.allocatable(r.resource) - view.requested(r.resource);
          if (r.amount > left)
            lack.missing.push_back({r.resource, r.amount - std::max<std::int64_t>(left, 0)});
          lack.never = lack.never || r.amount > view.allocatable(r.resource);
        }
        break;
      case PluginId::taint_toleration:
        for (const Taint& taint : std::span<const Taint>(view.taints())) {
          if (!TaintToleration::passes_taints(cls, {&taint, 1})) lack.taints.push_back(&taint);
        }
        break;
      case PluginId::node_ports:
        for (const HostPort& port : cls.host_ports) {
          if (view.port_conflicts(port)) lack.ports.push_back(port);
        }
        break;
      case PluginId::node_affinity:
        for (const auto& [key, value] : cls.node_selector) {
          if (view.label(key) != value) lack.labels.emplace_back(key, value);
        }
        break;
      default:
        break;
    }
  }
  return lack;
}

template <NodeView V>
Explanation explain(const PreparedClass& prepared, const ExplainedPod& pod, std::span<const V> views) {
  const Interner& interner = prepared.interner();
  const Evaluation evaluation = reference_evaluate(prepared, pod.facts, views, true);
  Explanation out;
  out.pod = std::string(pod.name_space) + '/' + std::string(pod.name);
  for (const EnabledPlugin& p : prepared.profile().scores) out.scores.push_back(p.plugin);

  ReasonCounts counts;
  std::vector<NodeLack> lacks;
  for (std::size_t i = 0; i < views.size(); ++i) {
    const NodeEvaluation& node = evaluation.nodes[i];
    std::string name(interner.text(views[i].name()));
    if (node.refusals.empty()) {
      Explanation::Fit fit{std::move(name), std::vector<std::int64_t>(out.scores.size(), 0), node.total};
      for (std::size_t k = 0; k < evaluation.scores.size(); ++k) {
        const auto at = std::find(out.scores.begin(), out.scores.end(), evaluation.scores[k].plugin);
        fit.weighted[static_cast<std::size_t>(at - out.scores.begin())] = node.weighted[k];
      }
      out.feasible.push_back(std::move(fit));
      continue;
    }
    Explanation::Refused refused{std::move(name), {}};
    for (const Refusal& refusal : node.refusals) {
      Explanation::Refuser by{refusal.plugin, {}};
      for (const Reason& reason : refusal.verdict.reasons) by.reasons.push_back(text(reason, interner));
      if (refused.by.empty()) {
        for (const std::string& reason : by.reasons) ++counts[reason];
      }
      refused.by.push_back(std::move(by));
    }
    out.refused.push_back(std::move(refused));
    lacks.push_back(lack_of(prepared, node.refusals, views[i]));
  }
  std::sort(out.feasible.begin(), out.feasible.end(),
            [](const Explanation::Fit& a, const Explanation::Fit& b) {
              return a.total != b.total ? a.total > b.total : a.node < b.node;
            });
  std::sort(out.refused.begin(), out.refused.end(),
            [](const Explanation::Refused& a, const Explanation::Refused& b) { return a.node < b.node; });

  out.message = SchedulingGates::refuse(pod.gates);
  if (out.message.empty() && out.feasible.empty()) {
    const std::optional<Reason> pre_filter = pre_filter_refusal(prepared);
    out.message = views.empty()
                      ? std::string(kNoNodes)
                      : failure_message(views.size(), counts, pre_filter ? text(*pre_filter, interner) : "");
  }
  if (!out.message.empty()) {
    // A gated pod that would fit needs its gates removed and nothing else.
    if (!out.feasible.empty()) lacks.clear();
    out.remedies = remedies(prepared, pod.facts, lacks, pod.gates);
  }
  return out;
}

}  // namespace troupe
