// HttpClient over cpprestsdk. What the library does that the port forbids is prevented here: it would send a
// request again by itself when a kept-alive connection turns out to be closed (bodies therefore cannot be
// rewound), its time-out counts from the last byte (deadlines are ours), and it closes gently (connections
// are told to reset).
#include <cpprest/http_client.h>
#include <cpprest/streams.h>
#include <openssl/ssl.h>
#include <pplx/threadpool.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <deque>
#include <mutex>
#include <unordered_set>

#include "k8s-bridge/http.hpp"
#include "k8s-bridge/http/tls.hpp"

namespace troupe {
namespace {

namespace http = web::http;
using Byte = std::uint8_t;
using BufferBase = concurrency::streams::details::streambuf_state_manager<Byte>;

constexpr std::size_t kThreads = 8;
constexpr std::size_t kLongestLine = 64U << 20U;
constexpr std::size_t kLongestErrorBody = 64U << 10U;

// A cpprest buffer that cannot seek, with everything that neither reading nor writing needs.
class PlainBuffer : public BufferBase {
 public:
  explicit PlainBuffer(std::ios_base::openmode mode) : BufferBase(mode) {}

  bool can_seek() const override { return false; }
  bool has_size() const override { return false; }
  std::size_t buffer_size(std::ios_base::openmode) const override { return 0; }
  void set_buffer_size(std::size_t, std::ios_base::openmode) override {}
  std::size_t in_avail() const override { return 0; }
  pos_type getpos(std::ios_base::openmode) const override { return pos_type(traits::eof()); }
  pos_type seekpos(pos_type, std::ios_base::openmode) override { return pos_type(traits::eof()); }
  pos_type seekoff(off_type, std::ios_base::seekdir, std::ios_base::openmode) override {
    return pos_type(traits::eof());
  }
  bool acquire(Byte*& ptr, std::size_t& count) override {
    ptr = nullptr;
    count = 0;
    return false;
  }
  void release(Byte*, std::size_t) override {}

 protected:
  pplx::task<int_type> _putc(Byte) override { return end(); }
  pplx::task<std::size_t> _putn(const Byte*, std::size_t) override {
    return pplx::task_from_result<std::size_t>(0);
  }
  pplx::task<int_type> _bumpc() override { return end(); }
  int_type _sbumpc() override { return traits::eof(); }
  pplx::task<int_type> _getc() override { return end(); }
  int_type _sgetc() override { return traits::eof(); }
  pplx::task<int_type> _nextc() override { return end(); }
  pplx::task<int_type> _ungetc() override { return end(); }
  pplx::task<std::size_t> _getn(Byte*, std::size_t) override {
    return pplx::task_from_result<std::size_t>(0);
  }
  std::size_t _scopy(Byte*, std::size_t) override { return 0; }
  pplx::task<bool> _sync() override { return pplx::task_from_result(true); }
  Byte* _alloc(std::size_t) override { return nullptr; }
  void _commit(std::size_t) override {}

 private:
  static pplx::task<int_type> end() { return pplx::task_from_result<int_type>(traits::eof()); }
};

// A request's body. It is read after connecting and handshake, so `admit` is asked here once more: without
// its body the server cannot carry a request out, and an early end fails it.
class Source final : public PlainBuffer {
 public:
  Source(std::string body, std::function<bool()> admit)
      : PlainBuffer(std::ios_base::in), body_(std::move(body)), admit_(std::move(admit)) {}

 protected:
  pplx::task<std::size_t> _getn(Byte* to, std::size_t count) override {
    if (read_ == 0 && admit_ && !admit_()) return pplx::task_from_result<std::size_t>(0);
    const std::size_t n = std::min(count, body_.size() - read_);
    std::copy_n(body_.data() + read_, n, to);
    read_ += n;
    return pplx::task_from_result(n);
  }

 private:
  std::string body_;
  std::function<bool()> admit_;
  std::size_t read_ = 0;
};

// An answer's body, handed on piece by piece.
class Sink final : public PlainBuffer {
 public:
  explicit Sink(std::function<void(std::string_view)> take)
      : PlainBuffer(std::ios_base::out), take_(std::move(take)) {}

 protected:
  pplx::task<std::size_t> _putn(const Byte* from, std::size_t count) override {
    take_({reinterpret_cast<const char*>(from), count});
    return pplx::task_from_result(count);
  }

