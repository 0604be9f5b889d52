#include "ops/http/server.hpp"

#include <cpprest/http_listener.h>
#include <cpprest/producerconsumerstream.h>

#include <atomic>
#include <fstream>
#include <mutex>
#include <optional>
#include <vector>

namespace troupe {
namespace {

using web::http::experimental::listener::http_listener;
using web::http::experimental::listener::http_listener_config;

constexpr std::size_t kMostUnread = 4U << 20U;  // bytes of a stream that its reader has not taken

class PipeStream final : public BodyStream {
 public:
  explicit PipeStream(concurrency::streams::producer_consumer_buffer<std::uint8_t> buffer)
      : buffer_(std::move(buffer)) {}

  bool write(std::string_view bytes) override {
    if (!open_.load()) return false;
    if (buffer_.in_avail() > kMostUnread) close();  // a reader that has stopped reading
    if (!open_.load()) return false;
    try {
      const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
      if (buffer_.putn_nocopy(data, bytes.size()).get() != bytes.size()) open_.store(false);
      buffer_.sync().wait();
    } catch (const std::exception&) {
      open_.store(false);
    }
    return open_.load();
  }
  void close() override {
    if (!open_.exchange(false)) return;
    buffer_.close(std::ios_base::out).wait();
  }
  void broken() { open_.store(false); }

 private:
  concurrency::streams::producer_consumer_buffer<std::uint8_t> buffer_;
  std::atomic<bool> open_{true};
};

std::string bearer_token(const web::http::http_request& request) {
  const auto it = request.headers().find("Authorization");
  if (it == request.headers().end()) return {};
  constexpr std::string_view kScheme = "Bearer ";
  return it->second.starts_with(kScheme) ? it->second.substr(kScheme.size()) : std::string{};
}

bool readable(const std::string& file) {
  return std::ifstream(file).good();
}

class CppRestServer final : public HttpServer {
 public:
  explicit CppRestServer(HttpServerOptions options) : options_(std::move(options)) {}
  ~CppRestServer() override { stop(); }

  void route(std::string path, ApiHandler handler) override {
    routes_.emplace_back(std::move(path), std::move(handler));
  }

  Result<void> start() override {
    const bool tls = !options_.tls_certificate_file.empty();
    const bool local = is_loopback(options_.host);
    const std::string address = options_.host + ":" + std::to_string(options_.port);
    if (!local && (!tls || !options_.authorize)) {
      return fail({ErrorCode::invalid, "an address other than loopback needs TLS and token review", address,
                   "http",
                   "give http.tlsCertificateFile and http.tlsKeyFile and a cluster to review tokens, or "
                   "listen on 127.0.0.1"});
    }
    http_listener_config config;
    if (tls) {
      for (const std::string& file : {options_.tls_certificate_file, options_.tls_key_file}) {
        if (!readable(file))
          return fail(
              {ErrorCode::not_found, "cannot read the TLS file", file, {}, "give a readable PEM file"});
      }
      config.set_ssl_context_callback([this](boost::asio::ssl::context& context) {
        context.set_options(boost::asio::ssl::context::default_workarounds |
                            boost::asio::ssl::context::no_sslv2 | boost::asio::ssl::context::no_sslv3 |
                            boost::asio::ssl::context::no_tlsv1 | boost::asio::ssl::context::no_tlsv1_1);
        context.use_certificate_chain_file(options_.tls_certificate_file);
        context.use_private_key_file(options_.tls_key_file, boost::asio::ssl::context::pem);
      });
    }
    try {
      listener_.emplace(web::uri((tls ? "https://" : "http://") + address), config);
      listener_->support([this](const web::http::http_request& request) { serve(request); });
      listener_->open().wait();
    } catch (const std::exception& e) {
      listener_.reset();
      return fail({ErrorCode::unavailable, std::string("cannot listen: ") + e.what(), address, "http.port",
                   "choose a free port or stop the process that holds it"});
    }
    return {};
  }

