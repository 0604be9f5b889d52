#include <gtest/gtest.h>

#include <future>

#include "integration/bridge/scripted_server.hpp"
#include "k8s-bridge/http.hpp"

namespace troupe {
namespace {

using testing::eventually;
using testing::ScriptedServer;
using testing::ServedConnection;
using testing::ServedRequest;
using testing::TempDir;
using testing::TestCa;
using namespace std::chrono_literals;

std::unique_ptr<HttpClient> client_for(const ApiServer& server, int connections = 8) {
  auto made = make_http_client(server, {.connections = connections, .user_agent = "troupe-test"});
  EXPECT_TRUE(made.has_value()) << made.error().text();
  return std::move(*made);
}

ApiServer at(const ScriptedServer& server) {
  ApiServer api;
  api.url = server.url();
  return api;
}

HttpRequest get(std::string path) {
  HttpRequest request;
  request.method = "GET";
  request.path = std::move(path);
  return request;
}

HttpRequest post(std::string path, std::string body) {
  HttpRequest request;
  request.method = "POST";
  request.path = std::move(path);
  request.content_type = "application/json";
  request.body = std::move(body);
  return request;
}

std::future<HttpOutcome> begin(HttpClient& client, HttpRequest request) {
  auto promise = std::make_shared<std::promise<HttpOutcome>>();
  auto future = promise->get_future();
  client.send(std::move(request), [promise](HttpOutcome outcome) { promise->set_value(std::move(outcome)); });
  return future;
}

HttpOutcome ask(HttpClient& client, HttpRequest request) {
  auto future = begin(client, std::move(request));
  if (future.wait_for(20s) != std::future_status::ready) {
    ADD_FAILURE() << "no outcome";
    return tl::unexpected(HttpFailure{});
  }
  return future.get();
}

TEST(HttpClient, SendsWhatItIsGivenAndReturnsTheAnswer) {
  ServedRequest seen;
  ScriptedServer server([&](ServedConnection& c, const ServedRequest& r) {
    seen = r;
    c.reply(429, "{\"kind\":\"Status\"}", "Retry-After: 7\r\n");
  });
  const auto client = client_for(at(server));
  const auto outcome = ask(*client, post("/api/v1/pods?limit=5&fieldSelector=a%21%3Db", "{\"a\":1}"));
  ASSERT_TRUE(outcome.has_value()) << outcome.error().what;
  EXPECT_EQ(outcome->status, 429);
  EXPECT_EQ(outcome->body, "{\"kind\":\"Status\"}");
  EXPECT_EQ(outcome->retry_after, 7s);
  EXPECT_EQ(seen.method, "POST");
  EXPECT_EQ(seen.target, "/api/v1/pods?limit=5&fieldSelector=a%21%3Db");
  EXPECT_EQ(seen.body, "{\"a\":1}");
  EXPECT_EQ(seen.headers["content-type"], "application/json");
  EXPECT_EQ(seen.headers["user-agent"], "troupe-test");
  EXPECT_EQ(seen.headers["accept"], "application/json");
}

TEST(HttpClient, EveryMethodArrivesAsItself) {
  std::vector<std::string> methods;
  ScriptedServer server([&](ServedConnection& c, const ServedRequest& r) {
    methods.push_back(r.method + " " + r.body);
    c.reply(200, "{}");
  });
  const auto client = client_for(at(server));
  for (const std::string method : {"GET", "POST", "PUT", "PATCH", "DELETE"}) {
    HttpRequest request = method == "GET" ? get("/x") : post("/x", method);
    request.method = method;
    EXPECT_TRUE(ask(*client, request).has_value());
  }
  EXPECT_EQ(methods,
            (std::vector<std::string>{"GET ", "POST POST", "PUT PUT", "PATCH PATCH", "DELETE DELETE"}));
}

TEST(HttpClient, ReadsLargeChunkedAnswers) {
  const std::string piece(70'000, 'p');
  ScriptedServer server([&](ServedConnection& c, const ServedRequest&) {
    c.start_chunked();
    for (int i = 0; i < 40; ++i) c.chunk(piece);
    c.chunk({});
  });
  const auto client = client_for(at(server));
  const auto outcome = ask(*client, get("/list"));
  ASSERT_TRUE(outcome.has_value()) << outcome.error().what;
  EXPECT_EQ(outcome->body.size(), 40 * piece.size());
}

TEST(HttpClient, KeepsItsPathPrefix) {
  std::string target;
  ScriptedServer server([&](ServedConnection& c, const ServedRequest& r) {
    target = r.target;
    c.reply(200, "{}");
  });
  ApiServer api = at(server);
  api.url += "/k8s/clusters/c-1";
  ASSERT_TRUE(ask(*client_for(api), get("/api/v1/nodes")).has_value());
  EXPECT_EQ(target, "/k8s/clusters/c-1/api/v1/nodes");
}

TEST(HttpClient, KeepsConnectionsAlive) {
  ScriptedServer server([](ServedConnection& c, const ServedRequest&) { c.reply(200, "{}"); });
  const auto client = client_for(at(server));
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(ask(*client, i % 2 == 0 ? get("/") : post("/", "{}")).has_value());
  EXPECT_LE(server.connections(), 4);
}

TEST(HttpClient, RunsAtMostSoManyRequestsAtOnce) {
  std::mutex mutex;
  int running = 0;
  int most = 0;
  std::atomic<bool> go{false};
  ScriptedServer server([&](ServedConnection& c, const ServedRequest&) {
    {
      const std::lock_guard lock(mutex);
      most = std::max(most, ++running);
    }
    EXPECT_TRUE(eventually([&] { return go.load(); }));
    {
      const std::lock_guard lock(mutex);
      --running;
    }
    c.reply(200, "{}");
  });
  const auto client = client_for(at(server), 3);
  std::vector<std::future<HttpOutcome>> all;
  for (int i = 0; i < 12; ++i)
    all.push_back(begin(*client, get(std::string("/n").append(std::to_string(i)))));
  EXPECT_TRUE(eventually([&] {
    const std::lock_guard lock(mutex);
    return running == 3;
  }));
  go = true;
  for (auto& f : all) EXPECT_TRUE(f.get().has_value());
  EXPECT_EQ(most, 3);
  EXPECT_LE(server.connections(), 6);
}

TEST(HttpClient, TakesATokenPerRequestAndRefreshesItOnce) {
  std::vector<std::string> seen;
  ScriptedServer server([&](ServedConnection& c, const ServedRequest& r) {
    seen.push_back(r.headers.at("authorization"));
    c.reply(r.headers.at("authorization") == "Bearer good" ? 200 : 401, "{}");
  });
  ApiServer api = at(server);
  std::atomic<int> refreshes{0};
  std::string refreshed = "good";
  std::string token = "old";
  api.token = [&](bool refresh) -> Result<std::string> {
    if (refresh) {
      ++refreshes;
      token = refreshed;
    }
    return token;
  };
  const auto client = client_for(api);
  EXPECT_EQ(ask(*client, post("/", "{}"))->status, 200);
  EXPECT_EQ(ask(*client, post("/", "{}"))->status, 200);
  EXPECT_EQ(refreshes, 1);
  EXPECT_EQ(seen, (std::vector<std::string>{"Bearer old", "Bearer good", "Bearer good"}));
  token = refreshed = "bad";
  EXPECT_EQ(ask(*client, get("/"))->status, 401);
  EXPECT_EQ(server.requests(), 5);
}

TEST(HttpClient, SendsBasicAuthentication) {
  std::string seen;
  ScriptedServer server([&](ServedConnection& c, const ServedRequest& r) {
    seen = r.headers.at("authorization");
    c.reply(200, "{}");
  });
  ApiServer api = at(server);
  api.username = "ada";
  api.password = "pass:word";
  ASSERT_TRUE(ask(*client_for(api), get("/")).has_value());
  EXPECT_EQ(seen, "Basic YWRhOnBhc3M6d29yZA==");
}

TEST(HttpClient, ATokenThatCannotBeReadFailsWithoutSending) {
  ScriptedServer server([](ServedConnection& c, const ServedRequest&) { c.reply(200, "{}"); });
  ApiServer api = at(server);
  api.token = [](bool) -> Result<std::string> {
    return fail({ErrorCode::io, "cannot read the token", "/x/token", {}, "mount it"});
  };
  const auto outcome = ask(*client_for(api), get("/"));
  ASSERT_FALSE(outcome.has_value());
  EXPECT_FALSE(outcome.error().unclear);
  EXPECT_NE(outcome.error().what.find("/x/token"), std::string::npos);
  EXPECT_EQ(server.requests(), 0);
}

TEST(HttpClient, ARefusedConnectionIsNotUnclear) {
  ApiServer api;
  {
    ScriptedServer gone([](ServedConnection&, const ServedRequest&) {});
    api = at(gone);
  }
  const auto outcome = ask(*client_for(api), post("/", "{}"));
  ASSERT_FALSE(outcome.has_value());
  EXPECT_FALSE(outcome.error().unclear);
}

TEST(HttpClient, ACutAnswerIsUnclear) {
  for (const bool hard : {false, true}) {
    ScriptedServer server([&](ServedConnection& c, const ServedRequest&) { hard ? c.reset() : c.close(); });
    const auto outcome = ask(*client_for(at(server)), post("/", "{}"));
    ASSERT_FALSE(outcome.has_value());
    EXPECT_TRUE(outcome.error().unclear);
    EXPECT_EQ(server.requests(), 1);
  }
}

TEST(HttpClient, AnAnswerCutInItsBodyIsUnclear) {
  ScriptedServer server([](ServedConnection& c, const ServedRequest&) {
    c.send("HTTP/1.1 201 Created\r\nContent-Length: 100\r\n\r\n{\"ki");
    c.close();
  });
  const auto outcome = ask(*client_for(at(server)), post("/", "{}"));
  ASSERT_FALSE(outcome.has_value());
  EXPECT_TRUE(outcome.error().unclear);
}

// A write must not be repeated behind the caller's back, whatever state the kept-alive connection was in.
TEST(HttpClient, NeverSendsAWriteTwice) {
  std::atomic<int> writes{0};
  ScriptedServer server([&](ServedConnection& c, const ServedRequest& r) {
    if (r.method == "GET") return c.reply(200, "{}");
    ++writes;
    c.close();
  });
  const auto client = client_for(at(server));
  ASSERT_TRUE(ask(*client, get("/")).has_value());
  const auto outcome = ask(*client, post("/", "{}"));
  ASSERT_FALSE(outcome.has_value());
  EXPECT_TRUE(outcome.error().unclear);
  EXPECT_EQ(writes, 1);
}

TEST(HttpClient, GivesUpAtTheDeadline) {
  ScriptedServer server([](ServedConnection& c, const ServedRequest& r) {
    if (r.target == "/drip") {
      c.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n");
      while (c.open()) {
        c.send("x");
        if (!eventually([] { return false; }, 0)) continue;
      }
    }
    c.hold();
  });
  const auto client = client_for(at(server));
  for (const std::string path : {"/silent", "/drip"}) {
    HttpRequest request = get(path);
    request.timeout = 200ms;
    const auto outcome = ask(*client, request);
    ASSERT_FALSE(outcome.has_value());
    EXPECT_TRUE(outcome.error().unclear);
    EXPECT_EQ(outcome.error().what, "no answer within 200 ms");
  }
}

TEST(HttpClient, AbortResetsConnectionsAndEndsEverything) {
  std::atomic<int> held{0};
  std::atomic<int> resets{0};
  std::atomic<bool> serving{false};
  ScriptedServer server([&](ServedConnection& c, const ServedRequest&) {
    if (serving) return c.reply(200, "{}");
    ++held;
    if (c.wait_for_peer()) ++resets;
  });
  const auto client = client_for(at(server), 2);
  std::vector<std::future<HttpOutcome>> all;
  for (int i = 0; i < 4; ++i) all.push_back(begin(*client, post("/", "{}")));
  ASSERT_TRUE(eventually([&] { return held == 2; }));
  client->abort();
  int unclear = 0;
  for (auto& f : all) {
    const auto outcome = f.get();
    ASSERT_FALSE(outcome.has_value());
    unclear += outcome.error().unclear ? 1 : 0;
  }
  EXPECT_EQ(unclear, 2);
  EXPECT_EQ(server.requests(), 2);
  serving = true;
  EXPECT_EQ(ask(*client, get("/"))->status, 200);
}

TEST(HttpClient, RefusesWhatIsNoUrl) {
  for (const std::string url : {"", "127.0.0.1:6443", "ftp://x", "https://"}) {
    ApiServer api;
    api.url = url;
    const auto made = make_http_client(api, {});
    ASSERT_FALSE(made.has_value()) << url;
    EXPECT_EQ(made.error().field, "server");
  }
}

TEST(HttpClient, CanBeDestroyedWithRequestsUnderWay) {
  std::atomic<int> held{0};
  ScriptedServer server([&](ServedConnection& c, const ServedRequest&) {
    ++held;
    c.hold();
  });
  auto client = client_for(at(server));
  auto future = begin(*client, get("/"));
  ASSERT_TRUE(eventually([&] { return held == 1; }));
  client.reset();
  ASSERT_EQ(future.wait_for(0s), std::future_status::ready);
  EXPECT_FALSE(future.get().has_value());
}

}  // namespace
}  // namespace troupe