 private:
  std::function<void(std::string_view)> take_;
};

concurrency::streams::ostream sink_stream(std::function<void(std::string_view)> take) {
  return concurrency::streams::streambuf<Byte>(std::make_shared<Sink>(std::move(take))).create_ostream();
}

// cpprestsdk tells where a request failed in its text only.
bool before_writing(std::string_view what) {
  static constexpr std::string_view kBefore[] = {"Failed to connect to any resolved",
                                                 "Error resolving",
                                                 "Failed to resolve",
                                                 "Error in SSL handshake",
                                                 "Failed to send connect request",
                                                 "Expected a 200 response",
                                                 "Request canceled by user.",
                                                 "Invalid HTTP status line during proxy connection"};
  return std::any_of(std::begin(kBefore), std::end(kBefore),
                     [&](std::string_view text) { return what.starts_with(text); });
}

std::chrono::milliseconds retry_after(const http::http_headers& headers) {
  const auto it = headers.find("Retry-After");
  int seconds = 0;
  if (it == headers.end()) return {};
  const auto [end, error] =
      std::from_chars(it->second.data(), it->second.data() + it->second.size(), seconds);
  return error == std::errc{} && seconds > 0 ? std::chrono::seconds(seconds) : std::chrono::seconds(0);
}

int stream_index() {
  static const int index = SSL_get_ex_new_index(0, nullptr, nullptr, nullptr, nullptr);
  return index;
}

// Runs on the connection's own thread when a handshake ends, before a request is written: the one moment at
// which the socket of a new connection is open and nobody else uses it.
void after_handshake(const SSL* ssl, int where, int /*value*/) {
  if ((where & SSL_CB_HANDSHAKE_DONE) == 0) return;
  using Stream = boost::asio::ssl::stream<boost::asio::ip::tcp::socket&>;
  auto* stream = static_cast<Stream*>(SSL_get_ex_data(ssl, stream_index()));
  if (stream == nullptr) return;
  boost::system::error_code ignored;
  stream->next_layer().set_option(boost::asio::socket_base::linger(true, 0), ignored);
}

void reset_on_close(bool tls, void* handle) {
  if (handle == nullptr) return;
  if (tls) {
    auto* stream = static_cast<boost::asio::ssl::stream<boost::asio::ip::tcp::socket&>*>(handle);
    SSL_set_ex_data(stream->native_handle(), stream_index(), stream);
    return;
  }
  boost::system::error_code ignored;  // a new connection's socket is not open yet
  static_cast<boost::asio::ip::tcp::socket*>(handle)->set_option(boost::asio::socket_base::linger(true, 0),
                                                                 ignored);
}

void prepare_thread_pool() {
  static std::once_flag once;
  std::call_once(once, [] {
    try {
      crossplat::threadpool::initialize_with_threads(kThreads);
    } catch (const std::exception&) {
      // Another user of the library made the pool already; its size serves us too.
    }
  });
}

struct Endpoint {
  ApiServer server;
  HttpOptions options;
  web::uri base;
  bool tls = false;
  std::shared_ptr<const TlsMaterial> material;

  [[nodiscard]] http::client::http_client_config config(std::chrono::milliseconds silence) const {
    http::client::http_client_config config;
    config.set_timeout(silence);
    if (server.proxy_url.empty()) {
      config.set_nativehandle_options([secure = tls](void* handle) { reset_on_close(secure, handle); });
    } else {
      config.set_proxy(
          proxy());  // the handle is then a socket first and a TLS stream later, and does not say which
    }
    if (!tls) return config;
    config.set_validate_certificates(!server.insecure_skip_tls_verify);
    boost::system::error_code not_an_address;
    boost::asio::ip::make_address(name(), not_an_address);
    config.set_tlsext_sni_enabled(static_cast<bool>(not_an_address));  // server names are names (RFC 6066)
    config.set_ssl_context_callback([shared = material](boost::asio::ssl::context& context) {
      shared->apply(context.native_handle());
      SSL_CTX_set_info_callback(context.native_handle(), &after_handshake);
    });
    return config;
  }

  [[nodiscard]] std::string name() const {
    return server.tls_server_name.empty() ? base.host() : server.tls_server_name;
  }

  [[nodiscard]] web::web_proxy proxy() const {
    const web::uri url(server.proxy_url);
    web::web_proxy proxy(url);
    const std::string user = url.user_info();
    if (const auto colon = user.find(':'); colon != std::string::npos) {
      proxy.set_credentials(
          {web::uri::decode(user.substr(0, colon)), web::uri::decode(user.substr(colon + 1))});
    }
    return proxy;
  }

