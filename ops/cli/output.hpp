// ops/cli/: the command line `troupe`, also usable as the kubectl plugin `kubectl-troupe`. One file per
// command; this header is how they print: tables for people, JSON and YAML for programs, the same document
// behind both.
#pragma once

#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

namespace troupe::cli {

using Json = nlohmann::ordered_json;

/// Exit codes, documented in docs/operations.md.
enum Exit : int { kOk = 0, kFailed = 1, kBadInput = 2, kPending = 3 };

enum class Format { table, wide, json, yaml };

/// The names that -o takes.
Format parse_format(const std::string& text);

struct Table {
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;

  /// Columns padded to their longest cell, as kubectl prints.
  void print(std::ostream& out) const;
};

/// `document` as JSON (indented) or YAML.
void print_document(const Json& document, Format format, std::ostream& out);

/// 1536Mi, 12.5Gi: bytes as people read them.
std::string human_bytes(std::int64_t bytes);
/// 250m, 4, 12.5: milli-CPU as cores.
std::string human_cpu(std::int64_t milli);

/// Whether standard output is a terminal.
bool on_terminal();

}  // namespace troupe::cli
