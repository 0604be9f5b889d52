// Timers of the instances of one partition, or of a follower, by due time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/host/turn.hpp"

namespace troupe {

class TimerQueue {
 public:
  struct Item {
    Millis due = 0;
    std::uint64_t order = 0;        // of arming: equal due times fire in that order
    std::string key;                // instance; empty: the partition itself
    std::uint64_t incarnation = 0;  // of the instance: timers do not outlive it
    Message message;
  };

  void arm(Millis due, std::string_view key, std::uint64_t incarnation, Message message) {
    heap_.push_back({due, ++armed_, std::string(key), incarnation, std::move(message)});
    std::push_heap(heap_.begin(), heap_.end(), later);
  }
  [[nodiscard]] std::optional<Millis> next_due() const {
    if (heap_.empty()) return std::nullopt;
    return heap_.front().due;
  }
  /// How many timers were armed so far.
  [[nodiscard]] std::uint64_t armed() const { return armed_; }
  /// The earliest timer that is due at `now`, if it was among the first `armed`: a timer that arms itself
  /// again without delay waits for the next round.
  std::optional<Item> take_due(Millis now, std::uint64_t armed) {
    if (heap_.empty() || heap_.front().due > now || heap_.front().order > armed) return std::nullopt;
    std::pop_heap(heap_.begin(), heap_.end(), later);
    Item item = std::move(heap_.back());
    heap_.pop_back();
    return item;
  }

 private:
  static bool later(const Item& a, const Item& b) {
    return a.due != b.due ? a.due > b.due : a.order > b.order;
  }

  std::vector<Item> heap_;
  std::uint64_t armed_ = 0;
};

}  // namespace troupe
