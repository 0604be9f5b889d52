#include "k8s-bridge/kubeconfig/kubeconfig.hpp"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>

#include "k8s-bridge/kubeconfig/base64.hpp"
#include "k8s-bridge/kubeconfig/files.hpp"
#include "k8s-bridge/kubeconfig/yaml_json.hpp"

namespace troupe {
namespace {

constexpr std::size_t kLargestFile = 8U << 20U;
constexpr std::string_view kExecExtension = "client.authentication.k8s.io/exec";

int line_of(const YAML::Node& node) {
  const YAML::Mark mark = node.Mark();
  return mark.is_null() ? 0 : mark.line + 1;
}

// Reads one document; the first mistake is kept and ends it.
class Parser {
 public:
  explicit Parser(std::string_view file) : file_(file) {
    if (const auto slash = file.rfind('/'); slash != std::string_view::npos)
      folder_ = file.substr(0, slash + 1);
  }

  Result<Kubeconfig> parse(const YAML::Node& root) {
    Kubeconfig out;
    if (root.IsNull()) return out;
    if (!root.IsMap()) return fail(mistake(root, "", "is not a mapping", "give a kubeconfig of kind Config"));
    const std::string kind = text(root, "kind", "");
    if (!kind.empty() && kind != "Config")
      wrong(root["kind"], "kind", "is " + kind + ", not Config", "give a kubeconfig");
    out.current_context = text(root, "current-context", "");
    entries(root, "clusters", "cluster", out.clusters,
            [&](const YAML::Node& n, const std::string& at) { return cluster(n, at); });
    entries(root, "users", "user", out.users,
            [&](const YAML::Node& n, const std::string& at) { return user(n, at); });
    entries(root, "contexts", "context", out.contexts,
            [&](const YAML::Node& n, const std::string& at) { return context(n, at); });
    if (error_) return fail(*error_);
    return out;
  }

 private:
  [[nodiscard]] Error mistake(const YAML::Node& node, const std::string& field, const std::string& what,
                              std::string remedy) const {
    const int line = line_of(node);
    return {ErrorCode::invalid, std::string("kubeconfig ") + (field.empty() ? "document " : "field ") + what,
            file_, (line > 0 ? "line " + std::to_string(line) + (field.empty() ? "" : ": ") : "") + field,
            std::move(remedy)};
  }

  void wrong(const YAML::Node& node, const std::string& field, const std::string& what, std::string remedy) {
    if (!error_) error_ = mistake(node, field, what, std::move(remedy));
  }

  [[nodiscard]] KubeconfigPlace place(const YAML::Node& node) const { return {file_, line_of(node)}; }

  static std::string join(const std::string& at, const std::string& key) {
    return at.empty() ? key : at + "." + key;
  }

  // Absent and null are alike everywhere.
  static YAML::Node child(const YAML::Node& node, const std::string& key) {
    if (!node.IsMap()) return YAML::Node(YAML::NodeType::Undefined);
    YAML::Node found = node[key];
    return found.IsDefined() && !found.IsNull() ? found : YAML::Node(YAML::NodeType::Undefined);
  }

  std::string text(const YAML::Node& node, const std::string& key, const std::string& at) {
    const YAML::Node value = child(node, key);
    if (!value.IsDefined()) return {};
    if (value.IsScalar()) return value.Scalar();
    wrong(value, join(at, key), "is not a text", "give one value");
    return {};
  }

  bool flag(const YAML::Node& node, const std::string& key, const std::string& at) {
    const YAML::Node value = child(node, key);
    if (!value.IsDefined()) return false;
    if (value.IsScalar() && value.Scalar() == "true") return true;
    if (!value.IsScalar() || value.Scalar() != "false")
      wrong(value, join(at, key), "is not a boolean", "give true or false");
    return false;
  }

  std::string path(const std::string& written) const {
    if (written.empty() || written.front() == '/' || folder_.empty()) return written;
    return folder_ + written;
  }

