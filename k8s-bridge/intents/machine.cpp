#include "k8s-bridge/intents/machine.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "k8s-bridge/decode/encode.hpp"
#include "k8s-bridge/paths.hpp"

namespace troupe {
namespace {

using fb::IntentKind;
using fb::IntentOutcome;
using fb::IntentStage;

bool urgent_kind(IntentKind kind) {
  return kind == IntentKind::Bind || kind == IntentKind::Evict || kind == IntentKind::Delete;
}

/// Why an intent can never be carried out safely; empty: it can.
std::string_view fault_of(const fb::Intent& intent) {
  if (intent.kind() == IntentKind::Event) {
    if (intent.event() == nullptr) return "an Event intent without its event";
  } else if (text(intent.uid_text()).empty()) {
    return "an intent without the pod's uid";  // by name alone it could hit another pod
  }
  if (intent.after() != 0 && intent.id() != 0 && intent.after() >= intent.id()) {
    return "waits for an intent that is not older";
  }
  return {};
}

std::size_t index_of(auto value) {
  return static_cast<std::size_t>(value);
}

}  // namespace

std::int64_t IntentMachine::Bucket::ready_ms(std::int64_t now_ms) const {
  if (qps_ <= 0) return now_ms;
  const double there = std::min(burst_, tokens_ + static_cast<double>(now_ms - last_ms_) * qps_ / 1000);
  if (there >= 1) return now_ms;
  return now_ms + std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil((1 - there) * 1000 / qps_)));
}

void IntentMachine::Bucket::take(std::int64_t now_ms) {
  if (qps_ <= 0) return;
  tokens_ = std::min(burst_, tokens_ + static_cast<double>(now_ms - last_ms_) * qps_ / 1000) - 1;
  last_ms_ = now_ms;
}

IntentMachine::IntentMachine(ExecutorOptions options, AuthorityCheck authority)
    : options_(std::move(options)),
      authority_(std::move(authority)),
      jitter_(options_.seed),
      urgent_rate_(options_.qps, options_.burst),
      background_rate_(options_.background_qps, options_.background_burst),
      limit_(std::max(1, options_.concurrency)) {
  options_.concurrency = limit_;
}

// ---- taking intents ----

PodUid IntentMachine::object_key(const fb::Intent& intent) {
  const PodUid uid = PodUid::from(intent.uid());
  if (!uid.zero()) return uid;
  std::string name(text(intent.namespace_()));
  name += '/';
  name += text(intent.name());
  return PodUid::parse(name);
}

void IntentMachine::add(std::vector<Message> intents, std::int64_t now_ms, Output& out) {
  now_ms_ = now_ms;
  // An intent comes after the one that it waits for, whatever order the batch has: all links lead back, none
  // in a circle.
  const auto by_id = [](const Message& a, const Message& b) {
    return a.as<fb::Intent>().id() < b.as<fb::Intent>().id();
  };
  if (!std::is_sorted(intents.begin(), intents.end(), by_id))
    std::stable_sort(intents.begin(), intents.end(), by_id);
  for (Message& message : intents) add_one(std::move(message), out);
}

