#include "ops/log/log.hpp"

#include <fmt/format.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>

#include "messages/json_text.hpp"

namespace troupe {
namespace {

constexpr std::array<std::pair<std::string_view, LogLevel>, 6> kLevels = {{{"trace", LogLevel::trace},
                                                                           {"debug", LogLevel::debug},
                                                                           {"info", LogLevel::info},
                                                                           {"warn", LogLevel::warn},
                                                                           {"error", LogLevel::error},
                                                                           {"off", LogLevel::off}}};

spdlog::level::level_enum spdlog_level(LogLevel level) {
  switch (level) {
    case LogLevel::trace:
      return spdlog::level::trace;
    case LogLevel::debug:
      return spdlog::level::debug;
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::warn:
      return spdlog::level::warn;
    case LogLevel::error:
      return spdlog::level::err;
    case LogLevel::off:
      break;
  }
  return spdlog::level::off;
}

bool needs_quotes(std::string_view value) {
  return value.empty() || value.find_first_of(" \t\n\"=") != std::string_view::npos;
}

std::string quoted(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

/// What start_logging chose. spdlog's registry holds the process-wide logger; its payload pattern tells the
/// format.
bool json_format() {
  const auto logger = spdlog::default_logger();
  return logger != nullptr && logger->name() == "json";
}

}  // namespace

void Log::line(LogLevel level, std::string_view event, std::initializer_list<LogField> fields) const {
  auto logger = spdlog::get(component_);
  if (logger == nullptr) logger = spdlog::default_logger();
  if (logger == nullptr || !logger->should_log(spdlog_level(level))) return;
  std::string text;
  if (json_format()) {
    text = fmt::format("\"component\":\"{}\",\"event\":{}", component_, quoted(event));
    for (const LogField& f : fields) text += fmt::format(",\"{}\":{}", f.name, quoted(f.value));
  } else {
    text = fmt::format("{:<9} {}", component_, event);
    for (const LogField& f : fields) {
      text += needs_quotes(f.value) ? fmt::format(" {}={}", f.name, quoted(f.value))
                                    : fmt::format(" {}={}", f.name, f.value);
    }
  }
  logger->log(spdlog_level(level), "{}", text);
}

void start_logging(const LogOptions& options) {
  const auto sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  const auto logger = [&](const std::string& name, LogLevel level) {
    auto made = std::make_shared<spdlog::logger>(name, sink);
    made->set_level(spdlog_level(level));
    made->set_pattern(options.json ? R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l",%v})"
                                   : "%Y-%m-%dT%H:%M:%S.%eZ %-5l %v",
                      spdlog::pattern_time_type::utc);
    made->flush_on(spdlog::level::info);
    return made;
  };
  spdlog::drop_all();
  spdlog::set_default_logger(logger(options.json ? "json" : "text", options.level));
  for (const auto& [component, level] : options.components) spdlog::register_logger(logger(component, level));
}

void flush_logging() {
  if (const auto logger = spdlog::default_logger()) logger->flush();
}

Result<void> parse_log_levels(std::string_view text, LogOptions& options) {
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view item = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    const std::size_t equals = item.find('=');
    const std::string_view name = equals == std::string_view::npos ? item : item.substr(equals + 1);
    const auto* level =
        std::find_if(kLevels.begin(), kLevels.end(), [&](const auto& known) { return known.first == name; });
    if (level == kLevels.end()) {
      return fail({ErrorCode::invalid, "unknown log level", std::string(name), "log level",
                   "use trace, debug, info, warn, error or off, as in info,placement=debug"});
    }
    if (equals == std::string_view::npos) {
      options.level = level->second;
    } else {
      options.components.emplace_back(item.substr(0, equals), level->second);
    }
  }
  return {};
}

}  // namespace troupe
