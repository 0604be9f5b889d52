#include "store/family.hpp"

namespace troupe {

std::string encode_u64(std::uint64_t value) {
  std::string out(8, '\0');
  for (int i = 7; i >= 0; --i) {
    out[static_cast<std::size_t>(i)] = static_cast<char>(value & 0xFFU);
    value >>= 8U;
  }
  return out;
}

std::uint64_t decode_u64(std::string_view key) {
  if (key.size() != 8) return 0;
  std::uint64_t value = 0;
  for (const char c : key) value = (value << 8U) | static_cast<unsigned char>(c);
  return value;
}

}  // namespace troupe
