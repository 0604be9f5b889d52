// YAML as kubectl takes it, turned into JSON text with the place in the YAML of every piece. Internal to
// dump/.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "messages/error.hpp"

namespace troupe::dump {

struct Position {
  std::size_t line = 1;  // both from 1
  std::size_t column = 1;
};

struct JsonDocument {
  struct Mark {
    std::size_t offset = 0;
    Position position;
  };
  std::string json;
  std::vector<Mark> marks;  // by offset

  /// Where the YAML says what stands at `offset` of the JSON.
  [[nodiscard]] Position at(std::size_t offset) const;
};

/// How YAML is broken, and where.
struct YamlError {
  std::string what;
  Position position;
  std::string remedy;
};

/// Hands each document of `text` to `take` until that returns false; empty documents are left out.
/// `alias_bytes`: what aliases may add to one document. Plain scalars are typed as kubectl does (YAML 1.1):
/// yes and on are true, 010 is 8.
tl::expected<void, YamlError> yaml_to_json(std::string_view text, std::size_t alias_bytes,
                                           const std::function<bool(const JsonDocument&)>& take);

/// A plain scalar as JSON: null, true, false, a number, or a string with its quotes.
std::string plain_scalar_json(std::string_view text);

}  // namespace troupe::dump
