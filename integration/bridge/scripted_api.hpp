// A FakeApi behind a ScriptedServer: lists and watches over real connections, with faults on demand.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <mutex>
#include <string>

#include "integration/bridge/scripted_server.hpp"
#include "unit/bridge_read/fake_api.hpp"

namespace troupe::testing {

class ScriptedApi {
 public:
  /// What happens to the next request instead of the right answer; true: it was answered.
  using Fault = std::function<bool(ServedConnection&, const ServedRequest&)>;

  ScriptedApi() : server_([this](ServedConnection& c, const ServedRequest& r) { serve(c, r); }) {}

  [[nodiscard]] std::string url() const { return server_.url(); }
  void change(const std::function<void(FakeApi&)>& run) {
    const std::lock_guard lock(mutex_);
    run(api_);
  }
  /// Faults happen in order, one per request.
  void next(Fault fault) {
    const std::lock_guard lock(mutex_);
    faults_.push_back(std::move(fault));
  }
  /// Watches under way end like this once their next line is due: whole lines first, then `run`.
  void cut_watches(std::function<void(ServedConnection&, const std::string& next_line)> run) {
    const std::lock_guard lock(mutex_);
    cut_ = std::move(run);
  }
  [[nodiscard]] std::vector<std::string> requests() {
    const std::lock_guard lock(mutex_);
    return requests_;
  }
  [[nodiscard]] int watching() const { return watching_; }

 private:
  void serve(ServedConnection& c, const ServedRequest& r);
  void watch(ServedConnection& c, const std::string& path);

  std::mutex mutex_;
  FakeApi api_;
  std::deque<Fault> faults_;
  std::function<void(ServedConnection&, const std::string&)> cut_;
  std::vector<std::string> requests_;
  std::atomic<int> watching_{0};
  ScriptedServer server_;
};

}  // namespace troupe::testing
