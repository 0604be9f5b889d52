#include "k8s-bridge/lease/elector.hpp"

#include <array>
#include <atomic>
#include <charconv>
#include <condition_variable>
#include <mutex>
#include <utility>
#include <vector>

#include "k8s-bridge/decode/encode.hpp"
#include "k8s-bridge/paths.hpp"
#include "messages/json_text.hpp"

namespace troupe {
namespace {

constexpr std::int64_t kWatchRetryMs = 2'000;
constexpr std::int64_t kWatchRefusedMs = 60'000;  // not allowed to watch: polling alone
constexpr std::chrono::milliseconds kWatchIdle{60'000};
constexpr std::int64_t kUnhealthyMs = 20'000;

/// A core v1 Event on the Lease.
HttpRequest leader_event(const LeaseOptions& lease, const std::string& uid, const std::string& component,
                         const std::string& message, std::int64_t wall_us) {
  std::array<char, 20> hex{};
  const auto end = std::to_chars(hex.data(), hex.data() + hex.size(), wall_us * 1000, 16);
  const std::string stamp = rfc3339(wall_us / 1000);
  HttpRequest request;
  request.method = "POST";
  request.path = "/api/v1/namespaces/";
  append_url_segment(request.path, lease.name_space);
  request.path += "/events";
  request.content_type = "application/json";
  std::string& body = request.body;
  const auto field = [&body](std::string_view key, std::string_view value) {
    if (body.back() != '{') body += ',';
    append_json_string(body, key);
    body += ':';
    append_json_string(body, value);
  };
  body = R"({"apiVersion":"v1","kind":"Event","metadata":{)";
  field("namespace", lease.name_space);
  field("name", lease.name + "." + std::string(hex.data(), end.ptr));
  body += R"(},"involvedObject":{)";
  field("kind", "Lease");
  field("apiVersion", "coordination.k8s.io/v1");
  field("namespace", lease.name_space);
  field("name", lease.name);
  if (!uid.empty()) field("uid", uid);
  body += R"(},"source":{)";
  field("component", component);
  body += R"(},"count":1)";
  field("type", "Normal");
  field("reason", "LeaderElection");
  field("message", message);
  field("firstTimestamp", stamp);
  field("lastTimestamp", stamp);
  field("reportingComponent", component);
  body += '}';
  return request;
}

}  // namespace

/// The election is asked and told under the lock; one thread at a time carries out what comes of it.
struct LeaseElector::Impl : std::enable_shared_from_this<Impl> {
  Impl(HttpClient& client, Timers& clock, LeaseOptions options, std::string source, Hooks callbacks)
      : http(client),
        timers(clock),
        component(std::move(source)),
        hooks(std::move(callbacks)),
        election(std::move(options)) {}

  struct Work {
    std::vector<HttpRequest> lease;   // at most one
    std::vector<HttpRequest> events;  // nobody waits for their answers
    std::vector<bool> roles;
    std::vector<std::string> notes;
    std::uint64_t watch = 0;  // generation to open; 0: none
    [[nodiscard]] bool empty() const {
      return lease.empty() && events.empty() && roles.empty() && notes.empty() && watch == 0;
    }
  };

  void drive(std::unique_lock<std::mutex>& lock) {
    plan();
    if (busy) return;
    busy = true;
    while (!out.empty()) {
      Work work = std::exchange(out, {});
      lock.unlock();
      for (const bool role : work.roles) hooks.role(role);
      for (HttpRequest& request : work.lease) {
        http.send(std::move(request), [weak = weak_from_this()](const HttpOutcome& outcome) {
          if (const auto self = weak.lock()) self->answered(outcome);
        });
      }
      for (HttpRequest& request : work.events) http.send(std::move(request), [](const HttpOutcome&) {});
      for (const std::string& line : work.notes) {
        if (hooks.note) hooks.note(line);
      }
      if (work.watch != 0) open(work.watch);
      lock.lock();
      plan();
    }
    busy = false;
    changed.notify_all();
  }

  /// Collects what is to be done now.
  void plan() {
    const std::int64_t now = timers.now_ms();
    if (running) {
      if (auto request = election.poll(now, timers.wall_us())) {
        out.lease.push_back(std::move(*request));
      }
    }
    held_until.store(election.held_until_ms(), std::memory_order_release);
    const bool leads = election.leading(now);
    if (leads != told && !releasing) {
      told = leads;
      out.roles.push_back(leads);
      announce(leads);
    }
    if (leads) last_renewal_ms = election.held_until_ms() - election.options().renew_deadline_ms;
    if (running && !watching && now >= watch_due_ms) {
      watching = true;
      out.watch = ++watch;
    }
    arm();
  }

  void announce(bool leads) {
    const std::string message = election.options().identity + (leads ? " became leader" : " stopped leading");
    out.notes.push_back(message);
    out.events.push_back(
        leader_event(election.options(), election.known().uid, component, message, timers.wall_us()));
  }

