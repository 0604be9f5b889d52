#include "messages/quantity.hpp"

#include <algorithm>
#include <charconv>
#include <limits>

namespace troupe {
namespace {

constexpr std::int32_t kFinest = -9;
constexpr std::size_t kMostDigits = 38;  // every 38-digit number fits in 127 bits
constexpr std::size_t kFastDigits = 18;  // every 18-digit number fits in 63 bits
constexpr std::int64_t kMax64 = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMin64 = std::numeric_limits<std::int64_t>::min();

constexpr std::int64_t kPower10[] = {1,
                                     10,
                                     100,
                                     1'000,
                                     10'000,
                                     100'000,
                                     1'000'000,
                                     10'000'000,
                                     100'000'000,
                                     1'000'000'000,
                                     10'000'000'000,
                                     100'000'000'000,
                                     1'000'000'000'000,
                                     10'000'000'000'000,
                                     100'000'000'000'000,
                                     1'000'000'000'000'000,
                                     10'000'000'000'000'000,
                                     100'000'000'000'000'000,
                                     1'000'000'000'000'000'000};

struct Suffix {
  std::int64_t exponent = 0;  // of 10, or of 2 for binary_si
  QuantityFormat format = QuantityFormat::decimal_si;
};

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_suffix_letter(char c) {
  return std::string_view("eEinumkKMGTP").find(c) != std::string_view::npos;
}

std::optional<Suffix> read_suffix(std::string_view s) {
  if (s.empty()) return Suffix{};
  if (s.size() == 1) {
    switch (s[0]) {
      case 'n':
        return Suffix{-9};
      case 'u':
        return Suffix{-6};
      case 'm':
        return Suffix{-3};
      case 'k':
        return Suffix{3};
      case 'M':
        return Suffix{6};
      case 'G':
        return Suffix{9};
      case 'T':
        return Suffix{12};
      case 'P':
        return Suffix{15};
      case 'E':
        return Suffix{18};
      default:
        return std::nullopt;
    }
  }
  if (s.size() == 2 && s[1] == 'i') {
    const std::size_t at = std::string_view("KMGTPE").find(s[0]);
    if (at == std::string_view::npos) return std::nullopt;
    return Suffix{static_cast<std::int64_t>(10 * (at + 1)), QuantityFormat::binary_si};
  }
  if (s[0] != 'e' && s[0] != 'E') return std::nullopt;
  std::string_view number = s.substr(1);
  if (number[0] == '+') number.remove_prefix(1);
  std::int32_t exponent = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), exponent);
  if (error != std::errc{} || end != number.data() + number.size() || (s[1] == '+' && exponent < 0)) {
    return std::nullopt;
  }
  return Suffix{exponent, QuantityFormat::decimal_exponent};
}

// Multiplies a decimal digit string (most significant first) by 1024.
void times_1024(std::string& digits) {
  unsigned carry = 0;
  for (std::size_t i = digits.size(); i-- > 0;) {
    const unsigned v = static_cast<unsigned>(digits[i] - '0') * 1024U + carry;
    digits[i] = static_cast<char>('0' + v % 10U);
    carry = v / 10U;
  }
  std::string head;
  for (; carry != 0; carry /= 10U) head.insert(head.begin(), static_cast<char>('0' + carry % 10U));
  digits.insert(0, head);
}

void increment(std::string& digits) {
  for (std::size_t i = digits.size(); i-- > 0;) {
    if (digits[i] != '9') {
      ++digits[i];
      return;
    }
    digits[i] = '0';
  }
  digits.insert(digits.begin(), '1');
}

void strip_leading_zeros(std::string& digits) {
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size()));
}

std::string to_text(int128 v) {
  std::string out;
  const bool negative = v < 0;
  do {
    const auto digit = static_cast<int>(v % 10);
    out.push_back(static_cast<char>('0' + (digit < 0 ? -digit : digit)));
    v /= 10;
  } while (v != 0);
  if (negative) out.push_back('-');
  std::reverse(out.begin(), out.end());
  return out;
}

// v * 10^digits, or nothing when 128 bits do not hold it.
std::optional<int128> shifted(int128 v, std::int64_t digits) {
  if (v == 0) return 0;
  if (digits > static_cast<std::int64_t>(kMostDigits)) return std::nullopt;
  while (digits > 0) {
    const std::int64_t step = std::min<std::int64_t>(digits, 18);
    if (__builtin_mul_overflow(v, static_cast<int128>(kPower10[step]), &v)) return std::nullopt;
    digits -= step;
  }
  return v;
}

}  // namespace

