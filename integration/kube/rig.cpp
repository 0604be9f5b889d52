#include "integration/kube/rig.hpp"

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <utility>

namespace troupe::rig {

namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

constexpr auto ready_limit = 60s;
constexpr const char* troupe_namespace = "koordinator-system";
constexpr const char* troupe_account = "troupe";

struct Programs {
  fs::path dir;
  std::string missing;  // why there are none
};

// build.sh prints its progress on our standard error when it has something to build.
const Programs& built_programs() {
  static const Programs found = [] {
    const TempDir dir("troupe-rig");
    Process build(
        {{(source_dir() / "integration/kube/rig/build.sh").string()}, {}, "/dev/stderr", dir.path() / "out"});
    const auto status = build.wait(30min);
    auto out = read_file(dir.path() / "out");
    while (!out.empty() && out.back() == '\n') out.pop_back();
    if (!status) throw std::runtime_error("integration/kube/rig/build.sh is not done after 30 minutes");
    if (status->code == 77) return Programs{{}, "its programs cannot be built here (see above)"};
    if (status->code != 0) throw std::runtime_error("integration/kube/rig/build.sh failed");
    return Programs{out, {}};
  }();
  return found;
}

void must(const Finished& finished, const std::string& what) {
  if (finished.status.code != 0) throw std::runtime_error(what + " failed: " + finished.err + finished.out);
}

std::string loopback(int port) {
  return "127.0.0.1:" + std::to_string(port);
}

}  // namespace

fs::path source_dir() {
  return TROUPE_SOURCE_DIR;
}

std::string unavailable() {
  if (std::getenv("TROUPE_TEST_KUBECONFIG") != nullptr) return {};
  return built_programs().missing;
}

KubeRig& KubeRig::shared() {
  static KubeRig rig;
  return rig;
}

KubeRig::KubeRig() {
  make_certificates();
  if (const char* kubeconfig = std::getenv("TROUPE_TEST_KUBECONFIG"); kubeconfig != nullptr) {
    attach(kubeconfig);
    return;
  }
  if (!built_programs().missing.empty()) throw std::runtime_error("no kube rig: " + built_programs().missing);
  programs_ = built_programs().dir;
  cluster_ca_ = ca_;
  // A free port can be taken between asking for it and listening on it: then choose again.
  for (int attempt = 0;; ++attempt) {
    try {
      start_servers();
      return;
    } catch (const std::runtime_error&) {
      if (attempt == 2) throw;
      apiserver_.kill();
      etcd_.kill();
    }
  }
}

KubeRig::~KubeRig() {
  proxy_.kill();
  apiserver_.kill();
  etcd_.kill();
}

fs::path KubeRig::scratch(const std::string& name) {
  return dir_.path() / (std::to_string(++scratch_count_) + "-" + name);
}

void KubeRig::make_certificates() {
  ca_ = dir_.path() / "ca.crt";
  must(run({"openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
            "-days", "2", "-subj", "/CN=troupe-rig", "-keyout", (dir_.path() / "ca.key").string(), "-out",
            ca_.string()}),
       "making the rig's CA");
  server_certificate_ = issue("server", "/CN=kube-apiserver", "serverAuth");
  server_key_ = dir_.path() / "server.key";
}

fs::path KubeRig::issue(const std::string& file, const std::string& subject, const std::string& usage) {
  auto certificate = dir_.path() / (file + ".crt");
  must(run({"openssl",
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-days",
            "2",
            "-subj",
            subject,
            "-CA",
            ca_.string(),
            "-CAkey",
            (dir_.path() / "ca.key").string(),
            "-addext",
            "basicConstraints=critical,CA:FALSE",
            "-addext",
            "extendedKeyUsage=" + usage,
            "-addext",
            "subjectAltName=IP:127.0.0.1,DNS:localhost",
            "-keyout",
            (dir_.path() / (file + ".key")).string(),
            "-out",
            certificate.string()}),
       "making the certificate " + file);
  return certificate;
}

