// k8s-bridge/dump/: reads what `kubectl get ... -o yaml` and `-o json` print, into the same messages that a
// watch gives: single objects, Lists, several documents in one file, directories, standard input. Text in,
// values out; only read_dump() opens files.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "messages/error.hpp"
#include "messages/message.hpp"

namespace troupe {

/// What a dump holds, each kind in the order of the text.
struct ClusterDump {
  std::vector<Message> nodes;
  std::vector<Message> pods;
  std::vector<Message> namespaces;
  std::vector<Message> priority_classes;
  std::vector<std::string> notes;  // for people: what was ignored, and what was said twice
};

/// Bounds of memory and time: what goes beyond is an error that says so.
struct DumpLimits {
  std::size_t json_bytes = std::size_t{1} << 30;  // of one source
  std::size_t yaml_bytes = std::size_t{256}
                           << 20;  // of one source; YAML is read some fifty times slower than JSON
  std::size_t alias_bytes = std::size_t{64} << 20;  // that aliases may add to one document
};

/// Reads `sources` in order: a file, a directory (its *.yaml, *.yml and *.json by name, not deeper), or "-"
/// for `input`. An object that comes again replaces the first. Error of the first thing that cannot be read:
/// `object` is "FILE:LINE:COLUMN: Pod ns/name", `field` the path in that object.
Result<ClusterDump> read_dump(std::span<const std::string> sources, std::istream& input,
                              const DumpLimits& limits = {});

/// The same for one text; `source` names it in errors.
Result<ClusterDump> read_dump_text(std::string_view text, std::string_view source,
                                   const DumpLimits& limits = {});

}  // namespace troupe
