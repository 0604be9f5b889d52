#include "messages/uid.hpp"

#include <xxhash.h>

namespace troupe {
namespace {

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

bool dash_position(std::size_t i) {
  return i == 8 || i == 13 || i == 18 || i == 23;
}

}  // namespace

PodUid PodUid::parse(std::string_view text) {
  if (text.size() == 36) {
    std::uint64_t halves[2] = {0, 0};
    unsigned digits = 0;
    bool canonical = true;
    for (std::size_t i = 0; i < text.size() && canonical; ++i) {
      if (dash_position(i)) {
        canonical = text[i] == '-';
        continue;
      }
      const int v = hex_value(text[i]);
      canonical = v >= 0;
      std::uint64_t& half = halves[digits / 16];
      half = (half << 4U) | static_cast<std::uint64_t>(v & 0xF);
      ++digits;
    }
    if (canonical) return {halves[0], halves[1]};
  }
  if (text.empty()) return {};
  const XXH128_hash_t h = XXH3_128bits(text.data(), text.size());
  return {h.high64, h.low64};
}

std::string PodUid::text() const {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  out.reserve(36);
  for (unsigned digit = 0; digit < 32; ++digit) {
    if (digit == 8 || digit == 12 || digit == 16 || digit == 20) out.push_back('-');
    const std::uint64_t half = digit < 16 ? hi : lo;
    out.push_back(kHex[(half >> (60U - 4U * (digit % 16U))) & 0xFU]);
  }
  return out;
}

}  // namespace troupe
