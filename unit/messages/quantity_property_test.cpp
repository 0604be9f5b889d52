// Quantities against a model of their own: decimal digit strings, as one would do it on paper.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <string>

#include "messages/quantity.hpp"

namespace troupe {
namespace {

struct ModelSuffix {
  const char* text;
  int decimal;  // power of ten
  int binary;   // power of two
};

constexpr std::array kSuffixes{
    ModelSuffix{"n", -9, 0},  ModelSuffix{"u", -6, 0}, ModelSuffix{"m", -3, 0},   ModelSuffix{"", 0, 0},
    ModelSuffix{"k", 3, 0},   ModelSuffix{"M", 6, 0},  ModelSuffix{"G", 9, 0},    ModelSuffix{"T", 12, 0},
    ModelSuffix{"P", 15, 0},  ModelSuffix{"E", 18, 0}, ModelSuffix{"Ki", 0, 10},  ModelSuffix{"Mi", 0, 20},
    ModelSuffix{"Gi", 0, 30}, ModelSuffix{"e2", 2, 0}, ModelSuffix{"E-1", -1, 0}, ModelSuffix{"e+4", 4, 0},
};

// Digits times two, most significant first.
std::string doubled(const std::string& digits) {
  std::string out;
  int carry = 0;
  for (auto it = digits.rbegin(); it != digits.rend(); ++it) {
    const int v = (*it - '0') * 2 + carry;
    out.push_back(static_cast<char>('0' + v % 10));
    carry = v / 10;
  }
  if (carry != 0) out.push_back(static_cast<char>('0' + carry));
  std::reverse(out.begin(), out.end());
  return out;
}

// digits * 10^exponent in units of 10^-scale, rounded up; as a digit string without leading zeros ("0" for
// none).
std::string rounded_up(std::string digits, int exponent, int scale) {
  int shift = exponent + scale;
  for (; shift > 0; --shift) digits.push_back('0');
  bool rest = false;
  for (; shift < 0; ++shift) {
    if (digits.empty()) break;
    rest = rest || digits.back() != '0';
    digits.pop_back();
  }
  const std::size_t first = digits.find_first_not_of('0');
  digits = first == std::string::npos ? "" : digits.substr(first);
  if (rest) {
    std::size_t i = digits.size();
    while (i > 0 && digits[i - 1] == '9') digits[--i] = '0';
    if (i > 0) {
      ++digits[i - 1];
    } else {
      digits.insert(digits.begin(), '1');
    }
  }
  return digits.empty() ? "0" : digits;
}

std::string text_of(std::int64_t v) {
  return std::to_string(v);
}

RC_GTEST_PROP(QuantityModel, ValuesAreThoseOfTheModel, ()) {
  const auto whole = *rc::gen::inRange<std::uint64_t>(0, 100'000'000);
  const auto fraction_digits = *rc::gen::inRange<std::size_t>(0, 10);
  const auto suffix = kSuffixes[*rc::gen::inRange<std::size_t>(0, kSuffixes.size())];
  std::string fraction;
  for (std::size_t i = 0; i < fraction_digits; ++i) {
    fraction.push_back(static_cast<char>('0' + *rc::gen::inRange<int>(0, 10)));
  }
  const std::string text = std::to_string(whole) + (fraction.empty() ? "" : "." + fraction) + suffix.text;

  std::string digits = std::to_string(whole) + fraction;
  for (int i = 0; i < suffix.binary; ++i) digits = doubled(digits);
  const int exponent = suffix.decimal - static_cast<int>(fraction.size());
  // Rule 2 first: nothing finer than 10^-9 is kept.
  const std::string nano = rounded_up(digits, exponent, 9);

  const auto q = Quantity::parse(text);
  RC_ASSERT(q.has_value());
  const auto check = [&](const std::optional<std::int64_t>& got, int scale) {
    const std::string expected = rounded_up(nano, -9, scale);
    const std::string limit = "9223372036854775807";
    const bool fits =
        expected.size() < limit.size() || (expected.size() == limit.size() && expected <= limit);
    RC_ASSERT(got.has_value() == fits);
    if (fits) RC_ASSERT(text_of(*got) == expected);
  };
  check(q->value(), 0);
  check(q->milli_value(), 3);
}

RC_GTEST_PROP(QuantityModel, CanonicalTextMeansTheSame, ()) {
  const auto number = *rc::gen::inRange<std::int64_t>(0, 1'000'000'000'000);
  const auto suffix = kSuffixes[*rc::gen::inRange<std::size_t>(0, kSuffixes.size())];
  const auto q = Quantity::parse(std::to_string(number) + suffix.text);
  RC_ASSERT(q.has_value());
  const auto again = Quantity::parse(q->canonical());
  RC_ASSERT(again.has_value());
  RC_ASSERT(again->nano_value() == q->nano_value());
  RC_ASSERT(again->canonical() == q->canonical());
}

RC_GTEST_PROP(QuantityModel, SumsAreExactAndKeepTheLeftNotation, ()) {
  const auto a = *rc::gen::inRange<std::int64_t>(1, 1'000'000'000);
  const auto b = *rc::gen::inRange<std::int64_t>(0, 1'000'000'000);
  const auto left = Quantity::parse(std::to_string(a) + "Ki");
  const auto right = Quantity::parse(std::to_string(b) + "m");
  const auto sum = add(*left, *right);
  RC_ASSERT(sum.has_value());
  RC_ASSERT(*sum->nano_value() == *left->nano_value() + *right->nano_value());
  RC_ASSERT(sum->format() == left->format());
}

}  // namespace
}  // namespace troupe
