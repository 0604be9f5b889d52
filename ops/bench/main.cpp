#include <CLI/CLI.hpp>

#include "integration/bench/e2e/e2e.hpp"
#include "ops/bench/benches.hpp"
#include "ops/log/log.hpp"

int main(int argc, char** argv) {
  CLI::App app{"Measures Troupe. One JSON line per measurement on standard output."};
  app.require_subcommand(1);

  troupe::bench::DecideOptions decide;
  CLI::App* decide_command = app.add_subcommand(
      "decide", "pods per second from the queue to the settled bind, without an API server");
  decide_command->add_option("--nodes", decide.workload.nodes, "nodes")->capture_default_str();
  decide_command->add_option("--classes", decide.workload.classes, "distinct pod shapes")
      ->capture_default_str();
  decide_command->add_option("--seconds", decide.seconds, "length of the measurement")->capture_default_str();
  decide_command->add_option("--live", decide.live, "pods alive at a time")->capture_default_str();
  decide_command->add_option("--existing", decide.existing, "pods of another scheduler, bound before")
      ->capture_default_str();
  decide_command->add_option("--window", decide.window, "pods created and not yet bound")
      ->capture_default_str();
  decide_command->add_option("--directory", decide.directory,
                             "where the store is made (default: the working directory)");
  decide_command->add_flag("--unique-labels", decide.workload.unique_labels,
                           "every pod has labels of its own");
  decide_command->add_flag("--soft-taints", decide.workload.soft_taints,
                           "preferences that change the normalised scores");

  troupe::bench::SizeOptions size;
  const auto sizes = [&size](CLI::App* command) {
    command->add_option("--nodes", size.nodes, "nodes")->capture_default_str();
    command->add_option("--pods", size.pods, "bound pods")->capture_default_str();
    command->add_option("--directory", size.directory,
                        "where the store is made (default: the working directory)");
  };
  CLI::App* memory_command = app.add_subcommand("memory", "resident memory of a cluster at rest");
  sizes(memory_command);
  CLI::App* start_command = app.add_subcommand("start", "time to ready with an empty and with a full store");
  sizes(start_command);

  troupe::bench::E2eOptions e2e;
  CLI::App* e2e_command = app.add_subcommand("e2e",
                                             "binds per second through a real API server, beside bare loops "
                                             "and kube-scheduler, alternating in one run");
  e2e_command->add_option("--nodes", e2e.nodes, "nodes")->capture_default_str();
  e2e_command->add_option("--pods", e2e.pods, "pods")->capture_default_str();
  e2e_command->add_option("--rounds", e2e.rounds, "rounds; medians are told at the end")
      ->capture_default_str();
  e2e_command
      ->add_option("--contenders", e2e.contenders, "bind-loop, bind-event-loop, troupe, kube-scheduler")
      ->delimiter(',');
  e2e_command->add_option("--trouped", e2e.trouped,
                          "the service to measure (default: the one beside this program)");
  e2e_command->add_flag("--two-cores", e2e.two_cores, "bind everything to CPUs 0 and 1");

  CLI11_PARSE(app, argc, argv);
  troupe::start_logging({.level = troupe::LogLevel::warn});
  if (*decide_command) return troupe::bench::decide(decide);
  if (*e2e_command) return troupe::bench::e2e(e2e);
  if (*memory_command) return troupe::bench::memory(size);
  return troupe::bench::start(size);
}
