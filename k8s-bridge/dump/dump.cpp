#include "k8s-bridge/dump/dump.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <unordered_map>

#include "k8s-bridge/decode/decode.hpp"
#include "k8s-bridge/dump/yaml_json.hpp"
#include "messages/utf8.hpp"

namespace troupe {
namespace {

using dump::JsonDocument;
using dump::Position;

constexpr std::size_t kMostRepeatNotes = 10;

Position position_of(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, offset);
  const std::size_t newline = before.rfind('\n');
  return {static_cast<std::size_t>(std::count(before.begin(), before.end(), '\n')) + 1,
          newline == std::string_view::npos ? offset + 1 : offset - newline};
}

std::string place(std::string_view source, Position at) {
  return std::string(source) + ":" + std::to_string(at.line) + ":" + std::to_string(at.column);
}

// The objects of a text that is one or more JSON objects in a row; nothing when it is not.
std::optional<std::vector<std::string_view>> split_json(std::string_view text) {
  std::vector<std::string_view> out;
  std::size_t depth = 0;
  std::size_t start = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') {
      if (depth == 0) return std::nullopt;
      for (++i; i < text.size() && text[i] != '"'; ++i) {
        if (text[i] == '\\') ++i;
      }
      if (i >= text.size()) return std::nullopt;
    } else if (c == '{' || c == '[') {
      if (depth == 0 && c == '[') return std::nullopt;
      if (depth++ == 0) start = i;
    } else if (c == '}' || c == ']') {
      if (depth == 0) return std::nullopt;
      if (--depth == 0) out.push_back(text.substr(start, i + 1 - start));
    } else if (depth == 0 && c != ' ' && c != '\t' && c != '\n' && c != '\r') {
      return std::nullopt;
    }
  }
  if (depth != 0) return std::nullopt;
  return out;
}

class Loader {
 public:
  explicit Loader(const DumpLimits& limits) : limits_(limits) {}

  Result<void> text(std::string_view text, std::string_view source) {
    constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
    if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
    if (auto r = check(text, source); !r) return r;
    documents_ = 0;
    const std::size_t first = text.find_first_not_of(" \t\r\n");
    const bool looks_like_json = first != std::string_view::npos && text[first] == '{';
    Result<void> result;
    bool done = false;
    if (looks_like_json) {
      if (const auto parts = split_json(text)) {
        result = json(*parts, text, source);
        // Broken as JSON, it may still be YAML; and the YAML reader can tell the place.
        done = result.has_value() || !broken_json_;
      }
    }
    if (!done) result = yaml(text, source, looks_like_json);
    if (!result) return result;
    if (documents_ > 0) return {};
    return fail({ErrorCode::invalid,
                 "nothing in it",
                 std::string(source),
                 {},
                 "give it what `kubectl get nodes,pods -A -o json` prints"});
  }

  Result<void> stream(std::istream& in, std::string_view source) {
    std::string all;
    std::string chunk(std::size_t{1} << 20, '\0');
    while (in.read(chunk.data(), static_cast<std::streamsize>(chunk.size())) || in.gcount() > 0) {
      all.append(chunk, 0, static_cast<std::size_t>(in.gcount()));
      if (all.size() > limits_.json_bytes) return fail(too_large(source, limits_.json_bytes));
    }
    if (in.bad()) return fail({ErrorCode::io, "cannot be read to its end", std::string(source), {}, {}});
    return text(all, source);
  }

  Result<void> file(const std::string& path) {
    errno = 0;
    std::ifstream in(path, std::ios::binary);
    if (!in) {
      const int why = errno;
      return fail({why == EACCES ? ErrorCode::permission : ErrorCode::not_found,
                   std::string("cannot be opened: ") + std::strerror(why),
                   path,
                   {},
                   why == EACCES ? "make it readable" : "check the path"});
    }
    return stream(in, path);
  }

  Result<void> directory(const std::string& path) {
    std::vector<std::string> files;
    std::error_code error;
    for (std::filesystem::directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
      const auto extension = it->path().extension();
      const bool wanted = extension == ".yaml" || extension == ".yml" || extension == ".json";
      if (wanted && !it->is_directory(error)) files.push_back(it->path().string());
    }
    if (error) {
      return fail({ErrorCode::permission,
                   "cannot be listed: " + error.message(),
                   path,
                   {},
                   "make the directory readable"});
    }
    if (files.empty()) {
      return fail({ErrorCode::not_found,
                   "no *.yaml, *.yml or *.json file in it",
                   path,
                   {},
                   "name the directory of the dump"});
    }
    std::sort(files.begin(), files.end());
    for (const std::string& f : files) {
      if (auto r = file(f); !r) return r;
    }
    return {};
  }

  ClusterDump finish() {
    for (const auto& [kind, count] : ignored_) {
      dump_.notes.push_back("ignored " + std::to_string(count) + " of kind " + kind +
                            ": only nodes, pods, namespaces and priority classes are read");
    }
    if (repeats_ > kMostRepeatNotes) {
      dump_.notes.push_back(std::to_string(repeats_ - kMostRepeatNotes) + " more objects came again");
    }
    return std::move(dump_);
  }

 private:
  struct Place {
    std::vector<Message>* list = nullptr;
    std::size_t index = 0;
  };
  const DumpLimits& limits_;
  Decoder decoder_;
  ClusterDump dump_;
  std::unordered_map<std::string, Place> seen_;  // by kind, namespace and name
  std::map<std::string, std::size_t> ignored_;
  std::size_t repeats_ = 0;
  std::size_t documents_ = 0;
  bool broken_json_ = false;

