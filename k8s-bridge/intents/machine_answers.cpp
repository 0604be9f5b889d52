// What an answer means for the intent that caused it (protocols 14, spec 5.9).
#include <algorithm>

#include "k8s-bridge/intents/answers.hpp"
#include "k8s-bridge/intents/machine.hpp"

namespace troupe {
namespace {

using fb::IntentKind;
using fb::IntentOutcome;

enum class Meaning {
  done,
  conflict,  // 409
  gone,      // 404
  again,     // not applied: send it again
  unclear,   // may have been applied
  refused,   // a definite error
};

Meaning meaning_of(const HttpOutcome& outcome) {
  if (!outcome) return outcome.error().unclear ? Meaning::unclear : Meaning::again;
  const int status = outcome->status;
  if (status >= 200 && status < 300) return Meaning::done;
  switch (status) {
    case 404:
      return Meaning::gone;
    case 409:
      return Meaning::conflict;
    case 401:  // the client has read its credentials again already; they may be renewed yet
    case 429:  // refused before it was handled; were it not, the second one gets 409 and the pod is read
      return Meaning::again;
    case 408:
      return Meaning::unclear;
    default:
      return status >= 500 ? Meaning::unclear : Meaning::refused;
  }
}

std::int64_t retry_after_ms(const HttpOutcome& outcome) {
  if (!outcome || (outcome->status != 429 && outcome->status < 500)) return 0;
  return outcome->retry_after.count() > 0 ? outcome->retry_after.count()
                                          : status_retry_after_ms(outcome->body);
}

constexpr std::string_view kRecreated = "the pod was created again under the same name";
constexpr std::string_view kSeveralBudgets = "more than one PodDisruptionBudget";

}  // namespace

void IntentMachine::answered(std::uint32_t index, const HttpOutcome& outcome, std::int64_t now_ms,
                             Output& out) {
  now_ms_ = now_ms;
  Slot& slot = slots_[index];
  --(slot.flies_urgent ? urgent_flying_ : background_flying_);
  if (slot.state == State::abandoned) return free_slot(index);
  slot.state = State::blocked;
  limit_by(outcome, intent(slot).kind(), slot.step);
  switch (slot.step) {
    case Step::read:
      return on_read(index, outcome, out);
    case Step::effect:
      return on_effect(index, outcome, out);
    case Step::event:
      return on_event(index, outcome, out);
  }
}

/// An API server that answers too little, or asks for less, gets fewer requests at once, down to one that
/// probes.
void IntentMachine::limit_by(const HttpOutcome& outcome, IntentKind kind, Step step) {
  const bool budget =
      kind == IntentKind::Evict && step == Step::effect;  // 429 then speaks of the pod, not of load
  const bool overload = !outcome || outcome->status == 503 || (outcome->status == 429 && !budget);
  limit_ = overload ? std::max(1, limit_ / 2) : std::min(options_.concurrency, limit_ + 1);
}

void IntentMachine::on_event(std::uint32_t index, const HttpOutcome& outcome, Output& out) {
  Slot& slot = slots_[index];
  const bool of_bind = intent(slot).kind() == IntentKind::Bind;
  const auto end = [&](IntentOutcome result, std::string_view message) {
    const Ending ending{result, outcome->status, message};
    if (of_bind) {
      complete(index, ending, out);
    } else {
      decide(index, ending, out);
    }
  };
  switch (meaning_of(outcome)) {
    case Meaning::done:
    case Meaning::conflict:  // AlreadyExists: an earlier try arrived
      return end(IntentOutcome::Done, {});
    case Meaning::again:
    case Meaning::unclear:
      return back_off(index, retry_after_ms(outcome), out);
    case Meaning::gone:
    case Meaning::refused:
      if (of_bind) return end(IntentOutcome::Done, "event refused: " + status_message(outcome->body));
      return end(IntentOutcome::Refused, status_message(outcome->body));
  }
}

void IntentMachine::on_effect(std::uint32_t index, const HttpOutcome& outcome, Output& out) {
  Slot& slot = slots_[index];
  const IntentKind kind = intent(slot).kind();
  const auto end = [&](IntentOutcome result, std::string_view message) {
    decide(index, {result, outcome->status, message}, out);
  };
  switch (meaning_of(outcome)) {
    case Meaning::done:
      return end(IntentOutcome::Done, {});
    case Meaning::gone:
      return end(
          kind == IntentKind::Evict || kind == IntentKind::Delete ? IntentOutcome::Done : IntentOutcome::Gone,
          status_message(outcome->body));
    case Meaning::conflict:
      if (slot.conflict == nullptr) slot.conflict = std::make_unique<Conflict>();
      slot.conflict->message = status_message(outcome->body);
      slot.conflict->open = true;
      return read_next(index, out);
    case Meaning::refused:
      return end(IntentOutcome::Refused, status_message(outcome->body));
    case Meaning::again:
      if (kind == IntentKind::Evict && outcome && outcome->status == 429) {
        // A budget may forbid it for hours: what else is wanted of the pod does not wait for that.
        unlink(index);
        const std::int64_t asked = retry_after_ms(outcome);
        const auto least = static_cast<double>(asked > 0 ? asked : options_.eviction_pause_ms);
        return pause(index, static_cast<std::int64_t>(least * jitter_.between(1, 1.25)), out);
      }
      return back_off(index, retry_after_ms(outcome), out);
    case Meaning::unclear:
      if (kind == IntentKind::Evict && outcome && outcome->status == 500) {
        const std::string message = status_message(outcome->body);
        if (message.find(kSeveralBudgets) != std::string::npos) return end(IntentOutcome::Refused, message);
      }
      if (kind == IntentKind::Bind) slot.step = Step::read;
      return back_off(index, retry_after_ms(outcome), out);
  }
}

void IntentMachine::on_read(std::uint32_t index, const HttpOutcome& outcome, Output& out) {
  switch (meaning_of(outcome)) {
    case Meaning::done:
      return on_pod(index, *outcome, out);
    case Meaning::gone: {
      const IntentKind kind = intent(slots_[index]).kind();
      const bool wanted_gone = kind == IntentKind::Evict || kind == IntentKind::Delete;
      return decide(
          index,
          {wanted_gone ? IntentOutcome::Done : IntentOutcome::Gone, 404, status_message(outcome->body)}, out);
    }
    case Meaning::refused:
      return decide(index, {IntentOutcome::Refused, outcome->status, status_message(outcome->body)}, out);
    case Meaning::conflict:
    case Meaning::again:
    case Meaning::unclear:
      return back_off(index, retry_after_ms(outcome), out);
  }
}

void IntentMachine::read_next(std::uint32_t index, Output& out) {
  Slot& slot = slots_[index];
  const fb::Intent& wanted = intent(slot);
  slot.step = Step::read;
  if (stop_effects_ || !authority_(wanted.partition(), wanted.partition_epoch())) return stop_one(index, out);
  make_ready(index);
}

/// The pod as it is tells whether the intent has taken effect, or still can.
void IntentMachine::on_pod(std::uint32_t index, const HttpResponse& response, Output& out) {
  Slot& slot = slots_[index];
  const fb::Intent& wanted = intent(slot);
  auto pod = read_pod_state(response.body);
  if (!pod) return back_off(index, 0, out);
  const bool bind = wanted.kind() == IntentKind::Bind;
  const int status = slot.conflict != nullptr && slot.conflict->open ? 409 : response.status;
  const auto end = [&](IntentOutcome result, std::string_view message) {
    decide(index, {result, status, message}, out);
  };

  if (PodUid::parse(pod->uid) != PodUid::from(wanted.uid())) return end(IntentOutcome::Gone, kRecreated);
  if (wanted.kind() == IntentKind::Evict || wanted.kind() == IntentKind::Delete) {
    if (pod->deleting) return end(IntentOutcome::Done, {});
    slot.step = Step::effect;
    return back_off(index, 0, out);
  }
  if (!bind) {
    slot.step = Step::effect;
    return back_off(index, 0, out);
  }
  if (!pod->node_name.empty()) {
    if (pod->node_name == text(wanted.node())) return end(IntentOutcome::Done, {});
    return end(IntentOutcome::Elsewhere, "the pod is bound to node " + pod->node_name);
  }
  if (pod->deleting) return end(IntentOutcome::Gone, "the pod is being deleted");
  const bool same_version = pod->resource_version == text(wanted.resource_version());
  const bool same_spec = wanted.generation() != 0 && wanted.generation() == pod->generation;
  if (!same_version && !same_spec && !text(wanted.resource_version()).empty()) {
    return end(IntentOutcome::Refused, "the pod changed since it was decided: resourceVersion " +
                                           std::string(text(wanted.resource_version())) + " became " +
                                           pod->resource_version);
  }
  rebind(index, same_version ? std::string() : std::move(pod->resource_version), out);
}

/// The pod is as it was decided, and unbound: binds it again, as often as conflicts may happen by bad luck.
void IntentMachine::rebind(std::uint32_t index, std::string version, Output& out) {
  Slot& slot = slots_[index];
  slot.step = Step::effect;
  if (slot.conflict == nullptr) {
    if (version.empty()) return make_ready(index);
    slot.conflict = std::make_unique<Conflict>();
  }
  Conflict& conflict = *slot.conflict;
  conflict.version = std::move(version);
  if (!conflict.open) return make_ready(index);
  conflict.open = false;
  if (conflict.tries >= options_.conflict_tries) {
    const std::string why = std::move(conflict.message);
    return decide(index, {IntentOutcome::Refused, 409, why}, out);
  }
  const auto n = static_cast<unsigned>(conflict.tries++);
  pause(index, jitter_.backoff_ms(options_.conflict_pause_ms, options_.backoff_max_ms, n), out);
}

}  // namespace troupe
