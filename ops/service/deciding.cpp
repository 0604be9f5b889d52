#include "ops/service/deciding.hpp"

namespace troupe {
namespace {

constexpr Millis kLookEvery = 200;

}  // namespace

void DecidingFollower::start(FollowerTurn& turn) {
  placement_ = std::make_unique<Placement>(options_());
  placement_->start(turn);
}

void DecidingFollower::on(const Message& message, FollowerTurn& turn) {
  placement_->on(message, turn);
  look(turn);
}

bool DecidingFollower::wants_cycle() const {
  return !status_->stopping.load(std::memory_order_relaxed) && placement_->wants_cycle();
}

void DecidingFollower::cycle(FollowerTurn& turn) {
  placement_->cycle(turn);
  look(turn);
}

void DecidingFollower::look(FollowerTurn& turn) {
  if (!status_->ready.load(std::memory_order_relaxed) && placement_->ready()) {
    status_->ready.store(true);
    became_ready_();
  }
  if (looked_ >= 0 && turn.now() < looked_ + kLookEvery) return;
  looked_ = turn.now();
  status_->set_stats(placement_->stats());
}

}  // namespace troupe
