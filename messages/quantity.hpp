// Kubernetes quantities ("500m", "1.5Gi", "1e3"): grammar, exact value, canonical text (spec 5.1).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace troupe {

__extension__ typedef __int128 int128;  // NOLINT(modernize-use-using)

/// The notation of a quantity, from its suffix: k M G, Ki Mi Gi, or e3.
enum class QuantityFormat : std::uint8_t { decimal_si, binary_si, decimal_exponent };

/// Why a text is no quantity: its shape (or it is empty), its suffix, or a number that 128 bits cannot hold.
enum class QuantityError : std::uint8_t { format, suffix, numeric };

/// "format", "suffix" or "numeric".
std::string_view to_string(QuantityError error);

/// An exact decimal number, never finer than 10^-9, with its notation. Holds up to 38 significant digits.
class Quantity {
 public:
  constexpr Quantity() = default;
  constexpr Quantity(std::int64_t units, QuantityFormat format) : mantissa_(units), format_(format) {}

  /// Digits beyond 10^-9 round away from zero; values with a binary suffix are capped at 2^63-1.
  static tl::expected<Quantity, QuantityError> parse(std::string_view text);

  [[nodiscard]] bool zero() const { return mantissa_ == 0; }
  [[nodiscard]] bool negative() const { return mantissa_ < 0; }
  [[nodiscard]] QuantityFormat format() const { return format_; }

  /// Whole units, rounded away from zero; nothing when beyond 64 bits.
  [[nodiscard]] std::optional<std::int64_t> value() const;
  /// Thousandths, rounded away from zero; nothing when beyond 64 bits.
  [[nodiscard]] std::optional<std::int64_t> milli_value() const;
  /// Exact, in units of 10^-9; nothing when beyond 128 bits.
  [[nodiscard]] std::optional<int128> nano_value() const;

  /// An integer and the largest suffix that keeps it one. Binary values below 1024 or with a fraction print
  /// as decimal.
  [[nodiscard]] std::string canonical() const;
  /// What Kubernetes prints for the quantity parsed from `source`: the source itself where it looks canonical
  /// ("+5", "1E6", "1.500"), else canonical().
  [[nodiscard]] std::string printed(std::string_view source) const;

  /// The exact sum in the notation of `a`, or of `b` where `a` is zero. Error (numeric) beyond 128 bits.
  friend tl::expected<Quantity, QuantityError> add(const Quantity& a, const Quantity& b);

 private:
  // mantissa_ * 10^exponent_; exponent_ >= -9
  int128 mantissa_ = 0;
  std::int32_t exponent_ = 0;
  QuantityFormat format_ = QuantityFormat::decimal_si;
  bool verbatim_ = false;

  [[nodiscard]] std::optional<std::int64_t> scaled(std::int32_t digits) const;
  static tl::expected<Quantity, QuantityError> from_digits(std::string digits, std::int64_t exponent,
                                                           unsigned binary_exponent, bool negative,
                                                           QuantityFormat format);
};

tl::expected<Quantity, QuantityError> add(const Quantity& a, const Quantity& b);

}  // namespace troupe
