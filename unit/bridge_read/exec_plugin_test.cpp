#include "k8s-bridge/kubeconfig/exec_plugin.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "unit/bridge_read/temp_dir.hpp"

namespace troupe {
namespace {

using testing::TempDir;
using namespace std::chrono_literals;

constexpr std::string_view kV1 = "client.authentication.k8s.io/v1";

ExecConfig plugin(std::string command) {
  ExecConfig config;
  config.api_version = kV1;
  config.command = std::move(command);
  config.place = {"/etc/kube/config", 12};
  return config;
}

constexpr std::string_view kToken =
    R"({"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"t-1","expirationTimestamp":"2026-01-02T03:04:05Z"}})";

TEST(ExecCredential, ReadsTokenAndExpiry) {
  const auto c = parse_exec_credential(kToken, kV1);
  ASSERT_TRUE(c.has_value()) << c.error().text();
  EXPECT_EQ(c->token, "t-1");
  EXPECT_EQ(c->expires_ms, 1767323045000);
}

TEST(ExecCredential, ReadsAClientCertificate) {
  const auto c = parse_exec_credential(
      R"({"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"clientCertificateData":"C","clientKeyData":"K"}})",
      kV1);
  ASSERT_TRUE(c.has_value());
  EXPECT_EQ(c->certificate_pem, "C");
  EXPECT_EQ(c->key_pem, "K");
  EXPECT_EQ(c->expires_ms, 0);
}

TEST(ExecCredential, NamesTheFieldThatIsWrong) {
  const std::string head =
      R"({"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":)";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", ""},
      {"{", ""},
      {"[]", "kind"},
      {R"({"kind":"Pod"})", "kind"},
      {R"({"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1beta1"})", "apiVersion"},
      {head + "{}}", "status"},
      {head + R"({"token":7}})", "status"},
      {head + R"({"clientKeyData":"K"}})", "status"},
      {head + R"({"token":"t","expirationTimestamp":"tomorrow"}})", "status.expirationTimestamp"},
  };
  for (const auto& [json, field] : cases) {
    const auto c = parse_exec_credential(json, kV1);
    ASSERT_FALSE(c.has_value()) << json;
    EXPECT_EQ(c.error().field, field) << json;
  }
}

TEST(ExecPlugin, GetsItsArgumentsAndEnvironmentUntouched) {
  const TempDir dir;
  const auto seen = dir.file("seen");
  ExecConfig config =
      plugin(dir.script("login", "printf '%s|' \"$@\" \"$GREETING\" \"$KUBERNETES_EXEC_INFO\" > " + seen +
                                     "\necho '" + std::string(kToken) + "'\n"));
  config.args = {"--role", "two words", "$HOME;`id`"};
  config.env = {{"GREETING", "hello"}};
  KubeconfigCluster cluster;
  cluster.server = "https://10.0.0.1:6443";
  cluster.exec_config_json = R"({"a":1})";
  const auto c = run_exec_plugin(config, exec_info(config, &cluster, "PEM"), 10s);
  ASSERT_TRUE(c.has_value()) << c.error().text();
  EXPECT_EQ(c->token, "t-1");
  std::string text;
  std::getline(std::ifstream(seen), text);
  EXPECT_EQ(text,
            "--role|two words|$HOME;`id`|hello|"
            R"({"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","spec":{"cluster":{)"
            R"("server":"https://10.0.0.1:6443","certificate-authority-data":"UEVN","config":{"a":1}},)"
            R"("interactive":false}}|)");
}

TEST(ExecPlugin, TellsWhyItFailed) {
  const TempDir dir;
  const auto failed = run_exec_plugin(plugin(dir.script("x", "echo 'no ticket' >&2; exit 3\n")), "{}", 10s);
  ASSERT_FALSE(failed.has_value());
  EXPECT_NE(failed.error().what.find("status 3 (no ticket)"), std::string::npos) << failed.error().text();
  EXPECT_EQ(failed.error().object, "/etc/kube/config");
  EXPECT_EQ(failed.error().field, "line 12: exec.command");

  ExecConfig missing = plugin(dir.file("not-there"));
  missing.install_hint = "apt install not-there";
  const auto absent = run_exec_plugin(missing, "{}", 10s);
  ASSERT_FALSE(absent.has_value());
  EXPECT_EQ(absent.error().code, ErrorCode::not_found);
  EXPECT_EQ(absent.error().remedy, "apt install not-there");

  const auto other = run_exec_plugin(plugin(dir.script("y", "echo hello\n")), "{}", 10s);
  ASSERT_FALSE(other.has_value());
  EXPECT_EQ(other.error().code, ErrorCode::invalid);

  const auto loud =
      run_exec_plugin(plugin(dir.script("z", "yes aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n")), "{}", 10s);
  ASSERT_FALSE(loud.has_value());
  EXPECT_NE(loud.error().what.find("1 MiB"), std::string::npos);
}

TEST(ExecPlugin, IsEndedWithItsChildrenAtTheTimeout) {
  const TempDir dir;
  const auto pid_file = dir.file("pid");
  const auto late = run_exec_plugin(
      plugin(dir.script("slow", "sleep 600 & echo $! > " + pid_file + "; wait\n")), "{}", 500ms);
  ASSERT_FALSE(late.has_value());
  EXPECT_NE(late.error().what.find("did not end within 500 ms"), std::string::npos);
  int pid = 0;
  std::ifstream(pid_file) >> pid;
  ASSERT_GT(pid, 0);
  // Killed; perhaps a zombie until its new parent has looked.
  std::string state = "gone";
  for (int i = 0; i < 2000; ++i) {
    std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
    std::string id;
    std::string name;
    if (!(stat >> id >> name >> state)) state = "gone";
    if (state == "gone" || state == "Z") break;
    ::usleep(1000);
  }
  EXPECT_TRUE(state == "gone" || state == "Z") << state;
}

}  // namespace
}  // namespace troupe
