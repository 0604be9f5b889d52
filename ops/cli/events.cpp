#include <iostream>

#include "ops/cli/commands.hpp"

namespace troupe::cli {
namespace {

std::string clock_of(std::int64_t ms) {
  const auto seconds = static_cast<time_t>(ms / 1000);
  tm utc{};
  gmtime_r(&seconds, &utc);
  char text[32];
  const std::size_t n = std::strftime(text, sizeof(text), "%H:%M:%S", &utc);
  return std::string(text, n);
}

void print_line(const Json& e) {
  std::cout << clock_of(e.value("timeMs", std::int64_t{0})) << "  " << e.value("type", "");
  if (e.contains("name"))
    std::cout << "  " << (e.contains("namespace") ? e.value("namespace", "") + "/" : "")
              << e.value("name", "");
  if (e.contains("node")) std::cout << " -> " << e.value("node", "");
  if (e.contains("message")) std::cout << "  " << e.value("message", "");
  std::cout << std::endl;
}

}  // namespace

void add_events(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("events", "follow scheduling events as they happen");
  struct Options {
    bool follow = false;
    std::uint64_t count = 0;
    std::string format = "table";
  };
  auto options = std::make_shared<Options>();
  command->add_flag("--follow", options->follow, "go on until interrupted (the default on a terminal)");
  command->add_option("--count", options->count, "end after this many events");
  add_format(*command, options->format);
  command->callback([&context, options] {
    context.run = [&context, options] {
      std::uint64_t seen = 0;
      auto ended = follow(context.server, "/api/v1/events", [&](std::string_view text) {
        const Json event = Json::parse(text, nullptr, false);
        if (event.is_discarded()) return true;
        if (options->format == "json") {
          std::cout << event.dump() << std::endl;
        } else if (options->format == "yaml") {
          std::cout << "---\n";
          print_document(event, Format::yaml, std::cout);
        } else {
          print_line(event);
        }
        return options->count == 0 || ++seen < options->count;
      });
      return ended ? static_cast<int>(kOk) : complain(ended.error());
    };
  });
}

}  // namespace troupe::cli
