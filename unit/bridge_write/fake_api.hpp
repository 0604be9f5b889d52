// A small model of what the API server does with pods, bindings, evictions and events, behind HttpClient, on
// virtual time: answers can be lost, late or wrong on purpose.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "k8s-bridge/http.hpp"
#include "messages/message.hpp"
#include "unit/bridge_write/sim_time.hpp"

namespace troupe::test {

struct FakePod {
  std::string name;
  std::string uid;
  std::uint64_t version = 0;
  std::int64_t generation = 1;
  std::string node;
  bool deleting = false;
  bool keeps_running_when_deleted = false;  // a DELETE only marks it
  std::string nominated;
  std::map<std::string, std::string> conditions;  // type -> status/reason/message
  std::map<std::string, std::string> annotations;
  int evictions_refused = 0;  // so many evictions are answered 429
  bool several_budgets = false;
  bool forbidden = false;  // writes are answered 403
};

/// What happens to one request.
struct Fault {
  enum class Kind {
    none,
    not_sent,       // no connection: not unclear
    lost_request,   // reset before it was handled
    lost_answer,    // reset after it was handled
    late,           // reset, and handled much later
    answer_before,  // `status` instead of being handled
    answer_after,   // handled, and `status` all the same
  };
  Kind kind = Kind::none;
  int status = 500;
  std::int64_t delay_ms = 2;
  std::int64_t retry_after_ms = 0;
  std::string message = "try again";
};

/// One write that took effect.
struct Applied {
  std::int64_t ms = 0;
  std::string what;  // bind, evict, delete, patch, event
  std::string uid;   // of the pod; name of the event
  std::string detail;
};

struct SentRequest {
  std::int64_t ms = 0;
  std::string method;
  std::string path;
  std::string body;
};

class FakeApi final : public HttpClient {
 public:
  explicit FakeApi(SimTimers& timers) : timers_(timers) {}

  void send(HttpRequest request, std::function<void(HttpOutcome)> done) override;
  std::unique_ptr<HttpStream> stream(HttpRequest, std::chrono::milliseconds, HttpStreamHandler) override;
  void abort() override;

  /// Asked for each request; empty: no faults.
  std::function<Fault(const HttpRequest&)> fault;

  FakePod& add_pod(const std::string& name);
  [[nodiscard]] FakePod* find(const std::string& name);
  /// Changes that bump the version.
  void touch(FakePod& pod) { pod.version = ++version_; }
  void change_spec(FakePod& pod) {
    ++pod.generation;
    touch(pod);
  }
  void remove(const std::string& name) { pods_.erase(name); }

  [[nodiscard]] std::vector<SentRequest> sent(const std::string& method, const std::string& path_end) const;
  std::vector<SentRequest> log;
  std::vector<Applied> applied;
  std::map<std::string, std::string> events;  // name -> body
  std::size_t in_flight = 0;
  std::size_t most_in_flight = 0;
  bool writes_without_uid = false;  // a pod write came without its uid precondition

 private:
  struct Flight;
  HttpResponse handle(const HttpRequest& request);
  HttpResponse bind(FakePod& pod, const HttpRequest& request);
  HttpResponse evict(FakePod& pod, const HttpRequest& request);
  HttpResponse erase(FakePod& pod, const HttpRequest& request);
  HttpResponse patch(FakePod& pod, const HttpRequest& request);
  HttpResponse post_event(const HttpRequest& request);
  void delete_now(FakePod& pod);

  SimTimers& timers_;
  std::map<std::string, FakePod> pods_;
  std::uint64_t version_ = 1000;
  std::uint64_t next_uid_ = 1;
  std::uint64_t next_flight_ = 1;
  std::map<std::uint64_t, std::function<void(HttpOutcome)>> flights_;  // not answered yet
  void answer(std::uint64_t flight, HttpOutcome outcome);
};

/// <prefix><n>
std::string numbered(const char* prefix, std::uint64_t n);

/// Fields of an intent, as tests want to write them.
struct IntentSpec {
  std::uint64_t id = 1;
  std::string kind = "Bind";  // as fb::IntentKind names it
  std::string name = "p";
  std::string uid;
  std::string version;
  std::int64_t generation = 1;
  std::string node = "n1";
  std::uint64_t after = 0;
  bool event = false;
  std::string event_name;  // default: <name>.<id in hex>
  std::string condition;   // PatchStatus: reason of PodScheduled=False
  std::string nominated;   // PatchStatus: node
  bool has_nominated = false;
  std::uint32_t partition = 3;
  std::uint64_t epoch = 7;
  std::int64_t created_ms = SimTimers::kWallStartUs / 1000 + 1'000'000;  // after the executor's start
};
Message make_intent(const IntentSpec& spec);
/// For a pod as it is, kind and id given.
IntentSpec intent_for(const FakePod& pod, std::uint64_t id, const std::string& kind);

}  // namespace troupe::test