  /// Watches on while this instance leads: whoever takes the Lease from it is seen at once too.
  void open(std::uint64_t generation) {
    HttpRequest request;
    request.method = "GET";
    request.path = election.collection() +
                   "?watch=true&allowWatchBookmarks=true&timeoutSeconds=600&fieldSelector=metadata.name%3D";
    append_url_segment(request.path, election.options().name);
    HttpStreamHandler handler;
    const auto weak = weak_from_this();
    handler.line = [weak, generation](std::string_view line) {
      if (const auto self = weak.lock()) self->on_line(generation, line);
    };
    handler.refused = [weak, generation](int status, const std::string&) {
      if (const auto self = weak.lock())
        self->on_watch_end(generation, status == 403 ? kWatchRefusedMs : kWatchRetryMs);
    };
    handler.ended = [weak, generation](const std::string&, bool) {
      if (const auto self = weak.lock()) self->on_watch_end(generation, kWatchRetryMs);
    };
    stream.reset();  // it has ended
    stream = http.stream(std::move(request), kWatchIdle, std::move(handler));
  }

  void on_line(std::uint64_t generation, std::string_view line) {
    auto event = read_lease_event(line);
    if (!event) return;  // bookmarks of other kinds, errors: the stream ends by itself
    std::unique_lock lock(mutex);
    if (generation != watch || !running) return;
    if (event->type == "DELETED") {
      election.deleted(timers.now_ms());
    } else if (event->type == "ADDED" || event->type == "MODIFIED") {
      election.observed(std::move(event->object), timers.now_ms());
    }
    drive(lock);
  }

  void on_watch_end(std::uint64_t generation, std::int64_t pause_ms) {
    std::unique_lock lock(mutex);
    if (generation != watch || !running) return;
    watching = false;
    watch_due_ms = timers.now_ms() + pause_ms;
    drive(lock);
  }

  void answered(const HttpOutcome& outcome) {
    std::unique_lock lock(mutex);
    if (!running) return;
    if (!outcome) {
      out.notes.push_back("lease " + election.options().name_space + "/" + election.options().name + ": " +
                          outcome.error().what);
    } else if (outcome->status == 401 || outcome->status == 403 || outcome->status >= 500) {
      out.notes.push_back("lease " + election.options().name_space + "/" + election.options().name +
                          ": the API server answers " + std::to_string(outcome->status));
    }
    election.answered(outcome, timers.now_ms());
    drive(lock);
  }

  void arm() {
    std::int64_t due = election.next_due();
    if (!watching) due = std::min(due, watch_due_ms);
    if (!running || due == LeaseElection::kNever || due >= armed_ms) return;
    armed_ms = due;
    timers.at(due, [weak = weak_from_this()] {
      const auto self = weak.lock();
      if (self == nullptr) return;
      std::unique_lock lock(self->mutex);
      if (!self->running) return;
      self->armed_ms = LeaseElection::kNever;
      self->drive(lock);
    });
  }

  bool release(std::chrono::milliseconds limit) {
    std::unique_lock lock(mutex);
    const bool led = told;
    releasing = true;
    election.release(timers.now_ms());
    if (led) announce(false);
    drive(lock);
    const bool done = changed.wait_for(lock, limit, [this] { return election.released() && !busy; });
    return done && election.known().record.holder != election.options().identity;
  }

  void close() {
    std::unique_lock lock(mutex);
    running = false;
    changed.wait(lock, [this] { return !busy; });
    lock.unlock();
    stream.reset();
  }

  HttpClient& http;
  Timers& timers;
  const std::string component;
  Hooks hooks;
  mutable std::mutex mutex;
  std::condition_variable changed;
  LeaseElection election;
  Work out;
  bool busy = false;
  bool running = false;
  bool releasing = false;
  bool told = false;  // the role as last told
  std::int64_t last_renewal_ms = 0;
  std::int64_t armed_ms = LeaseElection::kNever;
  std::unique_ptr<HttpStream> stream;  // of who is busy
  bool watching = false;               // or about to
  std::uint64_t watch = 0;             // generation of the watch under way
  std::int64_t watch_due_ms = 0;
  std::atomic<std::int64_t> held_until{0};
};

LeaseElector::LeaseElector(HttpClient& http, Timers& timers, LeaseOptions options, std::string component,
                           Hooks hooks)
    : impl_(
          std::make_shared<Impl>(http, timers, std::move(options), std::move(component), std::move(hooks))) {}

LeaseElector::~LeaseElector() {
  impl_->close();
}

void LeaseElector::start() {
  std::unique_lock lock(impl_->mutex);
  impl_->running = true;
  impl_->drive(lock);
}

bool LeaseElector::leading() const {
  return impl_->timers.now_ms() < impl_->held_until.load(std::memory_order_acquire);
}

bool LeaseElector::release(std::chrono::milliseconds limit) {
  return impl_->release(limit);
}

bool LeaseElector::healthy() const {
  const std::lock_guard lock(impl_->mutex);
  const std::int64_t longest = impl_->election.options().lease_duration_ms + kUnhealthyMs;
  return !impl_->told || impl_->releasing || impl_->timers.now_ms() - impl_->last_renewal_ms <= longest;
}

std::string LeaseElector::holder() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->election.holder();
}

}  // namespace troupe
