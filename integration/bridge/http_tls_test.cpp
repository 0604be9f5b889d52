#include <gtest/gtest.h>

#include <future>

#include "integration/bridge/scripted_server.hpp"
#include "k8s-bridge/http.hpp"

namespace troupe {
namespace {

using testing::eventually;
using testing::read_file;
using testing::ScriptedServer;
using testing::ServedConnection;
using testing::ServedRequest;
using testing::TempDir;
using testing::TestCa;
using testing::TlsFiles;

void answer(ServedConnection& c, const ServedRequest& r) {
  c.reply(200, r.client);
}

class HttpTls : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    dir_ = std::make_unique<TempDir>();
    ca_ = std::make_unique<TestCa>(*dir_, "cluster-ca");
    other_ca_ = std::make_unique<TestCa>(*dir_, "other-ca");
    by_address_ = ca_->issue("by-address", "IP:127.0.0.1");
    by_name_ = ca_->issue("by-name", "DNS:kubernetes.default.svc");
    client_ = ca_->issue("troupe-client", "DNS:client");
  }
  static void TearDownTestSuite() {
    other_ca_.reset();
    ca_.reset();
    dir_.reset();
  }

  static HttpOutcome ask(const ApiServer& api) {
    auto client = make_http_client(api, {.connections = 2});
    if (!client) return tl::unexpected(HttpFailure{true, client.error().text()});
    return ask(**client);
  }
  static HttpOutcome ask(HttpClient& client) {
    std::promise<HttpOutcome> promise;
    HttpRequest request;
    request.method = "POST";
    request.path = "/api";
    request.content_type = "application/json";
    request.body = "{}";
    client.send(request, [&](HttpOutcome outcome) { promise.set_value(std::move(outcome)); });
    return promise.get_future().get();
  }
  static ApiServer at(const ScriptedServer& server) {
    ApiServer api;
    api.url = server.url();
    api.ca_pem = ca_->pem();
    return api;
  }
  static void expect_refused(const HttpOutcome& outcome) {
    ASSERT_FALSE(outcome.has_value());
    EXPECT_FALSE(outcome.error().unclear) << outcome.error().what;
  }

  static inline std::unique_ptr<TempDir> dir_;
  static inline std::unique_ptr<TestCa> ca_;
  static inline std::unique_ptr<TestCa> other_ca_;
  static inline TlsFiles by_address_;
  static inline TlsFiles by_name_;
  static inline TlsFiles client_;
};

TEST_F(HttpTls, VerifiesTheServerByItsCa) {
  ScriptedServer server(answer, by_address_);
  EXPECT_TRUE(ask(at(server)).has_value());
  ApiServer wrong = at(server);
  wrong.ca_pem = other_ca_->pem();
  expect_refused(ask(wrong));
  ApiServer system = at(server);
  system.ca_pem.clear();
  expect_refused(ask(system));
  EXPECT_EQ(server.requests(), 1);
}

TEST_F(HttpTls, TakesABundleOfSeveralCertificates) {
  ScriptedServer server(answer, by_address_);
  ApiServer api = at(server);
  api.ca_pem = "first\n" + other_ca_->pem() + "\nsecond\n" + ca_->pem();
  EXPECT_TRUE(ask(api).has_value());
}

TEST_F(HttpTls, VerifiesTheNameOfTheServer) {
  ScriptedServer server(answer, by_name_);
  ApiServer api = at(server);
  expect_refused(ask(api));
  api.tls_server_name = "kubernetes.default.svc";
  EXPECT_TRUE(ask(api).has_value());
  api.tls_server_name = "kubernetes.default";
  expect_refused(ask(api));
  EXPECT_EQ(server.requests(), 1);
}

TEST_F(HttpTls, SkipsVerificationOnlyWhenAskedTo) {
  ScriptedServer server(answer, by_name_);
  ApiServer api = at(server);
  api.ca_pem.clear();
  api.insecure_skip_tls_verify = true;
  EXPECT_TRUE(ask(api).has_value());
}

