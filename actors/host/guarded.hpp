// Runs what may throw, and gives the exception as a text.
#pragma once

#include <exception>
#include <optional>
#include <string>

namespace troupe {

template <class Handler>
std::optional<std::string> guarded(const Handler& handler) {
  try {
    handler();
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "an exception that is no std::exception";
  }
  return std::nullopt;
}

}  // namespace troupe
