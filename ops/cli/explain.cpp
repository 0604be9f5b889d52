#include <functional>
#include <iostream>

#include "messages/fb/pod_generated.h"
#include "ops/cli/commands.hpp"
#include "ops/cli/dump_engine.hpp"

namespace troupe::cli {
namespace {

struct Options {
  std::string pod;
  std::string ns = "default";
  bool all_pending = false;
  DumpOptions dump;
  std::string format = "table";
};

using Ask = std::function<Result<std::string>(const std::string& verb, const std::string& ns,
                                              const std::string& name)>;
using Name = std::pair<std::string, std::string>;

Result<std::vector<Name>> pending_pods(const Ask& ask) {
  auto text = ask("pending", {}, {});
  if (!text) return fail(text.error());
  std::vector<Name> out;
  const Json document = Json::parse(*text, nullptr, false);
  if (!document.is_object() || !document.contains("pending")) return out;
  for (const Json& pod : document["pending"])
    out.emplace_back(pod.value("namespace", ""), pod.value("name", ""));
  return out;
}

/// One object per pod: JSON on one line, YAML documents, or text.
int explain_each(const std::vector<Name>& pods, const std::string& format, const Ask& ask) {
  for (const auto& [ns, name] : pods) {
    auto answer = ask(format == "json" || format == "yaml" ? "explain" : "explain-text", ns, name);
    if (!answer) return complain(answer.error());
    while (!answer->empty() && answer->back() == '\n') answer->pop_back();
    if (format == "yaml") {
      std::cout << "---\n";
      print_document(Json::parse(*answer, nullptr, false), Format::yaml, std::cout);
    } else if (format == "json") {
      std::cout << *answer << '\n';
    } else {
      const Json document = Json::parse(*answer, nullptr, false);
      std::cout << document.value("text", "") << '\n';
    }
  }
  return kOk;
}

int run(const Context& context, const Options& options) {
  LoadedDump loaded;
  Ask ask;
  if (options.dump.files.empty()) {
    ask = [&context](const std::string& verb, const std::string& ns, const std::string& name) {
      std::string path = "/api/v1/" + verb;
      if (!name.empty()) path += "/" + encode_segment(ns) + "/" + encode_segment(name);
      return get(context.server, path);
    };
  } else {
    DumpOptions dump = options.dump;
    dump.decide = false;  // each pod is taken alone
    auto read = load_dump(dump);
    if (!read) return complain(read.error(), kBadInput);
    loaded = std::move(*read);
    ask = [&loaded](const std::string& verb, const std::string& ns, const std::string& name) {
      return loaded.engine->query(verb, ns, name);
    };
  }
  std::vector<Name> pods{{options.ns, options.pod}};
  if (options.all_pending) {
    auto pending = pending_pods(ask);
    if (!pending) return complain(pending.error());
    pods = std::move(*pending);
  }
  return explain_each(pods, options.format, ask);
}

}  // namespace

void add_explain(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("explain",
                                         "why a pod fits where it does, what keeps it from the other nodes, "
                                         "and what would help; of a running service, or of a dump (-f)");
  auto options = std::make_shared<Options>();
  CLI::Option* pod = command->add_option("pod", options->pod, "name of the pod");
  command->add_option("-n,--namespace", options->ns, "its namespace")->capture_default_str();
  CLI::Option* all =
      command->add_flag("--all-pending", options->all_pending, "every pending pod, each taken alone");
  pod->excludes(all);
  command->add_option("-f,--file", options->dump.files,
                      "a dump instead of a service: file, directory, or - (repeats)");
  add_format(*command, options->format);
  command->callback([&context, options, pod, all] {
    if (pod->count() == 0 && all->count() == 0) throw CLI::RequiredError("a pod or --all-pending");
    context.run = [&context, options] { return run(context, *options); };
  });
}

}  // namespace troupe::cli
