// The last decisions, for people who ask why: a ring that keeps what the decision knew, and the pod's
// message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "actors/host/turn.hpp"
#include "actors/placement/plan.hpp"
#include "messages/message.hpp"

namespace troupe {

struct Decision {
  Message pod;  // fb::Pod as decided
  StringId node = kNoString;
  std::int64_t score = 0;
  std::uint32_t feasible = 0;  // nodes that passed
  ClassId cls = 0;
  Millis wall_ms = 0;  // Unix milliseconds
  std::uint64_t duration_ns = 0;
};

class DecisionRing {
 public:
  explicit DecisionRing(std::size_t most) : most_(most) {}

  void push(Decision decision) {
    if (most_ == 0) return;
    if (ring_.size() < most_) {
      ring_.push_back(std::move(decision));
    } else {
      ring_[next_] = std::move(decision);
    }
    next_ = (next_ + 1) % most_;
  }
  /// Newest first, until `visit` returns false.
  template <class Visit>
  void newest_first(Visit&& visit) const {
    for (std::size_t i = 0; i < ring_.size(); ++i) {
      if (!visit(ring_[(next_ + ring_.size() - 1 - i) % ring_.size()])) return;
    }
  }

 private:
  std::size_t most_;
  std::size_t next_ = 0;  // where the next one goes; the oldest once the ring is full
  std::vector<Decision> ring_;
};

}  // namespace troupe
