// HttpRequest::admit: what may no longer be written does not reach the server.
#include <gtest/gtest.h>

#include <future>

#include "integration/bridge/scripted_server.hpp"
#include "k8s-bridge/http.hpp"

namespace troupe {
namespace {

using testing::ScriptedServer;
using testing::ServedConnection;
using testing::ServedRequest;
using namespace std::chrono_literals;

HttpOutcome ask(const ApiServer& server, std::function<bool()> admit) {
  auto client = make_http_client(server, {});
  EXPECT_TRUE(client.has_value());
  HttpRequest request;
  request.method = "POST";
  request.path = "/binding";
  request.content_type = "application/json";
  request.body = "{}";
  request.admit = std::move(admit);
  auto promise = std::make_shared<std::promise<HttpOutcome>>();
  auto future = promise->get_future();
  (*client)->send(std::move(request),
                  [promise](HttpOutcome outcome) { promise->set_value(std::move(outcome)); });
  if (future.wait_for(20s) != std::future_status::ready) {
    ADD_FAILURE() << "no outcome";
    return tl::unexpected(HttpFailure{});
  }
  return future.get();
}

ApiServer at(const ScriptedServer& server) {
  ApiServer api;
  api.url = server.url();
  return api;
}

TEST(HttpAdmit, NothingIsSentOnceItSaysNo) {
  // 0: before the connection; 1: when its body is about to be written.
  for (int yes = 0; yes <= 1; ++yes) {
    std::atomic<int> handled{0};
    ScriptedServer server([&](ServedConnection& c, const ServedRequest&) {
      ++handled;
      c.reply(201, "{}");
    });
    std::atomic<int> asked{0};
    const auto outcome = ask(at(server), [&] { return asked++ < yes; });
    ASSERT_FALSE(outcome.has_value()) << yes;
    EXPECT_FALSE(outcome.error().unclear) << outcome.error().what;
    EXPECT_EQ(outcome.error().what, "no longer allowed");
    EXPECT_EQ(handled, 0);
  }
}

TEST(HttpAdmit, YesLetsItThrough) {
  ScriptedServer server([](ServedConnection& c, const ServedRequest&) { c.reply(201, "{}"); });
  const auto outcome = ask(at(server), [] { return true; });
  ASSERT_TRUE(outcome.has_value()) << outcome.error().what;
  EXPECT_EQ(outcome->status, 201);
}

TEST(HttpAdmit, IsAskedAgainBeforeTheRepetitionAfter401) {
  std::atomic<int> handled{0};
  std::atomic<bool> allowed{true};
  ScriptedServer server([&](ServedConnection& c, const ServedRequest&) {
    allowed = false;
    c.reply(++handled == 1 ? 401 : 201, "{}");
  });
  ApiServer api = at(server);
  api.token = [](bool refresh) -> Result<std::string> { return std::string(refresh ? "fresh" : "stale"); };
  const auto outcome = ask(api, [&] { return allowed.load(); });
  ASSERT_FALSE(outcome.has_value());
  EXPECT_FALSE(outcome.error().unclear);
  EXPECT_EQ(handled, 1);
}

}  // namespace
}  // namespace troupe
