#include <CLI/CLI.hpp>
#include <iostream>

#include "ops/daemon/daemon.hpp"
#include "ops/version.hpp"

int main(int argc, char** argv) {
  using namespace troupe;
  CLI::App app{"The Troupe service: schedules the pods of a Kubernetes cluster.", "trouped"};
  app.set_version_flag("--version", std::string("trouped ") + kVersion);
  DaemonOptions flags;
  std::string config;
  std::string levels;
  std::string format = "text";
  app.add_option("--config", config, "configuration file (docs/configuration.md); flags win over it");
  CLI::Option* kubeconfig = app.add_option("--kubeconfig", flags.kubeconfig, "which API server");
  CLI::Option* context = app.add_option("--context", flags.context, "context of the kubeconfig");
  CLI::Option* names = app.add_option("--scheduler-name", flags.scheduler_names,
                                      "place the pods of this scheduler name (repeats)");
  CLI::Option* dry_run = app.add_flag("--dry-run", flags.dry_run, "decide and report, issue nothing");
  CLI::Option* store = app.add_option("--store", flags.store_path, "directory of the database");
  app.add_flag("--rebuild-from-apiserver", flags.rebuild_from_apiserver,
               "set the database aside and start with an empty one");
  CLI::Option* address = app.add_option("--http-address", flags.http_address, "address to serve on");
  CLI::Option* port =
      app.add_option("--http-port", flags.http_port, "port to serve on")->check(CLI::Range(1, 65535));
  CLI::Option* elect =
      app.add_flag("--leader-elect,!--no-leader-elect", flags.leader_elect, "one active replica by a Lease");
  CLI::Option* threads =
      app.add_option("--threads", flags.threads, "workers of the node partitions")->check(CLI::Range(1, 256));
  CLI::Option* seed = app.add_option("--seed", flags.seed, "of the choice among equally good nodes");
  CLI::Option* log_format =
      app.add_option("--log-format", format, "text or json")->check(CLI::IsMember({"text", "json"}));
  CLI::Option* log_level = app.add_option("--log-level", levels, "such as info,placement=debug");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& e) {
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    app.exit(e, std::cout, std::cerr);
    return 2;
  }

  DaemonOptions options;
  const auto refuse = [](const Error& error) {
    std::cerr << "trouped: " << error.text() << '\n';
    return 2;
  };
  if (!config.empty()) {
    if (auto read = read_configuration(config, options); !read) return refuse(read.error());
  }
  const auto take = [](const CLI::Option* given, auto& to, const auto& from) {
    if (given->count() > 0) to = from;
  };
  take(kubeconfig, options.kubeconfig, flags.kubeconfig);
  take(context, options.context, flags.context);
  take(names, options.scheduler_names, flags.scheduler_names);
  take(dry_run, options.dry_run, flags.dry_run);
  take(store, options.store_path, flags.store_path);
  options.rebuild_from_apiserver = flags.rebuild_from_apiserver;
  take(address, options.http_address, flags.http_address);
  take(port, options.http_port, flags.http_port);
  take(elect, options.leader_elect, flags.leader_elect);
  take(threads, options.threads, flags.threads);
  take(seed, options.seed, flags.seed);
  if (log_format->count() > 0) options.log.json = format == "json";
  if (log_level->count() > 0) {
    if (auto parsed = parse_log_levels(levels, options.log); !parsed) return refuse(parsed.error());
  }
  if (auto valid = validate(options); !valid) return refuse(valid.error());
  start_logging(options.log);
  return run_daemon(options);
}
