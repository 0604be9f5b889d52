// The one HTTP port of the bridge: requests to one API server over kept-alive connections. The library behind
// it (http_cpprest.cpp) is seen by no other file.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "messages/error.hpp"

namespace troupe {

struct HttpRequest {
  std::string method;        // GET, POST, PUT, PATCH, DELETE
  std::string path;          // path and query, already encoded, with a leading slash
  std::string content_type;  // of body; empty without a body
  std::string body;
  std::chrono::milliseconds timeout{30000};  // until the whole answer has arrived
  /// Asked immediately before the request is written to a socket, and again before it is written once more
  /// (after 401); false: it is not written and ends as a failure that is not unclear. Empty: always allowed.
  std::function<bool()> admit;
};

struct HttpResponse {
  int status = 0;
  std::string body;
  std::chrono::milliseconds retry_after{0};  // Retry-After header; 0: absent
};

/// No answer. `unclear`: the request may have taken effect (it was, or may have been, written to a socket).
struct HttpFailure {
  bool unclear = true;
  std::string what;
};

using HttpOutcome = tl::expected<HttpResponse, HttpFailure>;

/// A watch under way: lines of newline-delimited JSON until it ends. Destroying it closes the connection.
class HttpStream {
 public:
  virtual ~HttpStream() = default;
};

struct HttpStreamHandler {
  std::function<void(std::string_view line)> line;  // one whole line, without its newline; never half a line
  std::function<void(int status, std::string error_body)> refused;  // the answer was not 200
  /// The stream ended: closed by the server, broken, idle for longer than allowed. `half_line`: bytes of an
  /// unfinished line were dropped.
  std::function<void(std::string why, bool half_line)> ended;
};

/// `why` of a stream that the server closed in an orderly way, after its last whole line.
inline constexpr std::string_view kClosedByServer = "closed by the server";

class HttpClient {
 public:
  virtual ~HttpClient() = default;
  /// Calls `done` exactly once, on a thread of the client. At most `connections` requests are under way; the
  /// rest wait.
  virtual void send(HttpRequest request, std::function<void(HttpOutcome)> done) = 0;
  /// Opens a long-lived GET. Exactly one of `refused` or `ended` is called at its end, never both. `idle`:
  /// longest silence.
  virtual std::unique_ptr<HttpStream> stream(HttpRequest request, std::chrono::milliseconds idle,
                                             HttpStreamHandler handler) = 0;
  /// Closes every connection hard (no lingering retransmission); requests under way end as unclear failures.
  virtual void abort() = 0;
};

struct ClientCertificate {
  std::string certificate_pem;  // followed by intermediates; empty: show none
  std::string key_pem;
};

/// Where the API server is and who we are there. From a kubeconfig or the in-cluster account.
struct ApiServer {
  std::string url;     // scheme, host and port, e.g. https://10.0.0.1:6443
  std::string ca_pem;  // empty: the system's roots
  bool insecure_skip_tls_verify = false;
  std::string tls_server_name;  // empty: the host of `url`
  std::string client_certificate_pem;
  std::string client_key_pem;
  /// Certificates that are renewed while the service runs: asked for each new connection. Empty: the two
  /// above. Thread-safe.
  std::function<Result<ClientCertificate>()> client_certificate;
  std::string proxy_url;
  std::string username;  // basic auth, seldom used
  std::string password;
  /// Returns the bearer token to use; empty: none. `refresh`: the last one was refused with 401, read it
  /// again. Thread-safe.
  std::function<Result<std::string>(bool refresh)> token;
};

struct HttpOptions {
  int connections = 64;
  std::string user_agent = "troupe";
};

Result<std::unique_ptr<HttpClient>> make_http_client(const ApiServer& server, const HttpOptions& options);

}  // namespace troupe
