#include "messages/error.hpp"

namespace troupe {

std::string Error::text() const {
  std::string out = what;
  for (const std::string* part : {&object, &field}) {
    if (part->empty()) continue;
    if (!out.empty()) out += ": ";
    out += *part;
  }
  if (!remedy.empty()) out += "; " + remedy;
  return out;
}

}  // namespace troupe
