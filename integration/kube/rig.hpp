// integration/kube: a real Kubernetes for tests, without kubelets: etcd and kube-apiserver on free loopback
// ports with certificates and RBAC of their own, kube-scheduler and kube-controller-manager on demand, and
// Troupe's service account with exactly the roles that ops/deploy ships. rig/build.sh makes the programs.
//
// TROUPE_TEST_KUBECONFIG=FILE runs the same tests against that cluster instead.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "integration/kube/kube_client.hpp"
#include "integration/kube/process.hpp"

namespace troupe::rig {

struct SchedulerOptions {
  std::string name = "default-scheduler";  // the schedulerName that it serves
  int qps = 50000;                         // client rate, so that it is never the limit
  std::string config = {};                 // more KubeSchedulerConfiguration, in YAML
};

class KubeRig {
 public:
  /// The rig of this test program, started at the first call. Throws when it does not come up. Call it first
  /// from the main thread: the servers end when the thread that started them does.
  static KubeRig& shared();

  /// Starts servers of its own (or attaches to TROUPE_TEST_KUBECONFIG), ready to serve when it returns.
  KubeRig();
  KubeRig(const KubeRig&) = delete;
  KubeRig& operator=(const KubeRig&) = delete;
  ~KubeRig();

  /// True when TROUPE_TEST_KUBECONFIG names the cluster: its servers cannot be stopped or restarted.
  [[nodiscard]] bool external() const { return external_; }

  /// May do everything. `admin()` belongs to the thread of the tests.
  KubeClient& admin() { return *admin_; }
  [[nodiscard]] const KubeAccess& admin_access() const { return admin_->access(); }
  [[nodiscard]] const std::filesystem::path& admin_kubeconfig() const { return admin_kubeconfig_; }

  /// The service account of ops/deploy (koordinator-system/troupe), with a token of its own. The first call
  /// applies its namespace and roles.
  const KubeAccess& troupe_access();
  /// A kubeconfig for `troupe_access`, or for the same account through another address (a fault proxy, with
  /// the CA file of its certificate).
  std::filesystem::path troupe_kubeconfig(const std::string& url = {}, const std::filesystem::path& ca = {});
  /// A token of a service account that is valid for `seconds` (600 at least).
  std::string token(const std::string& space, const std::string& account, int seconds = 3600);

  /// `kubectl ARGS...` as the administrator.
  Finished kubectl(std::vector<std::string> arguments);

  /// kube-scheduler without leader election. Returns once it has begun to watch.
  Process start_scheduler(const SchedulerOptions& options = {});
  /// kube-controller-manager with these controllers only, e.g. {"disruption-controller"}.
  Process start_controller_manager(const std::vector<std::string>& controllers);

  /// An outage of the API server: kill -9, the same address afterwards. Not on an external cluster.
  void stop_apiserver();
  void start_apiserver();
  [[nodiscard]] double apiserver_cpu_seconds() const {
    return apiserver_.cpu_seconds() + etcd_.cpu_seconds();
  }

  /// A path in the rig's directory that no other call returns.
  std::filesystem::path scratch(const std::string& name);
  /// The directory of the built programs.
  [[nodiscard]] const std::filesystem::path& programs() const { return programs_; }
  /// The CA of the rig, and a certificate for 127.0.0.1 and localhost that it signed.
  [[nodiscard]] const std::filesystem::path& ca() const { return ca_; }
  [[nodiscard]] const std::filesystem::path& server_certificate() const { return server_certificate_; }
  [[nodiscard]] const std::filesystem::path& server_key() const { return server_key_; }

 private:
  void make_certificates();
  std::filesystem::path issue(const std::string& file, const std::string& subject, const std::string& usage);
  void start_servers();
  void attach(const std::string& kubeconfig);

  TempDir dir_{"troupe-kube"};
  int scratch_count_ = 0;
  bool external_ = false;
  std::filesystem::path programs_;
  std::filesystem::path ca_;
  std::filesystem::path server_certificate_;
  std::filesystem::path server_key_;
  std::string url_;
  int etcd_port_ = 0;
  int etcd_peer_port_ = 0;
  int port_ = 0;
  std::filesystem::path cluster_ca_;
  std::filesystem::path admin_kubeconfig_;
  std::unique_ptr<KubeClient> admin_;
  KubeAccess troupe_;
  Process etcd_;
  Process apiserver_;
  Process proxy_;  // kubectl proxy to an external cluster
};

/// Builds the programs where that has not been done. Returns why it cannot be done here, or an empty text.
std::string unavailable();

/// The root of the source tree.
std::filesystem::path source_dir();

}  // namespace troupe::rig