  void stop() override {
    if (!listener_) return;
    {
      const std::lock_guard lock(mutex_);
      for (const auto& weak : streams_) {
        if (const auto stream = weak.lock()) stream->close();
      }
    }
    try {
      listener_->close().wait();
    } catch (const std::exception&) {  // closing twice is no matter
    }
    listener_.reset();
  }

 private:
  void serve(const web::http::http_request& request) {
    ApiRequest wanted;
    wanted.method = request.method();
    wanted.path = web::uri::decode(request.request_uri().path());
    for (const auto& [key, value] : web::uri::split_query(request.request_uri().query())) {
      wanted.query[web::uri::decode(key)] = web::uri::decode(value);
    }
    if (!is_loopback(options_.host)) {
      const int status = options_.authorize(bearer_token(request), wanted.method, wanted.path);
      if (status != 200)
        return answer(request, error(status, status == 401 ? "a bearer token is needed" : "not allowed"));
    }
    const ApiHandler* handler = find(wanted.path);
    if (handler == nullptr) return answer(request, error(404, "no such path"));
    if (wanted.method != "GET" && wanted.method != "HEAD")
      return answer(request, error(405, "only GET is served"));
    try {
      answer(request, (*handler)(wanted));
    } catch (const std::exception& e) {
      answer(request, error(500, e.what()));
    }
  }

  static ApiResponse error(int status, std::string_view why) {
    std::string quoted;
    for (const char c : why)
      quoted += (c == '"' || c == '\\' || static_cast<unsigned char>(c) < 0x20) ? '\'' : c;
    return {status, "application/json", "{\"error\":\"" + quoted + "\"}\n", {}};
  }

  const ApiHandler* find(std::string_view path) const {
    const ApiHandler* best = nullptr;
    std::size_t length = 0;
    for (const auto& [pattern, handler] : routes_) {
      if (pattern == path) return &handler;
      if (!pattern.ends_with("/*")) continue;
      const std::string_view prefix = std::string_view(pattern).substr(0, pattern.size() - 1);
      if (path.starts_with(prefix) && prefix.size() > length) {
        best = &handler;
        length = prefix.size();
      }
    }
    return best;
  }

  void answer(const web::http::http_request& request, ApiResponse response) {
    web::http::http_response out(static_cast<web::http::status_code>(response.status));
    if (!response.stream) {
      out.set_body(std::move(response.body), response.content_type);
      request.reply(out).then([](const pplx::task<void>& done) { settle(done); });
      return;
    }
    concurrency::streams::producer_consumer_buffer<std::uint8_t> buffer;
    auto stream = std::make_shared<PipeStream>(buffer);
    out.set_body(buffer.create_istream(), response.content_type);
    out.headers().add("Cache-Control", "no-cache");
    request.reply(out).then([stream](const pplx::task<void>& done) {
      settle(done);
      stream->broken();
    });
    {
      const std::lock_guard lock(mutex_);
      std::erase_if(streams_, [](const auto& weak) { return weak.expired(); });
      streams_.push_back(stream);
    }
    response.stream(stream);
  }

  static void settle(const pplx::task<void>& done) {
    try {
      done.get();
    } catch (const std::exception&) {  // the reader has gone; there is nobody to tell
    }
  }

  HttpServerOptions options_;
  std::vector<std::pair<std::string, ApiHandler>> routes_;
  std::optional<http_listener> listener_;
  std::mutex mutex_;
  std::vector<std::weak_ptr<PipeStream>> streams_;
};

}  // namespace

bool is_loopback(std::string_view host) {
  return host == "localhost" || host == "::1" || host == "[::1]" || host.starts_with("127.");
}

std::unique_ptr<HttpServer> make_http_server(HttpServerOptions options) {
  return std::make_unique<CppRestServer>(std::move(options));
}

}  // namespace troupe