std::string_view to_string(QuantityError error) {
  switch (error) {
    case QuantityError::format:
      return "format";
    case QuantityError::suffix:
      return "suffix";
    case QuantityError::numeric:
      return "numeric";
  }
  return "unknown";
}

tl::expected<Quantity, QuantityError> Quantity::parse(std::string_view text) {
  if (text.empty()) return tl::unexpected(QuantityError::format);
  std::size_t at = 0;
  const std::size_t end = text.size();
  const bool negative = text[0] == '-';
  if (negative || text[0] == '+') ++at;
  const std::size_t number_start = at;
  while (at < end && text[at] == '0') ++at;

  std::int64_t number = 0;  // the first 18 significant digits
  const std::size_t whole_start = at;
  while (at < end && is_digit(text[at])) ++at;
  const std::string_view whole = text.substr(whole_start, at - whole_start);
  std::string_view fraction;
  if (at < end && text[at] == '.') {
    const std::size_t start = ++at;
    while (at < end && is_digit(text[at])) ++at;
    fraction = text.substr(start, at - start);
  }
  const std::size_t suffix_start = at;
  while (at < end && is_suffix_letter(text[at])) ++at;
  if (at < end && (text[at] == '-' || text[at] == '+')) ++at;
  while (at < end && is_digit(text[at])) ++at;
  if (at != end) return tl::unexpected(QuantityError::format);
  const std::optional<Suffix> suffix = read_suffix(text.substr(suffix_start));
  if (!suffix) return tl::unexpected(QuantityError::suffix);

  const bool binary = suffix->format == QuantityFormat::binary_si;
  const std::size_t digits = std::max<std::size_t>(whole.size(), 1) + fraction.size();
  const std::int64_t exponent = (binary ? 0 : suffix->exponent) - static_cast<std::int64_t>(fraction.size());
  if (whole_start == number_start && whole.empty() && fraction.empty() &&
      (exponent < kFinest || (binary && suffix->exponent > 40))) {
    // A lone suffix is zero, but not these: Kubernetes reads them as an empty number.
    return tl::unexpected(QuantityError::numeric);
  }
  if (digits <= kFastDigits && exponent >= kFinest && (!binary || fraction.empty())) {
    for (const char c : whole) number = number * 10 + (c - '0');
    for (const char c : fraction) number = number * 10 + (c - '0');
    const std::int64_t factor = binary ? std::int64_t{1} << suffix->exponent : 1;
    std::int64_t product = 0;
    if (!__builtin_mul_overflow(number, factor, &product)) {
      Quantity q(negative ? -product : product, suffix->format);
      q.exponent_ = static_cast<std::int32_t>(exponent);
      // Kubernetes keeps the source text under these conditions, and prints it again.
      if (binary) {
        const auto room = 14 - static_cast<int>(digits) - static_cast<int>(suffix->exponent * 3 / 10);
        q.verbatim_ = room >= 0 && (number & 7) != 0;
      } else {
        const bool thousands = digits >= 3 && number % 1000 == 0;
        q.verbatim_ = exponent % 3 == 0 && !thousands && !whole.empty();
      }
      return q;
    }
  }
  std::string all;
  all.reserve(digits + 20);
  all.append(whole);
  all.append(fraction);
  return from_digits(std::move(all), exponent, binary ? static_cast<unsigned>(suffix->exponent) : 0, negative,
                     suffix->format);
}

tl::expected<Quantity, QuantityError> Quantity::from_digits(std::string digits, std::int64_t exponent,
                                                            unsigned binary_exponent, bool negative,
                                                            QuantityFormat format) {
  strip_leading_zeros(digits);
  Quantity q(0, format);
  if (digits.empty()) return q;
  for (; binary_exponent > 0; binary_exponent -= 10) times_1024(digits);

  if (exponent < kFinest) {
    const std::int64_t cut = kFinest - exponent;
    const auto kept = cut >= static_cast<std::int64_t>(digits.size())
                          ? std::size_t{0}
                          : digits.size() - static_cast<std::size_t>(cut);
    const bool round = digits.find_first_not_of('0', kept) != std::string::npos;
    digits.resize(kept);
    if (round) increment(digits);
    exponent = kFinest;
    strip_leading_zeros(digits);
  }
  if (format == QuantityFormat::binary_si) {
    // the exponent of a binary quantity is never positive here
    const auto point = static_cast<std::int64_t>(digits.size()) + exponent;  // digits before the point
    if (point <= 0) q.format_ = QuantityFormat::decimal_si;
    const std::string limit = "9223372036854775807";
    const std::string head = point > 0 ? digits.substr(0, static_cast<std::size_t>(point)) : std::string();
    const bool above = head.size() > limit.size() || (head.size() == limit.size() && head > limit) ||
                       (head == limit && digits.find_first_not_of('0', head.size()) != std::string::npos);
    if (above) {
      digits = limit;
      exponent = 0;
    }
  }
  const std::size_t significant = digits.find_last_not_of('0') + 1;
  exponent += static_cast<std::int64_t>(digits.size() - significant);
  digits.resize(significant);
  if (digits.size() > kMostDigits || exponent > std::numeric_limits<std::int32_t>::max()) {
    return tl::unexpected(QuantityError::numeric);
  }
  for (const char c : digits) q.mantissa_ = q.mantissa_ * 10 + (c - '0');
  if (negative) q.mantissa_ = -q.mantissa_;
  q.exponent_ = static_cast<std::int32_t>(exponent);
  return q;
}

