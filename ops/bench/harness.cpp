#include "ops/bench/harness.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "messages/fb/intent_generated.h"

namespace troupe::bench {

ScratchDirectory::ScratchDirectory(const std::string& parent) {
  const std::filesystem::path base =
      parent.empty() ? std::filesystem::current_path() : std::filesystem::path(parent);
  path_ = base / ("troupe-bench." + std::to_string(getpid()) + "." +
                  std::to_string(std::chrono::steady_clock::now().time_since_epoch().count()));
  std::filesystem::create_directories(path_);
}

ScratchDirectory::~ScratchDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

/// The embedded cluster, with a count of the binds that it settles.
class Harness::CountingPort final : public ClusterPort, private ClusterSink {
 public:
  explicit CountingPort(Harness& harness) : harness_(harness) {}
  EmbeddedCluster& cluster() { return cluster_; }

  Result<void> start(ClusterSink& sink) override {
    sink_ = &sink;
    return cluster_.start(*this);
  }
  void issue(std::vector<Message> intents) override { cluster_.issue(std::move(intents)); }
  void stop() override { cluster_.stop(); }
  [[nodiscard]] PortStats stats() const override { return cluster_.stats(); }

 private:
  void changed(std::vector<Message> changes) override { sink_->changed(std::move(changes)); }
  void synced() override { sink_->synced(); }
  void rejected(const Error& error) override { sink_->rejected(error); }
  void active(bool active) override { sink_->active(active); }
  void settled(std::vector<Message> results) override {
    std::uint64_t done = 0;
    for (const Message& m : results) {
      const auto& r = m.as<fb::IntentResult>();
      done += r.kind() == fb::IntentKind::Bind && r.stage() == fb::IntentStage::Complete &&
                      r.outcome() == fb::IntentOutcome::Done
                  ? 1
                  : 0;
    }
    sink_->settled(std::move(results));
    if (done == 0) return;
    {
      const std::lock_guard lock(harness_.mutex_);
      harness_.bound_.fetch_add(done, std::memory_order_relaxed);
    }
    harness_.changed_.notify_all();
  }

  Harness& harness_;
  EmbeddedCluster cluster_;
  ClusterSink* sink_ = nullptr;
};

Harness::Harness(const std::string& store_path) {
  auto port = std::make_unique<CountingPort>(*this);
  cluster_ = &port->cluster();
  ServiceOptions options;
  options.store.path = store_path;
  service_ = std::make_unique<Service>(std::move(options), std::move(port), [](const Error& error) {
    std::fprintf(stderr, "troupe-bench: %s\n", error.text().c_str());
    std::_Exit(1);
  });
}

Harness::~Harness() {
  stop();
}

Result<void> Harness::start() {
  return service_->start();
}

void Harness::stop() {
  service_->stop();
}

bool Harness::wait_bound(std::uint64_t count, std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, limit, [&] { return bound() >= count; });
}

bool Harness::wait_ready(std::chrono::milliseconds limit) {
  return service_->wait_ready(limit);
}

}  // namespace troupe::bench
