#include "ops/daemon/options.hpp"

#include <yaml-cpp/yaml.h>

#include <fstream>
#include <functional>
#include <set>
#include <sstream>

namespace troupe {
namespace {

/// One field of the configuration: its path and how its value is taken.
struct Field {
  const char* path;  // dots between levels
  const char* wants;
  std::function<bool(const YAML::Node&)> take;
};

template <class T>
bool as(const YAML::Node& node, T& out) {
  return node.IsScalar() && YAML::convert<T>::decode(node, out);
}

/// 15s, 500ms, 2m: as Kubernetes configurations write durations.
bool duration_ms(const YAML::Node& node, std::int64_t& out) {
  if (!node.IsScalar()) return false;
  const std::string text = node.Scalar();
  std::size_t end = 0;
  double value = 0;
  try {
    value = std::stod(text, &end);
  } catch (const std::exception&) {
    return false;
  }
  const std::string unit = text.substr(end);
  const double scale = unit == "ms"  ? 1
                       : unit == "s" ? 1000
                       : unit == "m" ? 60'000
                       : unit == "h" ? 3'600'000
                                     : 0;
  if (scale == 0 || value <= 0) return false;
  out = static_cast<std::int64_t>(value * scale);
  return true;
}

bool names(const YAML::Node& node, std::vector<std::string>& out) {
  if (!node.IsSequence() || node.size() == 0) return false;
  std::vector<std::string> list;
  for (const YAML::Node& item : node) {
    if (!item.IsScalar() || item.Scalar().empty()) return false;
    list.push_back(item.Scalar());
  }
  out = std::move(list);
  return true;
}

std::vector<Field> fields(DaemonOptions& o) {
  const auto text = [](const char* path, std::string& out) {
    return Field{path, "a text", [&out](const YAML::Node& n) { return as(n, out); }};
  };
  const auto flag = [](const char* path, bool& out) {
    return Field{path, "true or false", [&out](const YAML::Node& n) { return as(n, out); }};
  };
  const auto time = [](const char* path, std::int64_t& out) {
    return Field{path, "a duration such as 15s", [&out](const YAML::Node& n) { return duration_ms(n, out); }};
  };
  const auto count = [](const char* path, int& out) {
    return Field{path, "a number of at least 1",
                 [&out](const YAML::Node& n) { return as(n, out) && out >= 1; }};
  };
  const auto rate = [](const char* path, double& out) {
    return Field{path, "requests per second, 0 for no limit",
                 [&out](const YAML::Node& n) { return as(n, out) && out >= 0; }};
  };
  return {
      text("clientConnection.kubeconfig", o.kubeconfig),
      text("clientConnection.context", o.context),
      count("clientConnection.connections", o.connections),
      rate("clientConnection.qps", o.qps),
      count("clientConnection.burst", o.burst),
      rate("clientConnection.backgroundQPS", o.background_qps),
      count("clientConnection.backgroundBurst", o.background_burst),
      Field{"schedulerNames", "a list of names",
            [&o](const YAML::Node& n) { return names(n, o.scheduler_names); }},
      flag("dryRun", o.dry_run),
      text("store.path", o.store_path),
      text("http.address", o.http_address),
      Field{"http.port", "a port, 1 to 65535",
            [&o](const YAML::Node& n) { return as(n, o.http_port) && o.http_port != 0; }},
      text("http.tlsCertificateFile", o.tls_certificate_file),
      text("http.tlsKeyFile", o.tls_key_file),
      flag("leaderElection.leaderElect", o.leader_elect),
      text("leaderElection.resourceNamespace", o.lease_namespace),
      text("leaderElection.resourceName", o.lease_name),
      time("leaderElection.leaseDuration", o.lease_duration_ms),
      time("leaderElection.renewDeadline", o.renew_deadline_ms),
      time("leaderElection.retryPeriod", o.retry_period_ms),
      Field{"threads", "a number of at least 1",
            [&o](const YAML::Node& n) { return as(n, o.threads) && o.threads >= 1; }},
      Field{"seed", "a number", [&o](const YAML::Node& n) { return as(n, o.seed); }},
      Field{"logging.format", "text or json",
            [&o](const YAML::Node& n) {
              std::string format;
              if (!as(n, format) || (format != "text" && format != "json")) return false;
              o.log.json = format == "json";
              return true;
            }},
      Field{"logging.levels", "levels such as info,placement=debug",
            [&o](const YAML::Node& n) {
              std::string levels;
              return as(n, levels) && parse_log_levels(levels, o.log).has_value();
            }},
  };
}

Error at(const std::string& name, const YAML::Node& node, const std::string& field, std::string what,
         std::string remedy) {
  return {ErrorCode::invalid, std::move(what), name + ":" + std::to_string(node.Mark().line + 1), field,
          std::move(remedy)};
}

/// Walks `node`, whose path so far is `prefix`, and hands each leaf to its field.
Result<void> take(const std::string& name, const YAML::Node& node, const std::string& prefix,
                  const std::vector<Field>& known) {
  std::set<std::string> seen;
  for (const auto& item : node) {
    const std::string path = prefix.empty() ? item.first.Scalar() : prefix + "." + item.first.Scalar();
    if (!seen.insert(path).second)
      return fail(at(name, item.first, path, "the field is given twice", "keep one of them"));
    if (path == "apiVersion" || path == "kind") {
      const char* wanted = path == "kind" ? "TroupeConfiguration" : "config.troupe.dev/v1alpha1";
      if (item.second.IsScalar() && item.second.Scalar() == wanted) continue;
      return fail(
          at(name, item.second, path, "not a configuration of this program", std::string("write ") + wanted));
    }
    bool group = false;
    bool taken = false;
    for (const Field& field : known) {
      const std::string_view field_path = field.path;
      if (field_path == path) {
        if (!field.take(item.second))
          return fail(at(name, item.second, path, "not a valid value", std::string("give ") + field.wants));
        taken = true;
      } else if (field_path.starts_with(path + ".")) {
        group = true;
      }
    }
    if (taken) continue;
    if (!group)
      return fail(at(name, item.first, path, "unknown field",
                     "see docs/configuration.md for the fields that there are"));
    if (!item.second.IsMap())
      return fail(at(name, item.second, path, "not a valid value", "give a map of fields"));
    if (auto below = take(name, item.second, path, known); !below) return below;
  }
  return {};
}

}  // namespace

Result<void> parse_configuration(std::string_view yaml, const std::string& name, DaemonOptions& options) {
  try {
    const YAML::Node root = YAML::Load(std::string(yaml));
    if (!root.IsMap()) {
      return fail({ErrorCode::invalid,
                   "not a configuration",
                   name,
                   {},
                   "write a YAML map that starts with kind: TroupeConfiguration"});
    }
    if (!root["kind"])
      return fail(at(name, root, "kind", "the field is missing", "write kind: TroupeConfiguration"));
    return take(name, root, {}, fields(options));
  } catch (const YAML::Exception& e) {
    return fail(
        {ErrorCode::invalid, e.msg, name + ":" + std::to_string(e.mark.line + 1), {}, "mend the YAML"});
  }
}

Result<void> read_configuration(const std::string& file, DaemonOptions& options) {
  std::ifstream in(file);
  if (!in)
    return fail({ErrorCode::not_found,
                 "cannot read the configuration",
                 file,
                 {},
                 "give a readable file to --config"});
  std::ostringstream text;
  text << in.rdbuf();
  return parse_configuration(text.str(), file, options);
}

Result<void> validate(const DaemonOptions& o) {
  const auto bad = [](const char* field, const char* what, const char* remedy) {
    return fail({ErrorCode::invalid, what, "configuration", field, remedy});
  };
  if (o.leader_elect) {
    if (o.lease_duration_ms <= o.renew_deadline_ms) {
      return bad("leaderElection.leaseDuration", "must be longer than renewDeadline",
                 "raise leaseDuration or lower renewDeadline");
    }
    if (static_cast<double>(o.renew_deadline_ms) <= static_cast<double>(o.retry_period_ms) * 1.2) {
      return bad("leaderElection.renewDeadline", "must be longer than 1.2 times retryPeriod",
                 "raise renewDeadline or lower retryPeriod");
    }
  }
  if (o.tls_certificate_file.empty() != o.tls_key_file.empty()) {
    return bad("http.tlsKeyFile", "certificate and key come together", "give both files or neither");
  }
  return {};
}

}  // namespace troupe
