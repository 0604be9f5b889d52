// ops/http/: the one HTTP port of a replica: health, metrics, the JSON API and the live event stream.
// Loopback addresses are served in the clear; any other address needs TLS and a bearer token, which
// `authorize` checks. The library behind it is seen by server.cpp alone.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "messages/error.hpp"

namespace troupe {

struct ApiRequest {
  std::string method;
  std::string path;                          // decoded, without the query
  std::map<std::string, std::string> query;  // decoded
};

/// Writes a body that has no end yet (server-sent events). Thread-safe.
class BodyStream {
 public:
  virtual ~BodyStream() = default;
  /// False when the reader has gone: write no more.
  virtual bool write(std::string_view bytes) = 0;
  virtual void close() = 0;
};

struct ApiResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  /// Set for a stream: called once with the open body after the headers; `body` is not used.
  std::function<void(std::shared_ptr<BodyStream>)> stream;
};

using ApiHandler = std::function<ApiResponse(const ApiRequest&)>;

struct HttpServerOptions {
  std::string host = "127.0.0.1";
  std::uint16_t port = 10251;
  std::string tls_certificate_file;  // PEM; with tls_key_file: serve over TLS
  std::string tls_key_file;
  /// Asked for every request on an address other than loopback: the bearer token (may be empty), method and
  /// path. Returns 200, or the status to answer (401, 403, 503). Health paths are asked too.
  std::function<int(std::string_view token, std::string_view method, std::string_view path)> authorize;
};

/// Whether `host` is a loopback address or name.
bool is_loopback(std::string_view host);

class HttpServer {
 public:
  virtual ~HttpServer() = default;
  /// Serves GET of exactly `path`, or of everything below it when it ends in "/*". Before start.
  virtual void route(std::string path, ApiHandler handler) = 0;
  /// Errors: the address is in use or not ours; a certificate that cannot be read; an address beyond loopback
  /// without TLS and authorization.
  virtual Result<void> start() = 0;
  virtual void stop() = 0;
};

std::unique_ptr<HttpServer> make_http_server(HttpServerOptions options);

}  // namespace troupe
