// v1 Pod.
#include <algorithm>

#include "k8s-bridge/decode/decode.hpp"
#include "k8s-bridge/decode/kinds.hpp"

namespace troupe::decode {
namespace {

constexpr std::string_view kSchedulerNameLabel = "scheduling.koordinator.sh/scheduler-name";
constexpr std::string_view kDefaultScheduler = "default-scheduler";
constexpr std::string_view kMetadataName = "metadata.name";

// The API server's own check of a requirement, so that nothing that cannot match reaches the filters.
bool check_requirement(Reader& r, const RequirementView& requirement, bool of_field, const Path& at) {
  if (requirement.key.empty()) return r.wrong(Path{&at, "key"}, "missing");
  const Path values{&at, "values"};
  const std::uint32_t n = requirement.values.size();
  using Op = fb::SelectorOperator;
  if (of_field) {
    if (requirement.key != kMetadataName) {
      return r.wrong(Path{&at, "key"}, "only metadata.name can be matched by field");
    }
    if (requirement.op != Op::In && requirement.op != Op::NotIn) {
      return r.wrong(Path{&at, "operator"}, "fields are matched with In or NotIn");
    }
    return n == 1 || r.wrong(values, "expected exactly one value");
  }
  switch (requirement.op) {
    case Op::In:
    case Op::NotIn:
      return n > 0 || r.wrong(values, "In and NotIn need at least one value");
    case Op::Exists:
    case Op::DoesNotExist:
      return n == 0 || r.wrong(values, "Exists and DoesNotExist take no values");
    case Op::Gt:
    case Op::Lt:
      return n == 1 || r.wrong(values, "Gt and Lt need exactly one value");
  }
  return true;
}

bool read_operator(Reader& r, od::value v, const Path& at, fb::SelectorOperator& out) {
  std::string_view text;
  if (!r.text(std::move(v), at, text)) return false;
  for (const auto op : fb::EnumValuesSelectorOperator()) {
    if (text == fb::EnumNameSelectorOperator(op)) {
      out = op;
      return true;
    }
  }
  return r.wrong(at, "unknown operator \"" + std::string(text.substr(0, 64)) + "\"",
                 "use In, NotIn, Exists, DoesNotExist, Gt or Lt");
}

bool read_requirements(Workspace& w, od::value v, const Path& at, bool of_field, PoolRange& out) {
  Reader& r = w.reader;
  PodClassFields& spec = w.pod.spec;
  out.begin = out.end = static_cast<std::uint32_t>(spec.requirements.size());
  const bool ok = r.array(std::move(v), at, [&](od::value element, const Path& here) {
    RequirementView requirement;
    bool has_operator = false;
    const auto field = [&](std::string_view key, od::value value, const Path& there) {
      if (is(key, "key")) return r.text(std::move(value), there, requirement.key);
      if (is(key, "operator")) {
        has_operator = true;
        return read_operator(r, std::move(value), there, requirement.op);
      }
      if (is(key, "values")) {
        requirement.values.begin = static_cast<std::uint32_t>(spec.values.size());
        if (!r.texts(std::move(value), there, spec.values)) return false;
        requirement.values.end = static_cast<std::uint32_t>(spec.values.size());
      }
      return true;
    };
    if (!r.object(std::move(element), here, field)) return false;
    if (!has_operator) return r.wrong(Path{&here, "operator"}, "missing");
    spec.requirements.push_back(requirement);
    return check_requirement(r, requirement, of_field, here);
  });
  out.end = static_cast<std::uint32_t>(spec.requirements.size());
  return ok;
}

bool read_term(Workspace& w, od::value v, const Path& at, TermView& out) {
  return w.reader.object(std::move(v), at, [&](std::string_view key, od::value value, const Path& here) {
    if (is(key, "matchExpressions"))
      return read_requirements(w, std::move(value), here, false, out.expressions);
    if (is(key, "matchFields")) return read_requirements(w, std::move(value), here, true, out.fields);
    return true;
  });
}

bool read_required(Workspace& w, od::value v, const Path& at) {
  PodClassFields& spec = w.pod.spec;
  spec.required.clear();
  od::json_type type{};
  if (const auto e = v.type().get(type)) return w.reader.broken(e);
  spec.has_required = type != od::json_type::null;
  return w.reader.object(std::move(v), at, [&](std::string_view key, od::value value, const Path& here) {
    if (!is(key, "nodeSelectorTerms")) return true;
    spec.required.clear();
    return w.reader.array(std::move(value), here, [&](od::value element, const Path& there) {
      TermView term;
      if (!read_term(w, std::move(element), there, term)) return false;
      spec.required.push_back(term);
      return true;
    });
  });
}

bool read_preferred(Workspace& w, od::value v, const Path& at) {
  PodClassFields& spec = w.pod.spec;
  spec.preferred.clear();
  return w.reader.array(std::move(v), at, [&](od::value element, const Path& here) {
    PreferredTermView preferred;
    const auto field = [&](std::string_view key, od::value value, const Path& there) {
      if (is(key, "weight")) return w.reader.integer32(std::move(value), there, preferred.weight);
      if (is(key, "preference")) return read_term(w, std::move(value), there, preferred.term);
      return true;
    };
    if (!w.reader.object(std::move(element), here, field)) return false;
    spec.preferred.push_back(preferred);
    return true;
  });
}

bool read_affinity(Workspace& w, od::value v, const Path& at) {
  return w.reader.object(std::move(v), at, [&](std::string_view key, od::value value, const Path& here) {
    if (!is(key, "nodeAffinity")) return true;
    return w.reader.object(std::move(value), here,
                           [&](std::string_view rule, od::value rule_value, const Path& there) {
                             if (is(rule, "requiredDuringSchedulingIgnoredDuringExecution")) {
                               return read_required(w, std::move(rule_value), there);
                             }
                             if (is(rule, "preferredDuringSchedulingIgnoredDuringExecution")) {
                               return read_preferred(w, std::move(rule_value), there);
                             }
                             return true;
                           });
  });
}

bool read_tolerations(Workspace& w, od::value v, const Path& at) {
  Reader& r = w.reader;
  PodClassFields& spec = w.pod.spec;
  spec.tolerations.clear();
  return r.array(std::move(v), at, [&](od::value element, const Path& here) {
    TolerationView toleration;
    std::string_view op;
    const auto field = [&](std::string_view key, od::value value, const Path& there) {
      if (is(key, "key")) return r.text(std::move(value), there, toleration.key);
      if (is(key, "operator")) return r.text(std::move(value), there, op);
      if (is(key, "value")) return r.text(std::move(value), there, toleration.value);
      if (is(key, "effect")) return read_effect(r, std::move(value), there, toleration.effect);
      return true;
    };
    if (!r.object(std::move(element), here, field)) return false;
    // Comparing tolerations exist behind a feature gate that is off: they tolerate nothing.
    if (op == "Lt" || op == "Gt") return true;
    if (!op.empty() && op != "Equal" && op != "Exists") {
      return r.wrong(Path{&here, "operator"}, "unknown operator \"" + std::string(op.substr(0, 64)) + "\"",
                     "use Equal or Exists");
    }
    toleration.exists = op == "Exists";
    spec.tolerations.push_back(toleration);
    return true;
  });
}

bool read_ports(Workspace& w, od::value v, const Path& at, bool init, std::size_t container) {
  Reader& r = w.reader;
  return r.array(std::move(v), at, [&](od::value element, const Path& here) {
    HostPortView port;
    const auto field = [&](std::string_view key, od::value value, const Path& there) {
      if (is(key, "hostPort")) {
        if (!r.integer32(std::move(value), there, port.port)) return false;
        return (port.port >= 0 && port.port <= 65535) || r.wrong(there, "must be between 1 and 65535");
      }
      if (is(key, "hostIP")) return r.text(std::move(value), there, port.ip);
      if (is(key, "protocol")) return r.text(std::move(value), there, port.protocol);
      return true;
    };
    if (!r.object(std::move(element), here, field)) return false;
    if (port.port > 0) w.ports.push_back({port, init, container});
    return true;
  });
}

// resources: {requests: {...}}
bool read_requests(Workspace& w, od::value v, const Path& at, ResourceTable::List& out) {
  return w.reader.object(std::move(v), at, [&](std::string_view key, od::value value, const Path& here) {
    return !is(key, "requests") || w.reader.requests(std::move(value), here, w.requests.table, out);
  });
}

bool read_containers(Workspace& w, od::value v, const Path& at, bool init) {
  Reader& r = w.reader;
  std::vector<ContainerFields>& containers = w.requests.containers;
  std::vector<std::string_view>& images = init ? w.init_images : w.app_images;
  images.clear();
  std::erase_if(w.ports, [init](const Workspace::Port& p) { return p.init == init; });
  // A repeated field replaces the first: its containers count no more.
  for (ContainerFields& c : containers) {
    if (c.init == init) c = {.name = {}, .requests = {}, .init = true, .sidecar = false};
  }
  return r.array(std::move(v), at, [&](od::value element, const Path& here) {
    const std::size_t index = containers.size();
    ContainerFields container;
    container.init = init;
    std::string_view image;
    const auto field = [&](std::string_view key, od::value value, const Path& there) {
      if (is(key, "name")) return r.text(std::move(value), there, container.name);
      if (is(key, "image")) return r.text(std::move(value), there, image);
      if (is(key, "resources")) return read_requests(w, std::move(value), there, container.requests);
      if (is(key, "ports")) return read_ports(w, std::move(value), there, init, index);
      if (is(key, "restartPolicy") && init) {
        std::string_view policy;
        if (!r.text(std::move(value), there, policy)) return false;
        container.sidecar = policy == "Always";
      }
      return true;
    };
    if (!r.object(std::move(element), here, field)) return false;
    containers.push_back(container);
    images.push_back(image);
    return true;
  });
}

bool read_gates(Workspace& w, od::value v, const Path& at) {
  w.pod.scheduling_gates.clear();
  return w.reader.array(std::move(v), at, [&](od::value element, const Path& here) {
    std::string_view& gate = w.pod.scheduling_gates.emplace_back();
    return w.reader.object(std::move(element), here,
                           [&](std::string_view key, od::value value, const Path& there) {
                             return !is(key, "name") || w.reader.text(std::move(value), there, gate);
                           });
  });
}

bool read_spec(Workspace& w, od::value v, const Path& at) {
  Reader& r = w.reader;
  PodFields& pod = w.pod;
  return r.object(std::move(v), at, [&](std::string_view key, od::value value, const Path& here) {
    if (is(key, "containers")) return read_containers(w, std::move(value), here, false);
    if (is(key, "initContainers")) return read_containers(w, std::move(value), here, true);
    if (is(key, "nodeName")) return r.text(std::move(value), here, pod.node_name);
    if (is(key, "schedulerName")) return r.text(std::move(value), here, pod.scheduler_name);
    if (is(key, "priority")) return r.integer32(std::move(value), here, pod.priority);
    if (is(key, "tolerations")) return read_tolerations(w, std::move(value), here);
    if (is(key, "nodeSelector")) return r.pairs(std::move(value), here, pod.spec.node_selector);
    if (is(key, "affinity")) return read_affinity(w, std::move(value), here);
    if (is(key, "overhead")) return r.requests(std::move(value), here, w.requests.table, w.requests.overhead);
    if (is(key, "resources")) return read_requests(w, std::move(value), here, w.requests.pod_level);
    if (is(key, "schedulingGates")) return read_gates(w, std::move(value), here);
    if (is(key, "preemptionPolicy")) {
      std::string_view policy;
      if (!r.text(std::move(value), here, policy)) return false;
      pod.preemption_never = policy == "Never";
    }
    return true;
  });
}

bool read_conditions(Workspace& w, od::value v, const Path& at) {
  Reader& r = w.reader;
  w.pod.scheduled_condition.reset();
  bool resize_seen = false;
  return r.array(std::move(v), at, [&](od::value element, const Path& here) {
    ConditionView c;
    const auto field = [&](std::string_view key, od::value value, const Path& there) {
      if (is(key, "type")) return r.text(std::move(value), there, c.type);
      if (is(key, "status")) return r.text(std::move(value), there, c.status);
      if (is(key, "reason")) return r.text(std::move(value), there, c.reason);
      if (is(key, "message")) return r.text(std::move(value), there, c.message);
      if (is(key, "lastTransitionTime")) return r.time(std::move(value), there, c.transition_ms);
      return true;
    };
    if (!r.object(std::move(element), here, field)) return false;
    if (c.type == "PodScheduled") w.pod.scheduled_condition = c;
    if (c.type == "PodResizePending" && !resize_seen) {
      resize_seen = true;
      w.requests.resize_infeasible = c.reason == "Infeasible";
    }
    return true;
  });
}

bool read_container_statuses(Workspace& w, od::value v, const Path& at) {
  Reader& r = w.reader;
  return r.array(std::move(v), at, [&](od::value element, const Path& here) {
    ContainerStatusFields status;
    const auto field = [&](std::string_view key, od::value value, const Path& there) {
      if (is(key, "name")) return r.text(std::move(value), there, status.name);
      if (is(key, "resources")) {
        od::json_type type{};
        if (const auto e = value.type().get(type)) return r.broken(e);
        ResourceTable::List list = w.requests.table.begin_list();
        list.present = type != od::json_type::null;
        status.actual = list;
        const bool ok = read_requests(w, std::move(value), there, status.actual);
        status.actual.present = list.present;
        return ok;
      }
      if (is(key, "allocatedResources")) {
        return r.requests(std::move(value), there, w.requests.table, status.allocated);
      }
      return true;
    };
    if (!r.object(std::move(element), here, field)) return false;
    w.requests.statuses.push_back(status);
    return true;
  });
}

bool read_status(Workspace& w, od::value v, const Path& at) {
  Reader& r = w.reader;
  PodFields& pod = w.pod;
  return r.object(std::move(v), at, [&](std::string_view key, od::value value, const Path& here) {
    if (is(key, "phase")) return r.text(std::move(value), here, pod.phase);
    if (is(key, "startTime")) return r.time(std::move(value), here, pod.start_ms);
    if (is(key, "nominatedNodeName")) return r.text(std::move(value), here, pod.nominated_node_name);
    if (is(key, "conditions")) return read_conditions(w, std::move(value), here);
    if (is(key, "containerStatuses") || is(key, "initContainerStatuses")) {
      return read_container_statuses(w, std::move(value), here);
    }
    return true;
  });
}

// A required list that is one term with one name: StatefulSets, DaemonSets and indexed Jobs share a class
// without it.
void take_pinned_node(PodFields& pod) {
  PodClassFields& spec = pod.spec;
  if (spec.required.size() != 1 || spec.required[0].fields.size() != 1) return;
  const RequirementView& r = spec.requirements[spec.required[0].fields.begin];
  if (r.op != fb::SelectorOperator::In || r.values.size() != 1) return;
  pod.pinned_node = spec.values[r.values.begin];
  spec.required[0].fields = {};
  if (!spec.required[0].expressions.empty()) return;
  // An empty term would match nothing.
  spec.required.clear();
  spec.has_required = false;
}

void add_image(Workspace& w, std::string_view image) {
  if (has_tag(image)) {
    w.pod.spec.images.push_back(image);
  } else {
    w.pod.spec.images.push_back(w.owned_texts.emplace_back(normalised_image(image)));
  }
}

void finish(Workspace& w) {
  PodFields& pod = w.pod;
  MetadataFields& meta = w.metadata;
  pod.name_space = meta.name_space.empty() ? std::string_view("default") : meta.name_space;
  pod.name = meta.name;
  pod.uid = meta.uid;
  pod.resource_version = meta.resource_version;
  pod.generation = meta.generation;
  pod.creation_ms = meta.creation_ms;
  pod.deletion_ms = meta.deletion_ms;
  std::swap(pod.labels, meta.labels);
  std::swap(pod.annotations, meta.annotations);
  std::swap(pod.owners, meta.owners);
  if (pod.scheduler_name.empty()) pod.scheduler_name = kDefaultScheduler;
  for (const KeyValueView& label : pod.labels) {
    if (label.key == kSchedulerNameLabel && !label.value.empty()) pod.scheduler_name = label.value;
  }

  w.requests.assigned = !pod.node_name.empty();
  w.requests.compute(pod.spec);
  for (const Workspace::Port& p : w.ports) {
    if (!p.init) pod.spec.host_ports.push_back(p.port);
  }
  for (const Workspace::Port& p : w.ports) {
    if (p.init && w.requests.containers[p.container].sidecar) pod.spec.host_ports.push_back(p.port);
  }
  for (const std::string_view image : w.init_images) add_image(w, image);
  for (const std::string_view image : w.app_images) add_image(w, image);
  take_pinned_node(pod);
}

}  // namespace

bool read_effect(Reader& r, od::value v, const Path& at, fb::TaintEffect& out) {
  std::string_view text;
  out = fb::TaintEffect::Any;
  if (!r.text(std::move(v), at, text)) return false;
  if (text.empty()) return true;
  for (const auto effect :
       {fb::TaintEffect::NoSchedule, fb::TaintEffect::PreferNoSchedule, fb::TaintEffect::NoExecute}) {
    if (text == fb::EnumNameTaintEffect(effect)) {
      out = effect;
      return true;
    }
  }
  return r.wrong(at, "unknown effect \"" + std::string(text.substr(0, 64)) + "\"",
                 "use NoSchedule, PreferNoSchedule or NoExecute");
}

bool decode_pod(Workspace& w, od::object& object, Message& out) {
  w.pod.clear();
  w.requests.clear();
  w.metadata.clear();
  w.ports.clear();
  w.app_images.clear();
  w.init_images.clear();
  w.owned_texts.clear();
  const bool ok =
      w.reader.fields(object, Path{}, [&](std::string_view key, od::value value, const Path& here) {
        if (is(key, "metadata")) return read_metadata(w.reader, std::move(value), here, w.metadata);
        if (is(key, "spec")) return read_spec(w, std::move(value), here);
        if (is(key, "status")) return read_status(w, std::move(value), here);
        return true;
      });
  if (!ok || !check_metadata(w.reader, w.metadata)) return false;
  finish(w);
  out = w.pod_writer.write(w.pod);
  return true;
}

}  // namespace troupe::decode

namespace troupe {

bool has_tag(std::string_view image) {
  const std::size_t colon = image.rfind(':');
  const std::size_t slash = image.rfind('/');
  return colon != std::string_view::npos && (slash == std::string_view::npos || colon > slash);
}

std::string normalised_image(std::string_view image) {
  std::string out(image);
  if (!has_tag(image)) out += ":latest";
  return out;
}

}  // namespace troupe
