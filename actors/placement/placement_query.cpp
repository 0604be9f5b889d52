// Questions about what placement knows, answered as JSON. Amounts are milli-CPU for cpu, bytes for memory and
// storage, counts otherwise; times Unix milliseconds unless said.
//
//   nodes      {"nodes": [{name, unschedulable, taints, pods, allowedPods, allocatable: {resource: n},
//   requested,
//              remaining}]}; with a name that node alone
//   pods       {"pods": [{namespace, name, node, state}]}: pending ones (node empty, state as in `pending`)
//   and
//              those that count on a node (state Nominated, Granted, Bound, Leaving, or Deciding while only
//              this shard knows)
//   pending    {"pending": [{namespace, name, uid, priority, scheduler, queue, attempts, created, node,
//              message}]}; queue: active, backoff, unschedulable, gated, inFlight, deleting
//   decisions  {"decisions": [{time, namespace, name, uid, node, score, feasibleNodes, class, durationNs}]},
//              newest first
//   explain    {pod, feasible: {node: {plugin: weighted score, total}}, refused: {node: [reasons]},
//   alsoRefused,
//              message}: the pod taken alone, on the accounts as they are
//   explain-text {"text": the same for people, with what would make it fit}
//   stats      the fields of PlacementStats
#include "actors/placement/explain.hpp"
#include "actors/placement/json_writer.hpp"
#include "actors/placement/placement_state.hpp"

