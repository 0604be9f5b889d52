#include <gtest/gtest.h>

#include <deque>
#include <nlohmann/json.hpp>

#include "k8s-bridge/review/access.hpp"
#include "unit/bridge_write/sim_time.hpp"

namespace troupe::test {
namespace {

using nlohmann::json;

/// Knows two tokens; answers when told to.
class ReviewApi final : public HttpClient {
 public:
  void send(HttpRequest request, std::function<void(HttpOutcome)> done) override {
    requests.push_back(request);
    waiting.push_back(
        [this, request = std::move(request), done = std::move(done)] { done(answer(request)); });
    if (!hold) pump();
  }
  std::unique_ptr<HttpStream> stream(HttpRequest, std::chrono::milliseconds, HttpStreamHandler) override {
    return nullptr;
  }
  void abort() override {}

  void pump() {
    while (!waiting.empty()) {
      const auto call = std::move(waiting.front());
      waiting.pop_front();
      call();
    }
  }

  std::vector<HttpRequest> requests;
  std::deque<std::function<void()>> waiting;
  bool hold = false;
  int status = 201;
  bool reset = false;

 private:
  HttpOutcome answer(const HttpRequest& request) {
    if (reset) return tl::unexpected(HttpFailure{true, "connection reset"});
    if (status != 201) return HttpResponse{status, "{}", {}};
    const json sent = json::parse(request.body);
    json body = sent;
    if (request.path == "/apis/authentication.k8s.io/v1/tokenreviews") {
      const std::string token = sent.at("spec").at("token");
      if (token == "good" || token == "weak") {
        body["status"] = {{"authenticated", true},
                          {"user",
                           {{"username", token + "-user"},
                            {"uid", "42"},
                            {"groups", {"g1", "system:authenticated"}},
                            {"extra", {{"scopes.example.com/x", {"a", "b"}}}}}}};
      } else {
        body["status"] = {{"authenticated", false}, {"error", "invalid bearer token"}};
      }
    } else {
      EXPECT_EQ(request.path, "/apis/authorization.k8s.io/v1/subjectaccessreviews");
      const json& spec = sent.at("spec");
      EXPECT_EQ(spec.at("groups"), json({"g1", "system:authenticated"}));
      EXPECT_EQ(spec.at("extra").at("scopes.example.com/x"), json({"a", "b"}));
      EXPECT_EQ(spec.at("nonResourceAttributes").at("verb"), "get");
      EXPECT_EQ(spec.at("nonResourceAttributes").at("path"), "/api/v1/nodes");
      const bool allowed = spec.at("user") == "good-user";
      body["status"] = {{"allowed", allowed}, {"reason", allowed ? "RBAC" : ""}};
    }
    return HttpResponse{201, body.dump(), {}};
  }
};

struct AccessTest : ::testing::Test {
  SimTimers timers;
  ReviewApi api;
  AccessReviewer reviewer{api, timers};
  AccessDecision ask(const std::string& token) {
    AccessDecision got{Access::unavailable, "", "not called"};
    reviewer.review(token, "get", "/api/v1/nodes", [&](const AccessDecision& d) { got = d; });
    return got;
  }
};

TEST_F(AccessTest, DecidesAsTheApiServerDoes) {
  const AccessDecision good = ask("good");
  EXPECT_EQ(good.access, Access::allowed);
  EXPECT_EQ(good.user, "good-user");
  const AccessDecision weak = ask("weak");
  EXPECT_EQ(weak.access, Access::forbidden);
  EXPECT_EQ(weak.reason, "user \"weak-user\" may not get /api/v1/nodes");
  const AccessDecision bad = ask("bad");
  EXPECT_EQ(bad.access, Access::unauthenticated);
  EXPECT_EQ(bad.reason, "invalid bearer token");
  EXPECT_EQ(ask("").access, Access::unauthenticated);
  EXPECT_EQ(api.requests.size(), 5U);
}

TEST_F(AccessTest, UsesAnAnswerForAShortTime) {
  ask("good");
  ask("bad");
  EXPECT_EQ(api.requests.size(), 3U);
  timers.run_until(4'999);
  ask("good");
  ask("bad");
  EXPECT_EQ(api.requests.size(), 3U);
  timers.run_until(5'000);
  ask("bad");
  EXPECT_EQ(api.requests.size(), 4U);
  timers.run_until(10'000);
  ask("good");
  EXPECT_EQ(api.requests.size(), 6U);
}

TEST_F(AccessTest, AsksOnceForWhoAskTogether) {
  api.hold = true;
  int answers = 0;
  for (int i = 0; i < 5; ++i) {
    reviewer.review("good", "get", "/api/v1/nodes", [&](const AccessDecision& d) {
      EXPECT_EQ(d.access, Access::allowed);
      ++answers;
    });
  }
  api.pump();
  EXPECT_EQ(answers, 5);
  EXPECT_EQ(api.requests.size(), 2U);
}

TEST_F(AccessTest, NoAnswerIsNeverKeptNorTakenForYes) {
  api.reset = true;
  EXPECT_EQ(ask("good").access, Access::unavailable);
  api.reset = false;
  api.status = 403;
  const AccessDecision refused = ask("good");
  EXPECT_EQ(refused.access, Access::unavailable);
  EXPECT_EQ(refused.reason, "TokenReview: the API server answers 403");
  api.status = 201;
  EXPECT_EQ(ask("good").access, Access::allowed);
}

TEST_F(AccessTest, KeepsItsCacheSmall) {
  AccessOptions options;
  options.entries = 10;
  AccessReviewer small(api, timers, options);
  const auto allowed = [&](const std::string& token) {
    bool got = false;
    small.review(token, "get", "/api/v1/nodes",
                 [&](const AccessDecision& d) { got = d.access == Access::allowed; });
    return got;
  };
  EXPECT_TRUE(allowed("good"));
  for (int i = 0; i < 20; ++i) allowed("guess" + std::to_string(i));
  const std::size_t before = api.requests.size();
  EXPECT_TRUE(allowed("good"));
  EXPECT_EQ(api.requests.size(), before + 2);  // it had been forgotten
  allowed("guess19");
  EXPECT_EQ(api.requests.size(), before + 2);
}

}  // namespace
}  // namespace troupe::test
