#include "integration/fuzz/decoded.hpp"

namespace troupe::fuzz {

void object(Input input) {
  const fb::ObjectKind kind = take_kind(input);
  Decoder decoder;
  const DecodedObject first = decoder.object(kind, as_text(input));
  check_decoded(first);
  // A decoder keeps nothing from one object to the next.
  const DecodedObject second = decoder.object(kind, as_text(input));
  FUZZ_CHECK(first.has_value() == second.has_value());
  if (first) FUZZ_CHECK(first->bytes().view() == second->bytes().view());
  if (!first) FUZZ_CHECK(first.error().error.text() == second.error().error.text());
  if (const auto mixed = decoder.mixed(as_text(input))) {
    for (const DecodedObject& o : mixed->objects) check_decoded(o);
  }
}

}  // namespace troupe::fuzz
