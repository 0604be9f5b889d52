#include "k8s-bridge/reflect/reflector_logic.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

namespace troupe {
namespace {

constexpr int kGone = 410;
constexpr int kGatewayTimeout = 504;
constexpr int kBadRequest = 400;
constexpr int kUnprocessable = 422;

bool expired(int code, const ApiStatus& status) {
  return code == kGone || status.code == kGone || status.reason == "Expired" || status.reason == "Gone";
}

bool too_large_version(const ReflectFailure& failure) {
  return failure.http_status == kGatewayTimeout &&
         failure.status.message.find("Too large resource version") != std::string::npos;
}

bool version_refused(const ReflectFailure& failure) {
  return failure.http_status == kBadRequest || failure.http_status == kUnprocessable;
}

void append_encoded(std::string& out, std::string_view value) {
  static constexpr std::string_view kPlain = "-._~";
  static constexpr std::string_view kHex = "0123456789ABCDEF";
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       kPlain.find(c) != std::string_view::npos;
    if (plain) {
      out += c;
    } else {
      out += {'%', kHex[byte >> 4U], kHex[byte & 15U]};
    }
  }
}

class Query {
 public:
  explicit Query(std::string_view path) : text_(path) {}
  Query& add(std::string_view name, std::string_view value) {
    text_ += separator_;
    text_ += name;
    text_ += '=';
    append_encoded(text_, value);
    separator_ = '&';
    return *this;
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
  char separator_ = '?';
};

}  // namespace

bool version_reached(std::string_view current, std::string_view target) {
  if (current.size() != target.size()) return current.size() > target.size();
  return current >= target;
}

std::string NextRequest::path(const ObjectKindInfo& kind) const {
  Query query(kind.path);
  if (!kind.selector.empty()) query.add("fieldSelector", kind.selector);
  if (ask == Ask::watch) {
    query.add("watch", "1").add("allowWatchBookmarks", "true").add("resourceVersion", resource_version);
    return query.add("timeoutSeconds", std::to_string(timeout_s)).take();
  }
  if (page_size > 0) query.add("limit", std::to_string(page_size));
  if (!continue_token.empty()) {
    query.add("continue", continue_token);  // carries the version itself
  } else if (!resource_version.empty()) {
    query.add("resourceVersion", resource_version).add("resourceVersionMatch", "NotOlderThan");
  }
  return query.take();
}

ReflectorLogic::ReflectorLogic(fb::ObjectKind kind, ReflectOptions options)
    : options_(options),
      mirror_(kind),
      random_(static_cast<std::minstd_rand::result_type>(options.seed % 2147483646U + 1U)) {}

NextRequest ReflectorLogic::start() {
  want_recent_ = true;
  ++starts_;
  return list({});
}

NextRequest ReflectorLogic::page(const ListChunk& chunk, std::int64_t /*now_ms*/, Reflected& out) {
  if (asked_.continue_token.empty()) {
    mirror_.begin_list();
    ++round_;
  }
  for (const DecodedObject& object : chunk.objects) put(object, out);
  if (!chunk.continue_token.empty()) {
    asked_.continue_token = chunk.continue_token;
    asked_.delay_ms = 0;
    return asked_;
  }
  mirror_.end_list(out.changes);
  std::erase_if(reported_, [&](const auto& entry) { return entry.second.round != round_; });
  version_ = chunk.resource_version;
  out.starts = starts_;
  out.consistent = asked_.resource_version.empty();
  out.relisted = std::exchange(listed_once_, true);
  if (out.consistent) want_recent_ = false;
  whole_ = false;
  broken_at_version_ = 0;
  return watch();
}

NextRequest ReflectorLogic::list_failed(const ReflectFailure& failure, std::int64_t now_ms) {
  if (expired(failure.http_status, failure.status)) {
    // Pages that expire again would do so for ever: the next list comes in one piece.
    if (!asked_.continue_token.empty()) whole_ = asked_.resource_version.empty();
    const bool again = asked_.resource_version.empty() && asked_.continue_token.empty();
    return list({}, again ? backoff(now_ms, failure.retry_after_ms) : 0);
  }
  if (too_large_version(failure)) {
    return list({}, asked_.resource_version.empty() ? backoff(now_ms, failure.retry_after_ms) : 0);
  }
  if (version_refused(failure) && !asked_.resource_version.empty()) return list({}, backoff(now_ms));
  // The same request; a page keeps its place.
  asked_.delay_ms = backoff(now_ms, failure.retry_after_ms);
  return asked_;
}

void ReflectorLogic::watch_started(std::int64_t now_ms) {
  watch_since_ms_ = now_ms;
  watch_heard_ = false;
}

std::optional<NextRequest> ReflectorLogic::event(const WatchEvent& event, std::int64_t now_ms,
                                                 Reflected& out) {
  watch_heard_ = true;
  switch (event.type) {
    case WatchType::added:
    case WatchType::modified:
      put(event.object, out);
      break;
    case WatchType::deleted:
      remove(event, out);
      break;
    case WatchType::bookmark:
      // A version that went back: the API server's storage was restored from an older state.
      if (!version_reached(event.resource_version, version_)) return list({}, backoff(now_ms));
      break;
    case WatchType::error:
      if (expired(event.status.code, event.status)) return list(version_);
      return try_version_again(backoff(now_ms, event.status.retry_after_seconds * std::int64_t{1000}));
  }
  advance(event.resource_version);
  return std::nullopt;
}

NextRequest ReflectorLogic::broken_line(std::int64_t now_ms) {
  return try_version_again(backoff(now_ms));
}

// Once may be bad luck; what is broken whenever it is sent would stop the watch for ever.
NextRequest ReflectorLogic::try_version_again(std::int64_t delay_ms) {
  if (++broken_at_version_ < options_.same_version_tries) return watch(delay_ms);
  broken_at_version_ = 0;
  return list({}, delay_ms);
}

NextRequest ReflectorLogic::watch_refused(const ReflectFailure& failure, std::int64_t now_ms) {
  if (expired(failure.http_status, failure.status)) return list(version_);
  if (version_refused(failure)) return list({}, backoff(now_ms));
  return watch(backoff(now_ms, failure.retry_after_ms));
}

NextRequest ReflectorLogic::watch_ended(bool clean, std::int64_t now_ms) {
  const bool brief = now_ms - watch_since_ms_ < options_.short_watch_ms;
  if (!clean) return watch(watch_heard_ && !brief ? 0 : backoff(now_ms));
  if (!watch_heard_ && brief) return list(version_, backoff(now_ms));
  return watch();
}

void ReflectorLogic::put(const DecodedObject& object, Reflected& out) {
  if (object.has_value()) {
    if (!reported_.empty()) {
      const ObjectIdentity who = identity(*object);
      reported_.erase(std::string(who.name_space).append("/").append(who.name));
    }
    mirror_.put(*object, out.changes);
    return;
  }
  mirror_.keep(object.error().ref, out.changes);
  if (first_report(object.error())) out.rejected.push_back(object.error());
}

void ReflectorLogic::remove(const WatchEvent& event, Reflected& out) {
  if (event.object.has_value()) {
    const ObjectIdentity who = identity(*event.object);
    ObjectRef ref{who.kind, std::string(who.name_space), std::string(who.name), {}, {}};
    if (!reported_.empty()) reported_.erase(ref.name_space + "/" + ref.name);
    mirror_.remove(ref, &*event.object, out.changes);
    return;
  }
  const ObjectRef& ref = event.object.error().ref;
  reported_.erase(ref.name_space + "/" + ref.name);
  mirror_.remove(ref, nullptr, out.changes);
}

bool ReflectorLogic::first_report(const RejectedObject& rejected) {
  const std::size_t digest = std::hash<std::string>{}(rejected.ref.uid + rejected.error.text());
  Report& report = reported_[rejected.ref.name_space + "/" + rejected.ref.name];
  report.round = round_;
  return std::exchange(report.digest, digest) != digest;
}

void ReflectorLogic::advance(const std::string& version) {
  if (version.empty() || version == version_) return;
  version_ = version;
  broken_at_version_ = 0;
}

NextRequest ReflectorLogic::list(std::string version, std::int64_t delay_ms) {
  asked_ = {};
  asked_.ask = NextRequest::Ask::list;
  if (!want_recent_) asked_.resource_version = std::move(version);
  asked_.page_size = whole_ ? 0 : options_.page_size;
  asked_.delay_ms = delay_ms;
  return asked_;
}

NextRequest ReflectorLogic::watch(std::int64_t delay_ms) {
  asked_ = {};
  asked_.ask = NextRequest::Ask::watch;
  asked_.resource_version = version_;
  asked_.timeout_s = options_.watch_min_s + static_cast<int>(random(static_cast<std::uint64_t>(std::max(
                                                1, options_.watch_max_s - options_.watch_min_s + 1))));
  asked_.delay_ms = delay_ms;
  return asked_;
}

std::int64_t ReflectorLogic::backoff(std::int64_t now_ms, std::int64_t retry_after_ms) {
  if (now_ms - backoff_at_ms_ > options_.backoff_reset_ms) backoff_step_ = 0;
  backoff_at_ms_ = now_ms;
  std::int64_t base = options_.backoff_ms;
  for (int i = 0; i < backoff_step_ && base < options_.backoff_max_ms; ++i) base *= 2;
  if (base < options_.backoff_max_ms) ++backoff_step_;
  base = std::min(base, options_.backoff_max_ms);
  const std::int64_t jittered =
      std::min(options_.backoff_max_ms,
               base + static_cast<std::int64_t>(random(static_cast<std::uint64_t>(base) + 1)));
  return std::max(jittered, retry_after_ms);
}

std::uint64_t ReflectorLogic::random(std::uint64_t bound) {
  return random_() % bound;
}

}  // namespace troupe
