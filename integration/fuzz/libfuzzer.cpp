// One libFuzzer program per entry: FUZZ_ENTRY is the function.
#include "integration/fuzz/entry.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  troupe::fuzz::FUZZ_ENTRY({data, size});
  return 0;
}
