// Where Troupe's decisions and what stands in the cluster differ: run `trouped --dry-run` beside another
// scheduler.

#include <iostream>
#include <map>

#include "ops/cli/commands.hpp"

namespace troupe::cli {
namespace {

int run(const Context& context, const std::string& format_name) {
  auto decided = get(context.server, "/api/v1/decisions");
  if (!decided) return complain(decided.error());
  auto standing = get(context.server, "/api/v1/pods");
  if (!standing) return complain(standing.error());
  const Json decisions = Json::parse(*decided, nullptr, false);
  const Json pods = Json::parse(*standing, nullptr, false);
  std::map<std::string, Json> latest;  // decisions come newest first
  for (const Json& d : decisions["decisions"])
    latest.emplace(d.value("namespace", "") + "/" + d.value("name", ""), d);

  Json rows = Json::array();
  std::size_t same = 0;
  for (const Json& p : pods["pods"]) {
    const std::string state = p.value("state", "");
    const auto it = latest.find(p.value("namespace", "") + "/" + p.value("name", ""));
    if (it == latest.end() || (state != "Bound" && state != "Leaving")) continue;
    const Json& d = it->second;
    if (d.value("node", "") == p.value("node", "")) {
      ++same;
      continue;
    }
    rows.push_back({{"namespace", p.value("namespace", "")},
                    {"name", p.value("name", "")},
                    {"node", p.value("node", "")},
                    {"decided", d.value("node", "")},
                    {"why", "score " + std::to_string(d.value("score", 0)) + ", best of " +
                                std::to_string(d.value("feasibleNodes", 0)) + " nodes that fitted"}});
  }
  const Format format = parse_format(format_name);
  if (format == Format::json || format == Format::yaml) {
    print_document({{"same", same}, {"different", rows}}, format, std::cout);
  } else {
    Table t{{"NAMESPACE", "NAME", "RUNS ON", "TROUPE DECIDED", "WHY"}, {}};
    for (const Json& r : rows) {
      t.rows.push_back({r.value("namespace", ""), r.value("name", ""), r.value("node", ""),
                        r.value("decided", ""), r.value("why", "")});
    }
    t.print(std::cout);
    std::cout << "\n" << same << " alike, " << rows.size() << " different\n";
  }
  return rows.empty() ? kOk : kPending;
}

}  // namespace

void add_diff(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("diff",
                                         "where the decisions of a service (trouped --dry-run) differ from "
                                         "where pods run, and why; exit code 3 when they do");
  auto format = std::make_shared<std::string>("table");
  add_format(*command, *format);
  command->callback(
      [&context, format] { context.run = [&context, format] { return run(context, *format); }; });
}

}  // namespace troupe::cli
