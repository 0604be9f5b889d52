#include "actors/host/partition.hpp"

#include <xxhash.h>

#include <algorithm>
#include <utility>

#include "actors/host/partition_detail.hpp"
#include "actors/host/store_reader.hpp"

namespace troupe {
namespace {

/// Journal ids that are marked as used in one write.
constexpr std::uint64_t kIntentBlock = 1U << 16U;

std::string meta_key(std::string_view what, ActorKind kind, std::uint32_t partition) {
  std::string key(what);
  key.append("/").append(to_string(kind)).append("/").append(std::to_string(partition));
  return key;
}

/// Journal ids of a partition begin here: 6 bits kind, 10 bits partition, 46 bits number.
std::uint64_t first_intent(ActorKind kind, std::uint32_t partition) {
  return ((std::uint64_t{static_cast<std::uint8_t>(kind)} & 63U) << 10U | (partition & 1023U)) << 46U;
}

Result<std::uint64_t> stored_number(Store& store, std::string_view key) {
  const Result<std::string> value = store.get(Family::meta, key);
  if (value) return decode_u64(*value);
  if (value.error().code == ErrorCode::not_found) return std::uint64_t{0};
  return fail(value.error());
}

}  // namespace

/// What `split` says about the message in hand.
class Partition::Parts final : public PartSink {
 public:
  explicit Parts(Partition& partition) : partition_(partition) {
    ++partition_.splits_;
    partition_.parts_.clear();
    partition_.groups_.clear();
  }
  void part(std::string_view key, std::uint32_t index) override {
    Slot& slot = partition_.slot_of(key);
    const auto at = static_cast<std::uint32_t>(partition_.parts_.size());
    partition_.parts_.push_back({index, at});
    if (slot.split != partition_.splits_) {
      slot.split = partition_.splits_;
      slot.group = static_cast<std::uint32_t>(partition_.groups_.size());
      partition_.groups_.push_back({&slot, at, at});
      return;
    }
    Group& group = partition_.groups_[slot.group];
    partition_.parts_[group.last].next = at;
    group.last = at;
  }
  void every_instance() override { every = true; }
  void partition() override { whole = true; }

  bool every = false;
  bool whole = false;