namespace troupe {
namespace {

constexpr std::uint32_t kDefaultLimit = 100'000;

std::string_view name_of(Place place) {
  switch (place) {
    case Place::active:
    case Place::deciding:
      return "active";
    case Place::backoff:
    case Place::error_backoff:
      return "backoff";
    case Place::parked:
      return "unschedulable";
    case Place::gated:
      return "gated";
    case Place::in_flight:
      return "inFlight";
    case Place::nowhere:
      break;
  }
  return "deleting";
}

std::string_view state_of(const AccountRecord& record) {
  return record.overlay ? std::string_view("Deciding")
                        : std::string_view(fb::EnumNameEntryState(record.state));
}

}  // namespace

std::string Placement::State::nodes_json(std::string_view name, std::uint32_t limit) const {
  JsonWriter json;
  json.begin_object().key("nodes").begin_array();
  const Columns& columns = snapshot.columns();
  std::uint32_t written = 0;
  snapshot.alive().for_each([&](Slot slot) {
    if (written == limit || (!name.empty() && snapshot.name(slot) != name)) return;
    ++written;
    const SnapshotNode& node = snapshot.facts(slot);
    json.begin_object().member("name", snapshot.name(slot)).member("unschedulable", node.unschedulable);
    json.member("taints", snapshot.taints(node.taints).size());
    json.member("pods", columns.pod_count(slot)).member("allowedPods", columns.allowed_pods(slot));
    const auto amounts = [&](std::string_view key, auto&& amount) {
      json.key(key).begin_object();
      for (ResourceId r = 0; r < columns.resources(); ++r) {
        if (columns.allocatable(slot, r) == 0 && columns.requested(slot, r) == 0) continue;
        json.member(interner.resource_name(r), amount(r));
      }
      json.end_object();
    };
    amounts("allocatable", [&](ResourceId r) { return columns.allocatable(slot, r); });
    amounts("requested", [&](ResourceId r) { return columns.requested(slot, r); });
    amounts("remaining",
            [&](ResourceId r) { return columns.allocatable(slot, r) - columns.requested(slot, r); });
    json.end_object();
  });
  return json.end_array().end_object().take();
}

std::string Placement::State::pods_json(std::string_view ns, std::uint32_t limit) {
  JsonWriter json;
  json.begin_object().key("pods").begin_array();
  std::uint32_t written = 0;
  const auto write = [&](std::string_view pod_ns, std::string_view pod, std::string_view node,
                         std::string_view state) {
    if (written == limit || (!ns.empty() && pod_ns != ns)) return;
    ++written;
    json.begin_object()
        .member("namespace", pod_ns)
        .member("name", pod)
        .member("node", node)
        .member("state", state);
    json.end_object();
  };
  queue.for_each([&](PodIndex pod) {
    const PendingPod& p = queue[pod];
    write(text(p.wire().namespace_()), text(p.wire().name()), in_flight.node_of(pod), name_of(p.place));
  });
  snapshot.for_each_record([&](const AccountRecord& record) {
    if (record.name == nullptr || queue.find(record.uid) != kNoPod) return;
    const std::string_view joined = record.name.get();
    const std::size_t slash = joined.find('/');
    write(joined.substr(0, slash), joined.substr(slash + 1), snapshot.name(record.slot), state_of(record));
  });
  return json.end_array().end_object().take();
}

std::string Placement::State::pending_json(std::string_view ns, std::uint32_t limit) {
  JsonWriter json;
  json.begin_object().key("pending").begin_array();
  std::uint32_t written = 0;
  queue.for_each([&](PodIndex pod) {
    const PendingPod& p = queue[pod];
    const fb::Pod& wire = p.wire();
    if (written == limit || (!ns.empty() && text(wire.namespace_()) != ns)) return;
    ++written;
    json.begin_object();
    json.member("namespace", text(wire.namespace_())).member("name", text(wire.name()));
    json.member("uid", text(wire.uid_text())).member("priority", p.priority);
    json.member("scheduler", profiles[p.profile].scheduler_name).member("queue", name_of(p.place));
    json.member("attempts", p.attempts).member("created", wire.creation_ms());
    json.member("node", in_flight.node_of(pod));
    std::string message;
    if (p.place == Place::gated) {
      std::vector<std::string_view> gates;
      for (const flatbuffers::String* gate : *wire.scheduling_gates()) gates.push_back(text(gate));
      message = SchedulingGates::refuse(gates);
    } else if (p.message != nullptr) {
      message = *p.message;
    }
    json.member("message", message).end_object();
  });
  return json.end_array().end_object().take();
}

std::string Placement::State::decisions_json(std::string_view ns, std::string_view name,
                                             std::uint32_t limit) const {
  JsonWriter json;
  json.begin_object().key("decisions").begin_array();
  std::uint32_t written = 0;
  decisions.newest_first([&](const Decision& d) {
    const auto& pod = d.pod.as<fb::Pod>();
    if ((!ns.empty() && text(pod.namespace_()) != ns) || (!name.empty() && text(pod.name()) != name))
      return true;
    json.begin_object().member("time", d.wall_ms);
    json.member("namespace", text(pod.namespace_())).member("name", text(pod.name()));
    json.member("uid", text(pod.uid_text())).member("node", interner.text(d.node));
    json.member("score", d.score).member("feasibleNodes", d.feasible).member("class", d.cls);
    json.member("durationNs", d.duration_ns).end_object();
    return ++written < limit;
  });
  return json.end_array().end_object().take();
}

std::string Placement::State::explain_json(std::string_view ns, std::string_view name, bool as_text) {
  PodIndex pod = kNoPod;
  queue.for_each([&](PodIndex i) {
    const fb::Pod& wire = queue[i].wire();
    if (text(wire.name()) == name && text(wire.namespace_()) == ns) pod = i;
  });
  if (pod == kNoPod) return {};
  const PodDemand wanted = demand(queue[pod]);
  std::vector<std::string> gates;
  if (const auto* wire_gates = queue[pod].wire().scheduling_gates(); wire_gates != nullptr) {
    for (const flatbuffers::String* gate : *wire_gates) gates.emplace_back(text(gate));
  }
  // Pods nominated to a node count for those of lower or equal priority.
  std::vector<SnapshotLane> lanes;
  snapshot.alive().for_each(
      [&](Slot slot) { lanes.emplace_back(snapshot, slot, wanted.priority, wanted.uid); });
  const PreparedClass& prepared = cache.prepared(wanted.cls, wanted.profile);
  const ExplainedPod explained{ns, name, PodFacts{wanted.pinned_node, kNoString}, gates};
  const Explanation explanation = explain<SnapshotLane>(prepared, explained, lanes);
  if (!as_text) return to_json(explanation);
  return JsonWriter().begin_object().member("text", to_text(explanation)).end_object().take();
}

std::string Placement::State::stats_json() const {
  const PlacementStats s = stats();
  JsonWriter json;
  json.begin_object().member("ready", ready());
  json.member("scheduled", s.scheduled).member("unschedulable", s.unschedulable).member("errors", s.errors);
  json.member("conflicts", s.conflicts).member("askedAgain", s.asked_again).member("bound", s.bound);
  json.member("cycles", s.cycles).member("decideNs", s.decide_ns).member("fullPasses", s.full_passes);
  json.member("incrementalUpdates", s.incremental_updates).member("copies", s.copies);
  json.member("active", s.active)
      .member("backoff", s.backoff)
      .member("parked", s.parked)
      .member("gated", s.gated);
  json.member("unanswered", s.unanswered).member("granted", s.granted).member("nodes", s.nodes);
  json.member("accountedPods", s.accounted_pods).member("classes", s.classes);
  json.member("classCacheBytes", s.class_cache_bytes);
  return json.end_object().take();
}

void Placement::State::on_query(const fb::Query& query, FollowerTurn& turn) {
  const std::string_view verb = text(query.verb());
  const std::string_view ns = text(query.namespace_());
  const std::string_view name = text(query.name());
  const std::uint32_t limit = query.limit() == 0 ? kDefaultLimit : query.limit();
  std::string answer;
  bool ok = true;
  const auto refuse_with = [&](std::string_view why) {
    ok = false;
    answer = JsonWriter().begin_object().member("error", why).end_object().take();
  };
  if (verb == "nodes") {
    answer = nodes_json(name, limit);
  } else if (verb == "pods") {
    answer = pods_json(ns, limit);
  } else if (verb == "pending") {
    answer = pending_json(ns, limit);
  } else if (verb == "decisions") {
    answer = decisions_json(ns, name, limit);
  } else if (verb == "explain" || verb == "explain-text") {
    answer = explain_json(ns, name, verb == "explain-text");
    if (answer.empty()) {
      refuse_with("pod " + std::string(ns) + "/" + std::string(name) +
                  " is not pending here: it is bound, unknown, or of another scheduler");
    }
  } else if (verb == "stats") {
    answer = stats_json();
  } else {
    refuse_with("unknown question \"" + std::string(verb) +
                "\"; ask for nodes, pods, pending, decisions, explain, explain-text or stats");
  }
  flatbuffers::FlatBufferBuilder b(answer.size() + 64);
  const auto json = b.CreateString(answer);
  b.Finish(fb::CreateQueryResult(b, query.id(), ok, json));
  turn.reply(Message(Kind::query_result, b));
}

}  // namespace troupe
