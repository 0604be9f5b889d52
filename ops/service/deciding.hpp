// Placement as the service runs it: made when the store has told the last shard epoch, and watched for
// readiness and statistics.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>

#include "actors/placement/placement.hpp"

namespace troupe {

/// What the follower's thread shares with the rest of the service.
class DecidingStatus {
 public:
  [[nodiscard]] PlacementStats stats() const {
    const std::lock_guard lock(mutex_);
    return stats_;
  }
  void set_stats(const PlacementStats& stats) {
    const std::lock_guard lock(mutex_);
    stats_ = stats;
  }

  std::atomic<bool> ready{false};     // placement decides
  std::atomic<bool> stopping{false};  // no further cycles

 private:
  mutable std::mutex mutex_;
  PlacementStats stats_;
};

/// A Follower. The placement is made at `start`, when the store has been opened.
class DecidingFollower {
 public:
  /// `options` is asked once, at `start`. `became_ready` is called on the follower's thread.
  DecidingFollower(std::function<PlacementOptions()> options, std::shared_ptr<DecidingStatus> status,
                   std::function<void()> became_ready)
      : options_(std::move(options)), status_(std::move(status)), became_ready_(std::move(became_ready)) {}

  void start(FollowerTurn& turn);
  void on(const Message& message, FollowerTurn& turn);
  [[nodiscard]] bool wants_cycle() const;
  void cycle(FollowerTurn& turn);

 private:
  void look(FollowerTurn& turn);

  std::function<PlacementOptions()> options_;
  std::shared_ptr<DecidingStatus> status_;
  std::function<void()> became_ready_;
  std::unique_ptr<Placement> placement_;
  Millis looked_ = -1;
};

}  // namespace troupe
