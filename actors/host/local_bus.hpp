// The bus of one process: (actor kind, partition) -> mailbox or port.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "actors/host/mailbox.hpp"
#include "messages/message.hpp"

namespace troupe {

/// Built before it is used, then shared by all threads without a lock of its own. Counts what is in flight,
/// so that a process can tell when it has come to rest.
class LocalBus final : public Bus {
 public:
  using Wake = std::function<void()>;
  using Take = std::function<void(std::vector<Envelope>)>;

  explicit LocalBus(std::function<void(const Envelope&)> undeliverable)
      : undeliverable_(std::move(undeliverable)) {}

  /// A mailbox for an actor; `wake` is called, from any thread, when it has something to take.
  Mailbox& add_mailbox(ActorKind kind, std::uint32_t partition, Wake wake);
  /// A port: `take` is called on the sender's thread and must not block.
  void add_port(ActorKind kind, std::uint32_t partition, Take take);

  void send(std::vector<Envelope> envelopes) override;
  /// Asks the actor to look at its timers and faults.
  void knock(ActorKind kind, std::uint32_t partition);

  /// Messages in mailboxes or being handled, and handlers at work.
  void begin_work() { in_flight_.fetch_add(1); }
  void end_work(std::size_t messages);
  /// Waits until nothing is in flight; false when `deadline` passed first.
  bool wait_for_rest(std::chrono::steady_clock::time_point deadline);
  /// How many times something was sent to a mailbox.
  [[nodiscard]] std::uint64_t deliveries() const { return deliveries_.load(); }
  /// Closes all mailboxes; what is in them is lost.
  void close();

 private:
  struct Destination {
    std::unique_ptr<Mailbox> mailbox;
    Wake wake;
    Take take;
    std::uint32_t index = 0;
  };

  Destination& add(ActorKind kind, std::uint32_t partition);
  [[nodiscard]] Destination* find(const Address& address) const;
  void deliver(Destination& to, std::vector<Envelope> envelopes);
  void landed(std::size_t messages);

  static constexpr std::size_t kKinds = 16;
  std::function<void(const Envelope&)> undeliverable_;
  std::array<std::vector<Destination*>, kKinds> directory_;
  std::vector<std::unique_ptr<Destination>> destinations_;
  std::atomic<std::uint64_t> in_flight_{0};
  std::atomic<std::uint64_t> deliveries_{0};
  std::mutex rest_mutex_;
  std::condition_variable rest_;
};

}  // namespace troupe
