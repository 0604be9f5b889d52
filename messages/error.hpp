// Errors as values: what failed, on which object and field, and what to do.
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace troupe {

enum class ErrorCode {
  invalid,       // input that cannot be understood
  not_found,     // the thing named does not exist
  permission,    // not allowed to read, write or ask
  conflict,      // someone else changed or owns it
  corrupt,       // stored bytes are damaged
  newer_schema,  // written by a newer version
  no_space,      // disk full
  unavailable,   // not now; may work later
  io,            // any other failure of disk or network
};

struct Error {
  ErrorCode code{};
  std::string what;    // what failed
  std::string object;  // on which object or file; may be empty
  std::string field;   // which field, path, or line and column; may be empty
  std::string remedy;  // what to do; may be empty

  /// One line: "<what>: <object>: <field>; <remedy>", leaving out what is empty.
  [[nodiscard]] std::string text() const;
};

template <class T>
using Result = tl::expected<T, Error>;

inline tl::unexpected<Error> fail(Error error) {
  return tl::unexpected<Error>(std::move(error));
}

}  // namespace troupe
