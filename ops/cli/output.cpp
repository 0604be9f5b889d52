#include "ops/cli/output.hpp"

#include <fmt/format.h>
#include <unistd.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>

namespace troupe::cli {
namespace {

void emit(YAML::Emitter& out, const Json& value) {
  if (value.is_object()) {
    out << YAML::BeginMap;
    for (const auto& [key, item] : value.items()) {
      out << YAML::Key << key << YAML::Value;
      emit(out, item);
    }
    out << YAML::EndMap;
  } else if (value.is_array()) {
    out << YAML::BeginSeq;
    for (const Json& item : value) emit(out, item);
    out << YAML::EndSeq;
  } else if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    // Text that YAML would read as something else keeps its quotes.
    const bool plain =
        !text.empty() &&
        text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_/. ") ==
            std::string::npos &&
        std::any_of(text.begin(), text.end(), [](char c) { return c >= 'a' && c <= 'z'; }) &&
        text != "true" && text != "false" && text != "null" && text.front() != ' ' && text.back() != ' ' &&
        text.front() != '-';
    if (!plain) out << YAML::DoubleQuoted;
    out << text;
  } else {
    out << value.dump();
  }
}

}  // namespace

Format parse_format(const std::string& text) {
  if (text == "json") return Format::json;
  if (text == "yaml") return Format::yaml;
  if (text == "wide") return Format::wide;
  return Format::table;
}

void Table::print(std::ostream& out) const {
  std::vector<std::size_t> widths;
  for (const std::string& c : columns) widths.push_back(c.size());
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size() && i < widths.size(); ++i)
      widths[i] = std::max(widths[i], row[i].size());
  }
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string text;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      text += i + 1 < cells.size() ? fmt::format("{:<{}}   ", cells[i], widths[i]) : cells[i];
    }
    out << text << '\n';
  };
  line(columns);
  for (const auto& row : rows) line(row);
}

void print_document(const Json& document, Format format, std::ostream& out) {
  if (format != Format::yaml) {
    out << document.dump(2) << '\n';
    return;
  }
  YAML::Emitter emitter;
  emit(emitter, document);
  out << emitter.c_str() << '\n';
}

std::string human_bytes(std::int64_t bytes) {
  static constexpr const char* kUnits[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (std::abs(value) >= 1024.0 && unit + 1 < std::size(kUnits)) {
    value /= 1024.0;
    ++unit;
  }
  return std::abs(value - static_cast<double>(static_cast<std::int64_t>(value))) < 0.05
             ? fmt::format("{}{}", static_cast<std::int64_t>(value), kUnits[unit])
             : fmt::format("{:.1f}{}", value, kUnits[unit]);
}

std::string human_cpu(std::int64_t milli) {
  if (milli % 1000 == 0) return std::to_string(milli / 1000);
  return milli < 10'000 ? fmt::format("{}m", milli)
                        : fmt::format("{:.1f}", static_cast<double>(milli) / 1000.0);
}

bool on_terminal() {
  return isatty(STDOUT_FILENO) == 1;
}

}  // namespace troupe::cli
