#include <utility>

#include "actors/host/partition.hpp"
#include "actors/host/partition_detail.hpp"
#include "actors/host/store_reader.hpp"

namespace troupe {

void Partition::report(HostEvent::Type type, Kind message, const Address& address, std::string text) {
  services_.report({type, message, address, std::move(text)});
}

/// `work` threw: its instance has no usable state until it is restored.
void Partition::fault(Slot& slot, Work work, const std::string& error) {
  counters_->throws.add();
  report(HostEvent::Type::threw, work.envelope.message.kind(),
         {self_.kind, self_.partition, std::string(slot.key)}, error);
  slot.instance.reset();
  slot.incarnation = 0;
  if (slot.fault == nullptr) slot.fault = std::make_unique<Fault>();
  faulted_.push_back(&slot);
  if (work.refused) return;  // even its answer throws
  if (work.throws > 1) {
    work.envelope.to.key = slot.key;
    quarantine(work.envelope, error);
    if (work.parts.empty()) return;
    work.refused = true;
  }
  slot.fault->waiting.push_front(std::move(work));
}

void Partition::quarantine(const Envelope& envelope, const std::string& error) {
  counters_->quarantined.add();
  {
    const std::lock_guard lock(quarantine_mutex_);
    if (quarantined_.size() >= kMaxQuarantined) quarantined_.pop_front();
    quarantined_.push_back({turn_.wall_ms(), envelope.message.kind(), envelope.from, envelope.to, error});
  }
  report(HostEvent::Type::quarantined, envelope.message.kind(), envelope.to, error);
}

/// A message for a faulted instance: waits, unless the instance could not be restored a moment ago.
void Partition::wait(Slot& slot, Work work) {
  if (slot.fault->retry_at) {
    if (turn_.now() < *slot.fault->retry_at) return refuse_unusable(slot, work);
    slot.fault->retry_at.reset();
    faulted_.push_back(&slot);
  }
  slot.fault->waiting.push_back(std::move(work));
}

/// Restores what may be restored, and runs what waited for it. A message that throws again faults its
/// instance again; each message does so at most three times, so this ends.
void Partition::resume_all() {
  if (partition_fault_ != nullptr) resume_partition();
  if (partition_fault_ != nullptr) return;
  for (bool progress = true; progress;) {
    progress = false;
    for (std::size_t i = 0; i < faulted_.size();) {
      Slot* slot = faulted_[i];
      if (slot->last_set > released()) {
        ++i;
        continue;
      }
      faulted_.erase(faulted_.begin() + static_cast<std::ptrdiff_t>(i));
      resume(*slot);
      progress = true;
    }
  }
  if (faulted_.empty()) {
    for (Envelope& request : std::exchange(held_copies_, {})) copy(request);
  }
}

void Partition::resume(Slot& slot) {
  const std::unique_ptr<Fault> fault_before = std::move(slot.fault);
  std::deque<Work>& waiting = fault_before->waiting;
  if (const auto error = restore(slot)) {
    mark_unusable(slot, *error);
    for (const Work& work : waiting) refuse_unusable(slot, work);
    return;
  }
  counters_->restorations.add();
  report(HostEvent::Type::restored, {}, {self_.kind, self_.partition, std::string(slot.key)},
         "from the store");
  while (!waiting.empty()) {
    Work work = std::move(waiting.front());
    waiting.pop_front();
    if (!services_.authority().holds(self_.kind, self_.partition, epoch_)) {
      counters_->unauthorized.add();
      continue;
    }
    if (work.refused) {
      refuse(slot, work);
    } else {
      const auto error = attempt(slot.key, work.envelope.from, [&] {
        if (work.parts.empty()) slot.instance->on(work.envelope.message, turn_);
        for (const std::uint32_t index : work.parts)
          slot.instance->on_part(work.envelope.message, index, turn_);
      });
      if (error) {
        ++work.throws;
        fault(slot, std::move(work), *error);
      } else {
        finish_turn(slot);
      }
    }
    if (slot.fault != nullptr) {
      for (Work& later : waiting) slot.fault->waiting.push_back(std::move(later));
      return;
    }
  }
}

/// A fresh instance from the store. On failure the exception's text.
std::optional<std::string> Partition::restore(Slot& slot) {
  const OwnerTraits& traits = owner_->traits();
  const auto error = attempt(slot.key, {}, [&] {
    slot.instance = owner_->make(slot.key);
    slot.incarnation = ++incarnations_;
    StoreReader reader(services_.store());
    for (const Family family : traits.families) {
      reader.scan(family, traits.prefix_of(family, slot.key),
                  [&](std::string_view key, std::string_view value) {
                    if (traits.instance_of(family, key, value) == slot.key)
                      slot.instance->restore_entry(family, key, value);
                    return true;
                  });
    }
    slot.instance->restored(turn_);
  });
  if (!error) finish_turn(slot);
  return error;
}

void Partition::mark_unusable(Slot& slot, const std::string& error) {
  counters_->unusable.add();
  report(HostEvent::Type::unusable, {}, {self_.kind, self_.partition, std::string(slot.key)},
         error + "; its messages are refused, and it is tried again once a second");
  slot.instance.reset();
  slot.incarnation = 0;
  slot.fault = std::make_unique<Fault>();
  slot.fault->retry_at = turn_.now() + kRestoreRetry;
}

/// Answers the parts of a quarantined message.
void Partition::refuse(Slot& slot, const Work& work) {
  const auto error = attempt(slot.key, work.envelope.from, [&] {
    for (const std::uint32_t index : work.parts)
      slot.instance->refuse_part(work.envelope.message, index, turn_);
  });
  if (error) {
    fault(slot, work, *error);
  } else {
    finish_turn(slot);
  }
}

/// Answers parts for an instance that cannot be restored, out of a blank one. Other messages are lost, by
/// name.
void Partition::refuse_unusable(Slot& slot, const Work& work) {
  report(HostEvent::Type::refused, work.envelope.message.kind(),
         {self_.kind, self_.partition, std::string(slot.key)}, "the instance could not be restored");
  if (work.parts.empty()) return;
  std::unique_ptr<HostedInstance> blank;
  const auto error = attempt(slot.key, work.envelope.from, [&] {
    blank = owner_->make(slot.key);
    for (const std::uint32_t index : work.parts) blank->refuse_part(work.envelope.message, index, turn_);
  });
  if (error) {
    report(HostEvent::Type::threw, work.envelope.message.kind(),
           {self_.kind, self_.partition, std::string(slot.key)}, *error);
    return;
  }
  std::swap(slot.instance, blank);
  finish_turn(slot);
  std::swap(slot.instance, blank);
}

/// Shared::on threw: reads the partition's durable facts again once nothing is outstanding, tries the message
/// once more (the third round only refuses its parts), and goes on with what was held.
void Partition::resume_partition() {
  StoreReader reader(services_.store());
  for (bool again = true; again;) {
    if (outstanding() || (partition_retry_ && turn_.now() < *partition_retry_)) return;
    const auto error = attempt({}, {}, [&] { owner_->restore_partition(self_.partition, reader); });
    if (error) {
      report(HostEvent::Type::unusable, {}, self_, *error + "; its messages wait, and it is tried again");
      partition_retry_ = turn_.now() + kRestoreRetry;
      return;
    }
    partition_retry_.reset();
    counters_->restorations.add();
    report(HostEvent::Type::restored, {}, self_, "from the store");
    Work work = std::move(*partition_fault_);
    dispatch_split(work.envelope, work.refused);
    again = partition_fault_->refused && !work.refused;
  }
  partition_fault_.reset();
  std::vector<Envelope> held = std::exchange(held_, {});
  for (Envelope& envelope : held) dispatch(envelope);
}

}  // namespace troupe