void IntentMachine::add_one(Message message, Output& out) {
  const auto& wanted = message.as<fb::Intent>();
  const std::uint64_t id = wanted.id();
  if (const auto known = by_id_.find(id); id != 0 && known != by_id_.end()) {
    // Its owner was restored meanwhile. The Complete is still to come; the Effect may be what it lost.
    if (slots_[known->second].decided) tell(wanted, IntentStage::Effect, {IntentOutcome::Done, 0, {}}, out);
    return;
  }
  if (wanted.kind() > IntentKind::Event) {
    return tell(wanted, IntentStage::Complete, {IntentOutcome::Refused, 0, "unknown kind of intent"}, out);
  }
  ++stats_.issued[index_of(wanted.kind())];
  if (options_.dry_run) {
    const Ending ending{IntentOutcome::Done, 0, "dry run"};
    if (wanted.kind() == IntentKind::Bind && wanted.event() != nullptr)
      tell(wanted, IntentStage::Effect, ending, out);
    ++stats_.outcomes[index_of(wanted.kind())][index_of(ending.outcome)];
    tell(wanted, IntentStage::Complete, ending, out);
    out.would.push_back(std::move(message));
    return;
  }
  const std::uint32_t index = take_slot();
  Slot& slot = slots_[index];
  slot.message = std::move(message);
  slot.issued_ms = now_ms_;
  slot.urgent = urgent_kind(wanted.kind());
  if (wanted.kind() == IntentKind::Event) {
    slot.step = Step::event;
  } else if (wanted.kind() == IntentKind::Bind && wanted.created_ms() < options_.started_ms) {
    slot.step = Step::read;  // an earlier process may have sent it
  }
  if (id != 0) by_id_.emplace(id, index);
  if (stop_effects_) {
    stop_one(index, out);
  } else if (const std::string_view fault = fault_of(wanted); !fault.empty()) {
    decide(index, {IntentOutcome::Refused, 0, fault}, out);
  } else {
    link(index);
  }
}

std::uint32_t IntentMachine::take_slot() {
  ++pending_;
  if (free_.empty()) {
    slots_.emplace_back();
    return static_cast<std::uint32_t>(slots_.size() - 1);
  }
  const std::uint32_t index = free_.back();
  free_.pop_back();
  return index;
}

void IntentMachine::free_slot(std::uint32_t index) {
  slots_[index] = Slot{};
  free_.push_back(index);
}

/// Puts the slot behind what it has to wait for; what an urgent one waits for is urgent.
void IntentMachine::link(std::uint32_t index) {
  Slot& slot = slots_[index];
  const fb::Intent& wanted = intent(slot);
  slot.state = State::blocked;
  if (wanted.after() != 0) {
    if (const auto first = by_id_.find(wanted.after());
        first != by_id_.end() && !slots_[first->second].decided) {
      slot.waits_after = true;
      ++slot.blockers;
      dependents_.emplace(wanted.after(), index);
      if (slot.urgent) promote(first->second);
    }
  }
  if (wanted.kind() != IntentKind::Event) {
    slot.chained = true;
    const auto [last, first_of_object] = last_of_object_.try_emplace(object_key(wanted), index);
    if (!first_of_object) {
      slot.prev_same = last->second;
      slots_[last->second].next_same = index;
      last->second = index;
      ++slot.blockers;
      if (slot.urgent) promote(slot.prev_same);
    }
  }
  if (slot.blockers == 0) make_ready(index);
}

/// Takes the slot out of its object's list and out of those that wait for another intent.
void IntentMachine::unlink(std::uint32_t index) {
  Slot& slot = slots_[index];
  if (slot.waits_after) {
    const auto [begin, end] = dependents_.equal_range(intent(slot).after());
    for (auto it = begin; it != end; ++it) {
      if (it->second != index) continue;
      dependents_.erase(it);
      break;
    }
    slot.waits_after = false;
  }
  if (!slot.chained) return;
  slot.chained = false;
  const std::uint32_t prev = std::exchange(slot.prev_same, kNone);
  const std::uint32_t next = std::exchange(slot.next_same, kNone);
  if (prev != kNone) slots_[prev].next_same = next;
  if (next != kNone) {
    slots_[next].prev_same = prev;
    if (prev == kNone) unblock(next);
  } else if (prev != kNone) {
    last_of_object_[object_key(intent(slot))] = prev;
  } else {
    last_of_object_.erase(object_key(intent(slot)));
  }
}

