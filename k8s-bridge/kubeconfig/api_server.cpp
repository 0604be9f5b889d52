#include "k8s-bridge/kubeconfig/api_server.hpp"

#include <cstdlib>
#include <filesystem>

#include "k8s-bridge/kubeconfig/credentials.hpp"
#include "k8s-bridge/kubeconfig/files.hpp"

namespace troupe {
namespace {

tl::unexpected<Error> wrong(const KubeconfigPlace& place, const std::string& field, std::string what,
                            std::string remedy) {
  const std::string line = place.line > 0 ? "line " + std::to_string(place.line) + ": " : std::string();
  return fail({ErrorCode::invalid, std::move(what), place.file, line + field, std::move(remedy)});
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> out;
  std::size_t from = 0;
  while (from <= text.size()) {
    const auto to = std::min(text.find(separator, from), text.size());
    if (to > from) out.push_back(text.substr(from, to - from));
    from = to + 1;
  }
  return out;
}

std::string names(const auto& entries) {
  std::string out;
  for (const auto& [name, entry] : entries) out += (out.empty() ? "" : ", ") + name;
  return out.empty() ? "there is none" : "one of: " + out;
}

struct Chosen {
  const KubeconfigCluster* cluster = nullptr;
  const KubeconfigUser* user = nullptr;  // nullptr: anonymous
  std::string cluster_name;
  std::string user_name;
};

Result<Chosen> choose(const Kubeconfig& config, const std::string& asked) {
  const std::string& name = asked.empty() ? config.current_context : asked;
  if (name.empty()) {
    return fail({ErrorCode::invalid,
                 "kubeconfig names no current-context",
                 {},
                 "current-context",
                 "set it, or give --context (" + names(config.contexts) + ")"});
  }
  const auto context = config.contexts.find(name);
  if (context == config.contexts.end()) {
    return fail({ErrorCode::not_found,
                 "kubeconfig has no context " + name,
                 {},
                 asked.empty() ? "current-context" : "--context",
                 "give " + names(config.contexts)});
  }
  Chosen out;
  const std::string at = "contexts[" + name + "].context.";
  out.cluster_name = context->second.cluster;
  const auto cluster = config.clusters.find(out.cluster_name);
  if (cluster == config.clusters.end()) {
    return wrong(context->second.place, at + "cluster",
                 "kubeconfig has no cluster \"" + out.cluster_name + "\"", "give " + names(config.clusters));
  }
  out.cluster = &cluster->second;
  out.user_name = context->second.user;
  if (out.user_name.empty()) return out;
  const auto user = config.users.find(out.user_name);
  if (user == config.users.end()) {
    return wrong(context->second.place, at + "user", "kubeconfig has no user \"" + out.user_name + "\"",
                 "give " + names(config.users));
  }
  out.user = &user->second;
  return out;
}

Result<void> take_cluster(const Chosen& chosen, const Environment& environment, ApiServer& out) {
  const KubeconfigCluster& cluster = *chosen.cluster;
  const std::string at = "clusters[" + chosen.cluster_name + "].cluster.";
  if (cluster.server.empty())
    return wrong(cluster.place, at + "server", "kubeconfig cluster has no server", "give its URL");
  const bool schemeless = cluster.server.find("://") == std::string::npos;
  out.url = schemeless ? "https://" + cluster.server : cluster.server;
  while (out.url.ends_with('/')) out.url.pop_back();
  if (cluster.insecure_skip_tls_verify && !cluster.certificate_authority.empty()) {
    return wrong(cluster.certificate_authority.place, at + "certificate-authority",
                 "kubeconfig gives a CA and insecure-skip-tls-verify", "give one of them");
  }
  auto ca = read_blob(cluster.certificate_authority, "certificate-authority");
  if (!ca) return fail(ca.error());
  out.ca_pem = std::move(*ca);
  out.insecure_skip_tls_verify = cluster.insecure_skip_tls_verify;
  out.tls_server_name = cluster.tls_server_name;
  out.proxy_url = cluster.proxy_url.empty() ? proxy_for(out.url, environment) : cluster.proxy_url;
  if (!out.proxy_url.empty() && !out.proxy_url.starts_with("http://")) {
    return wrong(cluster.place, at + "proxy-url", "proxy " + out.proxy_url + " is not supported",
                 "give an http:// proxy");
  }
  return {};
}

Result<void> take_certificate(const Chosen& chosen, ApiServer& out) {
  const KubeconfigUser& user = *chosen.user;
  if (user.client_certificate.empty() && user.client_key.empty()) return {};
  if (user.client_certificate.empty() || user.client_key.empty()) {
    return wrong(
        user.place,
        "users[" + chosen.user_name + "].user.client-" + (user.client_key.empty() ? "key" : "certificate"),
        "kubeconfig user has only one of client-certificate and client-key", "give both");
  }
  auto files = std::make_shared<FileCertificate>(user.client_certificate, user.client_key);
  auto pair = files->get();
  if (!pair) return fail(pair.error());
  out.client_certificate_pem = std::move(pair->certificate_pem);
  out.client_key_pem = std::move(pair->key_pem);
  const bool renewable = user.client_certificate.data.empty() || user.client_key.data.empty();
  if (renewable) out.client_certificate = [files] { return files->get(); };
  return {};
}

Result<void> take_user(const Chosen& chosen, const ApiServerChoice& choice, ApiServer& out) {
  if (chosen.user == nullptr) return {};
  const KubeconfigUser& user = *chosen.user;
  if (auto taken = take_certificate(chosen, out); !taken) return taken;
  out.username = user.username;
  out.password = user.password;
  if (!user.token_file.empty()) {
    auto token = std::make_shared<FileToken>(user.token_file);
    if (auto first = token->get(false); !first && user.token.empty()) return fail(first.error());
    // The token in place serves until the file can be read.
    out.token = [token, fixed = user.token](bool refresh) -> Result<std::string> {
      auto current = token->get(refresh);
      if (!current && !fixed.empty()) return fixed;
      return current;
    };
  } else if (!user.token.empty()) {
    out.token = [fixed = user.token](bool) -> Result<std::string> { return fixed; };
  } else if (user.exec) {
    if (!user.username.empty()) {
      return wrong(user.exec->place, "users[" + chosen.user_name + "].user.exec",
                   "kubeconfig user has both exec and username", "keep one of them");
    }
    auto plugin = std::make_shared<ExecCredentials>(
        *user.exec,
        exec_info(*user.exec, user.exec->provide_cluster_info ? chosen.cluster : nullptr, out.ca_pem),
        choice.exec_timeout);
    out.token = [plugin](bool refresh) { return plugin->token(refresh); };
    out.client_certificate = [plugin] { return plugin->certificate(); };
  }
  return {};
}

}  // namespace

Environment process_environment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    if (value == nullptr) return std::nullopt;
    return std::string(value);
  };
}

