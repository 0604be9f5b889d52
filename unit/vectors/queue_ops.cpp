// Operations on the scheduling queue: order, backoff, and where a pod goes after an attempt.
#include <map>
#include <string>

#include "actors/placement/queue.hpp"
#include "unit/vectors/vectors.hpp"

namespace troupe::vectors {
namespace {

constexpr Millis kSecond = 1000;

class NoHints final : public HintSource {
 public:
  bool helps(const ParkedGroup& /*group*/, const ClusterEvent& /*event*/) override { return false; }
};

/// A queue with one class, and names for its pods.
struct NamedQueue {
  explicit NamedQueue(QueueOptions options) : queue(options, classes, hints), cls(classes.acquire({})) {}

  PodIndex add(const std::string& name, std::int32_t priority, Millis now) {
    const PodIndex pod = queue.create({1, ++pods}, now);
    queue[pod].cls = cls;
    queue[pod].priority = priority;
    names[pod] = name;
    return pod;
  }

  Interner interner;
  ClassTable classes{interner};
  NoHints hints;
  SchedulingQueue queue;
  ClassId cls;
  std::map<PodIndex, std::string> names;
  std::uint64_t pods = 0;
};

Json queue_order(const Json& row, const Json& /*given*/) {
  NamedQueue q({});
  for (const Json& p : row.at("pods")) {
    const Millis time = p.at("timestamp").get<Millis>() * kSecond;
    q.queue.enqueue(q.add(p.at("name"), p.value("priority", 0), time), false, time);
  }
  Json order = Json::array();
  for (PodIndex pod = q.queue.pop(0); pod != kNoPod; pod = q.queue.pop(0)) order.push_back(q.names[pod]);
  return {{"order", order}};
}

Json backoff_seconds(const Json& row, const Json& /*given*/) {
  const BackoffOptions options{row.at("initial").get<Millis>() * kSecond,
                               row.at("max").get<Millis>() * kSecond};
  return backoff_duration(options, row.at("count").get<std::uint32_t>()) / kSecond;
}

Json queue_after_attempt(const Json& row, const Json& /*given*/) {
  const auto named = [](const Json& list, const Json& name) {
    return std::find(list.begin(), list.end(), name) != list.end();
  };
  bool rejector = false;
  bool pending = false;
  for (const Json& h : row.at("inFlightHints")) {
    if (h.at("hint") != "Queue") continue;
    rejector = rejector || named(row.at("rejectedBy"), h.at("plugin"));
    pending = pending || named(row.at("pendingBy"), h.at("plugin"));
  }
  const bool blamed = !row.at("rejectedBy").empty() || !row.at("pendingBy").empty();
  switch (after_attempt(blamed, rejector, pending)) {
    case AfterAttempt::active:
      return "active";
    case AfterAttempt::backoff:
      return "backoff";
    case AfterAttempt::unschedulable:
      break;
  }
  return "unschedulable";
}

Json leftover_flush(const Json& row, const Json& /*given*/) {
  QueueOptions options;
  options.max_parked_ms = row.at("maxInUnschedulableSeconds").get<Millis>() * kSecond;
  NamedQueue q(options);
  std::vector<PodIndex> pods;
  for (const Json& p : row.at("pods")) {
    const Millis time = p.at("timestamp").get<Millis>() * kSecond;
    const bool gated = p.value("gated", false);
    pods.push_back(q.add(p.at("name"), 0, time));
    q.queue.enqueue(pods.back(), gated, time);
    if (gated) continue;
    q.queue.unschedulable(q.queue.pop(time), {PluginId::node_resources_fit}, {}, time);
  }
  q.queue.flush_parked(row.at("now").get<Millis>() * kSecond);
  Json flushed = Json::array();
  Json stay = Json::array();
  for (const PodIndex pod : pods) {
    const Place place = q.queue[pod].place;
    (place == Place::parked || place == Place::gated ? stay : flushed).push_back(q.names[pod]);
  }
  return {{"flushed", flushed}, {"stay", stay}};
}

[[maybe_unused]] const bool registered_ops =
    register_op("queue_order", queue_order) && register_op("backoff_seconds", backoff_seconds) &&
    register_op("queue_after_attempt", queue_after_attempt) && register_op("leftover_flush", leftover_flush);

}  // namespace
}  // namespace troupe::vectors
