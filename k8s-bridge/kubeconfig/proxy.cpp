#include <arpa/inet.h>

#include <array>
#include <cctype>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "k8s-bridge/kubeconfig/api_server.hpp"

namespace troupe {
namespace {

struct HostPort {
  std::string host;
  std::string port;
};

HostPort host_and_port(std::string_view url) {
  const bool tls = url.starts_with("https://");
  if (const auto scheme = url.find("://"); scheme != std::string_view::npos) url.remove_prefix(scheme + 3);
  url = url.substr(0, url.find_first_of("/?#"));
  HostPort out{{}, tls ? "443" : "80"};
  if (url.starts_with('[')) {
    const auto close = url.find(']');
    out.host = url.substr(1, close == std::string_view::npos ? close : close - 1);
    url = close == std::string_view::npos ? std::string_view{} : url.substr(close + 1);
  } else {
    const auto colon = url.find(':');
    out.host = url.substr(0, colon);
    url = colon == std::string_view::npos ? std::string_view{} : url.substr(colon);
  }
  if (url.starts_with(':') && url.size() > 1) out.port = url.substr(1);
  for (char& c : out.host) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

// The bytes of an IPv4 or IPv6 address; empty: it is none.
std::vector<std::uint8_t> address_bytes(const std::string& text) {
  std::array<std::uint8_t, 16> bytes{};
  if (::inet_pton(AF_INET, text.c_str(), bytes.data()) == 1) return {bytes.begin(), bytes.begin() + 4};
  if (::inet_pton(AF_INET6, text.c_str(), bytes.data()) == 1) return {bytes.begin(), bytes.end()};
  return {};
}

bool loopback(const std::string& host) {
  if (host == "localhost") return true;
  const auto bytes = address_bytes(host);
  if (bytes.size() == 4) return bytes[0] == 127;
  return bytes.size() == 16 && host == "::1";
}

bool in_network(const std::vector<std::uint8_t>& address, const std::string& network) {
  const auto slash = network.find('/');
  const auto base = address_bytes(network.substr(0, slash));
  if (base.empty() || base.size() != address.size()) return false;
  unsigned bits = 0;
  for (std::size_t i = slash + 1; i < network.size(); ++i) {
    if (std::isdigit(static_cast<unsigned char>(network[i])) == 0 || bits > 128) return false;
    bits = bits * 10 + static_cast<unsigned>(network[i] - '0');
  }
  if (bits > base.size() * 8) return false;
  for (std::size_t i = 0; i < base.size() && bits > 0; ++i) {
    const unsigned here = bits < 8 ? bits : 8;
    const unsigned mask = (0xFFU << (8 - here)) & 0xFFU;
    if (((base[i] ^ address[i]) & mask) != 0) return false;
    bits -= here;
  }
  return true;
}

bool excluded(const HostPort& target, std::string rule) {
  if (rule == "*") return true;
  for (char& c : rule) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const auto address = address_bytes(target.host);
  if (rule.find('/') != std::string::npos) return !address.empty() && in_network(address, rule);
  if (address_bytes(rule).empty()) {
    if (const auto colon = rule.rfind(':'); colon != std::string::npos) {
      if (rule.substr(colon + 1) != target.port) return false;
      rule.erase(colon);
    }
  }
  if (rule.starts_with("*.")) rule.erase(0, 1);
  if (rule.empty()) return false;
  if (rule.front() == '.') return target.host.ends_with(rule);
  return target.host == rule || (address.empty() && target.host.ends_with("." + rule));
}

std::string either_case(const Environment& environment, const std::string& upper, const std::string& lower) {
  if (const auto value = environment(upper); value && !value->empty()) return *value;
  return environment(lower).value_or(std::string());
}

}  // namespace

std::string proxy_for(std::string_view url, const Environment& environment) {
  const HostPort target = host_and_port(url);
  if (loopback(target.host)) return {};
  std::string proxy = url.starts_with("https://") ? either_case(environment, "HTTPS_PROXY", "https_proxy")
                                                  : either_case(environment, "HTTP_PROXY", "http_proxy");
  if (proxy.empty()) return {};
  std::string rule;
  for (const char c : either_case(environment, "NO_PROXY", "no_proxy") + ",") {
    if (c == ' ') continue;
    if (c != ',') {
      rule += c;
      continue;
    }
    if (!rule.empty() && excluded(target, rule)) return {};
    rule.clear();
  }
  if (proxy.find("://") == std::string::npos) proxy.insert(0, "http://");
  return proxy;
}

}  // namespace troupe
