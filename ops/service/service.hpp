// ops/service/: one replica of Troupe: the store, the host with its owners, placement, and a cluster port,
// wired together. trouped, `troupe up` and the benchmarks run this same class; they differ in the port that
// they give it.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "actors/host/runtime.hpp"
#include "k8s-bridge/port.hpp"
#include "messages/error.hpp"
#include "messages/message.hpp"
#include "ops/service/deciding.hpp"
#include "ops/service/event_hub.hpp"
#include "store/store.hpp"

namespace troupe {

struct ServiceOptions {
  StoreOptions store;
  std::uint32_t node_partitions = 32;
  std::uint32_t threads = 2;  // CAF workers
  std::uint64_t seed = 1;     // of every random choice
  std::vector<std::string> scheduler_names = {"koord-scheduler"};
  bool publish_events = true;
};

/// Why the service is not ready, or that it is.
struct Readiness {
  bool ready = false;
  std::string why;
};

class Service final : public ClusterSink {
 public:
  /// `fatal`: called once when a write or sync failed or the role was lost; the process should exit.
  Service(ServiceOptions options, std::unique_ptr<ClusterPort> port, std::function<void(const Error&)> fatal);
  ~Service() override;

  /// Opens the store, restores, starts to mirror. Errors of the store or of the first connection.
  Result<void> start();
  /// Drains: takes nothing more, finishes what is under way, makes it durable, releases the role. Idempotent.
  void stop();

  [[nodiscard]] Readiness readiness() const;
  /// Waits until readiness says so; false after `limit`.
  bool wait_ready(std::chrono::milliseconds limit);
  /// Asks placement (nodes, pods, pending, decisions, explain, stats). JSON as documented in docs/api.md, or
  /// why there is none.
  Result<std::string> query(std::string_view verb, std::string_view ns, std::string_view name,
                            std::uint32_t limit, std::chrono::milliseconds timeout);
  /// The public events of this process (Kind::public_event).
  EventHub& events() { return events_; }

  /// Why the process must end; empty while it need not.
  [[nodiscard]] std::string failure() const;
  /// Holds the role: decides, or is about to.
  [[nodiscard]] bool leading() const { return active_.load(); }
  [[nodiscard]] PlacementStats placement_stats() const { return deciding_->stats(); }
  [[nodiscard]] StoreStats store_stats() const { return runtime_->store_stats(); }
  [[nodiscard]] PortStats port_stats() const { return port_->stats(); }
  /// One per actor kind.
  [[nodiscard]] std::vector<HostStats> host_stats() const { return runtime_->stats(); }
  [[nodiscard]] std::vector<Quarantined> quarantined() const { return runtime_->quarantined(); }
  [[nodiscard]] std::uint64_t rejected_objects() const { return rejected_.load(); }
  ClusterPort& port() { return *port_; }

  // ClusterSink
  void changed(std::vector<Message> changes) override;
  void synced() override;
  void settled(std::vector<Message> results) override;
  void rejected(const Error& error) override;
  void active(bool active) override;

 private:
  struct Question {
    bool answered = false;
    bool ok = false;
    std::string json;
  };

  Result<void> read_shard_epoch(Store& store);
  [[nodiscard]] PlacementOptions placement_options() const;
  void became_ready();
  void take_api(std::vector<Envelope> envelopes);
  void failed(const Error& error);

  ServiceOptions options_;
  std::unique_ptr<ClusterPort> port_;
  std::function<void(const Error&)> fatal_;
  std::shared_ptr<DecidingStatus> deciding_ = std::make_shared<DecidingStatus>();
  std::uint64_t shard_epoch_ = 1;
  EventHub events_;
  std::unique_ptr<Runtime> runtime_;

  std::atomic<bool> started_{false};
  std::atomic<bool> stopped_{false};
  std::atomic<bool> synced_{false};
  std::atomic<bool> active_{false};
  std::atomic<std::uint64_t> rejected_{0};
  mutable std::mutex mutex_;
  std::string failure_;              // guarded by mutex_
  std::condition_variable changed_;  // an answer, or readiness
  std::uint64_t next_question_ = 1;
  std::map<std::uint64_t, Question> questions_;
};

}  // namespace troupe
