// Public events of this process to whoever listens. Actors hand them over without waiting; one thread tells
// the listeners, so a slow one delays no decision.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "messages/message.hpp"

namespace troupe {

class EventHub {
 public:
  static constexpr std::size_t kKept = 1024;  // of the latest events, told to a new listener first
  static constexpr std::size_t kWaiting =
      65536;  // not yet told; beyond this the oldest are dropped and counted

  EventHub();
  ~EventHub();
  EventHub(const EventHub&) = delete;
  EventHub& operator=(const EventHub&) = delete;

  void publish(std::vector<Message> events);
  /// `on_event` is called for the latest events (when `recent`), then for each that comes, until it returns
  /// false.
  void subscribe(bool recent, std::function<bool(const Message&)> on_event);
  [[nodiscard]] std::uint64_t dropped() const;

 private:
  struct Listener {
    std::function<bool(const Message&)> on_event;
    bool recent = false;  // still to be told the latest
  };
  void run();

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Message> waiting_;
  std::vector<Listener> joining_;
  std::uint64_t dropped_ = 0;
  bool ended_ = false;
  std::deque<Message> latest_;       // of the thread alone
  std::vector<Listener> listeners_;  // of the thread alone
  std::thread thread_;               // last: everything above exists when it starts
};

}  // namespace troupe
