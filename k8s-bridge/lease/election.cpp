#include "k8s-bridge/lease/election.hpp"

#include <algorithm>

#include "k8s-bridge/decode/encode.hpp"
#include "k8s-bridge/paths.hpp"

namespace troupe {

Result<void> check(const LeaseOptions& options) {
  const auto bad = [](const char* field, const char* what, const char* remedy) {
    return fail({ErrorCode::invalid, what, "leader election", field, remedy});
  };
  if (options.identity.empty()) return bad("identity", "must not be empty", "");
  if (options.name.empty()) return bad("resourceName", "must not be empty", "");
  if (options.name_space.empty()) return bad("resourceNamespace", "must not be empty", "");
  if (options.lease_duration_ms < 1000 || options.lease_duration_ms % 1000 != 0) {
    return bad("leaseDuration", "must be whole seconds", "use at least 1s");
  }
  if (options.renew_deadline_ms >= options.lease_duration_ms) {
    return bad("renewDeadline", "must be shorter than leaseDuration", "defaults are 15s and 10s");
  }
  if (options.retry_period_ms <= 0 || options.retry_period_ms * 12 >= options.renew_deadline_ms * 10) {
    return bad("retryPeriod", "must be above 0 and, times 1.2, shorter than renewDeadline",
               "the default is 2s");
  }
  return {};
}

LeaseDecision decide_lease(const LeaseRecord* seen, std::int64_t seen_for_ms, const std::string& identity,
                           std::int64_t duration_s, const std::string& now) {
  LeaseDecision decision{LeaseAction::create, {identity, duration_s, now, now, 0}};
  if (seen == nullptr) return decision;
  const bool ours = seen->holder == identity;
  if (!ours && !seen->holder.empty() && seen_for_ms < seen->duration_s * 1000) return {LeaseAction::wait, {}};
  decision.action = LeaseAction::update;
  decision.record.transitions = seen->transitions + (ours ? 0 : 1);
  if (ours && !seen->acquire_time.empty()) decision.record.acquire_time = seen->acquire_time;
  return decision;
}

LeaseElection::LeaseElection(LeaseOptions options) : options_(std::move(options)), jitter_(options_.seed) {
  collection_ = "/apis/coordination.k8s.io/v1/namespaces/";
  append_url_segment(collection_, options_.name_space);
  collection_ += "/leases";
  path_ = collection_ + "/";
  append_url_segment(path_, options_.name);
}

HttpRequest LeaseElection::request(std::string method, const std::string& path, std::string body) const {
  HttpRequest out;
  out.method = std::move(method);
  out.path = path;
  if (!body.empty()) out.content_type = "application/json";
  out.body = std::move(body);
  // A request that hangs leaves time for another before the deadline.
  out.timeout = std::chrono::milliseconds(std::max<std::int64_t>(1, options_.renew_deadline_ms / 2));
  return out;
}

std::optional<HttpRequest> LeaseElection::poll(std::int64_t now_ms, std::int64_t wall_us) {
  if (!leading(now_ms)) lose();
  if (flight_ != Flight::none) return std::nullopt;
  const std::string stamp = rfc3339_micro(wall_us / 1000);
  const auto send = [&](Flight flight, HttpRequest out) {
    flight_ = flight;
    sent_ms_ = now_ms;
    return out;
  };
  if (releasing_) {
    if (release_left_ == 0) return std::nullopt;
    if (!fresh_) return send(Flight::get, request("GET", path_, {}));
    --release_left_;
    const LeaseRecord nobody{{}, 1, stamp, stamp, known_.record.transitions};
    return send(Flight::release, request("PUT", path_, encode_lease(nobody, known_.metadata, {}, {})));
  }
  if (now_ms < due_ms_) return std::nullopt;
  if (!fresh_) return send(Flight::get, request("GET", path_, {}));
  fresh_ = false;  // used once: whatever is answered tells what is there
  const LeaseRecord* seen = absent_ ? nullptr : &known_.record;
  const auto decision =
      decide_lease(seen, now_ms - seen_ms_, options_.identity, options_.lease_duration_ms / 1000, stamp);
  switch (decision.action) {
    case LeaseAction::create:
      return send(Flight::create,
                  request("POST", collection_,
                          encode_lease(decision.record, {}, options_.name_space, options_.name)));
    case LeaseAction::update:
      return send(Flight::update,
                  request("PUT", path_, encode_lease(decision.record, known_.metadata, {}, {})));
    case LeaseAction::wait:
      break;
  }
  wait(now_ms);
  return std::nullopt;
}

void LeaseElection::answered(const HttpOutcome& outcome, std::int64_t now_ms) {
  const Flight flight = std::exchange(flight_, Flight::none);
  switch (flight) {
    case Flight::none:
      return;
    case Flight::get:
      return on_read(outcome, now_ms);
    case Flight::create:
    case Flight::update:
      return on_written(outcome, now_ms);
    case Flight::release:
      return on_released(outcome);
  }
}

/// The Lease as the API server has it. Whoever else holds it ends our leading, whatever time is left.
void LeaseElection::take_in(LeaseObject object, std::int64_t now_ms) {
  absent_ = false;
  if (known_.resource_version.empty() || !(object.record == known_.record)) seen_ms_ = now_ms;
  known_ = std::move(object);
  fresh_ = true;
  if (known_.record.holder != options_.identity) lose();
}

void LeaseElection::on_read(const HttpOutcome& outcome, std::int64_t now_ms) {
  if (outcome && outcome->status == 200) {
    auto object = read_lease(outcome->body);
    if (!object) return wait(now_ms);
    take_in(std::move(*object), now_ms);
    if (releasing_ && known_.record.holder != options_.identity) release_left_ = 0;
    due_ms_ = now_ms;  // decide at once
    return;
  }
  if (outcome && outcome->status == 404) return deleted(now_ms);
  if (releasing_) --release_left_;
  wait(now_ms);
}

void LeaseElection::on_written(const HttpOutcome& outcome, std::int64_t now_ms) {
  if (!outcome || outcome->status < 200 || outcome->status >= 300) {
    // A conflict is a lost round; anything unclear is read before the next.
    wait(now_ms);
    return;
  }
  auto object = read_lease(outcome->body);
  if (!object) return wait(now_ms);
  take_in(std::move(*object), now_ms);
  if (known_.record.holder != options_.identity) return wait(now_ms);
  if (!releasing_) held_until_ms_ = sent_ms_ + options_.renew_deadline_ms;
  due_ms_ = sent_ms_ + options_.retry_period_ms;
}

void LeaseElection::on_released(const HttpOutcome& outcome) {
  fresh_ = false;
  if (!outcome || outcome->status < 200 || outcome->status >= 300) return;
  release_left_ = 0;
  known_.record.holder.clear();
}

void LeaseElection::observed(LeaseObject object, std::int64_t now_ms) {
  // An answer under way is newer than any watch, and tells whether our own write is what the watch shows.
  if (flight_ != Flight::none) return;
  if (!known_.resource_version.empty() && !newer_version(object.resource_version, known_.resource_version))
    return;
  const bool nobody = object.record.holder.empty();
  take_in(std::move(object), now_ms);
  if (nobody && !releasing_) due_ms_ = now_ms;  // released: take it
}

void LeaseElection::deleted(std::int64_t now_ms) {
  if (flight_ != Flight::none) return;
  if (releasing_) {
    release_left_ = 0;
    return;
  }
  // Whoever held it may act on for as long as its last renewal said; only who never saw it creates another at
  // once.
  const bool other = !known_.record.holder.empty() && known_.record.holder != options_.identity;
  if (other && now_ms - seen_ms_ < known_.record.duration_s * 1000) return wait(now_ms);
  absent_ = true;
  fresh_ = true;
  known_.metadata.clear();
  due_ms_ = now_ms;
}

void LeaseElection::wait(std::int64_t now_ms) {
  const auto period = static_cast<double>(options_.retry_period_ms);
  fresh_ = false;
  due_ms_ = now_ms + static_cast<std::int64_t>(leading(now_ms) ? period : period * jitter_.between(1, 2.2));
}

void LeaseElection::lose() {
  held_until_ms_ = 0;
}

std::int64_t LeaseElection::next_due() const {
  if (releasing_) return flight_ == Flight::none && release_left_ > 0 ? 0 : kNever;
  std::int64_t due = flight_ == Flight::none ? due_ms_ : kNever;
  if (held_until_ms_ > 0) due = std::min(due, held_until_ms_);
  return due;
}

void LeaseElection::release(std::int64_t now_ms) {
  if (releasing_) return;
  releasing_ = true;
  // One that waits for an answer may hold it by now.
  const bool may_hold = leading(now_ms) || flight_ == Flight::create || flight_ == Flight::update;
  release_left_ = may_hold ? 3 : 0;
  lose();
}

}  // namespace troupe
