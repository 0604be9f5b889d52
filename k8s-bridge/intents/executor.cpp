#include "k8s-bridge/intents/executor.hpp"

#include <condition_variable>
#include <mutex>
#include <utility>

#include "k8s-bridge/intents/machine.hpp"

namespace troupe {

/// Whoever has something to tell the machine does so under the lock; one thread at a time then carries out
/// what it wants (sends first, then results) while others add to it. So results keep their order, come in
/// batches when there are many, and a client that answers inside `send` is no recursion.
struct IntentExecutor::Impl : std::enable_shared_from_this<Impl> {
  Impl(HttpClient& client, Timers& clock, ExecutorOptions options, Hooks callbacks)
      : http(client),
        timers(clock),
        hooks(std::move(callbacks)),
        machine(std::move(options), hooks.authority) {}

  void issue(std::vector<Message> intents) {
    std::unique_lock lock(mutex);
    machine.add(std::move(intents), timers.now_ms(), out);
    carry_out(lock);
  }

  void answered(std::uint32_t slot, HttpOutcome outcome) {
    const auto alive = shared_from_this();  // the last answer ends the wait of the destructor
    std::unique_lock lock(mutex);
    machine.answered(slot, outcome, timers.now_ms(), out);
    carry_out(lock);
  }

  void woken() {
    std::unique_lock lock(mutex);
    armed_ms = IntentMachine::kNever;
    carry_out(lock);
  }

  void carry_out(std::unique_lock<std::mutex>& lock) {
    machine.advance(timers.now_ms(), out);
    if (busy) return;
    busy = true;
    while (!out.empty()) {
      std::swap(out, work);
      lock.unlock();
      for (IntentMachine::Send& send : work.sends) send_one(send);
      for (const Message& intent : work.would) {
        if (hooks.would) hooks.would(intent);
      }
      if (!work.results.empty()) hooks.settled(std::exchange(work.results, {}));
      work.clear();
      lock.lock();
    }
    busy = false;
    arm();
    changed.notify_all();
  }

  void send_one(IntentMachine::Send& send) {
    if (send.write) {
      send.request.admit = [this, partition = send.partition, epoch = send.epoch] {
        return hooks.authority(partition, epoch);
      };
    }
    http.send(std::move(send.request),
              [this, slot = send.slot](HttpOutcome outcome) { answered(slot, std::move(outcome)); });
  }

  void arm() {
    const std::int64_t due = machine.next_due();
    if (due >= armed_ms) return;
    armed_ms = due;
    timers.at(due, [weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->woken();
    });
  }

  void stop(std::chrono::milliseconds limit) {
    std::unique_lock lock(mutex);
    machine.stop_effects(timers.now_ms(), out);
    carry_out(lock);
    changed.wait_for(lock, limit, [this] { return machine.pending() == 0 && !busy; });
    machine.stop_all(timers.now_ms(), out);
    carry_out(lock);
    changed.wait(lock, [this] { return out.empty() && !busy; });
  }

  void close() {
    stop(std::chrono::milliseconds(0));
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return machine.in_flight() == 0 && !busy; });
  }

  HttpClient& http;
  Timers& timers;
  Hooks hooks;
  mutable std::mutex mutex;
  std::condition_variable changed;
  IntentMachine machine;
  IntentMachine::Output out;   // under the lock
  IntentMachine::Output work;  // of the thread that is busy
  bool busy = false;
  std::int64_t armed_ms = IntentMachine::kNever;
};

namespace {

ExecutorOptions with_start(ExecutorOptions options, const Timers& timers) {
  if (options.started_ms == 0) options.started_ms = timers.wall_us() / 1000;
  return options;
}

}  // namespace

IntentExecutor::IntentExecutor(HttpClient& http, Timers& timers, ExecutorOptions options, Hooks hooks)
    : impl_(std::make_shared<Impl>(http, timers, with_start(std::move(options), timers), std::move(hooks))) {}

IntentExecutor::~IntentExecutor() {
  impl_->close();
}

void IntentExecutor::issue(std::vector<Message> intents) {
  impl_->issue(std::move(intents));
}

void IntentExecutor::stop(std::chrono::milliseconds limit) {
  impl_->stop(limit);
}

ExecutorStats IntentExecutor::stats() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->machine.stats();
}

}  // namespace troupe
