// Writes JSON text for answers to queries: objects and arrays in the order in which they are given.
#pragma once

#include <charconv>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace troupe {

class JsonWriter {
 public:
  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }

  JsonWriter& key(std::string_view name) {
    separate();
    quote(name);
    out_.push_back(':');
    fresh_ = true;
    return *this;
  }
  JsonWriter& value(std::string_view text) {
    separate();
    quote(text);
    return *this;
  }
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(bool b) {
    separate();
    out_ += b ? "true" : "false";
    return *this;
  }
  template <std::integral T>
  requires(!std::same_as<T, bool>) JsonWriter& value(T n) {
    separate();
    char digits[24];
    const auto end = std::to_chars(digits, digits + sizeof digits, n).ptr;
    out_.append(digits, end);
    return *this;
  }
  template <class T>
  JsonWriter& member(std::string_view name, const T& v) {
    return key(name).value(v);
  }

  [[nodiscard]] std::string take() { return std::move(out_); }

 private:
  JsonWriter& open(char c) {
    separate();
    out_.push_back(c);
    fresh_ = true;
    return *this;
  }
  JsonWriter& close(char c) {
    out_.push_back(c);
    fresh_ = false;
    return *this;
  }
  void separate() {
    if (!fresh_) out_.push_back(',');
    fresh_ = false;
  }
  void quote(std::string_view text) {
    static constexpr char kHex[] = "0123456789abcdef";
    out_.push_back('"');
    for (const char c : text) {
      const auto byte = static_cast<unsigned char>(c);
      if (c == '"' || c == '\\') {
        out_.push_back('\\');
        out_.push_back(c);
      } else if (byte < 0x20) {
        out_ += "\\u00";
        out_.push_back(kHex[byte >> 4U]);
        out_.push_back(kHex[byte & 15U]);
      } else {
        out_.push_back(c);
      }
    }
    out_.push_back('"');
  }

  std::string out_;
  bool fresh_ = true;  // nothing before on this level
};

}  // namespace troupe
