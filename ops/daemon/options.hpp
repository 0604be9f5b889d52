// ops/daemon/: trouped, the service as a process: its configuration, signals and exit. docs/configuration.md
// is the reference.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "messages/error.hpp"
#include "ops/log/log.hpp"

namespace troupe {

struct DaemonOptions {
  std::string kubeconfig;  // empty: KUBECONFIG, the in-cluster account, ~/.kube/config
  std::string context;
  std::vector<std::string> scheduler_names = {"koord-scheduler"};
  bool dry_run = false;

  std::string store_path = "/var/lib/troupe";
  bool rebuild_from_apiserver = false;

  std::string http_address = "127.0.0.1";
  std::uint16_t http_port = 10251;
  std::string tls_certificate_file;
  std::string tls_key_file;

  bool leader_elect = true;
  std::string lease_namespace = "koordinator-system";
  std::string lease_name = "koord-scheduler";
  std::int64_t lease_duration_ms = 15'000;
  std::int64_t renew_deadline_ms = 10'000;
  std::int64_t retry_period_ms = 2'000;

  int connections = 64;  // requests under way at once
  double qps = 0;        // binds, evictions, deletes per second; 0: no limit
  int burst = 100;
  double background_qps = 0;  // events and status patches per second; 0: no limit
  int background_burst = 100;

  std::uint32_t threads = 2;
  std::uint64_t seed = 0;  // 0: chosen at start
  LogOptions log;
};

/// Reads a TroupeConfiguration (YAML) over what `options` holds. Strict: an unknown or repeated field, a
/// wrong type or a value out of range is an error that names file, line, field and remedy.
Result<void> read_configuration(const std::string& file, DaemonOptions& options);
/// The same from text; `name` stands for the file in errors.
Result<void> parse_configuration(std::string_view yaml, const std::string& name, DaemonOptions& options);
/// What fields forbid each other (spec 5.11 for the lease). Errors name the field.
Result<void> validate(const DaemonOptions& options);

}  // namespace troupe
