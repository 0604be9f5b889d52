#include "messages/json_text.hpp"

#include "messages/utf8.hpp"

namespace troupe {
namespace {}  // namespace

void append_json_string(std::string& out, std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  out.push_back('"');
  std::size_t plain = 0;  // start of the run that needs no change
  const auto flush = [&](std::size_t to) { out.append(text.substr(plain, to - plain)); };
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x80 && c != '"' && c != '\\') {
      ++i;
      continue;
    }
    if (byte >= 0x80) {
      if (const std::size_t length = utf8_sequence_length(text.substr(i)); length != 0) {
        i += length;
        continue;
      }
      flush(i);
      out += "\xEF\xBF\xBD";
    } else {
      flush(i);
      switch (c) {
        case '"':
          out += "\\\"";
          break;
        case '\\':
          out += "\\\\";
          break;
        case '\n':
          out += "\\n";
          break;
        case '\r':
          out += "\\r";
          break;
        case '\t':
          out += "\\t";
          break;
        default:
          out += "\\u00";
          out.push_back(kHex[byte >> 4U]);
          out.push_back(kHex[byte & 0xFU]);
      }
    }
    plain = ++i;
  }
  flush(text.size());
  out.push_back('"');
}

}  // namespace troupe
