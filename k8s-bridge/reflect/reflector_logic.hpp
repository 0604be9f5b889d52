// reflect/: keeps the actors' picture of one kind of object equal to the API server's, by list and watch
// (spec 5.10). ReflectorLogic decides what to ask next and what has changed; Reflector asks. This header is
// the pure part: answers in, the next request out.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "k8s-bridge/decode/decode.hpp"
#include "k8s-bridge/reflect/mirror.hpp"

namespace troupe {

/// Whether `current` is `target` or newer. Of one resource's versions the longer is newer, else string order.
bool version_reached(std::string_view current, std::string_view target);

/// What to ask the API server for.
struct NextRequest {
  enum class Ask : std::uint8_t { list, watch };
  Ask ask = Ask::list;
  std::string resource_version;  // list: empty asks for the most recent state
  std::string continue_token;    // list: of the page before
  int page_size = 0;             // list: objects per page; 0: in one piece
  std::int64_t delay_ms = 0;     // wait this long first
  int timeout_s = 0;             // watch: the server closes it after this long

  /// Path and query.
  [[nodiscard]] std::string path(const ObjectKindInfo& kind) const;
};

/// Why there is no list or watch.
struct ReflectFailure {
  int http_status = 0;  // 0: no answer
  ApiStatus status;     // its body, where it could be read
  std::int64_t retry_after_ms = 0;
};

/// What an answer brought.
struct Reflected {
  std::vector<Message> changes;
  std::vector<RejectedObject> rejected;  // each once until it changes
  bool consistent = false;               // a list of the most recent state is complete with these changes
  bool relisted = false;                 // a list other than the first one is complete
  std::uint64_t starts = 0;              // how often `start` was called before that list was asked for
};

struct ReflectOptions {
  std::int64_t backoff_ms = 800;
  std::int64_t backoff_max_ms = 30'000;
  std::int64_t backoff_reset_ms = 120'000;
  std::int64_t short_watch_ms = 1'000;  // a watch that ends sooner without an event is followed by a list
  int page_size = 500;
  int watch_min_s = 300;
  int watch_max_s = 600;
  int same_version_tries = 3;  // broken lines or errors at one version before a list
  std::uint64_t seed = 1;
};

/// Not thread-safe. Times are milliseconds of a clock that never goes back. Each call belongs to the request
/// that was returned last, but for `start`, which may come at any time and voids that one.
class ReflectorLogic {
 public:
  ReflectorLogic(fb::ObjectKind kind, ReflectOptions options);

  /// The first list, and again at each gain of the role: of the most recent state.
  NextRequest start();

  NextRequest page(const ListChunk& chunk, std::int64_t now_ms, Reflected& out);
  NextRequest list_failed(const ReflectFailure& failure, std::int64_t now_ms);

  void watch_started(std::int64_t now_ms);
  /// A value: this watch is over (close it), go on with that.
  std::optional<NextRequest> event(const WatchEvent& event, std::int64_t now_ms, Reflected& out);
  /// A line that is no watch event: the same.
  NextRequest broken_line(std::int64_t now_ms);
  NextRequest watch_refused(const ReflectFailure& failure, std::int64_t now_ms);
  /// `clean`: the server closed it; else it was cut, was silent for too long, or never began.
  NextRequest watch_ended(bool clean, std::int64_t now_ms);

  [[nodiscard]] const std::string& version() const { return version_; }
  [[nodiscard]] std::size_t objects() const { return mirror_.size(); }

 private:
  void put(const DecodedObject& object, Reflected& out);
  void remove(const WatchEvent& event, Reflected& out);
  bool first_report(const RejectedObject& rejected);
  void advance(const std::string& version);
  NextRequest list(std::string version, std::int64_t delay_ms = 0);
  NextRequest watch(std::int64_t delay_ms = 0);
  NextRequest try_version_again(std::int64_t delay_ms);
  std::int64_t backoff(std::int64_t now_ms, std::int64_t retry_after_ms = 0);
  std::uint64_t random(std::uint64_t bound);

  ReflectOptions options_;
  Mirror mirror_;
  std::string version_;  // the last one known; empty: none
  NextRequest asked_;
  std::uint64_t starts_ = 0;
  bool want_recent_ = true;  // a list of the most recent state is owed
  bool listed_once_ = false;
  bool whole_ = false;  // pages expired under our hands: ask for the next list in one piece
  std::int64_t watch_since_ms_ = 0;
  bool watch_heard_ = false;
  int broken_at_version_ = 0;
  struct Report {
    std::size_t digest = 0;  // of what was reported
    std::uint32_t round = 0;
  };
  std::unordered_map<std::string, Report> reported_;  // objects that cannot be understood
  std::uint32_t round_ = 0;                           // counts lists
  int backoff_step_ = 0;
  std::int64_t backoff_at_ms_ = 0;
  std::minstd_rand random_;
};

}  // namespace troupe
