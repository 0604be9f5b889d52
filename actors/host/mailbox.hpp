// Where messages wait for one actor: many threads push, the actor takes everything at once.
#pragma once

#include <cstddef>
#include <iterator>
#include <mutex>
#include <utility>
#include <vector>

#include "messages/message.hpp"

namespace troupe {

/// The actor is woken once per take, however much is pushed in between. Before the first
/// take nobody is woken.
class Mailbox {
 public:
  enum class Pushed { closed, waits, wake };  // wake: the actor must be woken

  /// Adds `envelopes` in order.
  Pushed push(std::vector<Envelope> envelopes) {
    const std::lock_guard lock(mutex_);
    if (closed_) return Pushed::closed;
    if (items_.empty()) {
      std::swap(items_, envelopes);
    } else {
      items_.insert(items_.end(), std::make_move_iterator(envelopes.begin()),
                    std::make_move_iterator(envelopes.end()));
    }
    return std::exchange(woken_, true) ? Pushed::waits : Pushed::wake;
  }
  /// Asks for a call of the actor although nothing was pushed. True: it must be woken.
  bool knock() {
    const std::lock_guard lock(mutex_);
    return !closed_ && !std::exchange(woken_, true);
  }
  /// Everything that waits; `out` is empty, and its memory serves the next messages.
  void take(std::vector<Envelope>& out) {
    const std::lock_guard lock(mutex_);
    woken_ = false;
    std::swap(items_, out);
  }
  [[nodiscard]] std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return items_.size();
  }
  /// From here on nothing is taken in. Returns how many messages are lost.
  std::size_t close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    return std::exchange(items_, {}).size();
  }

 private:
  mutable std::mutex mutex_;
  std::vector<Envelope> items_;
  bool woken_ = true;
  bool closed_ = false;
};

}  // namespace troupe
