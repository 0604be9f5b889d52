#include "integration/fuzz/entry.hpp"
#include "k8s-bridge/kubeconfig/kubeconfig.hpp"

namespace troupe::fuzz {

void kubeconfig(Input input) {
  const auto config = parse_kubeconfig(as_text(input), "/nonexistent/config");
  if (!config) FUZZ_CHECK(!config.error().what.empty());
}

}  // namespace troupe::fuzz
