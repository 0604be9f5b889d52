#include <csignal>
#include <cstdlib>
#include <iostream>

#include "ops/cli/commands.hpp"
#include "ops/version.hpp"

int main(int argc, char** argv) {
  using namespace troupe::cli;
  std::signal(SIGPIPE, SIG_IGN);
  CLI::App app{"Troupe: QoS-aware scheduling for Kubernetes.", "troupe"};
  app.set_version_flag("--version", std::string("troupe ") + troupe::kVersion);
  app.require_subcommand(1);
  app.fallthrough();

  Context context;
  app.add_option("--server", context.server.url, "address of a running service")
      ->envname("TROUPE_SERVER")
      ->capture_default_str();
  app.add_option("--token", context.server.token, "bearer token for a service beyond loopback")
      ->envname("TROUPE_TOKEN");
  app.add_option("--ca-file", context.server.ca_file,
                 "PEM file of the authority that signed the service's certificate");
  add_up(app, context);
  add_simulate(app, context);
  add_explain(app, context);
  add_get(app, context);
  add_top(app, context);
  add_events(app, context);
  add_diff(app, context);
  add_health(app, context);
  add_completion(app, context);

  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& e) {
    return app.exit(e);
  } catch (const CLI::CallForAllHelp& e) {
    return app.exit(e);
  } catch (const CLI::CallForVersion& e) {
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    app.exit(e, std::cout, std::cerr);
    return kBadInput;
  }
  return context.run();
}