  static Error too_large(std::string_view source, std::size_t limit) {
    return {ErrorCode::invalid,
            "larger than " + std::to_string(limit) + " bytes",
            std::string(source),
            {},
            "split it; JSON (-o json) may be larger than YAML"};
  }

  // UTF-8 without control characters: what YAML and JSON may hold, and nothing that could cut the text short.
  static Result<void> check(std::string_view text, std::string_view source) {
    if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) {
      return fail({ErrorCode::invalid, "UTF-16 text", std::string(source), {}, "save it as UTF-8"});
    }
    const std::size_t valid = valid_utf8_prefix(text);
    if (valid != text.size()) {
      return fail({ErrorCode::invalid,
                   "not UTF-8",
                   place(source, position_of(text, valid)),
                   {},
                   "save it as UTF-8; a dump is plain text"});
    }
    const auto control = [](char c) {
      const auto byte = static_cast<unsigned char>(c);
      return (byte < 0x20 && c != '\n' && c != '\r' && c != '\t') || byte == 0x7F;
    };
    const auto at = std::find_if(text.begin(), text.end(), control);
    if (at == text.end()) return {};
    const auto offset = static_cast<std::size_t>(at - text.begin());
    return fail({ErrorCode::invalid,
                 "a control character",
                 place(source, position_of(text, offset)),
                 {},
                 "remove it; a dump is plain text"});
  }

  Result<void> json(const std::vector<std::string_view>& parts, std::string_view text,
                    std::string_view source) {
    broken_json_ = false;
    for (const std::string_view part : parts) {
      const auto start = static_cast<std::size_t>(part.data() - text.data());
      const auto locate = [&](std::size_t offset) { return position_of(text, start + offset); };
      if (auto r = take(part, source, locate); !r) return r;
    }
    return {};
  }

  Result<void> yaml(std::string_view text, std::string_view source, bool was_json) {
    if (text.size() > limits_.yaml_bytes) {
      if (was_json) return fail({ErrorCode::invalid, "not JSON", std::string(source), {}, "dump it again"});
      return fail(too_large(source, limits_.yaml_bytes));
    }
    Result<void> result;
    const auto done = dump::yaml_to_json(text, limits_.alias_bytes, [&](const JsonDocument& document) {
      result = take(document.json, source, [&](std::size_t offset) { return document.at(offset); });
      return result.has_value();
    });
    if (done) return result;
    const dump::YamlError& e = done.error();
    return fail({ErrorCode::invalid,
                 was_json ? "not JSON, and " + e.what : e.what,
                 place(source, e.position),
                 {},
                 e.remedy});
  }

  // One document. `locate`: from an offset in it to a place in the source.
  template <class Locate>
  Result<void> take(std::string_view json, std::string_view source, Locate&& locate) {
    ++documents_;
    const auto failed = [&](const RejectedObject& rejected) {
      Error error = rejected.error;
      const std::string at = place(source, locate(rejected.offset));
      error.object = error.object.empty() ? at : at + ": " + error.object;
      return fail(std::move(error));
    };
    auto list = decoder_.mixed(json);
    if (!list) {
      broken_json_ = list.error().broken;
      return failed(list.error());
    }
    for (DecodedObject& object : list->objects) {
      if (!object) return failed(object.error());
      add(std::move(*object));
    }
    for (const auto& [kind, count] : list->ignored) ignored_[kind] += count;
    return {};
  }

  void add(Message message) {
    std::vector<Message>* list = nullptr;
    switch (message.kind()) {
      case Kind::pod:
        list = &dump_.pods;
        break;
      case Kind::node:
        list = &dump_.nodes;
        break;
      case Kind::name_space:
        list = &dump_.namespaces;
        break;
      case Kind::priority_class:
        list = &dump_.priority_classes;
        break;
      default:
        return;
    }
    const ObjectIdentity who = identity(message);
    std::string name(info(who.kind).name);
    name.append(" ").append(who.name_space).append(who.name_space.empty() ? "" : "/").append(who.name);
    const auto [it, fresh] = seen_.try_emplace(name, Place{list, list->size()});
    if (fresh) {
      list->push_back(std::move(message));
      return;
    }
    if (++repeats_ <= kMostRepeatNotes) dump_.notes.push_back(name + " comes again; the later one counts");
    (*it->second.list)[it->second.index] = std::move(message);
  }
};

}  // namespace

Result<ClusterDump> read_dump_text(std::string_view text, std::string_view source, const DumpLimits& limits) {
  Loader loader(limits);
  if (auto r = loader.text(text, source); !r) return fail(std::move(r.error()));
  return loader.finish();
}

Result<ClusterDump> read_dump(std::span<const std::string> sources, std::istream& input,
                              const DumpLimits& limits) {
  Loader loader(limits);
  for (const std::string& source : sources) {
    std::error_code ignored;
    Result<void> r;
    if (source == "-") {
      r = loader.stream(input, "standard input");
    } else if (std::filesystem::is_directory(source, ignored)) {
      r = loader.directory(source);
    } else {
      r = loader.file(source);
    }
    if (!r) return fail(std::move(r.error()));
  }
  return loader.finish();
}

}  // namespace troupe
