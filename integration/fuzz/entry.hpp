// fuzz/: what outside bytes can do to the decoders. Each entry takes any bytes and must come back; FUZZ_CHECK
// says what must hold of the result. With the preset `fuzz` each entry is a libFuzzer program (fuzz_<name>);
// everywhere fuzz_replay puts the kept corpus (corpus/<name>/) through the same entries.
//
// To add an entry: a function in a file of its own, a line in entries.cpp, its name in CMakeLists.txt, some
// seeds.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string_view>

#define FUZZ_CHECK(condition)                                                             \
  do {                                                                                    \
    if (!(condition)) {                                                                   \
      std::fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                       \
    }                                                                                     \
  } while (false)

namespace troupe::fuzz {

using Input = std::span<const std::uint8_t>;

struct Entry {
  std::string_view name;
  void (*run)(Input input);
};

/// Every entry.
std::span<const Entry> entries();

void quantity(Input input);    // a quantity's text
void object(Input input);      // <kind, 1 byte> JSON of one object
void watch(Input input);       // <kind, 1 byte> lines of a watch; the whole is tried as a list too
void dump(Input input);        // a YAML or JSON dump
void message(Input input);     // <kind, 2 bytes little-endian> FlatBuffers bytes
void kubeconfig(Input input);  // a kubeconfig file

inline std::string_view as_text(Input input) {
  return {reinterpret_cast<const char*>(input.data()), input.size()};
}

}  // namespace troupe::fuzz
