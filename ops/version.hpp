// The version of every program of this tree.
#pragma once

namespace troupe {

inline constexpr const char* kVersion = "0.1.0";

}  // namespace troupe
