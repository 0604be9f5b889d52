// kubeconfig/: from a kubeconfig, the in-cluster account or the environment to an ApiServer: where the API
// server is, whom to trust, and who we are. This header is the file itself, as kubectl reads it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "messages/error.hpp"

namespace troupe {

/// Where an entry stands, for errors: "/root/.kube/config: line 12: users[ada].user.tokenFile".
struct KubeconfigPlace {
  std::string file;
  int line = 0;  // counts from 1; 0: not known
};

/// A value given in place (`...-data`, base64, decoded here) or as a file. The data wins.
struct KubeconfigBlob {
  std::string data;
  std::string path;  // absolute, or as written when the file's folder is not known
  KubeconfigPlace place;

  [[nodiscard]] bool empty() const { return data.empty() && path.empty(); }
};

struct KubeconfigCluster {
  std::string server;
  KubeconfigBlob certificate_authority;
  bool insecure_skip_tls_verify = false;
  std::string tls_server_name;
  std::string proxy_url;
  /// `config` of the extension client.authentication.k8s.io/exec, as JSON; for plugins.
  std::string exec_config_json;
  KubeconfigPlace place;
};

struct ExecConfig {
  std::string api_version;  // client.authentication.k8s.io/v1 or v1beta1
  std::string command;      // resolved like a path when it holds a slash
  std::vector<std::string> args;
  std::vector<std::pair<std::string, std::string>> env;
  std::string install_hint;
  bool provide_cluster_info = false;
  KubeconfigPlace place;
};

struct KubeconfigUser {
  KubeconfigBlob client_certificate;
  KubeconfigBlob client_key;
  std::string token;
  std::string token_file;
  std::string username;
  std::string password;
  std::optional<ExecConfig> exec;
  KubeconfigPlace place;
};

struct KubeconfigContext {
  std::string cluster;
  std::string user;
  std::string name_space;
  KubeconfigPlace place;
};

struct Kubeconfig {
  std::string current_context;
  std::map<std::string, KubeconfigCluster, std::less<>> clusters;
  std::map<std::string, KubeconfigUser, std::less<>> users;
  std::map<std::string, KubeconfigContext, std::less<>> contexts;

  /// Takes what `other` has and this has not: of several files the first that names a thing decides.
  void merge(Kubeconfig other);
};

/// Parses one file's text (YAML, and so JSON). Pure. `file` names it in errors; relative paths are resolved
/// against its folder. Errors name file, line, field and remedy; unknown fields are ignored.
Result<Kubeconfig> parse_kubeconfig(std::string_view text, std::string_view file = {});

/// Reads and merges the files. A missing one is an error only where it is the only one.
Result<Kubeconfig> load_kubeconfig(const std::vector<std::string>& files);

}  // namespace troupe
