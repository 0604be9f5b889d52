// What must hold of everything that the decoders hand out.
#pragma once

#include "integration/fuzz/entry.hpp"
#include "k8s-bridge/decode/decode.hpp"

namespace troupe::fuzz {

inline void check_message(const Message& m) {
  FUZZ_CHECK(Message::verified(static_cast<std::uint16_t>(m.kind()), m.bytes().span()).has_value());
  FUZZ_CHECK(!identity(m).name.empty());
  const Message gone = gone_message(m);
  FUZZ_CHECK(Message::verified(static_cast<std::uint16_t>(gone.kind()), gone.bytes().span()).has_value());
}

inline void check_decoded(const DecodedObject& o) {
  if (o) {
    check_message(*o);
  } else {
    FUZZ_CHECK(!o.error().error.what.empty());
  }
}

/// The kind that the first byte chooses; the rest is text.
inline fb::ObjectKind take_kind(Input& input) {
  const std::size_t i = input.empty() ? 0 : input.front() % object_kinds().size();
  input = input.subspan(input.empty() ? 0 : 1);
  return object_kinds()[i].kind;
}

}  // namespace troupe::fuzz
