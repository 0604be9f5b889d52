// UTF-8, as far as readers and writers need it.
#pragma once

#include <cstddef>
#include <string_view>

namespace troupe {

/// Length of the UTF-8 sequence at the start of `s` (not empty), or 0 when there is none that is valid:
/// overlong forms, surrogates and what is beyond U+10FFFF are not.
std::size_t utf8_sequence_length(std::string_view s);

/// Length of the longest prefix that is valid UTF-8.
std::size_t valid_utf8_prefix(std::string_view s);

}  // namespace troupe
