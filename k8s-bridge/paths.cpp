#include "k8s-bridge/paths.hpp"

namespace troupe {

void append_url_segment(std::string& out, std::string_view text) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '.' || c == '_' || c == '~';
    if (plain) {
      out += c;
    } else {
      out += '%';
      out += kHex[static_cast<unsigned char>(c) >> 4U];
      out += kHex[static_cast<unsigned char>(c) & 15U];
    }
  }
}

std::string pod_path(std::string_view name_space, std::string_view name) {
  std::string path;
  path.reserve(48 + name_space.size() + name.size());
  path += "/api/v1/namespaces/";
  append_url_segment(path, name_space);
  path += "/pods/";
  append_url_segment(path, name);
  return path;
}

std::string event_path(std::string_view name_space) {
  std::string path;
  path.reserve(48 + name_space.size());
  path += "/apis/events.k8s.io/v1/namespaces/";
  append_url_segment(path, name_space.empty() ? std::string_view("default") : name_space);
  path += "/events";
  return path;
}

}  // namespace troupe