std::optional<std::int64_t> Quantity::scaled(std::int32_t digits) const {
  const std::int64_t shift = static_cast<std::int64_t>(exponent_) + digits;
  if (shift >= 0) {
    if (mantissa_ == 0) return 0;
    if (shift > 18) return std::nullopt;
    std::int64_t out = 0;
    if (__builtin_mul_overflow(mantissa_, kPower10[shift], &out)) return std::nullopt;
    return out;
  }
  const std::int64_t divisor = kPower10[-shift];
  if (mantissa_ >= kMin64 && mantissa_ <= kMax64) {
    const auto m = static_cast<std::int64_t>(mantissa_);
    const std::int64_t q = m / divisor;
    return m % divisor == 0 ? q : (m < 0 ? q - 1 : q + 1);
  }
  int128 q = mantissa_ / divisor;
  if (mantissa_ % divisor != 0) q += mantissa_ < 0 ? -1 : 1;
  if (q < kMin64 || q > kMax64) return std::nullopt;
  return static_cast<std::int64_t>(q);
}

std::optional<std::int64_t> Quantity::value() const {
  return scaled(0);
}

std::optional<std::int64_t> Quantity::milli_value() const {
  return scaled(3);
}

std::optional<int128> Quantity::nano_value() const {
  const std::int64_t shift = static_cast<std::int64_t>(exponent_) - kFinest;
  if (shift <= 18 && mantissa_ >= kMin64 && mantissa_ <= kMax64) return mantissa_ * kPower10[shift];
  return shifted(mantissa_, shift);
}

std::string Quantity::canonical() const {
  if (mantissa_ == 0) return "0";
  if (format_ == QuantityFormat::binary_si) {
    const std::optional<int128> nano = nano_value();
    constexpr int128 kUnit = 1'000'000'000;
    if (nano && *nano % kUnit == 0 && (*nano >= 1024 * kUnit || *nano <= -1024 * kUnit)) {
      int128 whole = *nano / kUnit;
      std::size_t power = 0;
      while (power < 6 && whole % 1024 == 0) {
        whole /= 1024;
        ++power;
      }
      static constexpr std::string_view kSuffix[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
      return to_text(whole).append(kSuffix[power]);
    }
  }
  std::string out = to_text(mantissa_);
  std::int64_t exponent = exponent_;
  while (out.back() == '0') {
    out.pop_back();
    ++exponent;
  }
  for (; exponent % 3 != 0; --exponent) out.push_back('0');
  if (exponent == 0) return out;
  if (format_ != QuantityFormat::decimal_exponent && exponent <= 18) {
    out.push_back("num kMGTPE"[static_cast<std::size_t>(exponent / 3 + 3)]);
    return out;
  }
  return out.append("e").append(std::to_string(exponent));
}

std::string Quantity::printed(std::string_view source) const {
  return verbatim_ ? std::string(source) : canonical();
}

tl::expected<Quantity, QuantityError> add(const Quantity& a, const Quantity& b) {
  Quantity sum = a;
  sum.verbatim_ = false;
  if (a.zero()) sum.format_ = b.format_;
  if (a.zero() || b.zero()) {
    sum.mantissa_ = a.zero() ? b.mantissa_ : a.mantissa_;
    sum.exponent_ = a.zero() ? b.exponent_ : a.exponent_;
    return sum;
  }
  sum.exponent_ = std::min(a.exponent_, b.exponent_);
  const auto left = shifted(a.mantissa_, static_cast<std::int64_t>(a.exponent_) - sum.exponent_);
  const auto right = shifted(b.mantissa_, static_cast<std::int64_t>(b.exponent_) - sum.exponent_);
  if (!left || !right || __builtin_add_overflow(*left, *right, &sum.mantissa_)) {
    return tl::unexpected(QuantityError::numeric);
  }
  return sum;
}

}  // namespace troupe
