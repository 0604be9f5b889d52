#include "k8s-bridge/reflect/reflector.hpp"

#include <mutex>
#include <utility>

namespace troupe {
namespace {

constexpr int kOk = 200;

std::string remedy_for(int status) {
  switch (status) {
    case 0:
      return "check that the API server runs and can be reached";
    case 401:
      return "check the credentials of the kubeconfig or service account";
    case 403:
      return "give the user or service account the project's ClusterRole";
    default:
      return "asked again after a pause";
  }
}

}  // namespace

// Held by the callbacks of requests under way; `turn` tells those of the present request from earlier ones.
struct Reflector::Impl : std::enable_shared_from_this<Impl> {
  Impl(const ObjectKindInfo& kind_info, HttpClient& client, Timers& clock, ReflectorOptions opts, Hooks hook)
      : kind(kind_info),
        http(client),
        timers(clock),
        options(opts),
        hooks(std::move(hook)),
        logic(kind_info.kind, opts.logic) {}

  // All of these run under `mutex`. A stream that is no longer wanted is handed out through `closing`: its
  // destructor waits for its handler, which may be waiting for `mutex`.
  void follow(NextRequest request, std::unique_ptr<HttpStream>& closing) {
    closing = std::move(stream);
    next = std::move(request);
    const std::uint64_t now_turn = ++turn;
    if (next.delay_ms <= 0) return ask(now_turn);
    timers.at(timers.now_ms() + next.delay_ms, [weak = weak_from_this(), now_turn] {
      if (const auto self = weak.lock()) {
        const std::lock_guard lock(self->mutex);
        if (self->turn == now_turn) self->ask(now_turn);
      }
    });
  }

  void ask(std::uint64_t now_turn) {
    ++stats.requests;
    HttpRequest request;
    request.method = "GET";
    request.path = next.path(kind);
    if (next.ask == NextRequest::Ask::list) {
      request.timeout = std::chrono::milliseconds(options.list_timeout_ms);
      http.send(std::move(request), [self = shared_from_this(), now_turn](HttpOutcome outcome) {
        self->locked(now_turn, [&](auto& closing) { self->listed(outcome, closing); });
      });
      return;
    }
    logic.watch_started(timers.now_ms());
    HttpStreamHandler handler;
    handler.line = [self = shared_from_this(), now_turn](std::string_view line) {
      self->locked(now_turn, [&](auto& closing) { self->heard(line, closing); });
    };
    handler.refused = [self = shared_from_this(), now_turn](int status, const std::string& body) {
      self->locked(now_turn, [&](auto& closing) {
        const ReflectFailure failure = self->failure(status, body, 0);
        self->report(failure, "watch");
        self->follow(self->logic.watch_refused(failure, self->timers.now_ms()), closing);
      });
    };
    handler.ended = [self = shared_from_this(), now_turn](const std::string& why, bool half_line) {
      self->locked(now_turn, [&](auto& closing) { self->ended(why, half_line, closing); });
    };
    stream = http.stream(std::move(request), std::chrono::milliseconds(options.idle_ms), std::move(handler));
  }

  template <class F>
  void locked(std::uint64_t now_turn, F&& run) {
    std::unique_ptr<HttpStream> closing;  // destroyed after the lock is released
    const std::lock_guard lock(mutex);
    if (turn == now_turn) run(closing);
  }

  void listed(const HttpOutcome& outcome, std::unique_ptr<HttpStream>& closing) {
    const std::int64_t now = timers.now_ms();
    if (!outcome.has_value()) {
      const ReflectFailure none{};
      report(none, "list", outcome.error().what);
      return follow(logic.list_failed(none, now), closing);
    }
    if (outcome->status != kOk) {
      const ReflectFailure refusal = failure(outcome->status, outcome->body, outcome->retry_after.count());
      report(refusal, "list");
      return follow(logic.list_failed(refusal, now), closing);
    }
    auto chunk = decoder.list_chunk(kind.kind, outcome->body);
    if (!chunk) {
      set_trouble(chunk.error());
      return follow(logic.list_failed({}, now), closing);
    }
    set_trouble(std::nullopt);
    Reflected out;
    NextRequest request = logic.page(*chunk, now, out);
    if (out.relisted) ++stats.relists;
    hand_over(std::move(out));
    follow(std::move(request), closing);
  }