/// Makes a slot urgent, and everything that it waits for.
void IntentMachine::promote(std::uint32_t index) {
  std::vector<std::uint32_t> left{index};
  while (!left.empty()) {
    const std::uint32_t next = left.back();
    left.pop_back();
    Slot& slot = slots_[next];
    if (slot.urgent || slot.decided) continue;
    slot.urgent = true;
    if (slot.state == State::ready) make_ready(next);
    if (slot.prev_same != kNone) left.push_back(slot.prev_same);
    if (!slot.waits_after) continue;
    if (const auto first = by_id_.find(intent(slot).after()); first != by_id_.end())
      left.push_back(first->second);
  }
}

void IntentMachine::unblock(std::uint32_t index) {
  if (--slots_[index].blockers == 0) make_ready(index);
}

void IntentMachine::make_ready(std::uint32_t index) {
  Slot& slot = slots_[index];
  slot.state = State::ready;
  slot.ticket = next_ticket_++;
  slot.queued_ms = now_ms_;
  const Queued entry{index, slot.ticket};
  if (!slot.urgent) {
    background_.push_back(entry);
  } else if (slot.step == Step::read || slot.conflict != nullptr) {
    urgent_.push_front(entry);  // halfway: its answer is waited for
  } else {
    urgent_.push_back(entry);
  }
}

// ---- pauses ----

void IntentMachine::pause(std::uint32_t index, std::int64_t delay_ms, Output& out) {
  Slot& slot = slots_[index];
  const fb::Intent& wanted = intent(slot);
  if (!authority_(wanted.partition(), wanted.partition_epoch()) ||
      (stop_effects_ && slot.step != Step::event)) {
    return stop_one(index, out);
  }
  ++stats_.retries;
  slot.state = State::paused;
  slot.ticket = next_ticket_++;
  paused_.push({now_ms_ + delay_ms, {index, slot.ticket}});
}

void IntentMachine::back_off(std::uint32_t index, std::int64_t at_least_ms, Output& out) {
  Slot& slot = slots_[index];
  const std::int64_t own = jitter_.backoff_ms(options_.backoff_ms, options_.backoff_max_ms, slot.tries);
  if (slot.tries < 100) ++slot.tries;
  // Retry-After is what all waiting clients were told: spread what comes back.
  const std::int64_t asked =
      static_cast<std::int64_t>(static_cast<double>(at_least_ms) * jitter_.between(1, 1.25));
  pause(index, std::max(own, asked), out);
}

void IntentMachine::wake_paused() {
  while (!paused_.empty() && paused_.top().due_ms <= now_ms_) {
    const Queued entry = paused_.top().entry;
    paused_.pop();
    const Slot& slot = slots_[entry.slot];
    if (slot.state == State::paused && slot.ticket == entry.ticket) make_ready(entry.slot);
  }
}

std::int64_t IntentMachine::next_due() const {
  return std::min(rate_due_ms_, paused_.empty() ? kNever : paused_.top().due_ms);
}

// ---- sending ----

/// The slot whose turn it is in a lane; kNone when there is none.
std::uint32_t IntentMachine::front(std::deque<Queued>& lane) {
  while (!lane.empty()) {
    const auto [index, ticket] = lane.front();
    if (slots_[index].state == State::ready && slots_[index].ticket == ticket) return index;
    lane.pop_front();
  }
  return kNone;
}

void IntentMachine::advance(std::int64_t now_ms, Output& out) {
  now_ms_ = now_ms;
  rate_due_ms_ = kNever;
  wake_paused();
  const auto may_start = [&](const Bucket& rate) {
    const std::int64_t ready = rate.ready_ms(now_ms);
    if (ready > now_ms) rate_due_ms_ = std::min(rate_due_ms_, ready);
    return ready <= now_ms;
  };
  while (urgent_flying_ + background_flying_ < limit_) {
    std::uint32_t urgent = front(urgent_);
    std::uint32_t background =
        background_flying_ < options_.background_concurrency ? front(background_) : kNone;
    if (urgent != kNone && !may_start(urgent_rate_)) urgent = kNone;
    if (background != kNone && !may_start(background_rate_)) background = kNone;
    bool take_background = false;
    if (background != kNone) {
      const bool overdue = now_ms - slots_[background].queued_ms >= options_.background_wait_ms;
      take_background =
          overdue ? urgent == kNone || background_turn_ : urgent == kNone && urgent_flying_ * 2 < limit_;
      if (overdue) background_turn_ = !background_turn_;
    }
    const std::uint32_t index = take_background ? background : urgent;
    if (index == kNone) return;
    (take_background ? background_ : urgent_).pop_front();
    const fb::Intent& wanted = intent(slots_[index]);
    if (!authority_(wanted.partition(), wanted.partition_epoch())) {
      stop_one(index, out);
      continue;
    }
    (take_background ? background_rate_ : urgent_rate_).take(now_ms);
    start(index, out);
  }
}