  KubeconfigBlob blob(const YAML::Node& node, const std::string& key, const std::string& at) {
    KubeconfigBlob out;
    out.path = path(text(node, key, at));
    const std::string encoded = text(node, key + "-data", at);
    if (!encoded.empty()) {
      auto decoded = base64_decode(encoded);
      if (!decoded) {
        wrong(node[key + "-data"], join(at, key + "-data"), "is not base64",
              "encode the PEM text with base64");
      } else {
        out.data = std::move(*decoded);
      }
    }
    const YAML::Node shown = child(node, out.data.empty() ? key : key + "-data");
    out.place = place(shown.IsDefined() ? shown : node);
    return out;
  }

  template <class T, class F>
  void entries(const YAML::Node& root, const std::string& list, const std::string& key,
               std::map<std::string, T, std::less<>>& out, F&& read) {
    const YAML::Node items = child(root, list);
    if (!items.IsDefined()) return;
    if (!items.IsSequence()) return wrong(items, list, "is not a list", "give a list of named entries");
    std::size_t index = 0;
    for (const YAML::Node& item : items) {
      const std::string position = list + "[" + std::to_string(index++) + "]";
      if (error_) return;
      if (!item.IsMap()) return wrong(item, position, "is not a mapping", "give name and " + key);
      const std::string name = text(item, "name", position);
      if (name.empty()) return wrong(item, position + ".name", "is missing", "name the entry");
      const std::string at = list + "[" + name + "]." + key;
      const YAML::Node body = child(item, key);
      if (body.IsDefined() && !body.IsMap())
        return wrong(body, at, "is not a mapping", "give the fields of a " + key);
      T entry = read(body.IsDefined() ? body : YAML::Node(YAML::NodeType::Map), at);
      if (entry.place.line == 0) entry.place = place(item);
      if (!out.emplace(name, std::move(entry)).second) {
        return wrong(item, list + "[" + name + "]", "is there twice", "keep one of them");
      }
    }
  }

  KubeconfigCluster cluster(const YAML::Node& node, const std::string& at) {
    KubeconfigCluster out;
    out.place = place(node);
    out.server = text(node, "server", at);
    out.certificate_authority = blob(node, "certificate-authority", at);
    out.insecure_skip_tls_verify = flag(node, "insecure-skip-tls-verify", at);
    out.tls_server_name = text(node, "tls-server-name", at);
    out.proxy_url = text(node, "proxy-url", at);
    for (const YAML::Node& extension : child(node, "extensions")) {
      if (extension.IsMap() && text(extension, "name", at) == kExecExtension) {
        out.exec_config_json = yaml_to_json(child(extension, "extension"));
      }
    }
    return out;
  }

  KubeconfigUser user(const YAML::Node& node, const std::string& at) {
    KubeconfigUser out;
    out.place = place(node);
    out.client_certificate = blob(node, "client-certificate", at);
    out.client_key = blob(node, "client-key", at);
    out.token = text(node, "token", at);
    out.token_file = path(text(node, "tokenFile", at));
    out.username = text(node, "username", at);
    out.password = text(node, "password", at);
    for (const std::string key : {"as", "as-uid", "as-groups", "as-user-extra"}) {
      if (const YAML::Node value = child(node, key); value.IsDefined()) {
        wrong(value, join(at, key), "asks for impersonation, which is not supported",
              "use credentials of the user itself");
      }
    }
    if (const YAML::Node value = child(node, "auth-provider"); value.IsDefined()) {
      wrong(value, join(at, "auth-provider"), "is no longer supported by Kubernetes", "use an exec plugin");
    }
    if (const YAML::Node value = child(node, "exec"); value.IsDefined()) out.exec = exec(value, at + ".exec");
    return out;
  }

