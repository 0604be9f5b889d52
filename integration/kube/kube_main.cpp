// main of the kube test programs: where no API server can be had, the program says why and counts as skipped.
#include <gtest/gtest.h>

#include <cstdio>
#include <exception>

#include "integration/kube/rig.hpp"

namespace {

// The exit code that ctest counts as skipped (SKIP_RETURN_CODE).
constexpr int skipped = 77;

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (testing::GTEST_FLAG(list_tests)) return RUN_ALL_TESTS();
  try {
    if (const auto why = troupe::rig::unavailable(); !why.empty()) {
      std::fprintf(stderr, "SKIPPED, no kube test has run: %s\n", why.c_str());
      return skipped;
    }
    troupe::rig::KubeRig::shared();  // from this thread, with which its servers end
  } catch (const std::exception& error) {
    std::fprintf(stderr, "the kube rig does not start: %s\n", error.what());
    return 1;
  }
  return RUN_ALL_TESTS();
}
