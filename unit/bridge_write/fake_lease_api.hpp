// The API server as far as Leases go, on virtual time: compare-and-set, watches, core events; answers late or
// lost on purpose.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "k8s-bridge/http.hpp"
#include "k8s-bridge/lease/lease_object.hpp"
#include "unit/bridge_write/sim_time.hpp"

namespace troupe::test {

/// What happens to one request: when it reaches the server, whether at all, and when its answer comes back.
struct LeaseFault {
  std::int64_t there_ms = 1;
  std::int64_t back_ms = 1;
  bool lost_request = false;
  bool lost_answer = false;
  int status = 0;  // answered instead of being handled; 0: handled
};

/// The one server. Clients reach it through LeaseClient.
struct LeaseServer {
  explicit LeaseServer(SimTimers& clock) : timers(clock) {}

  SimTimers& timers;
  std::optional<LeaseObject> lease;
  std::uint64_t version = 10;
  std::vector<std::string> events;  // messages of core events
  int writes = 0;
  std::map<int, std::function<void(std::string)>> watches;  // take lines
  int next_watch = 1;

  HttpResponse handle(const HttpRequest& request);
  [[nodiscard]] std::string body() const;
  void notify(const char* type);
  void erase();
};

class LeaseClient final : public HttpClient {
 public:
  LeaseClient(LeaseServer& server, SimTimers& timers) : server_(server), timers_(timers) {}

  void send(HttpRequest request, std::function<void(HttpOutcome)> done) override;
  std::unique_ptr<HttpStream> stream(HttpRequest request, std::chrono::milliseconds idle,
                                     HttpStreamHandler handler) override;
  void abort() override {}

  std::function<LeaseFault(const HttpRequest&)> fault;  // empty: none
  std::function<std::int64_t()> watch_delay;            // of each line; empty: 1 ms
  int refuse_watch = 0;                                 // status; 0: watches are allowed

 private:
  LeaseServer& server_;
  SimTimers& timers_;
};

}  // namespace troupe::test
