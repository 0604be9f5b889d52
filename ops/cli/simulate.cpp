#include <iostream>
#include <map>
#include <set>

#include "messages/fb/node_generated.h"
#include "messages/fb/pod_generated.h"
#include "ops/cli/allocation.hpp"
#include "ops/cli/commands.hpp"
#include "ops/cli/dump_engine.hpp"

namespace troupe::cli {
namespace {

struct Options {
  DumpOptions dump;
  std::string format = "table";
};

struct Outcome {
  Json placements = Json::array();
  Json pending = Json::array();
  Allocation before;
  Allocation after;
};

std::string full_name(const Json& pod) {
  return pod.value("namespace", "") + "/" + pod.value("name", "");
}

/// Messages of pods that stay pending, by namespace/name.
Result<std::map<std::string, std::string>> reasons(LocalEngine& engine) {
  auto text = engine.query("pending");
  if (!text) return fail(text.error());
  std::map<std::string, std::string> out;
  const Json document = Json::parse(*text, nullptr, false);
  if (!document.is_object() || !document.contains("pending")) return out;
  for (const Json& pod : document["pending"]) out[full_name(pod)] = pod.value("message", "");
  return out;
}

Result<Outcome> outcome_of(const LoadedDump& loaded) {
  Outcome out;
  out.before = allocation(loaded.dump.nodes, loaded.dump.pods);
  std::set<std::string> waiting;
  for (const Message& m : loaded.dump.pods) {
    const auto& pod = m.as<fb::Pod>();
    if (is_pending(m))
      waiting.insert(std::string(text(pod.namespace_())) + "/" + std::string(text(pod.name())));
  }
  auto why = reasons(*loaded.engine);
  if (!why) return fail(why.error());
  const std::vector<Message> pods = loaded.engine->pods();
  out.after = allocation(loaded.dump.nodes, pods);
  for (const Message& m : pods) {
    const auto& pod = m.as<fb::Pod>();
    Json entry = {{"namespace", text(pod.namespace_())}, {"name", text(pod.name())}};
    if (!waiting.contains(full_name(entry))) continue;
    if (text(pod.node_name()).empty()) {
      entry["message"] = (*why)[full_name(entry)];
      out.pending.push_back(std::move(entry));
    } else {
      entry["node"] = text(pod.node_name());
      out.placements.push_back(std::move(entry));
    }
  }
  return out;
}

void print_tables(const Outcome& o, const std::vector<std::string>& notes) {
  Table placed{{"NAMESPACE", "POD", "NODE"}, {}};
  for (const Json& p : o.placements)
    placed.rows.push_back({p.value("namespace", ""), p.value("name", ""), p.value("node", "")});
  if (!placed.rows.empty()) placed.print(std::cout);
  if (!o.pending.empty()) {
    std::cout << (placed.rows.empty() ? "" : "\n");
    Table pending{{"NAMESPACE", "PENDING", "WHY"}, {}};
    for (const Json& p : o.pending)
      pending.rows.push_back({p.value("namespace", ""), p.value("name", ""), p.value("message", "")});
    pending.print(std::cout);
  }
  std::cout << "\n";
  Table full{{"RESOURCE", "ALLOCATABLE", "BEFORE", "", "AFTER", ""}, {}};
  for (const auto& [resource, a] : o.after) {
    const auto it = o.before.find(resource);
    const Amounts b = it == o.before.end() ? Amounts{a.allocatable, 0} : it->second;
    full.rows.push_back({resource, human(resource, a.allocatable), human(resource, b.requested), percent(b),
                         human(resource, a.requested), percent(a)});
  }
  full.print(std::cout);
  std::cout << "\n" << o.placements.size() << " placed, " << o.pending.size() << " pending\n";
  for (const std::string& note : notes) std::cerr << "note: " << note << '\n';
}

int run(const Options& options) {
  auto loaded = load_dump(options.dump);
  if (!loaded) return complain(loaded.error(), kBadInput);
  auto outcome = outcome_of(*loaded);
  if (!outcome) return complain(outcome.error());
  const Format format = parse_format(options.format);
  if (format == Format::json || format == Format::yaml) {
    const Json document = {
        {"placements", outcome->placements},
        {"pending", outcome->pending},
        {"allocation", {{"before", to_json(outcome->before)}, {"after", to_json(outcome->after)}}},
        {"notes", loaded->dump.notes}};
    print_document(document, format, std::cout);
  } else {
    print_tables(*outcome, loaded->dump.notes);
  }
  return outcome->pending.empty() ? kOk : kPending;
}

}  // namespace

void add_simulate(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("simulate",
                                         "place the pending pods of a dump (kubectl get nodes,pods,... -o "
                                         "yaml) without touching a cluster; exit code 0: all placed, "
                                         "3: some stay pending, 2: the input cannot be read");
  auto options = std::make_shared<Options>();
  command->add_option("-f,--file", options->dump.files, "file, directory, or - for standard input (repeats)")
      ->required();
  command->add_option("--scheduler-name", options->dump.scheduler_names,
                      "place only the pods of this scheduler name (repeats)");
  command->add_option("--seed", options->dump.seed, "of the choice among equally good nodes")
      ->capture_default_str();
  add_format(*command, options->format);
  command->callback([&context, options] { context.run = [options] { return run(*options); }; });
}

}  // namespace troupe::cli