void IntentMachine::start(std::uint32_t index, Output& out) {
  Slot& slot = slots_[index];
  const fb::Intent& wanted = intent(slot);
  slot.state = State::flying;
  slot.flies_urgent = slot.urgent;
  ++(slot.urgent ? urgent_flying_ : background_flying_);
  ++stats_.requests;
  out.sends.push_back(
      {index, slot.step != Step::read, wanted.partition(), wanted.partition_epoch(), request_of(slot)});
}

HttpRequest IntentMachine::request_of(const Slot& slot) const {
  const fb::Intent& wanted = intent(slot);
  HttpRequest request;
  request.timeout = options_.request_timeout;
  request.content_type = "application/json";
  request.method = "POST";
  if (slot.step == Step::event) {
    std::string instance(text(wanted.event()->controller()));
    instance += '-';
    instance += options_.host_name;
    request.path = event_path(text(wanted.namespace_()));
    request.body = encode_event(wanted, instance);
    return request;
  }
  request.path = pod_path(text(wanted.namespace_()), text(wanted.name()));
  if (slot.step == Step::read) {
    request.method = "GET";
    request.content_type.clear();
    return request;
  }
  switch (wanted.kind()) {
    case IntentKind::Bind:
      request.path += "/binding";
      request.body = slot.conflict != nullptr && !slot.conflict->version.empty()
                         ? encode_binding(wanted, slot.conflict->version)
                         : encode_binding(wanted);
      break;
    case IntentKind::Evict:
      request.path += "/eviction";
      request.body = encode_eviction(wanted);
      break;
    case IntentKind::Delete:
      request.method = "DELETE";
      request.body = encode_delete_options(wanted);
      break;
    case IntentKind::PatchStatus:
      request.method = "PATCH";
      request.path += "/status";
      request.content_type = "application/strategic-merge-patch+json";
      request.body = encode_status_patch(wanted);
      break;
    case IntentKind::Event:
      break;
  }
  return request;
}

// ---- ends ----

void IntentMachine::tell(const fb::Intent& wanted, IntentStage stage, const Ending& ending, Output& out) {
  if (wanted.id() == 0) return;
  builder_.Clear();
  const auto owner = builder_.CreateString(text(wanted.owner_key()).data(), text(wanted.owner_key()).size());
  flatbuffers::Offset<flatbuffers::String> message;
  if (!ending.message.empty()) message = builder_.CreateString(ending.message.data(), ending.message.size());
  fb::IntentResultBuilder result(builder_);
  result.add_id(wanted.id());
  if (wanted.uid() != nullptr) result.add_uid(wanted.uid());
  result.add_owner_key(owner);
  if (!ending.message.empty()) result.add_message(message);
  result.add_http_status(ending.status);
  result.add_partition(wanted.partition());
  result.add_kind(wanted.kind());
  result.add_stage(stage);
  result.add_outcome(ending.outcome);
  result.add_owner_kind(wanted.owner_kind());
  builder_.Finish(result.Finish());
  out.results.emplace_back(Kind::intent_result, builder_);
}

