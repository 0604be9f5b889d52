#include "k8s-bridge/dump/yaml_json.hpp"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <istream>
#include <optional>
#include <stdexcept>
#include <streambuf>
#include <unordered_map>

#include "messages/json_text.hpp"

namespace troupe::dump {
namespace {

constexpr std::string_view kPlainTag = "?";
constexpr std::string_view kQuotedTag = "!";
constexpr std::string_view kCoreTags = "tag:yaml.org,2002:";

// yaml-cpp takes an unclosed bracket for the start of a key.
constexpr const char* kBracket = "a bracket is not closed, or a list or map stands where a key is expected";

bool one_of(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

bool all_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// An unsigned number of a base, as decimal digits.
std::optional<std::string> from_base(std::string_view digits, int base) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (digits.empty() || error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  return std::to_string(value);
}

std::optional<std::string> integer(std::string_view text) {
  std::string out;
  if (text.front() == '-') out = "-";
  if (text.front() == '-' || text.front() == '+') text.remove_prefix(1);
  if (text.empty()) return std::nullopt;
  std::optional<std::string> digits;
  if (text.size() > 2 && text[0] == '0' && one_of(text.substr(1, 1), {"x", "X"})) {
    digits = from_base(text.substr(2), 16);
  } else if (text.size() > 2 && text[0] == '0' && one_of(text.substr(1, 1), {"b", "B"})) {
    digits = from_base(text.substr(2), 2);
  } else if (text.size() > 2 && text[0] == '0' && one_of(text.substr(1, 1), {"o", "O"})) {
    digits = from_base(text.substr(2), 8);
  } else if (text.size() > 1 && text[0] == '0') {
    digits = from_base(text.substr(1), 8);  // a leading zero means octal in YAML 1.1
  } else if (all_digits(text)) {
    digits = text;
  }
  if (!digits) return std::nullopt;
  return out.append(*digits);
}

// [-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?, written as JSON has it.
std::optional<std::string> real(std::string_view text) {
  std::string out;
  if (text.front() == '-') out = "-";
  if (text.front() == '-' || text.front() == '+') text.remove_prefix(1);
  const auto digits = [&text] {
    std::size_t n = 0;
    while (n < text.size() && text[n] >= '0' && text[n] <= '9') ++n;
    const std::string_view taken = text.substr(0, n);
    text.remove_prefix(n);
    return taken;
  };
  std::string_view whole = digits();
  std::string_view fraction;
  if (!text.empty() && text.front() == '.') {
    text.remove_prefix(1);
    fraction = digits();
    if (whole.empty() && fraction.empty()) return std::nullopt;
  } else if (whole.empty()) {
    return std::nullopt;
  }
  while (whole.size() > 1 && whole.front() == '0') whole.remove_prefix(1);
  out.append(whole.empty() ? "0" : whole);
  if (!fraction.empty()) out.append(".").append(fraction);
  if (text.empty()) return out;
  if (text.front() != 'e' && text.front() != 'E') return std::nullopt;
  text.remove_prefix(1);
  out.push_back('e');
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) {
    if (text.front() == '-') out.push_back('-');
    text.remove_prefix(1);
  }
  if (!all_digits(text)) return std::nullopt;
  return out.append(text);
}

struct Stop : std::runtime_error {
  explicit Stop(YamlError e) : std::runtime_error(e.what), error(std::move(e)) {}
  YamlError error;
};

Position position(const YAML::Mark& mark) {
  return {static_cast<std::size_t>(std::max(mark.line, 0)) + 1,
          static_cast<std::size_t>(std::max(mark.column, 0)) + 1};
}

// Writes one document as JSON while yaml-cpp reads it: no tree is built.
class JsonEmitter final : public YAML::EventHandler {
 public:
  explicit JsonEmitter(std::size_t alias_bytes) : alias_bytes_(alias_bytes) {}

  JsonDocument document;
  bool is_empty = true;  // no node, or null alone

  void OnDocumentStart(const YAML::Mark& /*mark*/) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (expects_key()) stop(mark, "a key is missing (or null)", "write the key as a quoted string");
    const bool root = frames_.empty();
    begin(mark);
    const std::size_t start = document.json.size();
    document.json += "null";
    remember(anchor, start);
    end();
    if (root) is_empty = true;
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    const bool key = expects_key();
    begin(mark);
    const std::size_t start = document.json.size();
    if (key) {
      if (tag == kPlainTag && value == "<<") {
        stop(mark, "merge keys (<<) are not supported", "write the merged fields out");
      }
      append_json_string(document.json, value);
    } else if (is_text(tag)) {
      append_json_string(document.json, value);
    } else {
      document.json += plain_scalar_json(value);
    }
    remember(anchor, start);
    end();
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto it = anchors_.find(anchor);
    if (it == anchors_.end()) stop(mark, "an alias to something that contains it", "write it out");
    const Range range = it->second;
    const bool key = expects_key();
    if (key && document.json[range.begin] != '"') {
      stop(mark, "an alias to something that is no string cannot be a key", "write the key out");
    }
    begin(mark);
    const std::size_t size = range.end - range.begin;
    alias_added_ += size;
    if (alias_added_ > alias_bytes_) {
      stop(mark, "aliases grow the document by more than " + std::to_string(alias_bytes_) + " bytes",
           "write it without aliases");
    }
    document.json.reserve(document.json.size() + size);  // the copy is of itself
    document.json.append(document.json, range.begin, size);
    end();
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    open(mark, anchor, false);
  }
  void OnSequenceEnd() override { close(']'); }
  void OnMapStart(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    open(mark, anchor, true);
  }
  void OnMapEnd() override { close('}'); }