Result<ApiServer> resolve(const Kubeconfig& config, const ApiServerChoice& choice,
                          const Environment& environment) {
  const auto chosen = choose(config, choice.context);
  if (!chosen) return fail(chosen.error());
  ApiServer out;
  if (auto taken = take_cluster(*chosen, environment, out); !taken) return fail(taken.error());
  if (auto taken = take_user(*chosen, choice, out); !taken) return fail(taken.error());
  return out;
}

Result<ApiServer> in_cluster(const ApiServerChoice& choice, const Environment& environment) {
  const auto host = environment("KUBERNETES_SERVICE_HOST");
  const auto port = environment("KUBERNETES_SERVICE_PORT");
  if (!host || !port || host->empty() || port->empty()) {
    return fail({ErrorCode::not_found,
                 "not inside a cluster",
                 "KUBERNETES_SERVICE_HOST",
                 {},
                 "give --kubeconfig FILE"});
  }
  const bool v6 = host->find(':') != std::string::npos;
  ApiServer out;
  out.url = "https://" + (v6 ? "[" + *host + "]" : *host) + ":" + *port;
  auto ca = read_text_file(choice.service_account_dir + "/ca.crt", "CA of the service account");
  if (!ca) return fail(ca.error());
  out.ca_pem = std::move(*ca);
  auto token = std::make_shared<FileToken>(choice.service_account_dir + "/token");
  if (auto first = token->get(false); !first) return fail(first.error());
  out.token = [token](bool refresh) { return token->get(refresh); };
  return out;
}

Result<ApiServer> find_api_server(const ApiServerChoice& choice, const Environment& environment) {
  const auto from_files = [&](const std::string& list) -> Result<ApiServer> {
    auto config = load_kubeconfig(split(list, ':'));
    if (!config) return fail(config.error());
    auto server = resolve(*config, choice, environment);
    if (server || !server.error().object.empty()) return server;
    Error error = server.error();
    error.object = list;
    return fail(std::move(error));
  };
  if (!choice.kubeconfig.empty()) return from_files(choice.kubeconfig);
  if (const auto named = environment("KUBECONFIG"); named && !named->empty()) return from_files(*named);
  std::error_code ignored;
  if (environment("KUBERNETES_SERVICE_HOST") &&
      std::filesystem::exists(choice.service_account_dir + "/token", ignored)) {
    return in_cluster(choice, environment);
  }
  if (const auto home = environment("HOME"); home && !home->empty()) {
    const std::string file = *home + "/.kube/config";
    if (std::filesystem::exists(file, ignored)) return from_files(file);
  }
  return fail({ErrorCode::not_found,
               "no API server is configured",
               {},
               {},
               "give --kubeconfig FILE, set KUBECONFIG, or run inside a cluster"});
}

}  // namespace troupe
