#include "ops/service/event_hub.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

EventHub::EventHub() : thread_([this] { run(); }) {}

EventHub::~EventHub() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void EventHub::publish(std::vector<Message> events) {
  {
    const std::lock_guard lock(mutex_);
    for (Message& e : events) waiting_.push_back(std::move(e));
    while (waiting_.size() > kWaiting) {
      waiting_.pop_front();
      ++dropped_;
    }
  }
  changed_.notify_one();
}

void EventHub::subscribe(bool recent, std::function<bool(const Message&)> on_event) {
  {
    const std::lock_guard lock(mutex_);
    joining_.push_back({std::move(on_event), recent});
  }
  changed_.notify_one();
}

std::uint64_t EventHub::dropped() const {
  const std::lock_guard lock(mutex_);
  return dropped_;
}

void EventHub::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return ended_ || !waiting_.empty() || !joining_.empty(); });
    if (ended_) return;
    const std::deque<Message> events = std::exchange(waiting_, {});
    std::vector<Listener> joining = std::exchange(joining_, {});
    lock.unlock();
    for (Listener& listener : joining) {
      const bool stays = !listener.recent || std::all_of(latest_.begin(), latest_.end(), listener.on_event);
      if (stays) listeners_.push_back(std::move(listener));
    }
    for (const Message& e : events) {
      std::erase_if(listeners_, [&](const Listener& listener) { return !listener.on_event(e); });
      latest_.push_back(e);
      if (latest_.size() > kKept) latest_.pop_front();
    }
    lock.lock();
  }
}

}  // namespace troupe