 private:
  Partition& partition_;
};

std::size_t Partition::Hash::operator()(std::string_view key) const noexcept {
  return XXH3_64bits(key.data(), key.size());
}

Partition::Partition(std::unique_ptr<HostedOwner> owner, std::uint32_t partition, std::uint64_t epoch,
                     std::uint64_t seed, HostServices& services)
    : owner_(std::move(owner)),
      self_{owner_->traits().kind, partition, {}},
      epoch_(epoch),
      services_(services),
      random_(seed ^ (first_intent(self_.kind, partition) + epoch)),
      next_intent_(first_intent(self_.kind, partition)),
      turn_(self_, 0, 0, random_, epoch, next_intent_),
      stream_(self_, epoch),
      outbox_(std::make_shared<Outbox>(services, self_, epoch)),
      counters_(std::make_unique<Counters>()) {}

Partition::~Partition() = default;

Result<std::uint64_t> Partition::next_epoch(Store& store, ActorKind kind, std::uint32_t partition) {
  return stored_number(store, meta_key("epoch", kind, partition)).map([](std::uint64_t last) {
    return last + 1;
  });
}

// --- Activation
// ---------------------------------------------------------------------------------------------

Result<void> Partition::prepare() {
  begin_batch();
  const Result<std::uint64_t> used =
      stored_number(services_.store(), meta_key("intents", self_.kind, self_.partition));
  if (!used) return fail(used.error());
  next_intent_ = std::max(next_intent_, *used);
  StoreReader reader(services_.store());
  try {
    owner_->restore_partition(self_.partition, reader);
  } catch (const std::exception& e) {
    return fail({ErrorCode::corrupt,
                 std::string("a partition's facts cannot be restored: ") + e.what(),
                 std::string(to_string(self_.kind)) + " partition " + std::to_string(self_.partition),
                 {},
                 "start with --rebuild-from-apiserver"});
  }
  return {};
}

void Partition::restore_entry(Family family, std::string_view instance, std::string_view key,
                              std::string_view value) {
  Slot& slot = slot_of(instance);
  if (slot.fault != nullptr) return;
  try {
    slot.instance->restore_entry(family, key, value);
  } catch (const std::exception& e) {
    mark_unusable(slot, e.what());
  }
}

void Partition::activate() {
  begin_batch();
  turn_.writes().put(Family::meta, meta_key("epoch", self_.kind, self_.partition), encode_u64(epoch_));
  intents_reserved_ = next_intent_ + kIntentBlock;
  turn_.writes().put(Family::meta, meta_key("intents", self_.kind, self_.partition),
                     encode_u64(intents_reserved_));
  floor_ = open_set();
  for (auto& [key, slot] : slots_) {
    if (slot.fault != nullptr) continue;
    const auto error = attempt(key, {}, [&] { slot.instance->restored(turn_); });
    if (error) {
      mark_unusable(slot, *error);
    } else {
      finish_turn(slot);
    }
  }
  end_batch();
}

// --- Batches
// ------------------------------------------------------------------------------------------------

void Partition::process(std::span<Envelope> batch) {
  begin_batch();
  counters_->messages.add(batch.size());
  resume_all();
  fire_timers();
  for (Envelope& envelope : batch) dispatch(envelope);
  resume_all();
  flush_deltas();
  if (stream_.has_subscribers() && turn_.now() >= head_due_) {
    std::vector<Envelope> head;
    stream_.head(head);
    send_for_partition(head);
  }
  end_batch();
}

void Partition::begin_batch() {
  const Clock& clock = services_.clock();
  turn_.set_time(clock.wall_ms(), clock.now());
  turn_began_ = clock.nanos();
  batch_turns_ = 0;
}

void Partition::end_batch() {
  flush_deltas();
  if (next_intent_ > intents_reserved_) {
    // Before anything of this batch leaves: after a crash no id that anyone heard of is given again.
    intents_reserved_ = next_intent_ + kIntentBlock;
    turn_.writes().put(Family::meta, meta_key("intents", self_.kind, self_.partition),
                       encode_u64(intents_reserved_));
    floor_ = open_set();
    turn_.sent().insert(turn_.sent().begin(), std::make_move_iterator(at_once_.begin()),
                        std::make_move_iterator(at_once_.end()));
    at_once_.clear();
  }
  if (!at_once_.empty()) {
    if (services_.authority().holds(self_.kind, self_.partition, epoch_)) {
      const std::size_t usual = at_once_.size();
      services_.send(std::exchange(at_once_, {}));
      at_once_.reserve(usual);
    } else {
      counters_->unauthorized.add(at_once_.size());
      at_once_.clear();
    }
  }
  if (set_open_) {
    set_open_ = false;
    const std::uint64_t number = ++enqueued_;
    const std::size_t usual_bytes = turn_.writes().bytes();
    const std::size_t usual_sent = turn_.sent().size();
    WriteSet set;
    set.writes = std::exchange(turn_.writes(), {});
    set.messages = std::exchange(turn_.sent(), {});
    set.durable = [outbox = outbox_](std::vector<Envelope>& messages) { outbox->durable(messages); };
    set.released = [outbox = outbox_, number, since = services_.clock().nanos()] {
      outbox->left(number, since);
    };
    turn_.writes().reserve(usual_bytes);
    turn_.sent().reserve(usual_sent);
    counters_->enqueued.set(enqueued_);
    services_.store().commit(std::move(set));
  }
  drop_empty();
  counters_->instances.set(slots_.size());
  if ((!faulted_.empty() || partition_fault_ != nullptr) && outstanding()) {
    outbox_->wake_wanted.store(true, std::memory_order_seq_cst);
    if (!outstanding() && outbox_->wake_wanted.exchange(false)) services_.wake(self_.kind, self_.partition);
  }
}

std::uint64_t Partition::open_set() {
  set_open_ = true;
  return enqueued_ + 1;
}

std::uint64_t Partition::released() const {
  return outbox_->released.load(std::memory_order_seq_cst);
}

bool Partition::outstanding() const {
  return set_open_ || enqueued_ > released();
}

void Partition::flush_deltas() {
  std::vector<Bytes>& deltas = turn_.deltas();
  if (deltas.empty()) return;
  std::vector<Envelope> messages;
  stream_.append(deltas, messages);
  deltas.clear();
  send_for_partition(messages);
}

void Partition::send_for_partition(std::vector<Envelope>& messages) {
  head_due_ = turn_.now() + kHeadEvery;
  if (messages.empty()) return;
  const bool wait = outstanding();
  if (wait) open_set();
  std::vector<Envelope>& out = wait ? turn_.sent() : at_once_;
  out.insert(out.end(), std::make_move_iterator(messages.begin()), std::make_move_iterator(messages.end()));
}

void Partition::drop_empty() {
  // A look at more than the batch can have left empty; what still waits for its sets goes to the back.
  for (std::size_t look = std::min(maybe_empty_.size(), 2 * batch_turns_ + 64); look > 0; --look) {
    Slot* slot = maybe_empty_.front();
    maybe_empty_.pop_front();
    const bool empty = slot->fault == nullptr && slot->instance->empty();
    if (empty && slot->last_set > released()) {
      maybe_empty_.push_back(slot);
      continue;
    }
    slot->maybe_empty = false;
    if (empty) slots_.erase(slots_.find(slot->key));
  }
}

std::optional<Millis> Partition::next_due() const {
  std::optional<Millis> due = partition_fault_ == nullptr ? timers_.next_due() : partition_retry_;
  if (stream_.has_subscribers()) due = std::min(due.value_or(head_due_), head_due_);
  return due;
}

// --- Messages and turns
// -------------------------------------------------------------------------------------

void Partition::fire_timers() {
  const std::uint64_t armed = timers_.armed();
  while (partition_fault_ == nullptr) {
    std::optional<TimerQueue::Item> item = timers_.take_due(turn_.now(), armed);
    if (!item) return;
    Address to{self_.kind, self_.partition, std::move(item->key)};
    if (to.key.empty()) {
      Envelope envelope{to, to, std::move(item->message)};
      dispatch(envelope);
      continue;
    }
    const auto at = slots_.find(to.key);
    if (at == slots_.end() || at->second.incarnation != item->incarnation) continue;
    Envelope envelope{to, to, std::move(item->message)};
    dispatch(envelope);
  }
}

void Partition::dispatch(Envelope& envelope) {
  if (!services_.authority().holds(self_.kind, self_.partition, epoch_)) {
    counters_->unauthorized.add();
    return;
  }
  if (partition_fault_ != nullptr) {
    held_.push_back(std::move(envelope));
  } else if (!envelope.to.key.empty()) {
    run(slot_of(envelope.to.key), envelope, {});
  } else if (envelope.message.kind() == Kind::copy_request && owner_->traits().streams) {
    copy(envelope);
  } else {
    dispatch_split(envelope, false);
  }
}

void Partition::dispatch_split(Envelope& envelope, bool refused) {
  Parts parts(*this);
  const auto split_error = guarded([&] {
    // A timer of the Shared is the Shared's alone.
    if (envelope.from == self_) {
      parts.partition();
    } else {
      owner_->split(envelope.message, parts);
    }
  });
  if (split_error) {
    counters_->throws.add();
    report(HostEvent::Type::threw, envelope.message.kind(), self_, *split_error);
    quarantine(envelope, *split_error);
    return;
  }
  if (groups_.empty() && !parts.every && !parts.whole) {
    counters_->unhandled.add();
    report(HostEvent::Type::unhandled, envelope.message.kind(), self_,
           "no part of it concerns this partition");
    return;
  }
  if (parts.whole && !refused) {
    const auto error = attempt({}, envelope.from, [&] { owner_->on_partition(envelope.message, turn_); });
    if (error) {
      counters_->throws.add();
      report(HostEvent::Type::threw, envelope.message.kind(), self_, *error);
      const std::uint8_t throws = partition_fault_ == nullptr ? std::uint8_t{1} : std::uint8_t{2};
      partition_fault_ = std::make_unique<Work>(Work{std::move(envelope), {}, throws, throws > 1});
      if (throws > 1) quarantine(partition_fault_->envelope, *error);
      return;
    }
    finish_partition_turn();
  }
  for (const Group& group : groups_) {
    indices_.clear();
    for (std::uint32_t at = group.first;; at = parts_[at].next) {
      indices_.push_back(parts_[at].index);
      if (at == group.last) break;
    }
    if (!refused) {
      run(*group.slot, envelope, indices_);
    } else if (group.slot->fault != nullptr) {
      wait(*group.slot, {envelope, indices_, 2, true});
    } else {
      refuse(*group.slot, {envelope, indices_, 2, true});
    }
  }
  if (parts.every && !refused) {
    std::vector<Slot*> all;
    all.reserve(slots_.size());
    for (auto& [key, slot] : slots_) all.push_back(&slot);
    for (Slot* slot : all) run(*slot, envelope, {});
  }
}

void Partition::run(Slot& slot, const Envelope& envelope, std::span<const std::uint32_t> parts) {
  if (slot.fault != nullptr) return wait(slot, {envelope, {parts.begin(), parts.end()}, 0, false});
  const auto error = attempt(slot.key, envelope.from, [&] {
    if (parts.empty()) {
      slot.instance->on(envelope.message, turn_);
    } else {
      for (const std::uint32_t index : parts) slot.instance->on_part(envelope.message, index, turn_);
    }
  });
  if (error) {
    fault(slot, Work{envelope, {parts.begin(), parts.end()}, 1, false}, *error);
  } else {
    finish_turn(slot);
  }
}

void Partition::copy(Envelope& envelope) {
  if (!faulted_.empty()) {
    held_copies_.push_back(std::move(envelope));
    return;
  }
  flush_deltas();
  std::vector<Envelope> chunks;
  stream_.copy(
      envelope.from,
      [this](CopySink& sink) {
        for (const auto& [key, slot] : slots_) {
          if (slot.instance != nullptr) slot.instance->describe(sink);
        }
      },
      chunks);
  stream_.subscribe(envelope.from);
  send_for_partition(chunks);
}

Partition::Slot& Partition::slot_of(std::string_view key) {
  if (const auto at = slots_.find(key); at != slots_.end()) return at->second;
  const auto [at, added] = slots_.try_emplace(std::string(key));
  Slot& slot = at->second;
  slot.key = at->first;
  slot.instance = owner_->make(key);
  slot.incarnation = ++incarnations_;
  slot.maybe_empty = true;
  maybe_empty_.push_back(&slot);
  return slot;
}

void Partition::finish_turn(Slot& slot) {
  std::vector<Envelope>& sent = turn_.sent();
  if (turn_.writes().size() > mark_.writes.count) slot.last_set = open_set();
  if (sent.size() > mark_.sent) {
    const std::uint64_t out = released();
    if (slot.last_set > out || floor_ > out) {
      slot.last_set = open_set();
    } else {
      const auto first = sent.begin() + static_cast<std::ptrdiff_t>(mark_.sent);
      at_once_.insert(at_once_.end(), std::make_move_iterator(first), std::make_move_iterator(sent.end()));
      sent.erase(first, sent.end());
    }
  }
  arm_timers(slot.key, slot.incarnation);
  if (!slot.maybe_empty && slot.instance->empty()) {
    slot.maybe_empty = true;
    maybe_empty_.push_back(&slot);
  }
}

void Partition::finish_partition_turn() {
  std::vector<Envelope>& sent = turn_.sent();
  const bool wrote = turn_.writes().size() > mark_.writes.count;
  const bool spoke = sent.size() > mark_.sent;
  if (wrote || (spoke && outstanding())) {
    open_set();
  } else if (spoke) {
    const auto first = sent.begin() + static_cast<std::ptrdiff_t>(mark_.sent);
    at_once_.insert(at_once_.end(), std::make_move_iterator(first), std::make_move_iterator(sent.end()));
    sent.erase(first, sent.end());
  }
  arm_timers({}, 0);
}

void Partition::arm_timers(std::string_view key, std::uint64_t incarnation) {
  for (Timer& timer : turn_.timers()) {
    timers_.arm(turn_.now() + timer.delay, key, incarnation, std::move(timer.message));
  }
  turn_.timers().clear();
}

HostStats Partition::stats() const {
  HostStats out;
  out.kind = self_.kind;
  out.turns = counters_->turns.get();
  out.messages = counters_->messages.get();
  out.instances = counters_->instances.get();
  out.throws = counters_->throws.get();
  out.restorations = counters_->restorations.get();
  out.quarantined = counters_->quarantined.get();
  out.unusable = counters_->unusable.get();
  out.unauthorized = counters_->unauthorized.get() + outbox_->unauthorized.get();
  out.unhandled = counters_->unhandled.get();
  out.write_sets = counters_->enqueued.get();
  const std::uint64_t out_of_store = outbox_->released.load(std::memory_order_relaxed);
  out.write_sets_out = out.write_sets > out_of_store ? out.write_sets - out_of_store : 0;
  out.turn_time = counters_->turn_time.get();
  out.commit_wait = outbox_->commit_wait.get();
  return out;
}

std::vector<Quarantined> Partition::quarantined() const {
  const std::lock_guard lock(quarantine_mutex_);
  return {quarantined_.begin(), quarantined_.end()};
}

}  // namespace troupe
