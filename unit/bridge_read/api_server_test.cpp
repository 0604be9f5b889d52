#include "k8s-bridge/kubeconfig/api_server.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <map>
#include <thread>

#include "unit/bridge_read/temp_dir.hpp"

namespace troupe {
namespace {

using testing::TempDir;

Environment variables(std::map<std::string, std::string> values) {
  return [values = std::move(values)](const std::string& name) -> std::optional<std::string> {
    const auto it = values.find(name);
    return it == values.end() ? std::nullopt : std::optional(it->second);
  };
}

Result<ApiServer> resolved(const std::string& text, const ApiServerChoice& choice = {},
                           const Environment& environment = variables({})) {
  const auto config = parse_kubeconfig(text, "/etc/kube/config");
  if (!config) return fail(config.error());
  return resolve(*config, choice, environment);
}

std::string with_user(const std::string& user) {
  return "current-context: c\nclusters: [{name: k, cluster: {server: 'https://10.0.0.1:6443/'}}]\n"
         "contexts: [{name: c, context: {cluster: k, user: u}}, {name: other, context: {cluster: nowhere, "
         "user: u}}]\n"
         "users: [{name: u, user: " +
         user + "}]\n";
}

TEST(ApiServerOf, FollowsTheContext) {
  const auto server = resolved(with_user("{token: abc}"));
  ASSERT_TRUE(server.has_value()) << server.error().text();
  EXPECT_EQ(server->url, "https://10.0.0.1:6443");
  EXPECT_EQ(server->token(false).value(), "abc");
  EXPECT_TRUE(server->proxy_url.empty());

  ApiServerChoice other;
  other.context = "other";
  EXPECT_EQ(resolved(with_user("{}"), other).error().field, "line 3: contexts[other].context.cluster");
  other.context = "absent";
  const auto absent = resolved(with_user("{}"), other);
  EXPECT_EQ(absent.error().field, "--context");
  EXPECT_NE(absent.error().remedy.find("c, other"), std::string::npos);
  EXPECT_EQ(resolved("clusters: []").error().field, "current-context");
}

TEST(ApiServerOf, ReadsFilesAndNamesThoseItCannotRead) {
  const TempDir dir;
  dir.write("ca.crt", "CA");
  dir.write("u.crt", "CERT");
  const std::string text =
      "current-context: c\nclusters: [{name: k, cluster: {server: https://x, certificate-authority: "
      "ca.crt}}]\n"
      "contexts: [{name: c, context: {cluster: k, user: u}}]\n"
      "users:\n- name: u\n  user:\n    client-certificate: u.crt\n    client-key: u.key\n";
  const auto file = dir.write("config", text);
  ApiServerChoice choice;
  choice.kubeconfig = file;
  const auto missing = find_api_server(choice, variables({}));
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().object, dir.file("u.key"));
  EXPECT_EQ(missing.error().field, "named in " + file + " line 8");
  dir.write("u.key", "KEY");
  const auto server = find_api_server(choice, variables({}));
  ASSERT_TRUE(server.has_value()) << server.error().text();
  EXPECT_EQ(server->ca_pem, "CA");
  EXPECT_EQ(server->client_certificate_pem, "CERT");
  EXPECT_EQ(server->client_key_pem, "KEY");
  dir.write("u.crt", "RENEWED");
  EXPECT_EQ(server->client_certificate()->certificate_pem, "RENEWED");
}

TEST(ApiServerOf, RefusesHalfOfAnIdentityAndContradictions) {
  EXPECT_NE(
      resolved(with_user("{client-key-data: S0VZ}")).error().field.find("users[u].user.client-certificate"),
      std::string::npos);
  const auto both = resolved(
      "current-context: c\nclusters: [{name: k, cluster: {server: https://x, insecure-skip-tls-verify: true, "
      "certificate-authority-data: Q0E=}}]\ncontexts: [{name: c, context: {cluster: k}}]\n");
  EXPECT_EQ(both.error().field, "line 2: clusters[k].cluster.certificate-authority");
  const auto socks = resolved(
      "current-context: c\nclusters: [{name: k, cluster: {server: https://x, proxy-url: 'socks5://p'}}]\n"
      "contexts: [{name: c, context: {cluster: k}}]\n");
  EXPECT_EQ(socks.error().field, "line 2: clusters[k].cluster.proxy-url");
}

TEST(ApiServerOf, ReadsATokenFileAgainAfterARefusal) {
  const TempDir dir;
  const auto file = dir.write("token", " first\n");
  const auto server = resolved(with_user("{tokenFile: " + file + "}"));
  ASSERT_TRUE(server.has_value()) << server.error().text();
  EXPECT_EQ(server->token(false).value(), "first");
  dir.write("token", "second");
  EXPECT_EQ(server->token(false).value(), "first");
  EXPECT_EQ(server->token(true).value(), "second");
  std::filesystem::remove(file);
  EXPECT_EQ(server->token(true).value(), "second");
}

TEST(ApiServerOf, NamesATokenFileThatIsMissingOrEmpty) {
  const TempDir dir;
  const auto missing = resolved(with_user("{tokenFile: " + dir.file("none") + "}"));
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().object, dir.file("none"));
  const auto empty = resolved(with_user("{tokenFile: " + dir.write("empty", "\n") + "}"));
  ASSERT_FALSE(empty.has_value());
  EXPECT_EQ(empty.error().object, dir.file("empty"));
}