/// The effect of an intent is known: tells it, and lets go whoever waited for it.
void IntentMachine::decide(std::uint32_t index, const Ending& ending, Output& out) {
  Slot& slot = slots_[index];
  const fb::Intent& wanted = intent(slot);
  slot.decided = true;
  if (wanted.kind() == IntentKind::Bind) {
    const auto ms = static_cast<std::uint64_t>(std::max<std::int64_t>(0, now_ms_ - slot.issued_ms));
    ++stats_
          .bind_latency[std::min<std::size_t>(index_of(std::bit_width(ms)), stats_.bind_latency.size() - 1)];
    stats_.bind_latency_sum_ms += ms;
  }
  unlink(index);
  const std::uint64_t id = wanted.id();
  if (wanted.kind() == IntentKind::Bind && ending.outcome == IntentOutcome::Done &&
      wanted.event() != nullptr) {
    tell(wanted, IntentStage::Effect, ending, out);
    slot.step = Step::event;
    slot.urgent = false;
    slot.tries = 0;
    slot.conflict.reset();
    make_ready(index);
  } else {
    complete(index, ending, out);
  }
  if (id != 0 && !dependents_.empty()) release_dependents(id, ending, out);
}

void IntentMachine::release_dependents(std::uint64_t id, const Ending& ending, Output& out) {
  while (true) {
    const auto entry = dependents_.find(id);
    if (entry == dependents_.end()) return;
    const std::uint32_t index = entry->second;
    dependents_.erase(entry);
    Slot& slot = slots_[index];
    slot.waits_after = false;
    if (ending.outcome == IntentOutcome::Done) {
      unblock(index);
    } else if (ending.outcome == IntentOutcome::Stopped) {
      stop_one(index, out);
    } else {
      std::string why = "intent " + std::to_string(id) + ", which it waits for, did not take effect: ";
      why += ending.message.empty() ? fb::EnumNameIntentOutcome(ending.outcome) : ending.message;
      decide(index, {IntentOutcome::Refused, ending.status, why}, out);
    }
  }
}

void IntentMachine::complete(std::uint32_t index, const Ending& ending, Output& out) {
  Slot& slot = slots_[index];
  const fb::Intent& wanted = intent(slot);
  ++stats_.outcomes[index_of(wanted.kind())][index_of(ending.outcome)];
  tell(wanted, IntentStage::Complete, ending, out);
  if (wanted.id() != 0) by_id_.erase(wanted.id());
  --pending_;
  if (slot.state == State::flying) {
    slot.state = State::abandoned;  // its answer is still to come
  } else {
    free_slot(index);
  }
}

/// Authority ended, or the process does. What it has done stays done; its journal entry stays.
void IntentMachine::stop_one(std::uint32_t index, Output& out) {
  Slot& slot = slots_[index];
  const bool unclear = slot.state == State::flying || slot.tries > 0 || slot.conflict != nullptr;
  const Ending ending{IntentOutcome::Stopped, 0, unclear ? "may have taken effect: read it again" : ""};
  if (slot.decided) return complete(index, ending, out);
  decide(index, ending, out);
}

void IntentMachine::stop_effects(std::int64_t now_ms, Output& out) {
  now_ms_ = now_ms;
  stop_effects_ = true;
  for (std::uint32_t i = 0; i < slots_.size(); ++i) {
    const Slot& slot = slots_[i];
    const bool waits =
        slot.state == State::blocked || slot.state == State::ready || slot.state == State::paused;
    if (waits && slot.step != Step::event) stop_one(i, out);
  }
}

void IntentMachine::stop_all(std::int64_t now_ms, Output& out) {
  now_ms_ = now_ms;
  stop_effects_ = true;
  for (std::uint32_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i].state != State::free && slots_[i].state != State::abandoned) stop_one(i, out);
  }
}

ExecutorStats IntentMachine::stats() const {
  ExecutorStats stats = stats_;
  stats.waiting = pending_;
  stats.in_flight = in_flight();
  stats.urgent_queued = urgent_.size();
  stats.background_queued = background_.size();
  return stats;
}

}  // namespace troupe
