#include "actors/host/scheduler.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>
#include <chrono>
#include <cstdint>
#include <utility>
#include <vector>

namespace troupe {
namespace {

using poke_atom = caf::atom_constant<caf::atom("poke")>;
using tick_atom = caf::atom_constant<caf::atom("tick")>;
using SteadyClock = std::chrono::steady_clock;

/// Work is shared through one queue with a condition variable: an idle worker wakes at once and burns
/// nothing. (Work stealing polls, and sleeps up to 10 ms between looks.)
class Config : public caf::actor_system_config {
 public:
  explicit Config(std::size_t threads) {
    set("scheduler.policy", caf::atom("sharing"));
    set("scheduler.max-threads", threads);
  }
};

struct ActorState {
  Scheduler::Run run;
  std::uint64_t tick = 0;  // number of the tick that counts; 0: none is under way
  std::uint64_t ticks = 0;
  SteadyClock::time_point due;  // of that tick
};

using Actor = caf::stateful_actor<ActorState>;

void call(Actor* self) {
  ActorState& state = self->state;
  const std::optional<Millis> again = state.run();
  if (!again) return;
  if (*again <= 0) {
    self->send(self, poke_atom::value);
    return;
  }
  const auto due = SteadyClock::now() + std::chrono::milliseconds(*again);
  if (state.tick != 0 && state.due <= due) return;  // that one will ask again
  state.tick = ++state.ticks;
  state.due = due;
  self->delayed_send(self, std::chrono::milliseconds(*again), tick_atom::value, state.tick);
}

caf::behavior actor(Actor* self, Scheduler::Run run) {
  self->state.run = std::move(run);
  return {[self](poke_atom) { call(self); },
          [self](tick_atom, std::uint64_t number) {
            if (number != self->state.tick) return;  // an earlier one was asked for since
            self->state.tick = 0;
            call(self);
          }};
}

}  // namespace

class Scheduler::Impl {
 public:
  explicit Impl(std::size_t threads) : config(threads), system(config) {}

  Config config;
  caf::actor_system system;
  std::vector<caf::actor> actors;
};

Scheduler::Scheduler(std::size_t threads) : impl_(std::make_unique<Impl>(threads)) {}

Scheduler::~Scheduler() {
  stop();
}

std::size_t Scheduler::spawn(Run run, bool own_thread) {
  impl_->actors.push_back(own_thread ? impl_->system.spawn<caf::detached>(actor, std::move(run))
                                     : impl_->system.spawn(actor, std::move(run)));
  return impl_->actors.size() - 1;
}

void Scheduler::poke(std::size_t index) {
  caf::anon_send(impl_->actors[index], poke_atom::value);
}

void Scheduler::stop() {
  for (const caf::actor& a : impl_->actors) caf::anon_send_exit(a, caf::exit_reason::user_shutdown);
  impl_->system.await_all_actors_done();
}

}  // namespace troupe
