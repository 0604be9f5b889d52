#include "k8s-bridge/kubeconfig/base64.hpp"

#include <array>
#include <cstdint>

namespace troupe {
namespace {

constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr std::array<std::int8_t, 256> make_values() {
  std::array<std::int8_t, 256> values{};
  values.fill(-1);
  for (std::size_t i = 0; i < kAlphabet.size(); ++i) {
    values[static_cast<unsigned char>(kAlphabet[i])] = static_cast<std::int8_t>(i);
  }
  return values;
}

}  // namespace

std::optional<std::string> base64_decode(std::string_view text) {
  static constexpr auto kValues = make_values();
  std::string out;
  out.reserve(text.size() / 4 * 3);
  std::uint32_t bits = 0;
  int digits = 0;
  int padding = 0;
  for (const char c : text) {
    if (c == '\n' || c == '\r') continue;
    if (c == '=') {
      ++padding;
      continue;
    }
    const int value = kValues[static_cast<unsigned char>(c)];
    if (value < 0 || padding != 0) return std::nullopt;
    bits = (bits << 6U) | static_cast<std::uint32_t>(value);
    if (++digits % 4 != 0) continue;
    for (const unsigned shift : {16U, 8U, 0U}) out += static_cast<char>((bits >> shift) & 0xFFU);
    bits = 0;
  }
  const int rest = digits % 4;
  if (rest == 1 || (padding != 0 && padding != (4 - rest) % 4)) return std::nullopt;
  if (rest != 0 && padding == 0) return std::nullopt;
  if (rest >= 2) out += static_cast<char>((bits >> (rest == 2 ? 4U : 10U)) & 0xFFU);
  if (rest == 3) out += static_cast<char>((bits >> 2U) & 0xFFU);
  return out;
}

std::string base64_encode(std::string_view bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t bits = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      bits = (bits << 8U) | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      out += i + k > bytes.size() ? '=' : kAlphabet[(bits >> (18U - 6U * static_cast<unsigned>(k))) & 63U];
    }
  }
  return out;
}

}  // namespace troupe
