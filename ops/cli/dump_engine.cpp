#include "ops/cli/dump_engine.hpp"

#include <algorithm>
#include <chrono>
#include <iostream>
#include <set>

#include "messages/fb/pod_generated.h"

namespace troupe::cli {

bool is_pending(const Message& message) {
  const auto& pod = message.as<fb::Pod>();
  return text(pod.node_name()).empty() && pod.deletion_ms() == 0 && text(pod.phase()) != "Succeeded" &&
         text(pod.phase()) != "Failed";
}

Result<LoadedDump> load_dump(const DumpOptions& options) {
  auto dump = read_dump(options.files, std::cin);
  if (!dump) return fail(dump.error());

  LocalEngineOptions engine;
  engine.seed = options.seed;
  engine.decide = options.decide;
  engine.wall_ms = std::chrono::duration_cast<std::chrono::milliseconds>(
                       std::chrono::system_clock::now().time_since_epoch())
                       .count();
  engine.scheduler_names = options.scheduler_names;
  if (engine.scheduler_names.empty()) {
    std::set<std::string> names{"koord-scheduler"};
    for (const Message& pod : dump->pods) {
      if (is_pending(pod)) names.insert(std::string(text(pod.as<fb::Pod>().scheduler_name())));
    }
    engine.scheduler_names.assign(names.begin(), names.end());
  }
  LoadedDump loaded;
  loaded.engine = std::make_unique<LocalEngine>(std::move(engine));
  // Finished pods hold nothing; a watch never shows them.
  std::erase_if(dump->pods, [](const Message& m) {
    const std::string_view phase = text(m.as<fb::Pod>().phase());
    return phase == "Succeeded" || phase == "Failed";
  });
  for (const auto* objects : {&dump->priority_classes, &dump->namespaces, &dump->nodes, &dump->pods})
    loaded.engine->put(*objects);
  loaded.engine->settle();
  loaded.dump = std::move(*dump);
  return loaded;
}

}  // namespace troupe::cli
