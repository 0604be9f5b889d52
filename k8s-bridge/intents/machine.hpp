// What to send next, and what an answer means: the rules of protocols 14 and 15 without a clock, thread or
// socket.
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <queue>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "k8s-bridge/http.hpp"
#include "k8s-bridge/intents/executor.hpp"
#include "k8s-bridge/jitter.hpp"
#include "messages/fb/intent_generated.h"
#include "messages/message.hpp"
#include "messages/uid.hpp"

namespace troupe {

/// Why at most one effect: a bind carries uid and resourceVersion, so that the second of two that reach the
/// API server is refused with 409, and reading the pod then tells whose it is; delete, evict and patch carry
/// the uid and say the same thing again; an event has its name. So anything unclear may be sent again, in any
/// process, at any time.
class IntentMachine {
 public:
  struct Send {
    std::uint32_t slot = 0;
    bool write = false;  // needs authority over (partition, epoch) when it reaches the socket
    std::uint32_t partition = 0;
    std::uint64_t epoch = 0;
    HttpRequest request;
  };
  /// Appended to by every call that takes it.
  struct Output {
    std::vector<Send> sends;
    std::vector<Message> results;  // Kind::intent_result
    std::vector<Message> would;    // dry run: Kind::intent
    [[nodiscard]] bool empty() const { return sends.empty() && results.empty() && would.empty(); }
    void clear() {
      sends.clear();
      results.clear();
      would.clear();
    }
  };
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  /// options.started_ms must be set.
  IntentMachine(ExecutorOptions options, AuthorityCheck authority);

  /// Takes intents; `advance` starts them.
  void add(std::vector<Message> intents, std::int64_t now_ms, Output& out);
  /// The answer to Send `slot`; each is answered once.
  void answered(std::uint32_t slot, const HttpOutcome& outcome, std::int64_t now_ms, Output& out);
  /// Starts what may start now.
  void advance(std::int64_t now_ms, Output& out);
  /// When `advance` is next needed though nothing was answered or added.
  [[nodiscard]] std::int64_t next_due() const;

  /// Ends what is not on the wire, events apart, as Stopped, and takes nothing any more.
  void stop_effects(std::int64_t now_ms, Output& out);
  /// Ends everything as Stopped; requests under way may still be answered.
  void stop_all(std::int64_t now_ms, Output& out);

  [[nodiscard]] std::size_t pending() const { return pending_; }
  [[nodiscard]] std::size_t in_flight() const { return urgent_flying_ + background_flying_; }
  [[nodiscard]] ExecutorStats stats() const;

 private:
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
  enum class Step : std::uint8_t { read, effect, event };
  enum class State : std::uint8_t { free, blocked, ready, paused, flying, abandoned };

  /// What a refused bind has learnt.
  struct Conflict {
    int tries = 0;
    bool open = false;    // a 409 whose reason is not known yet
    std::string version;  // fresh resourceVersion; empty: the intent's
    std::string message;  // of the last 409
  };

  struct Slot {
    Message message;
    std::unique_ptr<Conflict> conflict;
    std::int64_t issued_ms = 0;
    std::int64_t queued_ms = 0;       // since when it waits for its turn
    std::uint64_t ticket = 0;         // of its newest queue entry: older entries are void
    std::uint32_t next_same = kNone;  // the next intent of the same object
    std::uint32_t prev_same = kNone;
    std::uint16_t blockers = 0;
    std::uint16_t tries = 0;
    Step step = Step::effect;
    State state = State::free;
    bool urgent = false;
    bool flies_urgent = false;  // counted so while under way
    bool chained = false;       // in the list of its object
    bool waits_after = false;   // blocked by intent.after
    bool decided = false;       // its effect is known
  };

  struct Queued {
    std::uint32_t slot;
    std::uint64_t ticket;
  };
  struct Paused {
    std::int64_t due_ms;
    Queued entry;
    bool operator<(const Paused& other) const { return due_ms > other.due_ms; }
  };

  /// Requests per second, with room for a burst.
  class Bucket {
   public:
    Bucket(double qps, int burst) : qps_(qps), burst_(burst < 1 ? 1 : burst), tokens_(burst_) {}
    /// When the next token is there; `now_ms` if it is.
    [[nodiscard]] std::int64_t ready_ms(std::int64_t now_ms) const;
    void take(std::int64_t now_ms);

   private:
    double qps_;
    double burst_;
    double tokens_;
    std::int64_t last_ms_ = 0;
  };

  struct Ending {
    fb::IntentOutcome outcome{};
    int status = 0;
    std::string_view message;
  };

  [[nodiscard]] const fb::Intent& intent(const Slot& slot) const { return slot.message.as<fb::Intent>(); }
  [[nodiscard]] static PodUid object_key(const fb::Intent& intent);

  void add_one(Message message, Output& out);
  std::uint32_t take_slot();
  void free_slot(std::uint32_t index);
  void link(std::uint32_t index);
  void unlink(std::uint32_t index);
  void promote(std::uint32_t index);
  void unblock(std::uint32_t index);
  void make_ready(std::uint32_t index);
  void pause(std::uint32_t index, std::int64_t delay_ms, Output& out);
  void back_off(std::uint32_t index, std::int64_t at_least_ms, Output& out);
  void wake_paused();

  [[nodiscard]] std::uint32_t front(std::deque<Queued>& lane);
  void start(std::uint32_t index, Output& out);
  [[nodiscard]] HttpRequest request_of(const Slot& slot) const;

  void on_read(std::uint32_t index, const HttpOutcome& outcome, Output& out);
  void on_pod(std::uint32_t index, const HttpResponse& response, Output& out);
  void on_effect(std::uint32_t index, const HttpOutcome& outcome, Output& out);
  void on_event(std::uint32_t index, const HttpOutcome& outcome, Output& out);
  void read_next(std::uint32_t index, Output& out);
  void rebind(std::uint32_t index, std::string version, Output& out);

  void decide(std::uint32_t index, const Ending& ending, Output& out);
  void release_dependents(std::uint64_t id, const Ending& ending, Output& out);
  void complete(std::uint32_t index, const Ending& ending, Output& out);
  void stop_one(std::uint32_t index, Output& out);
  void tell(const fb::Intent& intent, fb::IntentStage stage, const Ending& ending, Output& out);
  void limit_by(const HttpOutcome& outcome, fb::IntentKind kind, Step step);

  ExecutorOptions options_;
  AuthorityCheck authority_;
  Jitter jitter_;
  std::int64_t now_ms_ = 0;  // of the call in hand

  std::deque<Slot> slots_;
  std::vector<std::uint32_t> free_;
  std::unordered_map<std::uint64_t, std::uint32_t> by_id_;
  std::unordered_map<PodUid, std::uint32_t, PodUidHash> last_of_object_;
  std::unordered_multimap<std::uint64_t, std::uint32_t> dependents_;  // by the id they wait for

  std::deque<Queued> urgent_;
  std::deque<Queued> background_;
  std::priority_queue<Paused> paused_;
  std::uint64_t next_ticket_ = 1;
  Bucket urgent_rate_;
  Bucket background_rate_;
  std::int64_t rate_due_ms_ = kNever;

  std::size_t pending_ = 0;
  int urgent_flying_ = 0;
  int background_flying_ = 0;
  int limit_;  // requests at once: halves with each failure, grows with each answer, up to
               // options_.concurrency
  bool background_turn_ = true;
  bool stop_effects_ = false;
  ExecutorStats stats_;
  flatbuffers::FlatBufferBuilder builder_{256};
};

}  // namespace troupe
