// Reading small files, with errors that say which and what to do.
#pragma once

#include <string>

#include "messages/error.hpp"

namespace troupe {

/// The whole text of `path`; `what` names its role in errors ("client-key"). not_found, permission or io.
Result<std::string> read_text_file(const std::string& path, const std::string& what);

}  // namespace troupe
