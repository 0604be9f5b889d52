// The host of one process: the store, the partitions of every owner class, followers and ports, on one bus.
// Uses CAF and RocksDB; its users see neither.
//
// Order of use: construct, add_*, start, and at the end drain. A write or sync error ends it at once: nothing
// more leaves, and the `fatal` hook is called.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "actors/host/authority.hpp"
#include "actors/host/follower.hpp"
#include "actors/host/restore.hpp"
#include "actors/host/stats.hpp"
#include "messages/error.hpp"
#include "messages/message.hpp"
#include "store/store.hpp"

namespace troupe {

struct RuntimeOptions {
  StoreOptions store;
  std::size_t threads = 2;  // shared by all partitions
  std::uint64_t seed = 0;   // of the actors' random numbers
  /// Opens the store; empty: open_store(store, hooks).
  std::function<Result<std::unique_ptr<Store>>(StoreHooks hooks)> open;
  /// What people should hear of. From any thread; must not block.
  std::function<void(const HostEvent&)> report;
  /// The store failed, or a follower broke: nothing leaves any more. Once, from any thread; must not wait for
  /// the runtime. The process is to report not ready, give up its leases and exit.
  std::function<void(const Error&)> fatal;
};

class Runtime {
 public:
  using Take = std::function<void(std::vector<Envelope>)>;

  explicit Runtime(RuntimeOptions options);
  /// Stops without draining: as a crash, but what was handed to the store is written.
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  /// An owner class with `partitions` partitions. Changing that number later moves keys between partitions;
  /// their stored state follows by itself.
  template <Owner O>
  void add_owner(
      std::uint32_t partitions,
      SharedFactory<O> shared = [](std::uint32_t) { return std::make_unique<typename O::Shared>(); }) {
    add(owner_group<O>(partitions, std::move(shared)));
  }
  /// A follower, on a thread of its own: a busy one takes nothing from the partitions.
  template <Follower F>
  void add_follower(Address self, std::unique_ptr<F> follower) {
    add(std::move(self), std::make_unique<HostedFollowerOf<F>>(std::move(follower)));
  }
  /// `take` is called on the sender's thread, for messages in order per sender; it must not block. It is
  /// called before `start` has returned when restored owners send again what is pending.
  void add_port(ActorKind kind, std::uint32_t partition, Take take);

  /// Opens the store, restores and activates every partition, and begins to take messages. Errors: the
  /// store's.
  Result<void> start();
  /// Thread-safe from the construction to the end; delivers from `start` on.
  Bus& bus();
  /// Comes to rest: followers start no more cycles, everything that is under way is finished and written, and
  /// the store is closed. Stop what sends from outside (ports) first. False when `limit` passed before that:
  /// the store is closed all the same, and messages may be lost.
  bool drain(std::chrono::milliseconds limit);

  [[nodiscard]] bool failed() const;
  /// Whether this process may act: true until it failed.
  [[nodiscard]] const Authority& authority() const;
  /// One per actor kind, ascending.
  [[nodiscard]] std::vector<HostStats> stats() const;
  [[nodiscard]] std::vector<Quarantined> quarantined() const;
  [[nodiscard]] StoreStats store_stats() const;
  /// Of that partition's activation; 0 before `start` or where there is none.
  [[nodiscard]] std::uint64_t epoch(ActorKind kind, std::uint32_t partition) const;

 private:
  class Impl;
  void add(OwnerGroup group);
  void add(Address self, std::unique_ptr<HostedFollower> follower);

  std::unique_ptr<Impl> impl_;
};

}  // namespace troupe