class ExecUser : public ::testing::Test {
 protected:
  // Each run appends a line to `runs` and gives the token t-<number of runs>.
  std::string counting(const std::string& expires) {
    return dir_.script("login",
                       "echo run >> " + dir_.file("runs") + "\nn=$(wc -l < " + dir_.file("runs") +
                           ")\necho \"{\\\"apiVersion\\\":\\\"client.authentication.k8s.io/v1\\\","
                           "\\\"kind\\\":\\\"ExecCredential\\\",\\\"status\\\":{\\\"token\\\":\\\"t-$n\\\"" +
                           expires + "}}\"\n");
  }
  Result<ApiServer> server(const std::string& script) {
    return resolved(
        with_user("{exec: {apiVersion: client.authentication.k8s.io/v1, command: " + script + "}}"));
  }
  TempDir dir_;
};

TEST_F(ExecUser, RunsThePluginOnceAndKeepsTheToken) {
  const auto s = server(counting(""));
  ASSERT_TRUE(s.has_value()) << s.error().text();
  EXPECT_EQ(s->token(false).value(), "t-1");
  EXPECT_EQ(s->token(false).value(), "t-1");
  EXPECT_TRUE(s->client_certificate()->certificate_pem.empty());
}

TEST_F(ExecUser, RefusalsThatComeTogetherCostOneRun) {
  const auto s = server(counting(""));
  ASSERT_TRUE(s.has_value());
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([&] { EXPECT_EQ(s->token(true).value(), "t-1"); });
  for (auto& t : threads) t.join();
}

TEST_F(ExecUser, AnExpiredCredentialIsNotAskedForAtEachRequest) {
  const auto s = server(counting(",\\\"expirationTimestamp\\\":\\\"2001-01-01T00:00:00Z\\\""));
  ASSERT_TRUE(s.has_value());
  EXPECT_EQ(s->token(false).value(), "t-1");
  EXPECT_EQ(s->token(false).value(), "t-1");
}