  /// `admit`: asked again when the body is about to be written.
  Result<http::http_request> make(const HttpRequest& request, bool refresh_token,
                                  std::function<bool()> admit = {}) const {
    http::http_request out(request.method);
    out.set_request_uri(web::uri(request.path));
    auto& headers = out.headers();
    headers.add("User-Agent", options.user_agent);
    headers.add("Accept", "application/json");
    // cpprestsdk takes the name to verify from here.
    if (tls && !server.tls_server_name.empty()) headers.add("Host", server.tls_server_name);
    if (server.token) {
      const auto token = server.token(refresh_token);
      if (!token) return fail(token.error());
      if (!token->empty()) headers.add("Authorization", "Bearer " + *token);
    } else if (!server.username.empty()) {
      const std::string pair = server.username + ":" + server.password;
      headers.add("Authorization", "Basic " + utility::conversions::to_base64(
                                                  std::vector<unsigned char>(pair.begin(), pair.end())));
    }
    if (!request.body.empty()) {
      out.set_body(
          concurrency::streams::streambuf<Byte>(std::make_shared<Source>(request.body, std::move(admit)))
              .create_istream(),
          request.body.size(), request.content_type);
    }
    return out;
  }
};

// Waits for the end of everything under way.
class Running {
 public:
  void enter() {
    const std::lock_guard lock(mutex_);
    ++count_;
  }
  void leave() {
    const std::lock_guard lock(mutex_);
    if (--count_ == 0) none_.notify_all();
  }
  void wait_none() {
    std::unique_lock lock(mutex_);
    none_.wait(lock, [&] { return count_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable none_;
  std::size_t count_ = 0;
};

struct Job {
  HttpRequest request;
  std::function<void(HttpOutcome)> done;
  pplx::cancellation_token_source cancel;
  std::unique_ptr<boost::asio::steady_timer> deadline;
  std::atomic<bool> late{false};
  std::atomic<bool> aborted{false};
  std::atomic<bool> refused{false};  // by HttpRequest::admit
  std::string body;

  bool admitted() {
    if (!request.admit || request.admit()) return true;
    refused = true;
    return false;
  }
};

class Stream final : public HttpStream {
 public:
  // Shared with the tasks of the library, which may outlive the stream.
  struct State {
    std::recursive_mutex mutex;  // a handler may destroy its own stream
    HttpStreamHandler handler;
    bool detached = false;
    int status = 0;  // 0: not known yet
    std::string pending;
    bool overlong = false;
    pplx::cancellation_token_source cancel;
    std::shared_ptr<http::client::http_client> client;

    void take(std::string_view bytes) {
      const std::lock_guard lock(mutex);
      if (detached) return;
      if (status != 0 && status != 200) {
        if (pending.size() < kLongestErrorBody) pending.append(bytes);
        return;
      }
      pending.append(bytes);
      if (status == 200) deliver();
      if (pending.size() > kLongestLine) {
        overlong = true;
        cancel.cancel();
      }
    }

    void answered(int code) {
      const std::lock_guard lock(mutex);
      status = code;
      if (!detached && status == 200) deliver();
    }

    void deliver() {
      std::size_t from = 0;
      for (std::size_t end = 0; (end = pending.find('\n', from)) != std::string::npos; from = end + 1) {
        if (end > from) handler.line(std::string_view(pending).substr(from, end - from));
        if (detached) return;
      }
      pending.erase(0, from);
    }

    void end(std::string why) {
      const std::lock_guard lock(mutex);
      if (detached) return;
      detached = true;
      if (status != 0 && status != 200) {
        handler.refused(status, pending);
      } else {
        handler.ended(overlong ? "a line is longer than 64 MiB" : std::move(why), !pending.empty());
      }
    }
  };

  explicit Stream(std::shared_ptr<State> state) : state_(std::move(state)) {}
  ~Stream() override {
    {
      const std::lock_guard lock(state_->mutex);
      state_->detached = true;
    }
    state_->cancel.cancel();
  }

 private:
  std::shared_ptr<State> state_;
};

class CpprestClient final : public HttpClient {
 public:
  explicit CpprestClient(Endpoint endpoint) : endpoint_(std::move(endpoint)), client_(fresh_client()) {}

  ~CpprestClient() override {
    abort();
    running_.wait_none();
  }

  void send(HttpRequest request, std::function<void(HttpOutcome)> done) override {
    auto job = std::make_shared<Job>();
    job->request = std::move(request);
    job->done = std::move(done);
    running_.enter();
    {
      const std::lock_guard lock(mutex_);
      if (under_way_.size() >= static_cast<std::size_t>(endpoint_.options.connections)) {
        waiting_.push_back(std::move(job));
        return;
      }
      under_way_.insert(job);
    }
    post([this, job] { begin(job, false); });
  }

  std::unique_ptr<HttpStream> stream(HttpRequest request, std::chrono::milliseconds idle,
                                     HttpStreamHandler handler) override {
    auto state = std::make_shared<Stream::State>();
    state->handler = std::move(handler);
    running_.enter();
    {
      const std::lock_guard lock(mutex_);
      std::erase_if(streams_, [](const auto& weak) { return weak.expired(); });
      streams_.push_back(state);
    }
    post([this, state, request = std::move(request), idle] { begin_stream(state, request, idle, false); });
    return std::make_unique<Stream>(state);
  }

  void abort() override {
    std::deque<std::shared_ptr<Job>> waiting;
    std::vector<std::shared_ptr<Job>> under_way;
    std::vector<std::shared_ptr<Stream::State>> streams;
    {
      const std::lock_guard lock(mutex_);
      waiting.swap(waiting_);
      under_way.assign(under_way_.begin(), under_way_.end());
      for (const auto& weak : streams_) {
        if (auto state = weak.lock()) streams.push_back(std::move(state));
      }
      client_ = fresh_client();  // connections that idle in the old one's pool close with it
    }
    for (const auto& job : under_way) {
      job->aborted = true;
      job->cancel.cancel();
    }
    for (const auto& state : streams) state->cancel.cancel();
    for (const auto& job : waiting) {
      post([this, job] {
        job->done(tl::unexpected(HttpFailure{false, "aborted before it was sent"}));
        running_.leave();
      });
    }
  }

 private:
  template <class F>
  static void post(F&& task) {
    crossplat::threadpool::shared_instance().service().post(std::forward<F>(task));
  }

  std::shared_ptr<http::client::http_client> fresh_client() const {
    // The library's own time-out is a backstop: every request has a deadline.
    return std::make_shared<http::client::http_client>(endpoint_.base,
                                                       endpoint_.config(std::chrono::hours(1)));
  }

  void begin(const std::shared_ptr<Job>& job, bool refresh_token) {
    std::function<bool()> admit;
    if (job->request.admit) {
      admit = [weak = std::weak_ptr<Job>(job)] {
        const auto asked = weak.lock();
        return asked != nullptr && asked->admitted();
      };
    }
    auto request = endpoint_.make(job->request, refresh_token, std::move(admit));
    if (!request) return finish(job, tl::unexpected(HttpFailure{false, request.error().text()}));
    job->body.clear();
    request->set_response_stream(sink_stream([job](std::string_view bytes) { job->body.append(bytes); }));
    if (job->deadline == nullptr) arm(job);
    std::shared_ptr<http::client::http_client> client;
    {
      const std::lock_guard lock(mutex_);
      client = client_;
    }
    if (!job->admitted()) return finish(job, tl::unexpected(failure(*job, {})));
    try {
      client->request(*request, job->cancel.get_token())
          .then([](http::http_response response) { return response.content_ready(); })
          .then([this, job, refresh_token, client](const pplx::task<http::http_response>& task) {
            complete(job, refresh_token, task);
          });
    } catch (const std::exception& e) {
      finish(job, tl::unexpected(HttpFailure{false, e.what()}));
    }
  }

  void arm(const std::shared_ptr<Job>& job) {
    job->deadline =
        std::make_unique<boost::asio::steady_timer>(crossplat::threadpool::shared_instance().service());
    job->deadline->expires_after(job->request.timeout);
    job->deadline->async_wait([weak = std::weak_ptr<Job>(job)](const boost::system::error_code& error) {
      if (error) return;
      if (const auto late = weak.lock()) {
        late->late = true;
        late->cancel.cancel();
      }
    });
  }

  void complete(const std::shared_ptr<Job>& job, bool refreshed,
                const pplx::task<http::http_response>& task) {
    try {
      const http::http_response response = task.get();
      if (response.status_code() == http::status_codes::Unauthorized && !refreshed &&
          endpoint_.server.token) {
        return begin(job, true);
      }
      finish(job,
             HttpResponse{response.status_code(), std::move(job->body), retry_after(response.headers())});
    } catch (const std::exception& e) {
      finish(job, tl::unexpected(failure(*job, e.what())));
    }
  }

  static HttpFailure failure(const Job& job, std::string_view what) {
    HttpFailure failure{!before_writing(what), std::string(what)};
    if (job.refused) return {false, "no longer allowed"};
    if (job.aborted) failure.what = "aborted";
    if (job.late) failure.what = "no answer within " + std::to_string(job.request.timeout.count()) + " ms";
    return failure;
  }

  void finish(const std::shared_ptr<Job>& job, HttpOutcome outcome) {
    if (job->deadline != nullptr) job->deadline->cancel();
    std::shared_ptr<Job> next;
    {
      const std::lock_guard lock(mutex_);
      under_way_.erase(job);
      if (!waiting_.empty()) {
        next = std::move(waiting_.front());
        waiting_.pop_front();
        under_way_.insert(next);
      }
    }
    if (next != nullptr) post([this, next] { begin(next, false); });
    job->done(std::move(outcome));
    job->done = nullptr;
    running_.leave();
  }

  void begin_stream(const std::shared_ptr<Stream::State>& state, const HttpRequest& request,
                    std::chrono::milliseconds idle, bool refresh_token) {
    auto made = endpoint_.make(request, refresh_token);
    if (!made) {
      state->end(made.error().text());
      return running_.leave();
    }
    made->set_response_stream(sink_stream([state](std::string_view bytes) { state->take(bytes); }));
    try {
      // A client of its own: its time-out is the longest silence of this stream.
      state->client = std::make_shared<http::client::http_client>(endpoint_.base, endpoint_.config(idle));
      state->client->request(*made, state->cancel.get_token())
          .then([this, state, refresh_token](http::http_response response) {
            const bool again = response.status_code() == http::status_codes::Unauthorized && !refresh_token &&
                               endpoint_.server.token != nullptr;
            if (!again) state->answered(response.status_code());
            return response.content_ready();
          })
          .then([this, state, request, idle, refresh_token](const pplx::task<http::http_response>& task) {
            complete_stream(state, request, idle, task);
          });
    } catch (const std::exception& e) {
      state->end(e.what());
      running_.leave();
    }
  }

  void complete_stream(const std::shared_ptr<Stream::State>& state, const HttpRequest& request,
                       std::chrono::milliseconds idle, const pplx::task<http::http_response>& task) {
    try {
      const http::http_response response = task.get();
      if (state->status == 0) {  // 401: once more with a fresh token
        state->pending.clear();
        return begin_stream(state, request, idle, true);
      }
      state->end("closed by the server");
    } catch (const http::http_exception& e) {
      const bool silent = e.error_code() == std::errc::timed_out;
      state->end(silent ? "silent for " + std::to_string(idle.count()) + " ms" : std::string(e.what()));
    } catch (const std::exception& e) {
      state->end(e.what());
    }
    state->client.reset();
    running_.leave();
  }

  const Endpoint endpoint_;
  Running running_;
  std::mutex mutex_;
  std::shared_ptr<http::client::http_client> client_;
  std::unordered_set<std::shared_ptr<Job>> under_way_;
  std::deque<std::shared_ptr<Job>> waiting_;
  std::vector<std::weak_ptr<Stream::State>> streams_;
};

}  // namespace

Result<std::unique_ptr<HttpClient>> make_http_client(const ApiServer& server, const HttpOptions& options) {
  Endpoint endpoint{server, options, {}, false, nullptr};
  try {
    endpoint.base = web::uri(server.url);
    if (!server.proxy_url.empty()) web::uri proxy(server.proxy_url);
  } catch (const std::exception&) {
    return fail({ErrorCode::invalid, "not a URL", server.url, "server", "give scheme, host and port"});
  }
  endpoint.tls = endpoint.base.scheme() == "https";
  if ((!endpoint.tls && endpoint.base.scheme() != "http") || endpoint.base.host().empty()) {
    return fail(
        {ErrorCode::invalid, "not an http or https URL", server.url, "server", "give scheme, host and port"});
  }
  if (endpoint.tls) {
    auto material = TlsMaterial::load(server);
    if (!material) return fail(material.error());
    endpoint.material = std::move(*material);
  }
  prepare_thread_pool();
  try {
    return std::make_unique<CpprestClient>(std::move(endpoint));
  } catch (const std::exception& e) {
    return fail({ErrorCode::invalid, e.what(), server.url, "server", "check the URL and the proxy"});
  }
}

}  // namespace troupe
