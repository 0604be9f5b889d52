#include "k8s-bridge/review/access.hpp"

#include <list>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "k8s-bridge/review/review_json.hpp"

namespace troupe {
namespace {

constexpr std::chrono::milliseconds kTimeout{10'000};

HttpRequest post(std::string path, std::string body) {
  HttpRequest request;
  request.method = "POST";
  request.path = std::move(path);
  request.content_type = "application/json";
  request.body = std::move(body);
  request.timeout = kTimeout;
  return request;
}

AccessDecision unavailable(std::string reason) {
  return {Access::unavailable, {}, std::move(reason)};
}

/// What keeps an answer from being read; empty: it can be.
std::string fault_of(const HttpOutcome& outcome, const char* what) {
  if (!outcome) return std::string(what) + ": " + outcome.error().what;
  if (outcome->status >= 200 && outcome->status < 300) return {};
  return std::string(what) + ": the API server answers " + std::to_string(outcome->status);
}

}  // namespace

struct AccessReviewer::Impl : std::enable_shared_from_this<Impl> {
  struct Entry {
    std::string key;
    bool known = false;
    AccessDecision decision;
    std::int64_t until_ms = 0;
    std::vector<Done> waiting;
  };
  using Entries = std::list<Entry>;  // oldest first

  Impl(HttpClient& client, Timers& clock, AccessOptions given)
      : http(client), timers(clock), options(std::move(given)) {}

  void review(const std::string& token, const std::string& verb, const std::string& path, Done done) {
    if (token.empty()) return done({Access::unauthenticated, {}, "no bearer token"});
    std::string key = verb + '\n' + path + '\n' + token;
    std::unique_lock lock(mutex);
    if (const auto found = by_key.find(key); found != by_key.end()) {
      Entry& entry = *found->second;
      if (!entry.known) {
        entry.waiting.push_back(std::move(done));
        return;
      }
      if (timers.now_ms() < entry.until_ms) {
        const AccessDecision decision = entry.decision;
        lock.unlock();
        return done(decision);
      }
      forget(found->second);
    }
    make_room();
    entries.push_back({key, false, {}, 0, {}});
    entries.back().waiting.push_back(std::move(done));
    by_key.emplace(entries.back().key, std::prev(entries.end()));
    lock.unlock();
    ask_token(std::move(key), token, verb, path);
  }

  void ask_token(std::string key, const std::string& token, const std::string& verb,
                 const std::string& path) {
    http.send(
        post("/apis/authentication.k8s.io/v1/tokenreviews", encode_token_review(token, options.audiences)),
        [weak = weak_from_this(), key = std::move(key), verb, path](const HttpOutcome& outcome) {
          if (const auto self = weak.lock()) self->on_token(key, verb, path, outcome);
        });
  }

  void on_token(const std::string& key, const std::string& verb, const std::string& path,
                const HttpOutcome& outcome) {
    if (std::string fault = fault_of(outcome, "TokenReview"); !fault.empty())
      return decide(key, unavailable(std::move(fault)));
    auto answer = read_token_review(outcome->body);
    if (!answer) return decide(key, unavailable(answer.error().text()));
    if (!answer->authenticated) {
      return decide(key,
                    {Access::unauthenticated,
                     {},
                     answer->error.empty() ? std::string("the bearer token is not valid") : answer->error});
    }
    http.send(post("/apis/authorization.k8s.io/v1/subjectaccessreviews",
                   encode_access_review(answer->user, verb, path)),
              [weak = weak_from_this(), key, user = answer->user.name, verb, path](const HttpOutcome& given) {
                if (const auto self = weak.lock()) self->on_access(key, user, verb, path, given);
              });
  }

  void on_access(const std::string& key, const std::string& user, const std::string& verb,
                 const std::string& path, const HttpOutcome& outcome) {
    if (std::string fault = fault_of(outcome, "SubjectAccessReview"); !fault.empty()) {
      return decide(key, unavailable(std::move(fault)));
    }
    auto answer = read_access_review(outcome->body);
    if (!answer) return decide(key, unavailable(answer.error().text()));
    if (answer->allowed) return decide(key, {Access::allowed, user, answer->reason});
    std::string reason = "user \"" + user + "\" may not " + verb + " " + path;
    if (!answer->reason.empty()) reason += ": " + answer->reason;
    decide(key, {Access::forbidden, user, std::move(reason)});
  }

  void decide(const std::string& key, AccessDecision decision) {
    std::unique_lock lock(mutex);
    const auto found = by_key.find(key);
    if (found == by_key.end()) return;
    Entry& entry = *found->second;
    const std::vector<Done> waiting = std::exchange(entry.waiting, {});
    if (decision.access == Access::unavailable) {
      forget(found->second);
    } else {
      entry.known = true;
      entry.decision = decision;
      entry.until_ms =
          timers.now_ms() + (decision.access == Access::allowed ? options.allowed_ms : options.denied_ms);
    }
    lock.unlock();
    for (const Done& done : waiting) done(decision);
  }

  void forget(Entries::iterator entry) {
    by_key.erase(entry->key);
    entries.erase(entry);
  }

  /// Questions under way are not forgotten: their askers wait.
  void make_room() {
    for (auto it = entries.begin(); it != entries.end() && entries.size() >= options.entries;) {
      const auto next = std::next(it);
      if (it->known) forget(it);
      it = next;
    }
  }

  HttpClient& http;
  Timers& timers;
  const AccessOptions options;
  std::mutex mutex;
  Entries entries;
  std::unordered_map<std::string_view, Entries::iterator> by_key;  // views of Entry::key
};

AccessReviewer::AccessReviewer(HttpClient& http, Timers& timers, AccessOptions options)
    : impl_(std::make_shared<Impl>(http, timers, std::move(options))) {}

AccessReviewer::~AccessReviewer() = default;

void AccessReviewer::review(const std::string& token, const std::string& verb, const std::string& path,
                            Done done) {
  impl_->review(token, verb, path, std::move(done));
}

}  // namespace troupe