  ExecConfig exec(const YAML::Node& node, const std::string& at) {
    ExecConfig out;
    out.place = place(node);
    if (!node.IsMap()) {
      wrong(node, at, "is not a mapping", "give apiVersion and command");
      return out;
    }
    out.api_version = text(node, "apiVersion", at);
    if (out.api_version != "client.authentication.k8s.io/v1" &&
        out.api_version != "client.authentication.k8s.io/v1beta1") {
      wrong(node, at + ".apiVersion", out.api_version.empty() ? "is missing" : "is " + out.api_version,
            "give client.authentication.k8s.io/v1 or client.authentication.k8s.io/v1beta1");
    }
    out.command = text(node, "command", at);
    if (out.command.empty()) wrong(node, at + ".command", "is missing", "name the program to run");
    if (out.command.find('/') != std::string::npos) out.command = path(out.command);
    out.args = texts(node, "args", at);
    environment(node, at, out);
    out.install_hint = text(node, "installHint", at);
    out.provide_cluster_info = flag(node, "provideClusterInfo", at);
    const std::string mode = text(node, "interactiveMode", at);
    if (mode == "Always") {
      wrong(node["interactiveMode"], at + ".interactiveMode", "is Always, and a service has no terminal",
            "use credentials that need nobody at a terminal");
    } else if (!mode.empty() && mode != "Never" && mode != "IfAvailable") {
      wrong(node["interactiveMode"], at + ".interactiveMode", "is " + mode, "give Never or IfAvailable");
    }
    return out;
  }

  std::vector<std::string> texts(const YAML::Node& node, const std::string& key, const std::string& at) {
    std::vector<std::string> out;
    const YAML::Node list = child(node, key);
    if (!list.IsDefined()) return out;
    if (!list.IsSequence()) {
      wrong(list, join(at, key), "is not a list", "give a list of texts");
      return out;
    }
    for (const YAML::Node& item : list) {
      if (!item.IsScalar()) wrong(item, join(at, key), "holds something that is no text", "quote it");
      out.push_back(item.IsScalar() ? item.Scalar() : std::string());
    }
    return out;
  }

  void environment(const YAML::Node& node, const std::string& at, ExecConfig& out) {
    const YAML::Node list = child(node, "env");
    if (!list.IsDefined()) return;
    if (!list.IsSequence()) return wrong(list, at + ".env", "is not a list", "give a list of name and value");
    for (const YAML::Node& item : list) {
      std::string name = text(item, "name", at + ".env");
      if (name.empty() || name.find('=') != std::string::npos) {
        return wrong(item, at + ".env", "has an entry without a usable name", "give name and value");
      }
      out.env.emplace_back(std::move(name), text(item, "value", at + ".env"));
    }
  }

  KubeconfigContext context(const YAML::Node& node, const std::string& at) {
    return {text(node, "cluster", at), text(node, "user", at), text(node, "namespace", at), place(node)};
  }

  std::string file_;
  std::string folder_;
  std::optional<Error> error_;
};

}  // namespace

void Kubeconfig::merge(Kubeconfig other) {
  if (current_context.empty()) current_context = std::move(other.current_context);
  clusters.merge(other.clusters);
  users.merge(other.users);
  contexts.merge(other.contexts);
}

Result<Kubeconfig> parse_kubeconfig(std::string_view text, std::string_view file) {
  const std::string name(file.empty() ? "kubeconfig" : file);
  if (text.size() > kLargestFile) {
    return fail(
        {ErrorCode::invalid, "kubeconfig is larger than 8 MiB", name, {}, "give the path of a kubeconfig"});
  }
  try {
    return Parser(name).parse(YAML::Load(std::string(text)));
  } catch (const YAML::Exception& e) {
    const std::string line = e.mark.is_null() ? std::string() : "line " + std::to_string(e.mark.line + 1);
    return fail(
        {ErrorCode::invalid, "kubeconfig is not valid YAML (" + e.msg + ")", name, line, "correct the file"});
  }
}

Result<Kubeconfig> load_kubeconfig(const std::vector<std::string>& files) {
  Kubeconfig out;
  std::optional<Error> missing;
  bool any = false;
  for (const std::string& file : files) {
    if (file.empty()) continue;
    std::error_code ignored;
    const std::filesystem::path absolute = std::filesystem::absolute(file, ignored);
    auto text = read_text_file(absolute.string(), "kubeconfig");
    if (!text) {
      if (text.error().code != ErrorCode::not_found) return fail(text.error());
      if (!missing) missing = text.error();
      continue;
    }
    auto parsed = parse_kubeconfig(*text, absolute.string());
    if (!parsed) return fail(parsed.error());
    out.merge(std::move(*parsed));
    any = true;
  }
  if (any) return out;
  if (missing) return fail(*missing);
  return fail(
      {ErrorCode::invalid, "no kubeconfig is named", {}, {}, "give --kubeconfig FILE or set KUBECONFIG"});
}

}  // namespace troupe