 private:
  struct Range {
    std::size_t begin = 0;
    std::size_t end = 0;
  };
  struct Frame {
    bool map = false;
    bool key_next = true;  // of a map
    bool first = true;
    YAML::anchor_t anchor = 0;
    std::size_t start = 0;
  };
  std::size_t alias_bytes_;
  std::size_t alias_added_ = 0;
  std::vector<Frame> frames_;
  std::unordered_map<YAML::anchor_t, Range> anchors_;  // complete nodes only

  [[noreturn]] static void stop(const YAML::Mark& mark, std::string what, std::string remedy) {
    throw Stop({std::move(what), position(mark), std::move(remedy)});
  }

  static bool is_text(std::string_view tag) {
    if (tag == kPlainTag || tag.empty()) return false;
    if (!tag.starts_with(kCoreTags)) return true;  // quoted, or a tag of somebody's own
    return !one_of(tag.substr(kCoreTags.size()), {"null", "bool", "int", "float"});
  }

  [[nodiscard]] bool expects_key() const {
    return !frames_.empty() && frames_.back().map && frames_.back().key_next;
  }

  // What stands between the last node and this one.
  void begin(const YAML::Mark& mark) {
    is_empty = false;
    if (!frames_.empty()) {
      Frame& top = frames_.back();
      if (top.map && !top.key_next) {
        document.json.push_back(':');
      } else if (!top.first) {
        document.json.push_back(',');
      }
      top.first = false;
    }
    document.marks.push_back({document.json.size(), position(mark)});
  }

  void end() {
    if (!frames_.empty() && frames_.back().map) frames_.back().key_next = !frames_.back().key_next;
  }

  void remember(YAML::anchor_t anchor, std::size_t start) {
    if (anchor != 0) anchors_[anchor] = {start, document.json.size()};
  }

  void open(const YAML::Mark& mark, YAML::anchor_t anchor, bool map) {
    if (expects_key()) stop(mark, kBracket, "close the bracket; keys are strings");
    begin(mark);
    frames_.push_back(
        {.map = map, .key_next = true, .first = true, .anchor = anchor, .start = document.json.size()});
    document.json.push_back(map ? '{' : '[');
  }

  void close(char bracket) {
    document.json.push_back(bracket);
    const Frame frame = frames_.back();
    frames_.pop_back();
    remember(frame.anchor, frame.start);
    end();
  }
};

// The text as a stream, without a copy.
class ViewBuffer final : public std::streambuf {
 public:
  explicit ViewBuffer(std::string_view text) {
    // streambuf wants mutable pointers; a buffer that is only read writes through none.
    char* const begin = const_cast<char*>(text.data());
    setg(begin, begin, begin + text.size());
  }
};

}  // namespace

Position JsonDocument::at(std::size_t offset) const {
  const auto after = std::upper_bound(marks.begin(), marks.end(), offset,
                                      [](std::size_t o, const Mark& m) { return o < m.offset; });
  return after == marks.begin() ? Position{} : std::prev(after)->position;
}

std::string plain_scalar_json(std::string_view text) {
  if (one_of(text, {"", "~", "null", "Null", "NULL"})) return "null";
  if (one_of(text, {"true", "True", "TRUE", "y", "Y", "yes", "Yes", "YES", "on", "On", "ON"})) return "true";
  if (one_of(text, {"false", "False", "FALSE", "n", "N", "no", "No", "NO", "off", "Off", "OFF"})) {
    return "false";
  }
  const char first = text.front();
  if ((first >= '0' && first <= '9') || first == '-' || first == '+' || first == '.') {
    std::string number(text);
    std::erase(number, '_');
    if (!number.empty()) {
      if (auto out = integer(number)) return *out;
      if (auto out = real(number)) return *out;
    }
  }
  std::string out;
  append_json_string(out, text);
  return out;
}

tl::expected<void, YamlError> yaml_to_json(std::string_view text, std::size_t alias_bytes,
                                           const std::function<bool(const JsonDocument&)>& take) {
  try {
    ViewBuffer buffer(text);
    std::istream stream(&buffer);
    YAML::Parser parser(stream);
    while (true) {
      JsonEmitter emitter(alias_bytes);
      if (!parser.HandleNextDocument(emitter)) return {};
      if (!emitter.is_empty && !take(emitter.document)) return {};
    }
  } catch (const Stop& stop) {
    return tl::unexpected(stop.error);
  } catch (const YAML::Exception& e) {
    return tl::unexpected(YamlError{"not YAML: " + e.msg, position(e.mark), {}});
  } catch (const std::exception& e) {
    return tl::unexpected(YamlError{std::string("not YAML: ") + e.what(), {}, {}});
  }
}

}  // namespace troupe::dump
