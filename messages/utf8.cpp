#include "messages/utf8.hpp"

#include <cstdint>
#include <cstring>

namespace troupe {

std::size_t utf8_sequence_length(std::string_view s) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(s[i]); };
  const unsigned char lead = byte(0);
  std::size_t length = 0;
  unsigned char low = 0x80;
  unsigned char high = 0xBF;
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) {
    length = 2;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    length = 3;
    if (lead == 0xE0) low = 0xA0;   // overlong
    if (lead == 0xED) high = 0x9F;  // surrogates
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    length = 4;
    if (lead == 0xF0) low = 0x90;   // overlong
    if (lead == 0xF4) high = 0x8F;  // beyond U+10FFFF
  }
  if (length == 0 || s.size() < length) return 0;
  if (byte(1) < low || byte(1) > high) return 0;
  for (std::size_t i = 2; i < length; ++i) {
    if (byte(i) < 0x80 || byte(i) > 0xBF) return 0;
  }
  return length;
}

std::size_t valid_utf8_prefix(std::string_view s) {
  std::size_t at = 0;
  while (at < s.size()) {
    // Eight plain bytes at once: most text is nothing else.
    std::uint64_t word = 0;
    if (s.size() - at >= sizeof(word)) {
      std::memcpy(&word, s.data() + at, sizeof(word));
      if ((word & 0x8080808080808080U) == 0) {
        at += sizeof(word);
        continue;
      }
    }
    const std::size_t length = utf8_sequence_length(s.substr(at));
    if (length == 0) return at;
    at += length;
  }
  return at;
}

}  // namespace troupe
