// The CLI's way to a running service: GET requests and the event stream.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "messages/error.hpp"

namespace troupe::cli {

struct Server {
  std::string url = "http://127.0.0.1:10251";
  std::string token;    // bearer; empty: none
  std::string ca_file;  // PEM; empty: the system's roots
};

/// The body of a 200 answer. Errors: unreachable (with what to start), refused, not found, in the server's
/// words.
Result<std::string> get(const Server& server, const std::string& path);

/// Calls `on_event` with the JSON of each server-sent event until it returns false or the stream ends.
Result<void> follow(const Server& server, const std::string& path,
                    const std::function<bool(std::string_view)>& on_event);

/// Percent-encodes one path segment.
std::string encode_segment(std::string_view text);

}  // namespace troupe::cli