TEST(InCluster, UsesTheServiceAccount) {
  const TempDir dir;
  dir.write("ca.crt", "CA");
  dir.write("token", "t");
  ApiServerChoice choice;
  choice.service_account_dir = dir.path();
  const auto v4 = find_api_server(
      choice, variables({{"KUBERNETES_SERVICE_HOST", "10.96.0.1"}, {"KUBERNETES_SERVICE_PORT", "443"}}));
  ASSERT_TRUE(v4.has_value()) << v4.error().text();
  EXPECT_EQ(v4->url, "https://10.96.0.1:443");
  EXPECT_EQ(v4->ca_pem, "CA");
  EXPECT_EQ(v4->token(false).value(), "t");
  const auto v6 = in_cluster(
      choice, variables({{"KUBERNETES_SERVICE_HOST", "fd00::1"}, {"KUBERNETES_SERVICE_PORT", "443"}}));
  EXPECT_EQ(v6->url, "https://[fd00::1]:443");
  EXPECT_EQ(in_cluster(choice, variables({})).error().code, ErrorCode::not_found);
}

TEST(FindApiServer, PrefersTheFlagThenTheVariableThenTheAccountThenHome) {
  const TempDir dir;
  const auto config = [](const std::string& name) {
    return "current-context: c\nclusters: [{name: k, cluster: {server: https://" + name +
           "}}]\ncontexts: [{name: c, context: {cluster: k}}]\n";
  };
  dir.write("sa/ca.crt", "CA");
  dir.write("sa/token", "t");
  dir.write("home/.kube/config", config("home"));
  ApiServerChoice choice;
  choice.service_account_dir = dir.file("sa");
  std::map<std::string, std::string> values{{"HOME", dir.file("home")}};
  EXPECT_EQ(find_api_server(choice, variables(values))->url, "https://home");
  values["KUBERNETES_SERVICE_HOST"] = "10.0.0.1";
  values["KUBERNETES_SERVICE_PORT"] = "443";
  EXPECT_EQ(find_api_server(choice, variables(values))->url, "https://10.0.0.1:443");
  values["KUBECONFIG"] = dir.write("variable", config("variable"));
  EXPECT_EQ(find_api_server(choice, variables(values))->url, "https://variable");
  choice.kubeconfig = dir.write("flag", config("flag"));
  EXPECT_EQ(find_api_server(choice, variables(values))->url, "https://flag");
  choice.kubeconfig.clear();
  EXPECT_EQ(find_api_server(choice, variables({})).error().code, ErrorCode::not_found);
}

TEST(Proxy, FollowsTheEnvironment) {
  const auto env = [](const std::string& no_proxy) {
    return variables({{"HTTPS_PROXY", "http://p:3128"}, {"http_proxy", "q:80"}, {"NO_PROXY", no_proxy}});
  };
  EXPECT_EQ(proxy_for("https://api.example.com:6443", env("")), "http://p:3128");
  EXPECT_EQ(proxy_for("http://api.example.com", env("")), "http://q:80");
  EXPECT_EQ(proxy_for("https://127.0.0.1:6443", env("")), "");
  EXPECT_EQ(proxy_for("https://[::1]:6443", env("")), "");
  EXPECT_EQ(proxy_for("https://localhost", env("")), "");
  const std::vector<std::pair<std::string, bool>> rules = {
      {"*", true},
      {"example.com", true},
      {".example.com", true},
      {"*.example.com", true},
      {"ample.com", false},
      {"other, EXAMPLE.com", true},
      {"example.com:6443", true},
      {"example.com:1", false},
  };
  for (const auto& [rule, direct] : rules) {
    EXPECT_EQ(proxy_for("https://api.example.com:6443", env(rule)).empty(), direct) << rule;
  }
  const std::vector<std::pair<std::string, bool>> networks = {{"10.0.0.0/8", true},
                                                              {"10.1.0.0/16", false},
                                                              {"10.0.3.7", true},
                                                              {"10.0.0.0/99", false},
                                                              {"::/0", false}};
  for (const auto& [rule, direct] : networks) {
    EXPECT_EQ(proxy_for("https://10.0.3.7:6443", env(rule)).empty(), direct) << rule;
  }
  EXPECT_TRUE(proxy_for("https://[fd00::7]:6443", env("fd00::/8")).empty());
  EXPECT_EQ(proxy_for("https://api.example.com", variables({})), "");
}

}  // namespace
}  // namespace troupe
