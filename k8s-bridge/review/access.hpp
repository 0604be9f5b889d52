// k8s-bridge/review/: who may use the HTTP API of the service. The API server decides: TokenReview says whose
// a bearer token is, SubjectAccessReview whether that user may do it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "k8s-bridge/http.hpp"
#include "k8s-bridge/timers.hpp"

namespace troupe {

enum class Access {
  allowed,
  unauthenticated,  // 401: no token, or nobody's
  forbidden,        // 403: a user who may not
  unavailable,      // 503: the API server gave no answer; ask again
};

struct AccessDecision {
  Access access{};
  std::string user;    // empty unless authenticated
  std::string reason;  // for the answer's body and the log; never holds the token
};

struct AccessOptions {
  std::int64_t allowed_ms = 10'000;  // how long an answer is used again
  std::int64_t denied_ms = 5'000;
  std::size_t entries = 1024;          // of the cache; the oldest go first
  std::vector<std::string> audiences;  // empty: the API server's own
};

/// Thread-safe. Questions about the same token and path that come while one is under way wait for its answer.
class AccessReviewer {
 public:
  /// `http` and `timers` outlive the reviewer.
  AccessReviewer(HttpClient& http, Timers& timers, AccessOptions options = {});
  ~AccessReviewer();
  AccessReviewer(const AccessReviewer&) = delete;
  AccessReviewer& operator=(const AccessReviewer&) = delete;

  using Done = std::function<void(const AccessDecision&)>;
  /// Whether the bearer of `token` may `verb` (get, ...) the non-resource URL `path` (without query). Calls
  /// `done` once, from this call or later on a thread of the client.
  void review(const std::string& token, const std::string& verb, const std::string& path, Done done);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace troupe