TEST_F(HttpTls, ShowsItsClientCertificate) {
  TlsFiles files = by_address_;
  files.client_ca = ca_->certificate_file();
  ScriptedServer server(answer, files);
  ApiServer api = at(server);
  api.client_certificate_pem = read_file(client_.certificate);
  api.client_key_pem = read_file(client_.key);
  const auto outcome = ask(api);
  ASSERT_TRUE(outcome.has_value()) << outcome.error().what;
  EXPECT_EQ(outcome->body, "troupe-client");
}

TEST_F(HttpTls, NamesTlsMaterialThatCannotBeRead) {
  ScriptedServer server(answer, by_address_);
  ApiServer api = at(server);
  api.ca_pem = "garbage";
  EXPECT_EQ(make_http_client(api, {}).error().field, "certificate-authority");
  api = at(server);
  api.client_certificate_pem = "garbage";
  EXPECT_EQ(make_http_client(api, {}).error().field, "client-certificate");
  api.client_certificate_pem = read_file(client_.certificate);
  api.client_key_pem = "garbage";
  EXPECT_EQ(make_http_client(api, {}).error().field, "client-key");
  api.client_key_pem = read_file(by_name_.key);
  EXPECT_EQ(make_http_client(api, {}).error().field, "client-key");
  api = at(server);
  std::string cut = ca_->pem();
  api.ca_pem = ca_->pem() + cut.replace(cut.find("MII"), 3, "!!!");
  EXPECT_EQ(make_http_client(api, {}).error().field, "certificate-authority");
}

TEST_F(HttpTls, KeepsTlsConnectionsAlive) {
  ScriptedServer server(answer, by_address_);
  const auto client = make_http_client(at(server), {.connections = 2});
  ASSERT_TRUE(client.has_value());
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(ask(**client).has_value());
  EXPECT_LE(server.connections(), 4);
}

// Even a connection that never carried a request before must not linger: what it has not delivered yet could
// arrive after authority has lapsed.
TEST_F(HttpTls, AbortResetsAFreshConnection) {
  std::atomic<int> held{0};
  std::atomic<int> resets{0};
  ScriptedServer server(
      [&](ServedConnection& c, const ServedRequest&) {
        ++held;
        if (c.wait_for_peer()) ++resets;
      },
      by_address_);
  const auto client = make_http_client(at(server), {.connections = 2});
  ASSERT_TRUE(client.has_value());
  auto outcome = std::async(std::launch::async, [&] { return ask(**client); });
  ASSERT_TRUE(eventually([&] { return held == 1; }));
  (*client)->abort();
  const auto ended = outcome.get();
  ASSERT_FALSE(ended.has_value());
  EXPECT_TRUE(ended.error().unclear);
  EXPECT_TRUE(eventually([&] { return resets == 1; }));
}

TEST_F(HttpTls, GoesThroughAProxy) {
  ScriptedServer server(answer, by_address_);
  std::string connect;
  std::string authorization;
  ScriptedServer proxy([&](ServedConnection& c, const ServedRequest& r) {
    connect = r.method + " " + r.target;
    if (r.headers.contains("proxy-authorization")) authorization = r.headers.at("proxy-authorization");
    c.send("HTTP/1.1 200 Connection established\r\n\r\n");
    c.tunnel(server.port());
  });
  ApiServer api = at(server);
  api.proxy_url = "http://ada:secret@127.0.0.1:" + std::to_string(proxy.port());
  const auto outcome = ask(api);
  ASSERT_TRUE(outcome.has_value()) << outcome.error().what;
  EXPECT_EQ(connect, "CONNECT 127.0.0.1:" + std::to_string(server.port()));
  EXPECT_EQ(authorization, "Basic YWRhOnNlY3JldA==");
}

TEST_F(HttpTls, AProxyThatRefusesIsNotUnclear) {
  ScriptedServer proxy([](ServedConnection& c, const ServedRequest&) { c.reply(403, "no"); });
  ScriptedServer server(answer, by_address_);
  ApiServer api = at(server);
  api.proxy_url = proxy.url();
  expect_refused(ask(api));
}

}  // namespace
}  // namespace troupe
