// One thread that hands what the port's parts have found to the sink: in the order found, one call at a time,
// and under load many at once.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <variant>
#include <vector>

#include "k8s-bridge/port.hpp"

namespace troupe {

class Delivery {
 public:
  Delivery() = default;
  /// Hands over what is queued first.
  ~Delivery() { stop(); }
  Delivery(const Delivery&) = delete;
  Delivery& operator=(const Delivery&) = delete;

  /// What is queued before waits for it.
  void start(ClusterSink& sink);
  /// Returns when everything queued before has been handed over; later calls are dropped.
  void stop();

  void changed(std::vector<Message> changes);
  void settled(std::vector<Message> results);
  void rejected(Error error);
  void trouble(Error error);
  void active(bool active);
  void synced();

 private:
  struct Changed {
    std::vector<Message> messages;
  };
  struct Settled {
    std::vector<Message> messages;
  };
  struct Rejected {
    Error error;
  };
  struct Trouble {
    Error error;
  };
  struct Active {
    bool active = false;
  };
  struct Synced {};
  using Item = std::variant<Changed, Settled, Rejected, Trouble, Active, Synced>;

  template <class T>
  void append(std::vector<Message> messages);
  void push(Item item);
  void run(ClusterSink& sink);
  static void deliver(Item& item, ClusterSink& sink);

  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Item> items_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace troupe
