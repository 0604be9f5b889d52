// ops/log/: logging, one line per event, with levels by component. The library behind it (spdlog) is seen by
// log.cpp alone.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "messages/error.hpp"

namespace troupe {

enum class LogLevel { trace, debug, info, warn, error, off };

struct LogOptions {
  bool json = false;  // --log-format json
  LogLevel level = LogLevel::info;
  std::vector<std::pair<std::string, LogLevel>> components;  // levels that differ, by component
};

/// A named value of a log line.
struct LogField {
  std::string_view name;
  std::string value;
};

/// Logs of one component (host, store, placement, bridge, http, service). Cheap to copy; thread-safe.
class Log {
 public:
  explicit Log(std::string component) : component_(std::move(component)) {}

  void debug(std::string_view event, std::initializer_list<LogField> fields = {}) const {
    line(LogLevel::debug, event, fields);
  }
  void info(std::string_view event, std::initializer_list<LogField> fields = {}) const {
    line(LogLevel::info, event, fields);
  }
  void warn(std::string_view event, std::initializer_list<LogField> fields = {}) const {
    line(LogLevel::warn, event, fields);
  }
  void error(std::string_view event, std::initializer_list<LogField> fields = {}) const {
    line(LogLevel::error, event, fields);
  }

 private:
  void line(LogLevel level, std::string_view event, std::initializer_list<LogField> fields) const;

  std::string component_;
};

/// Once, before the first line. Lines go to standard error.
void start_logging(const LogOptions& options);
/// Writes out what is buffered.
void flush_logging();

/// `debug`, or `placement=debug,store=warn` (a bare level sets the default). Error: an unknown level, by
/// name.
Result<void> parse_log_levels(std::string_view text, LogOptions& options);

}  // namespace troupe
