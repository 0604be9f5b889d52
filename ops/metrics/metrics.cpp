#include "ops/metrics/metrics.hpp"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <limits>
#include <utility>

namespace troupe {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<std::pair<std::string, std::string>>;

/// Collects families in the order in which they are first named.
class Page {
 public:
  void counter(const char* name, const char* help, const Labels& labels, double value) {
    metric(name, help, MetricType::Counter, labels).counter.value = value;
  }
  void gauge(const char* name, const char* help, const Labels& labels, double value) {
    metric(name, help, MetricType::Gauge, labels).gauge.value = value;
  }
  /// Buckets of Durations: below 2^i microseconds each, told in seconds.
  void durations(const char* name, const char* help, const Labels& labels, const Durations& d) {
    prometheus::ClientMetric::Histogram& h = metric(name, help, MetricType::Histogram, labels).histogram;
    h.sample_count = d.count;
    h.sample_sum = static_cast<double>(d.sum_ns) * 1e-9;
    std::uint64_t below = 0;
    for (std::size_t i = 0; i + 1 < Durations::kBuckets; ++i) {
      below += d.buckets[i];
      h.bucket.push_back({below, static_cast<double>(std::uint64_t{1} << i) * 1e-6});
    }
    h.bucket.push_back({d.count, std::numeric_limits<double>::infinity()});
  }
  [[nodiscard]] std::string text() const { return prometheus::TextSerializer().Serialize(families_); }

 private:
  ClientMetric& metric(const char* name, const char* help, MetricType type, const Labels& labels) {
    if (families_.empty() || families_.back().name != name) families_.push_back({name, help, type, {}});
    ClientMetric& m = families_.back().metric.emplace_back();
    for (const auto& [key, value] : labels) m.label.push_back({key, value});
    return m;
  }

