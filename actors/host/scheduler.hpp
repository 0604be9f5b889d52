// Actors on the CAF scheduler, seen as functions that are called when they are poked. No CAF header is needed
// to use it.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>

#include "actors/host/turn.hpp"

namespace troupe {

class Scheduler {
 public:
  /// What an actor does when poked. Returns when it wants to be called again by itself: milliseconds from
  /// now, 0: at once, after the others; nothing: when it is poked. Never throws.
  using Run = std::function<std::optional<Millis>()>;

  /// `threads`: that share all actors but those with a thread of their own.
  explicit Scheduler(std::size_t threads);
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  /// One actor: an event-based CAF actor. Its calls never overlap. Returns its number, counted from 0.
  std::size_t spawn(Run run, bool own_thread);
  /// Calls it soon. Thread-safe once all actors are spawned.
  void poke(std::size_t actor);
  /// Ends all actors, each after the call in hand.
  void stop();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace troupe
