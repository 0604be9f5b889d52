#include "actors/host/stats.hpp"

#include <algorithm>

namespace troupe {

Durations& Durations::operator+=(const Durations& other) {
  count += other.count;
  sum_ns += other.sum_ns;
  max_ns = std::max(max_ns, other.max_ns);
  for (std::size_t i = 0; i < kBuckets; ++i) buckets[i] += other.buckets[i];
  return *this;
}

HostStats& HostStats::operator+=(const HostStats& other) {
  turns += other.turns;
  messages += other.messages;
  queue_depth += other.queue_depth;
  instances += other.instances;
  throws += other.throws;
  restorations += other.restorations;
  quarantined += other.quarantined;
  unusable += other.unusable;
  unauthorized += other.unauthorized;
  unhandled += other.unhandled;
  write_sets += other.write_sets;
  write_sets_out += other.write_sets_out;
  turn_time += other.turn_time;
  commit_wait += other.commit_wait;
  return *this;
}

std::string_view to_string(HostEvent::Type type) {
  switch (type) {
    case HostEvent::Type::threw:
      return "threw";
    case HostEvent::Type::quarantined:
      return "quarantined";
    case HostEvent::Type::restored:
      return "restored";
    case HostEvent::Type::unusable:
      return "unusable";
    case HostEvent::Type::refused:
      return "refused";
    case HostEvent::Type::unhandled:
      return "unhandled";
    case HostEvent::Type::undeliverable:
      return "undeliverable";
  }
  return "unknown";
}

Durations DurationCounter::get() const {
  Durations out;
  out.count = count_.get();
  out.sum_ns = sum_.get();
  out.max_ns = max_.get();
  for (std::size_t i = 0; i < Durations::kBuckets; ++i) out.buckets[i] = buckets_[i].get();
  return out;
}

}  // namespace troupe
