#include <gtest/gtest.h>

#include <mutex>

#include "integration/bridge/scripted_server.hpp"
#include "k8s-bridge/http.hpp"

namespace troupe {
namespace {

using testing::eventually;
using testing::ScriptedServer;
using testing::ServedConnection;
using testing::ServedRequest;
using namespace std::chrono_literals;

struct Heard {
  std::mutex mutex;
  std::vector<std::string> lines;
  int refused = 0;
  std::string refusal;
  int ended = 0;
  std::string why;
  bool half = false;

  HttpStreamHandler handler() {
    return {.line =
                [this](std::string_view line) {
                  const std::lock_guard lock(mutex);
                  lines.emplace_back(line);
                },
            .refused =
                [this](int status, std::string body) {
                  const std::lock_guard lock(mutex);
                  refused = status;
                  refusal = std::move(body);
                },
            .ended =
                [this](std::string reason, bool half_line) {
                  const std::lock_guard lock(mutex);
                  ++ended;
                  why = std::move(reason);
                  half = half_line;
                }};
  }
  template <class F>
  bool wait(F&& condition) {
    return eventually([&] {
      const std::lock_guard lock(mutex);
      return condition();
    });
  }
};

HttpRequest watch() {
  HttpRequest request;
  request.method = "GET";
  request.path = "/api/v1/pods?watch=1";
  return request;
}

std::unique_ptr<HttpClient> client_for(const ScriptedServer& server) {
  ApiServer api;
  api.url = server.url();
  auto made = make_http_client(api, {});
  EXPECT_TRUE(made.has_value());
  return std::move(*made);
}

using Lines = std::vector<std::string>;

TEST(HttpStream, DeliversWholeLinesHoweverTheyAreCut) {
  ScriptedServer server([](ServedConnection& c, const ServedRequest&) {
    c.start_chunked();
    c.chunk("{\"a\":1}\n{\"b\"");
    c.chunk(":2}");
    c.chunk("\n");
    c.chunk("\n{\"c\":3}\n");
    c.chunk({});
  });
  const auto client = client_for(server);
  Heard heard;
  const auto stream = client->stream(watch(), 10s, heard.handler());
  ASSERT_TRUE(heard.wait([&] { return heard.ended == 1; }));
  EXPECT_EQ(heard.lines, (Lines{"{\"a\":1}", "{\"b\":2}", "{\"c\":3}"}));
  EXPECT_FALSE(heard.half);
  EXPECT_EQ(heard.refused, 0);
}

TEST(HttpStream, ALineArrivesBeforeTheNextOneIsSent) {
  Heard heard;
  ScriptedServer server([&](ServedConnection& c, const ServedRequest&) {
    c.start_chunked();
    for (std::size_t i = 1; i <= 3; ++i) {
      c.chunk("line\n");
      if (!heard.wait([&] { return heard.lines.size() == i; })) return c.close();
    }
    c.chunk({});
  });
  const auto client = client_for(server);
  const auto stream = client->stream(watch(), 10s, heard.handler());
  ASSERT_TRUE(heard.wait([&] { return heard.ended == 1; }));
  EXPECT_EQ(heard.lines.size(), 3U);
}

TEST(HttpStream, SaysWhenHalfALineWasLost) {
  ScriptedServer server([](ServedConnection& c, const ServedRequest&) {
    c.start_chunked();
    c.chunk("{\"a\":1}\n{\"b\":");
    c.close();
  });
  const auto client = client_for(server);
  Heard heard;
  const auto stream = client->stream(watch(), 10s, heard.handler());
  ASSERT_TRUE(heard.wait([&] { return heard.ended == 1; }));
  EXPECT_EQ(heard.lines, Lines{"{\"a\":1}"});
  EXPECT_TRUE(heard.half);
}

TEST(HttpStream, TellsARefusalWithItsBody) {
  ScriptedServer server(
      [](ServedConnection& c, const ServedRequest&) { c.reply(410, "{\"reason\":\"Expired\"}"); });
  const auto client = client_for(server);
  Heard heard;
  const auto stream = client->stream(watch(), 10s, heard.handler());
  ASSERT_TRUE(heard.wait([&] { return heard.refused != 0; }));
  EXPECT_EQ(heard.refused, 410);
  EXPECT_EQ(heard.refusal, "{\"reason\":\"Expired\"}");
  EXPECT_EQ(heard.ended, 0);
  EXPECT_TRUE(heard.lines.empty());
}

TEST(HttpStream, EndsWhenNoServerListens) {
  std::unique_ptr<HttpClient> client;
  {
    ScriptedServer gone([](ServedConnection&, const ServedRequest&) {});
    client = client_for(gone);
  }
  Heard heard;
  const auto stream = client->stream(watch(), 10s, heard.handler());
  ASSERT_TRUE(heard.wait([&] { return heard.ended == 1; }));
  EXPECT_FALSE(heard.half);
}

TEST(HttpStream, EndsAfterSilence) {
  ScriptedServer server([](ServedConnection& c, const ServedRequest& r) {
    if (r.target.find("mute") == std::string::npos) {
      c.start_chunked();
      c.chunk("one\n");
    }
    c.hold();
  });
  const auto client = client_for(server);
  for (const std::string path : {"/talks", "/mute"}) {
    Heard heard;
    HttpRequest request = watch();
    request.path = path;
    const auto stream = client->stream(request, 200ms, heard.handler());
    ASSERT_TRUE(heard.wait([&] { return heard.ended == 1; }));
    EXPECT_EQ(heard.why, "silent for 200 ms");
  }
}

TEST(HttpStream, DestroyingItClosesTheConnectionAndSilencesTheHandler) {
  std::atomic<bool> gone{false};
  ScriptedServer server([&](ServedConnection& c, const ServedRequest&) {
    c.start_chunked();
    c.chunk("one\n");
    c.wait_for_peer();
    gone = true;
  });
  const auto client = client_for(server);
  Heard heard;
  auto stream = client->stream(watch(), 60s, heard.handler());
  ASSERT_TRUE(heard.wait([&] { return heard.lines.size() == 1; }));
  stream.reset();
  EXPECT_TRUE(eventually([&] { return gone.load(); }));
  EXPECT_EQ(heard.ended + heard.refused, 0);
}

TEST(HttpStream, MayBeDestroyedByItsOwnHandler) {
  ScriptedServer server([](ServedConnection& c, const ServedRequest&) {
    c.start_chunked();
    c.chunk("one\ntwo\n");
    c.hold();
  });
  const auto client = client_for(server);
  std::mutex mutex;
  std::unique_ptr<HttpStream> stream;
  std::atomic<int> lines{0};
  {
    const std::lock_guard lock(mutex);
    stream = client->stream(watch(), 60s,
                            {.line =
                                 [&](std::string_view) {
                                   ++lines;
                                   const std::lock_guard inner(mutex);
                                   stream.reset();
                                 },
                             .refused = [](int, std::string) { ADD_FAILURE(); },
                             .ended = [](std::string, bool) { ADD_FAILURE(); }});
  }
  EXPECT_TRUE(eventually([&] {
    const std::lock_guard lock(mutex);
    return stream == nullptr;
  }));
  EXPECT_EQ(lines, 1);
}

TEST(HttpStream, RefreshesTheTokenOnce) {
  ScriptedServer server([](ServedConnection& c, const ServedRequest& r) {
    if (r.headers.at("authorization") != "Bearer good") return c.reply(401, "{\"code\":401}");
    c.start_chunked();
    c.chunk("one\n");
    c.chunk({});
  });
  ApiServer api;
  api.url = server.url();
  api.token = [](bool refresh) -> Result<std::string> { return std::string(refresh ? "good" : "old"); };
  const auto client = make_http_client(api, {});
  ASSERT_TRUE(client.has_value());
  Heard heard;
  const auto stream = (*client)->stream(watch(), 10s, heard.handler());
  ASSERT_TRUE(heard.wait([&] { return heard.ended == 1; }));
  EXPECT_EQ(heard.lines, Lines{"one"});
  EXPECT_EQ(server.requests(), 2);
}

TEST(HttpStream, AbortEndsIt) {
  ScriptedServer server([](ServedConnection& c, const ServedRequest&) {
    c.start_chunked();
    c.chunk("one\n");
    c.hold();
  });
  const auto client = client_for(server);
  Heard heard;
  const auto stream = client->stream(watch(), 60s, heard.handler());
  ASSERT_TRUE(heard.wait([&] { return heard.lines.size() == 1; }));
  client->abort();
  EXPECT_TRUE(heard.wait([&] { return heard.ended == 1; }));
}

}  // namespace
}  // namespace troupe