void KubeRig::start_servers() {
  etcd_port_ = free_port();
  etcd_peer_port_ = free_port();
  port_ = free_port();
  const auto data = scratch("etcd");
  const auto client_url = "http://" + loopback(etcd_port_);
  const auto peer_url = "http://" + loopback(etcd_peer_port_);
  etcd_ = Process({{"etcd", "--name=rig", "--data-dir=" + data.string(), "--unsafe-no-fsync",
                    "--listen-client-urls=" + client_url, "--advertise-client-urls=" + client_url,
                    "--listen-peer-urls=" + peer_url, "--initial-advertise-peer-urls=" + peer_url,
                    "--initial-cluster=rig=" + peer_url, "--quota-backend-bytes=8589934592",
                    "--auto-compaction-retention=0", "--log-level=warn"},
                   {},
                   scratch("etcd.log"),
                   {}});
  url_ = "https://" + loopback(port_);
  KubeAccess admin{url_,
                   ca_,
                   issue("admin", "/O=system:masters/CN=rig-admin", "clientAuth"),
                   dir_.path() / "admin.key",
                   {}};
  admin_kubeconfig_ = dir_.path() / "admin.kubeconfig";
  write_file(admin_kubeconfig_, kubeconfig_text(admin));
  admin_ = std::make_unique<KubeClient>(std::move(admin));
  // The key that signs service account tokens; the API server accepts an EC key.
  issue("accounts", "/CN=accounts", "clientAuth");
  start_apiserver();
}

void KubeRig::start_apiserver() {
  const auto file = [this](const char* name) { return (dir_.path() / name).string(); };
  apiserver_ = Process(
      {{(programs_ / "kube-apiserver").string(), "--etcd-servers=http://" + loopback(etcd_port_),
        "--secure-port=" + std::to_string(port_), "--bind-address=127.0.0.1",
        // No Service endpoints of its own; a loopback address may not be advertised.
        "--advertise-address=192.0.2.1", "--endpoint-reconciler-type=none",
        "--service-cluster-ip-range=10.0.0.0/24", "--tls-cert-file=" + server_certificate_.string(),
        "--tls-private-key-file=" + server_key_.string(), "--client-ca-file=" + ca_.string(),
        "--service-account-issuer=https://kubernetes.default.svc",
        "--service-account-key-file=" + file("accounts.crt"),
        "--service-account-signing-key-file=" + file("accounts.key"), "--authorization-mode=Node,RBAC",
        // Without a controller manager nobody makes default service accounts or removes the not-ready taint.
        "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition", "--profiling=false"},
       {},
       scratch("kube-apiserver.log"),
       {}});
  const bool ready = wait_until(
      [this] {
        return !apiserver_.running() || !etcd_.running() ||
               admin_->request("GET", "/readyz", {}, {}, 5s).status == 200;
      },
      ready_limit);
  if (!ready || !apiserver_.running() || !etcd_.running()) {
    throw std::runtime_error("the API server is not ready: " + apiserver_.log_tail() +
                             "\netcd: " + etcd_.log_tail());
  }
}

void KubeRig::stop_apiserver() {
  if (external_) throw std::logic_error("an external API server cannot be stopped");
  apiserver_.kill();
}

// All kinds of credentials are kubectl's business: requests go through `kubectl proxy`.
void KubeRig::attach(const std::string& kubeconfig) {
  external_ = true;
  admin_kubeconfig_ = kubeconfig;
  const auto shown = kubectl({"config", "view", "--raw", "--minify", "--flatten", "-o", "json"});
  must(shown, "kubectl config view of " + kubeconfig);
  const auto cluster = Json::parse(shown.out).at("clusters").at(0).at("cluster");
  url_ = cluster.at("server").get<std::string>();
  if (cluster.contains("certificate-authority-data")) {
    cluster_ca_ = scratch("cluster-ca.crt");
    const auto encoded = scratch("cluster-ca.base64");
    write_file(encoded, cluster["certificate-authority-data"].get<std::string>());
    must(run({"openssl", "base64", "-d", "-A", "-in", encoded.string(), "-out", cluster_ca_.string()}),
         "decoding the CA of " + kubeconfig);
  }
  const auto out = scratch("proxy.out");
  proxy_ = Process(
      {{"kubectl", "--kubeconfig=" + kubeconfig, "proxy", "--port=0"}, {}, scratch("proxy.log"), out});
  std::string address;
  wait_until(
      [&] {
        const auto text = read_file(out);
        if (const auto at = text.find("127.0.0.1:");
            at != std::string::npos && text.find('\n', at) != std::string::npos)
          address = text.substr(at, text.find_first_of(" \n", at) - at);
        return !address.empty() || !proxy_.running();
      },
      ready_limit);
  if (address.empty()) throw std::runtime_error("kubectl proxy did not start: " + proxy_.log_tail());
  admin_ = std::make_unique<KubeClient>(KubeAccess{"http://" + address, {}, {}, {}, {}});
}

