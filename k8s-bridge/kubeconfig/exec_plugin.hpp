// Exec credential plugins (client.authentication.k8s.io): a program prints an ExecCredential.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "k8s-bridge/kubeconfig/kubeconfig.hpp"
#include "messages/error.hpp"

namespace troupe {

struct ExecCredential {
  std::string token;
  std::string certificate_pem;  // certificate and key come together
  std::string key_pem;
  std::int64_t expires_ms = 0;  // Unix milliseconds; 0: not said
};

/// Parses what a plugin printed. Pure. Errors name the field.
Result<ExecCredential> parse_exec_credential(std::string_view json, std::string_view api_version);

/// The text of KUBERNETES_EXEC_INFO. `cluster`: with its certificate authority read; nullptr: left out.
std::string exec_info(const ExecConfig& config, const KubeconfigCluster* cluster, std::string_view ca_pem);

/// Runs the plugin without a shell: its environment is ours, the configured one and KUBERNETES_EXEC_INFO.
/// Blocks; at `timeout` the plugin and what it has started are killed. Errors carry the end of its standard
/// error and the install hint.
Result<ExecCredential> run_exec_plugin(const ExecConfig& config, const std::string& info,
                                       std::chrono::milliseconds timeout);

}  // namespace troupe
