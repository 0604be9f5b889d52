#include "actors/host/follower.hpp"

#include "actors/host/guarded.hpp"

namespace troupe {

FollowerEngine::FollowerEngine(std::unique_ptr<HostedFollower> follower, Address self, std::uint64_t seed,
                               HostServices& services)
    : follower_(std::move(follower)),
      services_(services),
      random_(seed),
      turn_(std::move(self), 0, 0, random_) {}

void FollowerEngine::begin() {
  const Clock& clock = services_.clock();
  turn_.set_time(clock.wall_ms(), clock.now());
  turn_began_ = clock.nanos();
}

void FollowerEngine::process(std::span<Envelope> batch) {
  begin();
  if (!started_) start();
  messages_.add(batch.size());
  const std::uint64_t armed = timers_.armed();
  while (std::optional<TimerQueue::Item> item = timers_.take_due(turn_.now(), armed)) {
    take({turn_.self(), turn_.self(), std::move(item->message)});
  }
  for (const Envelope& envelope : batch) take(envelope);
  release();
}

void FollowerEngine::start() {
  started_ = true;
  turn_.set_sender({});
  const auto error = guarded([&] { follower_->start(turn_); });
  count_turn();
  if (!error) return;
  turn_.rollback({});
  throws_.add();
  services_.report({HostEvent::Type::threw, {}, turn_.self(), *error});
  broken_ = *error;
}

void FollowerEngine::take(const Envelope& envelope) {
  turn_.set_sender(envelope.from);
  const FollowerTurn::Mark mark = turn_.mark();
  const auto error = guarded([&] { follower_->on(envelope.message, turn_); });
  count_turn();
  if (!error) return;
  turn_.rollback(mark);
  throws_.add();
  quarantined_count_.add();
  {
    const std::lock_guard lock(quarantine_mutex_);
    if (quarantined_.size() >= kMaxQuarantined) quarantined_.pop_front();
    quarantined_.push_back({turn_.wall_ms(), envelope.message.kind(), envelope.from, envelope.to, *error});
  }
  services_.report({HostEvent::Type::quarantined, envelope.message.kind(), turn_.self(), *error});
}

void FollowerEngine::cycle() {
  begin();
  turn_.set_sender({});
  const FollowerTurn::Mark mark = turn_.mark();
  const auto error = guarded([&] { follower_->cycle(turn_); });
  count_turn();
  if (error) {
    turn_.rollback(mark);
    throws_.add();
    services_.report({HostEvent::Type::threw, {}, turn_.self(), *error});
    if (++cycle_throws_ >= kMaxCycleThrows) broken_ = *error;
  } else {
    cycle_throws_ = 0;
  }
  release();
}

void FollowerEngine::release() {
  for (Timer& timer : turn_.timers()) timers_.arm(turn_.now() + timer.delay, {}, 0, std::move(timer.message));
  turn_.timers().clear();
  if (turn_.sent().empty()) return;
  const std::size_t usual = turn_.sent().size();
  services_.send(std::exchange(turn_.sent(), {}));
  turn_.sent().reserve(usual);
}

void FollowerEngine::count_turn() {
  const std::int64_t now = services_.clock().nanos();
  turns_.add();
  turn_time_.add(now - turn_began_);
  turn_began_ = now;
}

HostStats FollowerEngine::stats() const {
  HostStats out;
  out.kind = turn_.self().kind;
  out.turns = turns_.get();
  out.messages = messages_.get();
  out.instances = 1;
  out.throws = throws_.get();
  out.quarantined = quarantined_count_.get();
  out.turn_time = turn_time_.get();
  return out;
}

std::vector<Quarantined> FollowerEngine::quarantined() const {
  const std::lock_guard lock(quarantine_mutex_);
  return {quarantined_.begin(), quarantined_.end()};
}

}  // namespace troupe
