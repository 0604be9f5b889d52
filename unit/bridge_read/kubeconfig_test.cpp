#include "k8s-bridge/kubeconfig/kubeconfig.hpp"

#include <gtest/gtest.h>

#include "k8s-bridge/kubeconfig/base64.hpp"
#include "unit/bridge_read/temp_dir.hpp"

namespace troupe {
namespace {

using testing::TempDir;

constexpr std::string_view kFull = R"(apiVersion: v1
kind: Config
current-context: prod
clusters:
- name: prod
  cluster:
    server: https://10.0.0.1:6443
    certificate-authority: pki/ca.crt
    tls-server-name: kubernetes
    proxy-url: http://proxy:3128
- name: lab
  cluster:
    server: https://lab
    insecure-skip-tls-verify: true
users:
- name: ada
  user:
    client-certificate: /etc/ada.crt
    client-key-data: S0VZ
- name: bot
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1
      command: ./bin/login
      args: [--role, admin, 7]
      env:
      - name: AWS_PROFILE
        value: prod
      installHint: apt install login
      interactiveMode: Never
      provideClusterInfo: true
contexts:
- name: prod
  context: {cluster: prod, user: ada, namespace: web}
preferences: {}
)";

Error error_of(std::string_view text) {
  const auto parsed = parse_kubeconfig(text, "/etc/kube/config");
  EXPECT_FALSE(parsed.has_value()) << text;
  return parsed.has_value() ? Error{} : parsed.error();
}

TEST(Kubeconfig, ReadsEveryField) {
  const auto config = parse_kubeconfig(kFull, "/etc/kube/config");
  ASSERT_TRUE(config.has_value()) << config.error().text();
  EXPECT_EQ(config->current_context, "prod");
  const auto& prod = config->clusters.at("prod");
  EXPECT_EQ(prod.server, "https://10.0.0.1:6443");
  EXPECT_EQ(prod.certificate_authority.path, "/etc/kube/pki/ca.crt");
  EXPECT_EQ(prod.tls_server_name, "kubernetes");
  EXPECT_EQ(prod.proxy_url, "http://proxy:3128");
  EXPECT_FALSE(prod.insecure_skip_tls_verify);
  EXPECT_TRUE(config->clusters.at("lab").insecure_skip_tls_verify);
  const auto& ada = config->users.at("ada");
  EXPECT_EQ(ada.client_certificate.path, "/etc/ada.crt");
  EXPECT_EQ(ada.client_key.data, "KEY");
  const auto& exec = config->users.at("bot").exec;
  ASSERT_TRUE(exec.has_value());
  EXPECT_EQ(exec->command, "/etc/kube/./bin/login");
  EXPECT_EQ(exec->args, (std::vector<std::string>{"--role", "admin", "7"}));
  EXPECT_EQ(exec->env, (std::vector<std::pair<std::string, std::string>>{{"AWS_PROFILE", "prod"}}));
  EXPECT_EQ(exec->install_hint, "apt install login");
  EXPECT_TRUE(exec->provide_cluster_info);
  const auto& context = config->contexts.at("prod");
  EXPECT_EQ(context.cluster, "prod");
  EXPECT_EQ(context.user, "ada");
  EXPECT_EQ(context.name_space, "web");
}

TEST(Kubeconfig, ReadsJsonAndEmptyFiles) {
  const auto json = parse_kubeconfig(R"({"current-context":"a","clusters":null,"users":[]})");
  ASSERT_TRUE(json.has_value());
  EXPECT_EQ(json->current_context, "a");
  EXPECT_TRUE(parse_kubeconfig("").has_value());
}

TEST(Kubeconfig, ErrorsNameFileLineAndField) {
  const Error e = error_of("clusters:\n- name: a\n  cluster:\n    server: [1, 2]\n");
  EXPECT_EQ(e.object, "/etc/kube/config");
  EXPECT_EQ(e.field, "line 4: clusters[a].cluster.server");
  EXPECT_FALSE(e.remedy.empty());
}

TEST(Kubeconfig, RefusesWhatItCannotHonour) {
  struct Case {
    std::string text;
    std::string field;
  };
  const std::vector<Case> cases = {
      {"[1, 2]", "line 1"},
      {"kind: Pod", "line 1: kind"},
      {"clusters: 7", "line 1: clusters"},
      {"users:\n- 7", "line 2: users[0]"},
      {"users:\n- user: {}", "line 2: users[0].name"},
      {"users:\n- name: a\n- name: a", "line 3: users[a]"},
      {"users:\n- name: a\n  user:\n    client-key-data: '***'", "line 4: users[a].user.client-key-data"},
      {"users:\n- name: a\n  user:\n    as: root", "line 4: users[a].user.as"},
      {"users:\n- name: a\n  user:\n    auth-provider: {name: gcp}", "line 4: users[a].user.auth-provider"},
      {"users:\n- name: a\n  user:\n    exec: {command: x}", "line 4: users[a].user.exec.apiVersion"},
      {"users:\n- name: a\n  user:\n    exec: {apiVersion: client.authentication.k8s.io/v1alpha1, command: "
       "x}",
       "line 4: users[a].user.exec.apiVersion"},
      {"users:\n- name: a\n  user:\n    exec: {apiVersion: client.authentication.k8s.io/v1}",
       "line 4: users[a].user.exec.command"},
      {"users:\n- name: a\n  user:\n    exec: {apiVersion: client.authentication.k8s.io/v1, command: x, "
       "interactiveMode: Always}",
       "line 4: users[a].user.exec.interactiveMode"},
      {"clusters:\n- name: a\n  cluster: {insecure-skip-tls-verify: perhaps}",
       "line 3: clusters[a].cluster.insecure-skip-tls-verify"},
      {"a: b: c", "line 1"},
      {"a:\n\t- b", "line 2"},
  };
  for (const Case& c : cases) {
    const Error e = error_of(c.text);
    EXPECT_EQ(e.field, c.field) << c.text << "\n" << e.text();
    EXPECT_FALSE(e.remedy.empty()) << c.text;
  }
}

TEST(Kubeconfig, AliasesCannotMultiplyWithoutBound) {
  std::string bomb = "x0: &x0 [a, a, a, a, a, a, a, a]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string before = std::to_string(i - 1);
    const std::string own = std::to_string(i);
    bomb.append("x").append(own).append(": &x").append(own).append(" [");
    for (int k = 0; k < 8; ++k) bomb.append(k == 0 ? "*x" : ", *x").append(before);
    bomb += "]\n";
  }
  bomb +=
      "clusters:\n- name: a\n  cluster:\n    extensions:\n    - name: client.authentication.k8s.io/exec\n";
  bomb += "      extension: *x11\n";
  const auto parsed = parse_kubeconfig(bomb);
  ASSERT_TRUE(parsed.has_value());
  EXPECT_TRUE(parsed->clusters.at("a").exec_config_json.empty());
}

