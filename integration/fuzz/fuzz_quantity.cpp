#include "integration/fuzz/entry.hpp"
#include "messages/quantity.hpp"

namespace troupe::fuzz {

void quantity(Input input) {
  const std::string_view text = as_text(input);
  const auto q = Quantity::parse(text);
  if (!q) return;
  // The canonical text means the same, and is its own canonical text.
  const std::string canonical = q->canonical();
  const auto again = Quantity::parse(canonical);
  FUZZ_CHECK(again.has_value());
  FUZZ_CHECK(again->value() == q->value());
  FUZZ_CHECK(again->milli_value() == q->milli_value());
  FUZZ_CHECK(again->nano_value() == q->nano_value());
  FUZZ_CHECK(again->canonical() == canonical);
  FUZZ_CHECK(Quantity::parse(q->printed(text)).has_value());
  // What is there is at least as much in thousandths, and rounds away from zero.
  if (q->value() && q->milli_value() && !q->negative()) {
    FUZZ_CHECK(*q->value() <= *q->milli_value());
    FUZZ_CHECK(q->zero() || *q->value() > 0);
  }
  if (const auto sum = add(*q, Quantity())) FUZZ_CHECK(sum->nano_value() == q->nano_value());
  if (const auto twice = add(*q, *q); twice && q->nano_value() && twice->nano_value()) {
    FUZZ_CHECK(*twice->nano_value() == *q->nano_value() * 2);
  }
}

}  // namespace troupe::fuzz
