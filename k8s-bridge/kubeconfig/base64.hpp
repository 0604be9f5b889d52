// Standard base64 (RFC 4648), as kubeconfigs and ExecCredentials carry PEM text.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace troupe {

/// Line breaks are passed over; anything else that is no base64 gives nullopt.
std::optional<std::string> base64_decode(std::string_view text);
std::string base64_encode(std::string_view bytes);

}  // namespace troupe
