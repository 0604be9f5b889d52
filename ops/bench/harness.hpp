// A Service on an embedded cluster, and counters of what the cluster saw.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>

#include "k8s-bridge/embedded/embedded_cluster.hpp"
#include "ops/service/service.hpp"

namespace troupe::bench {

/// A directory for one run, removed at its end. On the file system of `parent` (empty: the working
/// directory).
class ScratchDirectory {
 public:
  explicit ScratchDirectory(const std::string& parent);
  ~ScratchDirectory();
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

class Harness {
 public:
  explicit Harness(const std::string& store_path);
  ~Harness();

  Result<void> start();
  void stop();
  EmbeddedCluster& cluster() { return *cluster_; }
  Service& service() { return *service_; }

  /// Binds done since start.
  [[nodiscard]] std::uint64_t bound() const { return bound_.load(std::memory_order_relaxed); }
  /// Waits until bound() >= `count`; false after `limit`.
  bool wait_bound(std::uint64_t count, std::chrono::milliseconds limit);
  /// Waits until the service is ready; false after `limit`.
  bool wait_ready(std::chrono::milliseconds limit);

 private:
  class CountingPort;
  EmbeddedCluster* cluster_ = nullptr;  // owned by the service's port
  std::unique_ptr<Service> service_;
  std::atomic<std::uint64_t> bound_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
};

}  // namespace troupe::bench
