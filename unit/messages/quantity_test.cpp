#include "messages/quantity.hpp"

#include <gtest/gtest.h>

#include <string>

namespace troupe {
namespace {

std::string canonical(std::string_view text) {
  const auto q = Quantity::parse(text);
  return q ? q->canonical() : "error " + std::string(to_string(q.error()));
}

std::string printed(std::string_view text) {
  const auto q = Quantity::parse(text);
  return q ? q->printed(text) : "error " + std::string(to_string(q.error()));
}

std::string sum(std::string_view a, std::string_view b) {
  const auto s = add(Quantity::parse(a).value(), Quantity::parse(b).value());
  return s ? s->canonical() : "error " + std::string(to_string(s.error()));
}

TEST(Quantity, CanonicalText) {
  EXPECT_EQ(canonical("1.5Gi"), "1536Mi");
  EXPECT_EQ(canonical("1000"), "1k");
  EXPECT_EQ(canonical("0.5"), "500m");
  EXPECT_EQ(canonical("10000m"), "10");
  EXPECT_EQ(canonical("1.1Ki"), "1126400m");
  EXPECT_EQ(canonical("4096"), "4096");
  EXPECT_EQ(canonical("0Ki"), "0");
  EXPECT_EQ(canonical("0.5Ki"), "512");
  EXPECT_EQ(canonical("1e2"), "100");
  EXPECT_EQ(canonical("12E4"), "120e3");
  EXPECT_EQ(canonical("-1500m"), "-1500m");
  EXPECT_EQ(canonical("1e-12"), "1e-9");
  EXPECT_EQ(canonical("-0.0000000001"), "-1n");
  EXPECT_EQ(canonical("1000E"), "1e21");
}

TEST(Quantity, BinaryValuesAreCapped) {
  EXPECT_EQ(canonical("8Ei"), "9223372036854775807");
  EXPECT_EQ(canonical("99999999999999999999999999Ki"), "9223372036854775807");
  EXPECT_EQ(canonical("9223372036854775807.5Ki"), "9223372036854775807");
  EXPECT_EQ(canonical("-8Ei"), "-9223372036854775807");
  EXPECT_EQ(canonical("7Ei"), "7Ei");
}

TEST(Quantity, KeepsTheSourceWhereKubernetesDoes) {
  EXPECT_EQ(printed("+5"), "+5");
  EXPECT_EQ(printed("1E6"), "1E6");
  EXPECT_EQ(printed("1.500"), "1.500");
  EXPECT_EQ(printed("5."), "5.");
  EXPECT_EQ(printed("1000"), "1k");
  EXPECT_EQ(printed("1024Ki"), "1Mi");
  EXPECT_EQ(printed("1.5Gi"), "1536Mi");
}

TEST(Quantity, TextsWithoutDigitsAreZero) {
  for (const char* text : {"+", ".", "k", "-", "+.", "Ki", "e5"}) EXPECT_EQ(canonical(text), "0") << text;
}

TEST(Quantity, Errors) {
  EXPECT_EQ(canonical(""), "error format");
  EXPECT_EQ(canonical("1 "), "error format");
  EXPECT_EQ(canonical("1.2.3"), "error format");
  EXPECT_EQ(canonical("1KiB"), "error format");
  EXPECT_EQ(canonical("0x10"), "error format");
  EXPECT_EQ(canonical("1K"), "error suffix");
  EXPECT_EQ(canonical("1ki"), "error suffix");
  EXPECT_EQ(canonical("1mm"), "error suffix");
  EXPECT_EQ(canonical("1e"), "error suffix");
  EXPECT_EQ(canonical("1e+"), "error suffix");
  EXPECT_EQ(canonical("1e99999999999"), "error suffix");
  EXPECT_EQ(canonical("Pi"), "error numeric");
  EXPECT_EQ(canonical("123456789012345678901234567890123456789"), "error numeric");
}

TEST(Quantity, ValuesRoundAwayFromZero) {
  EXPECT_EQ(Quantity::parse("100m")->value(), 1);
  EXPECT_EQ(Quantity::parse("-100m")->value(), -1);
  EXPECT_EQ(Quantity::parse("1.0001")->milli_value(), 1001);
  EXPECT_EQ(Quantity::parse("1n")->milli_value(), 1);
  EXPECT_EQ(Quantity::parse("1Gi")->value(), 1073741824);
  EXPECT_EQ(Quantity::parse("8Ei")->value(), 9223372036854775807);
  EXPECT_EQ(Quantity::parse("8Ei")->milli_value(), std::nullopt);
  EXPECT_EQ(Quantity::parse("1e30")->value(), std::nullopt);
  EXPECT_EQ(Quantity::parse("1e2000000000")->nano_value(), std::nullopt);
  EXPECT_EQ(Quantity::parse("0e2000000000")->value(), 0);
}

TEST(Quantity, SumKeepsTheLeftNotation) {
  EXPECT_EQ(sum("1Gi", "1G"), "2073741824");
  EXPECT_EQ(sum("1G", "1Gi"), "2073741824");
  EXPECT_EQ(sum("0", "512Mi"), "512Mi");
  EXPECT_EQ(sum("1536Mi", "512Mi"), "2Gi");
  EXPECT_EQ(sum("500m", "1500m"), "2");
  EXPECT_EQ(sum("1e30", "1n"), "error numeric");
}

}  // namespace
}  // namespace troupe
