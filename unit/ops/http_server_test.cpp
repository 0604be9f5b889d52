#include "ops/http/server.hpp"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <future>

namespace troupe {
namespace {

std::uint16_t free_port() {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
  close(fd);
  return ntohs(address.sin_port);
}

struct Answer {
  long status = 0;
  std::string body;
};

std::size_t append(char* data, std::size_t size, std::size_t count, void* out) {
  static_cast<std::string*>(out)->append(data, size * count);
  return size * count;
}

Answer get(const std::string& url, const char* method = "GET") {
  Answer answer;
  const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> curl(curl_easy_init(), &curl_easy_cleanup);
  curl_easy_setopt(curl.get(), CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_CUSTOMREQUEST, method);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, append);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &answer.body);
  curl_easy_setopt(curl.get(), CURLOPT_TIMEOUT, 10L);
  EXPECT_EQ(curl_easy_perform(curl.get()), CURLE_OK) << url;
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &answer.status);
  return answer;
}

TEST(HttpServer, ServesRoutesPrefixesAndQueries) {
  const std::uint16_t port = free_port();
  const auto server = make_http_server({.port = port});
  server->route("/healthz", [](const ApiRequest&) { return ApiResponse{200, "text/plain", "ok", {}}; });
  server->route("/api/v1/pods/*", [](const ApiRequest& r) {
    const auto it = r.query.find("n");
    return ApiResponse{200, "application/json", r.path + (it == r.query.end() ? "" : "?" + it->second), {}};
  });
  ASSERT_TRUE(server->start());
  const std::string base = "http://127.0.0.1:" + std::to_string(port);
  EXPECT_EQ(get(base + "/healthz").body, "ok");
  EXPECT_EQ(get(base + "/api/v1/pods/default/a%20b?n=x%26y").body, "/api/v1/pods/default/a b?x&y");
  EXPECT_EQ(get(base + "/nothing").status, 404);
  EXPECT_EQ(get(base + "/healthz", "POST").status, 405);
}

TEST(HttpServer, AThrowingHandlerAnswers500AndTheServerGoesOn) {
  const std::uint16_t port = free_port();
  const auto server = make_http_server({.port = port});
  server->route("/bad",
                [](const ApiRequest&) -> ApiResponse { throw std::runtime_error("broken \"thing\""); });
  ASSERT_TRUE(server->start());
  const std::string url = "http://127.0.0.1:" + std::to_string(port) + "/bad";
  EXPECT_EQ(get(url).status, 500);
  EXPECT_NE(get(url).body.find("broken 'thing'"), std::string::npos);
}

TEST(HttpServer, StreamsUntilClosed) {
  const std::uint16_t port = free_port();
  const auto server = make_http_server({.port = port});
  std::promise<std::shared_ptr<BodyStream>> opened;
  server->route("/events", [&](const ApiRequest&) {
    return ApiResponse{
        200, "text/event-stream", {}, [&](std::shared_ptr<BodyStream> s) { opened.set_value(std::move(s)); }};
  });
  ASSERT_TRUE(server->start());
  auto answer = std::async(std::launch::async,
                           [&] { return get("http://127.0.0.1:" + std::to_string(port) + "/events"); });
  const auto stream = opened.get_future().get();
  EXPECT_TRUE(stream->write("data: 1\n\n"));
  EXPECT_TRUE(stream->write("data: 2\n\n"));
  stream->close();
  EXPECT_EQ(answer.get().body, "data: 1\n\ndata: 2\n\n");
  EXPECT_FALSE(stream->write("data: 3\n\n"));
}

TEST(HttpServer, RefusesAnotherAddressWithoutTls) {
  const auto server = make_http_server({.host = "0.0.0.0", .port = free_port()});
  const auto started = server->start();
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, ErrorCode::invalid);
}

TEST(HttpServer, ATakenPortIsNamed) {
  const std::uint16_t port = free_port();
  const auto first = make_http_server({.port = port});
  ASSERT_TRUE(first->start());
  const auto second = make_http_server({.port = port});
  const auto started = second->start();
  ASSERT_FALSE(started);
  EXPECT_NE(started.error().object.find(std::to_string(port)), std::string::npos);
}

}  // namespace
}  // namespace troupe
