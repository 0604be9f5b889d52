// Several electors, clocks that run at different rates, an API server that is late, loses answers and
// refuses: never two that lead at the same instant, and soon one when the faults stop.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "k8s-bridge/lease/election.hpp"
#include "unit/bridge_write/fake_lease_api.hpp"

namespace troupe::test {
namespace {

class Sim {
 public:
  explicit Sim(unsigned seed) : rng_(seed) {
    const int n = pick(2, 5);
    for (int i = 0; i < n; ++i) {
      auto& e = *electors_.emplace_back(std::make_unique<Elector>(*this, i, seed));
      e.rate = std::uniform_real_distribution<double>(0.85, 1.15)(rng_);
      e.offset = pick(0, 1'000'000);
      e.client.fault = [this](const HttpRequest& request) { return fault(request); };
      wake(e, pick(0, 5000));
      timers_.at(pick(0, 5000), [this, &e] { watch(e); });
    }
    for (int i = pick(0, 6); i > 0; --i) {
      Elector& e = *electors_[static_cast<std::size_t>(pick(0, n - 1))];
      timers_.at(pick(0, kFaultsEndMs - 40'000),
                 [this, &e, until = pick(1000, 40'000)] { e.paused_until = timers_.now_ms() + until; });
    }
    for (int i = pick(0, 2); i > 0; --i) {
      Elector& e = *electors_[static_cast<std::size_t>(pick(1, n - 1))];  // one stays
      timers_.at(pick(0, kFaultsEndMs), [this, &e] {
        e.election.release(e.now());
        step(e);
      });
    }
  }

  void run() {
    timers_.run_until(kFaultsEndMs + 15'000 + 5'000 + 10'000);
    int leaders = 0;
    for (const auto& e : electors_) leaders += e->election.leading(e->now()) ? 1 : 0;
    EXPECT_EQ(leaders, 1) << "nobody leads after the faults stopped";
  }

  int gains = 0;

 private:
  static constexpr int kFaultsEndMs = 150'000;

  struct Elector {
    Elector(Sim& s, int number, unsigned seed)
        : sim(s), client(s.server_, s.timers_), election(options(number, seed)) {}
    static LeaseOptions options(int number, unsigned seed) {
      LeaseOptions out;
      out.identity = numbered(number);
      out.seed = seed * 16 + static_cast<unsigned>(number);
      return out;
    }
    static std::string numbered(int n) { return std::string("e") + static_cast<char>('0' + n); }
    [[nodiscard]] std::int64_t now() const {
      return offset + static_cast<std::int64_t>(static_cast<double>(sim.timers_.now_ms()) * rate);
    }
    Sim& sim;
    LeaseClient client;
    LeaseElection election;
    double rate = 1;
    std::int64_t offset = 0;
    std::int64_t paused_until = 0;  // a stopped process: what comes is handled later
    std::int64_t wake_ms = -1;
    bool led = false;
    std::unique_ptr<HttpStream> stream;
  };

  int pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(rng_); }
  bool chance(double p) { return std::uniform_real_distribution<double>(0, 1)(rng_) < p; }

  LeaseFault fault(const HttpRequest&) {
    LeaseFault f;
    if (timers_.now_ms() >= kFaultsEndMs) return f;
    f.there_ms = chance(0.1) ? pick(100, 12'000) : pick(0, 50);
    f.back_ms = chance(0.1) ? pick(100, 12'000) : pick(0, 50);
    f.lost_request = chance(outage() ? 0.9 : 0.05);
    f.lost_answer = chance(0.1);
    if (chance(0.05)) f.status = chance(0.5) ? 500 : 429;
    return f;
  }
  [[nodiscard]] bool outage() const { return timers_.now_ms() / 20'000 % 3 == 1; }

  void wake(Elector& e, std::int64_t at_ms) {
    e.wake_ms = at_ms;
    timers_.at(at_ms, [this, &e, at_ms] {
      if (e.wake_ms == at_ms) step(e);
    });
  }

  /// Runs `call` once the process is not stopped.
  void awake(Elector& e, std::function<void()> call) {
    if (timers_.now_ms() >= e.paused_until) return call();
    timers_.at(e.paused_until, [this, &e, call = std::move(call)] { awake(e, call); });
  }

  void step(Elector& e) {
    awake(e, [this, &e] {
      if (auto request = e.election.poll(e.now(), timers_.wall_us())) {
        e.client.send(std::move(*request), [this, &e](const HttpOutcome& outcome) {
          awake(e, [this, &e, outcome] {
            e.election.answered(outcome, e.now());
            check(e);
            step(e);
          });
        });
      }
      check(e);
      const std::int64_t due = e.election.next_due();
      if (due == LeaseElection::kNever) return;
      const auto sim_due = static_cast<std::int64_t>(static_cast<double>(due - e.offset) / e.rate) + 1;
      wake(e, std::max(timers_.now_ms() + 1, sim_due));
    });
  }

  void watch(Elector& e) {
    e.client.watch_delay = [this] { return chance(0.1) ? pick(100, 20'000) : pick(0, 20); };
    HttpRequest request;
    request.path = e.election.collection() + "?watch=true&fieldSelector=metadata.name%3Dkoord-scheduler";
    HttpStreamHandler handler;
    handler.line = [this, &e](std::string_view line) {
      awake(e, [this, &e, text = std::string(line)] {
        auto event = read_lease_event(text);
        ASSERT_TRUE(event);
        e.election.observed(event->object, e.now());
        check(e);
        step(e);
      });
    };
    e.stream = e.client.stream(std::move(request), std::chrono::milliseconds(0), handler);
    timers_.at(timers_.now_ms() + pick(5'000, 60'000), [this, &e] {
      e.stream.reset();
      if (timers_.now_ms() < kFaultsEndMs) watch(e);
    });
  }

  void check(Elector& e) {
    const bool leads = e.election.leading(e.now());
    if (leads && !e.led) ++gains;
    e.led = leads;
    int leaders = 0;
    std::string who;
    for (const auto& other : electors_) {
      if (!other->election.leading(other->now())) continue;
      ++leaders;
      who += " " + other->election.options().identity;
    }
    ASSERT_LE(leaders, 1) << "at " << timers_.now_ms() << ":" << who;
  }

  std::mt19937 rng_;
  SimTimers timers_;
  LeaseServer server_{timers_};
  std::vector<std::unique_ptr<Elector>> electors_;
};

TEST(LeaseProperty, NeverTwoLeadersAndSoonOne) {
  const char* wanted = std::getenv("TROUPE_SEEDS");
  const unsigned seeds = wanted == nullptr ? 500 : static_cast<unsigned>(std::atoi(wanted));
  int gains = 0;
  for (unsigned seed = 0; seed < seeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Sim sim(seed);
    sim.run();
    gains += sim.gains;
    if (HasFailure()) return;
  }
  EXPECT_GT(gains, static_cast<int>(seeds) * 2);  // the faults do move the role
}

}  // namespace
}  // namespace troupe::test
