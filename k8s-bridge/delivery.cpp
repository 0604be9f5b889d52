#include "k8s-bridge/delivery.hpp"

#include <iterator>
#include <utility>

namespace troupe {

void Delivery::start(ClusterSink& sink) {
  const std::lock_guard lock(mutex_);
  if (!thread_.joinable() && !stopping_) {
    thread_ = std::thread([this, &sink] { run(sink); });
  }
}

void Delivery::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

template <class T>
void Delivery::append(std::vector<Message> messages) {
  if (messages.empty()) return;
  bool wake = false;
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    wake = items_.empty();
    if (!wake && std::holds_alternative<T>(items_.back())) {
      auto& last = std::get<T>(items_.back()).messages;
      last.insert(last.end(), std::make_move_iterator(messages.begin()),
                  std::make_move_iterator(messages.end()));
    } else {
      items_.push_back(T{std::move(messages)});
    }
  }
  if (wake) wake_.notify_one();
}

void Delivery::push(Item item) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    items_.push_back(std::move(item));
  }
  wake_.notify_one();
}

void Delivery::changed(std::vector<Message> changes) {
  append<Changed>(std::move(changes));
}
void Delivery::settled(std::vector<Message> results) {
  append<Settled>(std::move(results));
}
void Delivery::rejected(Error error) {
  push(Rejected{std::move(error)});
}
void Delivery::trouble(Error error) {
  push(Trouble{std::move(error)});
}
void Delivery::active(bool active) {
  push(Active{active});
}
void Delivery::synced() {
  push(Synced{});
}

void Delivery::run(ClusterSink& sink) {
  std::vector<Item> batch;
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return stopping_ || !items_.empty(); });
      if (items_.empty()) return;
      batch.swap(items_);
    }
    for (Item& item : batch) deliver(item, sink);
    batch.clear();
  }
}

void Delivery::deliver(Item& item, ClusterSink& sink) {
  struct {
    ClusterSink& sink;
    void operator()(Changed& i) const { sink.changed(std::move(i.messages)); }
    void operator()(Settled& i) const { sink.settled(std::move(i.messages)); }
    void operator()(Rejected& i) const { sink.rejected(i.error); }
    void operator()(Trouble& i) const { sink.trouble(i.error); }
    void operator()(Active& i) const { sink.active(i.active); }
    void operator()(Synced& /*i*/) const { sink.synced(); }
  } const hand_over{sink};
  std::visit(hand_over, item);
}

}  // namespace troupe
