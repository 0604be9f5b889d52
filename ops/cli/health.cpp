// A probe for containers that have no other HTTP client: exit code 0 when the service is alive (or ready).

#include <iostream>

#include "ops/cli/commands.hpp"

namespace troupe::cli {

void add_health(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand(
      "health", "whether a running service is alive; with --ready, whether it is ready (exit code 0 or 1)");
  auto ready = std::make_shared<bool>(false);
  command->add_flag("--ready", *ready, "ask /readyz instead of /healthz");
  command->callback([&context, ready] {
    context.run = [&context, ready] {
      auto answer = get(context.server, *ready ? "/readyz" : "/healthz");
      if (!answer) return complain(answer.error());
      std::cout << *answer;
      return static_cast<int>(kOk);
    };
  });
}

}  // namespace troupe::cli
