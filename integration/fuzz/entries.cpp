#include <array>

#include "integration/fuzz/entry.hpp"

namespace troupe::fuzz {
namespace {

constexpr std::array kEntries{
    Entry{"quantity", quantity}, Entry{"object", object},   Entry{"watch", watch},
    Entry{"dump", dump},         Entry{"message", message}, Entry{"kubeconfig", kubeconfig},
};

}  // namespace

std::span<const Entry> entries() {
  return kEntries;
}

}  // namespace troupe::fuzz