std::string KubeRig::token(const std::string& space, const std::string& account, int seconds) {
  const auto answer = admin().create("/api/v1/namespaces/" + space + "/serviceaccounts/" + account + "/token",
                                     {{"apiVersion", "authentication.k8s.io/v1"},
                                      {"kind", "TokenRequest"},
                                      {"spec", {{"expirationSeconds", seconds}}}});
  return answer.at("status").at("token").get<std::string>();
}

const KubeAccess& KubeRig::troupe_access() {
  if (troupe_.token.empty()) {
    const auto deploy = source_dir() / "ops/deploy";
    must(kubectl({"apply", "--server-side", "-f", (deploy / "00-namespace.yaml").string(), "-f",
                  (deploy / "10-rbac.yaml").string()}),
         "kubectl apply of ops/deploy");
    troupe_ = KubeAccess{url_, cluster_ca_, {}, {}, token(troupe_namespace, troupe_account)};
  }
  return troupe_;
}

fs::path KubeRig::troupe_kubeconfig(const std::string& url, const fs::path& ca) {
  auto access = troupe_access();
  if (!url.empty()) access.url = url;
  if (!ca.empty()) access.ca = ca;
  auto file = scratch("troupe.kubeconfig");
  write_file(file, kubeconfig_text(access));
  return file;
}

Finished KubeRig::kubectl(std::vector<std::string> arguments) {
  const auto built = programs_ / "kubectl";
  std::vector<std::string> argv = {!programs_.empty() && fs::exists(built) ? built.string() : "kubectl",
                                   "--kubeconfig=" + admin_kubeconfig_.string()};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  // A home of its own: discovery results of other rigs on the same port must not be found there.
  return run(argv, 2min,
             {"HOME=" + dir_.path().string(), "KUBECACHEDIR=" + (dir_.path() / "kubectl").string()});
}

Process KubeRig::start_scheduler(const SchedulerOptions& options) {
  const auto qps = std::to_string(options.qps);
  const auto config = scratch("kube-scheduler.yaml");
  write_file(config,
             "apiVersion: kubescheduler.config.k8s.io/v1\n"
             "kind: KubeSchedulerConfiguration\n"
             "leaderElection: {leaderElect: false}\n"
             "clientConnection: {kubeconfig: \"" +
                 admin_kubeconfig_.string() + "\", qps: " + qps + ", burst: " + qps +
                 ", contentType: application/vnd.kubernetes.protobuf}\n"
                 "profiles:\n- schedulerName: " +
                 options.name + "\n" + options.config);
  const int port = free_port();
  Process scheduler(
      {{(programs_ / "kube-scheduler").string(), "--config=" + config.string(), "--bind-address=127.0.0.1",
        "--secure-port=" + std::to_string(port), "--cert-dir=" + scratch("scheduler-certs").string()},
       {},
       scratch("kube-scheduler.log"),
       {}});
  KubeClient health({"https://" + loopback(port), {}, {}, {}, {}});
  health.accept_any_certificate();
  if (!wait_until([&] { return !scheduler.running() || health.request("GET", "/readyz").status == 200; },
                  ready_limit) ||
      !scheduler.running()) {
    throw std::runtime_error("kube-scheduler is not ready: " + scheduler.log_tail());
  }
  return scheduler;
}

Process KubeRig::start_controller_manager(const std::vector<std::string>& controllers) {
  std::string names;
  for (const auto& name : controllers) names += (names.empty() ? "" : ",") + name;
  const int port = free_port();
  Process manager(
      {{(programs_ / "kube-controller-manager").string(), "--kubeconfig=" + admin_kubeconfig_.string(),
        "--controllers=" + names, "--leader-elect=false", "--bind-address=127.0.0.1",
        "--secure-port=" + std::to_string(port), "--cert-dir=" + scratch("manager-certs").string(),
        "--kube-api-qps=1000", "--kube-api-burst=1000"},
       {},
       scratch("kube-controller-manager.log"),
       {}});
  KubeClient health({"https://" + loopback(port), {}, {}, {}, {}});
  health.accept_any_certificate();
  if (!wait_until([&] { return !manager.running() || health.request("GET", "/healthz").status == 200; },
                  ready_limit) ||
      !manager.running()) {
    throw std::runtime_error("kube-controller-manager is not ready: " + manager.log_tail());
  }
  return manager;
}

}  // namespace troupe::rig