  std::vector<MetricFamily> families_;
};

double number(std::uint64_t value) {
  return static_cast<double>(value);
}

void scheduler(Page& page, const MetricsInput& in) {
  const PlacementStats& p = in.placement;
  const auto attempts = [&](const char* result, std::uint64_t n) {
    page.counter("scheduler_schedule_attempts_total", "Attempts to schedule pods, by result",
                 {{"result", result}, {"profile", in.profile}}, number(n));
  };
  attempts("scheduled", p.scheduled);
  attempts("unschedulable", p.unschedulable);
  attempts("error", p.errors);
  const auto pending = [&](const char* queue, std::size_t n) {
    page.gauge("scheduler_pending_pods", "Pending pods, by queue", {{"queue", queue}}, number(n));
  };
  pending("active", p.active);
  pending("backoff", p.backoff);
  pending("unschedulable", p.parked);
  pending("gated", p.gated);
  const auto cache = [&](const char* type, std::size_t n) {
    page.gauge("scheduler_cache_size", "Objects in the scheduler's cache, by type", {{"type", type}},
               number(n));
  };
  cache("nodes", p.nodes);
  cache("pods", p.accounted_pods);
  cache("assumed_pods", p.unanswered + p.granted);
  page.gauge("leader_election_master_status", "1 on the replica that decides", {{"name", in.profile}},
             in.leader ? 1 : 0);
}

void placement(Page& page, const PlacementStats& p) {
  page.counter("troupe_placement_bound_total", "Binds settled as done", {}, number(p.bound));
  page.counter("troupe_placement_conflicts_total", "Commits that their node's owner refused", {},
               number(p.conflicts));
  page.counter("troupe_placement_asked_again_total", "Commits sent once more after a deadline", {},
               number(p.asked_again));
  page.counter("troupe_placement_cycles_total", "Decision cycles", {}, number(p.cycles));
  page.counter("troupe_placement_decide_seconds_total", "Time spent in decision cycles", {},
               number(p.decide_ns) * 1e-9);
  page.counter("troupe_placement_full_passes_total", "Column passes over all nodes", {},
               number(p.full_passes));
  page.counter("troupe_placement_incremental_updates_total", "Nodes evaluated again one by one", {},
               number(p.incremental_updates));
  page.counter("troupe_placement_copies_total", "Ledger copies taken", {}, number(p.copies));
  page.gauge("troupe_placement_unanswered_commits", "Commits without an answer", {}, number(p.unanswered));
  page.gauge("troupe_placement_granted_commits", "Commits granted, bind not settled", {}, number(p.granted));
  page.gauge("troupe_placement_classes", "Pod classes in the cache", {}, number(p.classes));
  page.gauge("troupe_placement_class_cache_bytes", "Memory of the class cache", {},
             number(p.class_cache_bytes));
}

void hosts(Page& page, const std::vector<HostStats>& all) {
  const auto each = [&](const char* name, const char* help, bool counter, std::uint64_t HostStats::*field) {
    for (const HostStats& h : all) {
      const Labels labels{{"kind", std::string(to_string(h.kind))}};
      counter ? page.counter(name, help, labels, number(h.*field))
              : page.gauge(name, help, labels, number(h.*field));
    }
  };
  each("troupe_actor_turns_total", "Turns run, by actor kind", true, &HostStats::turns);
  each("troupe_actor_messages_total", "Messages taken from mailboxes", true, &HostStats::messages);
  each("troupe_actor_queue_depth", "Messages in mailboxes", false, &HostStats::queue_depth);
  each("troupe_actor_instances", "Actor instances", false, &HostStats::instances);
  each("troupe_actor_throws_total", "Turns lost to an exception", true, &HostStats::throws);
  each("troupe_actor_quarantined_total", "Messages given up after throwing twice", true,
       &HostStats::quarantined);
  each("troupe_actor_unauthorized_total", "Messages dropped because authority had lapsed", true,
       &HostStats::unauthorized);
  for (const HostStats& h : all) {
    page.durations("troupe_actor_turn_duration_seconds", "Time per turn",
                   {{"kind", std::string(to_string(h.kind))}}, h.turn_time);
  }
  for (const HostStats& h : all) {
    page.durations("troupe_actor_commit_wait_seconds",
                   "From handing writes to the store until their messages have left",
                   {{"kind", std::string(to_string(h.kind))}}, h.commit_wait);
  }
}

void rest(Page& page, const MetricsInput& in) {
  page.counter("troupe_store_commits_total", "Group commits: one synced write each", {},
               number(in.store.commits));
  page.counter("troupe_store_operations_total", "Keys written or erased", {}, number(in.store.operations));
  page.counter("troupe_store_wal_bytes_total", "Bytes written to the log", {}, number(in.store.wal_bytes));
  page.counter("troupe_intents_done_total", "Intents that took effect", {}, number(in.port.intents_done));
  page.counter("troupe_intents_failed_total", "Intents that ended otherwise", {},
               number(in.port.intents_failed));
  page.gauge("troupe_intents_waiting", "Intents under way", {}, number(in.port.intents_waiting));
  page.counter("troupe_bridge_requests_total", "Requests to the API server", {}, number(in.port.requests));
  page.counter("troupe_bridge_relists_total", "Lists after the first of each kind", {},
               number(in.port.relists));
  page.counter("troupe_bridge_rejected_objects_total", "Objects that could not be understood", {},
               number(in.rejected_objects));
  page.gauge("troupe_ready", "1 when /readyz answers 200", {}, in.ready ? 1 : 0);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  page.counter("process_cpu_seconds_total", "User and system CPU time", {},
               seconds(usage.ru_utime) + seconds(usage.ru_stime));
  std::uint64_t total = 0;
  std::uint64_t resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  page.gauge("process_resident_memory_bytes", "Resident memory", {},
             number(resident) * static_cast<double>(sysconf(_SC_PAGESIZE)));
}

}  // namespace

std::string metrics_text(const MetricsInput& input) {
  Page page;
  scheduler(page, input);
  placement(page, input.placement);
  hosts(page, input.hosts);
  rest(page, input);
  return page.text();
}

}  // namespace troupe
