// Which API server a process talks to, and as whom.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "k8s-bridge/http.hpp"
#include "k8s-bridge/kubeconfig/kubeconfig.hpp"

namespace troupe {

/// A variable of the environment; nullopt when it is not set.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;
Environment process_environment();

inline constexpr std::string_view kServiceAccountDir = "/var/run/secrets/kubernetes.io/serviceaccount";

struct ApiServerChoice {
  std::string kubeconfig;  // --kubeconfig; may name several files, separated by colons
  std::string context;     // --context; empty: current-context
  std::string service_account_dir{kServiceAccountDir};
  std::chrono::milliseconds exec_timeout{60'000};
};

/// Reads certificates and keys, and sets the token provider up; an exec plugin runs at the first request.
/// Errors name file, line, field and remedy.
Result<ApiServer> resolve(const Kubeconfig& config, const ApiServerChoice& choice,
                          const Environment& environment);

/// The service account of the pod that this process runs in: KUBERNETES_SERVICE_HOST and _PORT, ca.crt,
/// token.
Result<ApiServer> in_cluster(const ApiServerChoice& choice, const Environment& environment);

/// In this order: --kubeconfig, KUBECONFIG, the in-cluster account, ~/.kube/config.
Result<ApiServer> find_api_server(const ApiServerChoice& choice,
                                  const Environment& environment = process_environment());

/// The proxy that HTTPS_PROXY, HTTP_PROXY and NO_PROXY (either case) ask for; empty: none. Loopback never has
/// one.
std::string proxy_for(std::string_view url, const Environment& environment);

}  // namespace troupe
