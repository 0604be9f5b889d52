// The commands of `troupe`. Each adds itself to the application; `run` of the one that was chosen gives the
// exit code.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "ops/cli/client.hpp"
#include "ops/cli/output.hpp"

namespace troupe::cli {

/// What every command may read: options before the command's name, and the choice that was made.
struct Context {
  Server server;
  std::function<int()> run;  // of the chosen command
};

void add_up(CLI::App& app, Context& context);
void add_simulate(CLI::App& app, Context& context);
void add_explain(CLI::App& app, Context& context);
void add_get(CLI::App& app, Context& context);
void add_top(CLI::App& app, Context& context);
void add_events(CLI::App& app, Context& context);
void add_diff(CLI::App& app, Context& context);
void add_health(CLI::App& app, Context& context);
void add_completion(CLI::App& app, Context& context);

/// Adds -o and returns where the choice is kept.
void add_format(CLI::App& command, std::string& format);

/// Prints the error on standard error, in one line, and returns `code`.
int complain(const Error& error, int code = kFailed);

/// Runs `once` every `seconds` until interrupted, clearing the terminal between; or just once when `watch` is
/// false.
int repeat(bool watch, double seconds, const std::function<int()>& once);

}  // namespace troupe::cli
