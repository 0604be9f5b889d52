#include <algorithm>

#include "integration/fuzz/decoded.hpp"

namespace troupe::fuzz {

void watch(Input input) {
  const fb::ObjectKind kind = take_kind(input);
  const std::string_view all = as_text(input);
  Decoder decoder;
  for (std::string_view rest = all; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const auto event = decoder.watch_event(kind, rest.substr(0, end));
    if (!event) {
      FUZZ_CHECK(!event.error().what.empty());
    } else if (event->type == WatchType::added || event->type == WatchType::modified ||
               event->type == WatchType::deleted) {
      check_decoded(event->object);
    }
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  if (const auto list = decoder.list_chunk(kind, all)) {
    for (const DecodedObject& o : list->objects) check_decoded(o);
  }
  if (const auto status = decoder.status(all)) FUZZ_CHECK(status->code >= 0);
}

}  // namespace troupe::fuzz