  void heard(std::string_view line, std::unique_ptr<HttpStream>& closing) {
    const std::int64_t now = timers.now_ms();
    const auto event = decoder.watch_event(kind.kind, line);
    if (!event) {
      set_trouble(event.error());
      return follow(logic.broken_line(now), closing);
    }
    set_trouble(std::nullopt);
    Reflected out;
    auto request = logic.event(*event, now, out);
    hand_over(std::move(out));
    if (request) follow(std::move(*request), closing);
  }

  // Half a line is dropped by the client, the version stays where it was: the rest comes again.
  void ended(const std::string& why, bool /*half_line*/, std::unique_ptr<HttpStream>& closing) {
    const bool clean = why == kClosedByServer;
    if (!clean) report({}, "watch", why);
    follow(logic.watch_ended(clean, timers.now_ms()), closing);
  }

  ReflectFailure failure(int status, const std::string& body, std::int64_t retry_after_ms) {
    ReflectFailure out{status, {}, retry_after_ms};
    if (auto decoded = decoder.status(body)) out.status = std::move(*decoded);
    if (out.retry_after_ms == 0) out.retry_after_ms = out.status.retry_after_seconds * std::int64_t{1000};
    return out;
  }

  void report(const ReflectFailure& failure, std::string_view verb, const std::string& why = {}) {
    const int status = failure.http_status;
    Error error;
    error.code = status == 401 || status == 403 ? ErrorCode::permission : ErrorCode::unavailable;
    error.what = "cannot " + std::string(verb) + ' ' + std::string(kind.name) + " objects";
    error.object = std::string(kind.path);
    error.field = !failure.status.message.empty() ? failure.status.message
                  : status != 0                   ? "HTTP status " + std::to_string(status)
                                                  : why;
    error.remedy = remedy_for(status);
    set_trouble(std::move(error));
  }

  void set_trouble(std::optional<Error> trouble) {
    const bool told = stats.trouble.has_value();
    const bool same = told == trouble.has_value() && (!told || stats.trouble->text() == trouble->text());
    if (same) return;
    stats.trouble = trouble;
    if (hooks.trouble) hooks.trouble(std::move(trouble));
  }

  void hand_over(Reflected out) {
    stats.rejected += out.rejected.size();
    if (!out.changes.empty() || !out.rejected.empty() || out.consistent) hooks.reflected(std::move(out));
  }

  const ObjectKindInfo& kind;
  HttpClient& http;
  Timers& timers;
  const ReflectorOptions options;
  const Hooks hooks;

  mutable std::mutex mutex;
  ReflectorLogic logic;
  Decoder decoder;
  NextRequest next;
  std::uint64_t turn = 0;
  std::unique_ptr<HttpStream> stream;
  ReflectorStats stats;
};

Reflector::Reflector(const ObjectKindInfo& kind, HttpClient& http, Timers& timers, ReflectorOptions options,
                     Hooks hooks)
    : impl_(std::make_shared<Impl>(kind, http, timers, options, std::move(hooks))) {}

Reflector::~Reflector() {
  stop();
}

void Reflector::start() {
  std::unique_ptr<HttpStream> closing;
  const std::lock_guard lock(impl_->mutex);
  impl_->follow(impl_->logic.start(), closing);
}

void Reflector::stop() {
  std::unique_ptr<HttpStream> closing;
  const std::lock_guard lock(impl_->mutex);
  ++impl_->turn;
  closing = std::move(impl_->stream);
}

ReflectorStats Reflector::stats() const {
  const std::lock_guard lock(impl_->mutex);
  ReflectorStats out = impl_->stats;
  out.objects = impl_->logic.objects();
  out.version = impl_->logic.version();
  return out;
}

}  // namespace troupe
