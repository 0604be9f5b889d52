#include "integration/fuzz/decoded.hpp"
#include "k8s-bridge/dump/dump.hpp"

namespace troupe::fuzz {

void dump(Input input) {
  const DumpLimits limits{.json_bytes = 1U << 20U, .yaml_bytes = 1U << 20U, .alias_bytes = 1U << 16U};
  const auto read = read_dump_text(as_text(input), "input", limits);
  if (!read) {
    FUZZ_CHECK(!read.error().what.empty());
    FUZZ_CHECK(read.error().object.starts_with("input"));
    return;
  }
  for (const auto* list : {&read->nodes, &read->pods, &read->namespaces, &read->priority_classes}) {
    for (const Message& m : *list) check_message(m);
  }
}

}  // namespace troupe::fuzz