TEST(Kubeconfig, KeepsTheExecExtensionAsJson) {
  const auto parsed = parse_kubeconfig(R"(clusters:
- name: a
  cluster:
    extensions:
    - name: client.authentication.k8s.io/exec
      extension: {audience: "x\"y", number: 7, flag: true, quoted: "7", list: [~, a]}
)");
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->clusters.at("a").exec_config_json,
            R"({"audience":"x\"y","number":7,"flag":true,"quoted":"7","list":[null,"a"]})");
}

TEST(Kubeconfig, TheFirstOfSeveralFilesDecides) {
  const TempDir dir;
  const auto a =
      dir.write("a", "current-context: one\nclusters: [{name: c, cluster: {server: https://first}}]\n");
  const auto b =
      dir.write("sub/b",
                "current-context: two\nclusters: [{name: c, cluster: {server: https://second}}, {name: d, "
                "cluster: {server: https://third, certificate-authority: ca}}]\n");
  const auto merged = load_kubeconfig({a, dir.file("missing"), b});
  ASSERT_TRUE(merged.has_value()) << merged.error().text();
  EXPECT_EQ(merged->current_context, "one");
  EXPECT_EQ(merged->clusters.at("c").server, "https://first");
  EXPECT_EQ(merged->clusters.at("d").server, "https://third");
  EXPECT_EQ(merged->clusters.at("d").certificate_authority.path, dir.file("sub/ca"));
}

TEST(Kubeconfig, NamesAFileThatIsNotThere) {
  const TempDir dir;
  const auto loaded = load_kubeconfig({dir.file("missing")});
  ASSERT_FALSE(loaded.has_value());
  EXPECT_EQ(loaded.error().code, ErrorCode::not_found);
  EXPECT_EQ(loaded.error().object, dir.file("missing"));
  EXPECT_FALSE(load_kubeconfig({}).has_value());
}

TEST(Base64, RoundTripsAndRefusesOtherText) {
  for (const std::string text : {"", "a", "ab", "abc", "abcd", "\xff\x01\xfe"}) {
    const auto back = base64_decode(base64_encode(text));
    ASSERT_TRUE(back.has_value());
    EXPECT_EQ(*back, text);
  }
  EXPECT_EQ(base64_encode("Many hands"), "TWFueSBoYW5kcw==");
  EXPECT_EQ(base64_decode("TWFueSBo\r\nYW5kcw==\n"), "Many hands");
  for (const std::string bad :
       {"A", "AB", "ABC", "AB=", "AB=C", "A===", "TWFu\x80", "TW Fu", "====", "TWFu="}) {
    EXPECT_FALSE(base64_decode(bad).has_value()) << bad;
  }
}

}  // namespace
}  // namespace troupe
