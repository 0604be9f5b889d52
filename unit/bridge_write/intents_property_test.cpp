// Random pods, intents, faults, meddlers and crashes: whatever happens, each intent ends once and has at most
// one effect.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <set>

#include "unit/bridge_write/harness.hpp"

namespace troupe::test {
namespace {

struct Planned {
  IntentSpec spec;
  std::int64_t issue_ms = 0;
};

/// An owner with a journal: what it hears is durable a little later, so that a crash can forget the answer
/// but never the intent.
class World {
 public:
  explicit World(unsigned seed) : rng_(seed) {
    h_.options.seed = seed + 1;
    h_.options.concurrency = pick(1, 16);
    h_.options.background_concurrency = pick(1, 16);
    h_.options.background_wait_ms = pick(1, 3000);
    h_.api.fault = [this](const HttpRequest& request) { return fault(request); };
    plan();
  }

  void run() {
    for (const Planned& planned : planned_) {
      h_.timers.at(planned.issue_ms, [this, &planned] {
        journal_[planned.spec.id] = planned.spec;
        if (alive_) give({planned.spec});
      });
    }
    start();
    for (int crashes = pick(0, 3); crashes > 0; --crashes) {
      const int at = pick(1, kFaultsEndMs);
      h_.timers.at(at, [this] { crash(); });
      h_.timers.at(at + pick(1, 4000), [this] { start(); });
    }
    if (chance(0.2)) {
      h_.timers.at(pick(1, kFaultsEndMs), [this] {
        lapsed_ms_ = h_.timers.now_ms();
        log_at_lapse_ = h_.api.log.size();
      });
    }
    h_.timers.run_until(kFaultsEndMs + 10'000);
    if (!alive_) start();
    h_.timers.run_while_not([this] { return h_.executor->stats().waiting == 0; }, 10'000'000);
    h_.timers.run_until(h_.timers.now_ms() + 10'000);
    check();
    crash();
  }

 private:
  static constexpr int kFaultsEndMs = 20'000;
  static constexpr std::uint32_t kLapsing = 5;  // partition that loses its authority

  int pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(rng_); }
  bool chance(double p) { return std::uniform_real_distribution<double>(0, 1)(rng_) < p; }

  Fault fault(const HttpRequest& request) {
    Fault f;
    f.delay_ms = chance(0.05) ? pick(100, 2000) : pick(1, 20);
    if (h_.timers.now_ms() >= kFaultsEndMs || chance(0.6)) return f;
    constexpr std::array kinds = {Fault::Kind::not_sent,     Fault::Kind::lost_request,
                                  Fault::Kind::lost_answer,  Fault::Kind::answer_before,
                                  Fault::Kind::answer_after, Fault::Kind::late};
    f.kind = kinds[static_cast<std::size_t>(pick(0, kinds.size() - 1))];
    // A patch has no version to be refused by: one that comes late says what it said, but out of order.
    if (f.kind == Fault::Kind::late && request.method == "PATCH") f.kind = Fault::Kind::lost_request;
    constexpr std::array before = {429, 500, 503, 504, 401};
    constexpr std::array after = {500, 504};
    f.status = f.kind == Fault::Kind::answer_after ? after[static_cast<std::size_t>(pick(0, 1))]
                                                   : before[static_cast<std::size_t>(pick(0, 4))];
    if (chance(0.3)) f.retry_after_ms = pick(1, 3) * 1000;
    return f;
  }

  /// Other clients of the API server.
  void meddle(const std::string& name) {
    FakePod* pod = h_.api.find(name);
    switch (pick(0, 5)) {
      case 0:
      case 1:
        if (pod != nullptr) h_.api.touch(*pod);
        return;
      case 2:
        if (pod != nullptr) h_.api.change_spec(*pod);
        return;
      case 3:
        if (pod != nullptr && pod->node.empty() && !pod->deleting) {
          pod->node = chance(0.3) ? "n1" : "n2";
          foreign_.insert({pod->uid, pod->node});
          h_.api.change_spec(*pod);
        }
        return;
      case 4:
        if (pod != nullptr) h_.api.remove(name);
        if (chance(0.5)) h_.api.add_pod(name);
        return;
      default:
        if (pod != nullptr) {
          pod->deleting = true;
          h_.api.touch(*pod);
        }
    }
  }

  void plan() {
    std::uint64_t id = 1;
    const auto add = [&](IntentSpec spec, std::int64_t ms) {
      planned_.push_back({std::move(spec), ms});
      return id++;
    };
    for (int p = 0; p < 40; ++p) {
      const std::string name = numbered("p", static_cast<std::uint64_t>(p));
      FakePod& pod = h_.api.add_pod(name);
      pod.keeps_running_when_deleted = chance(0.3);
      pod.evictions_refused = chance(0.3) ? pick(1, 3) : 0;
      pod.forbidden = chance(0.05);
      std::int64_t ms = pick(0, 10'000);
      const auto make = [&](const char* kind) {
        IntentSpec spec = intent_for(pod, id, kind);
        spec.partition = static_cast<std::uint32_t>(pick(1, 5));
        spec.created_ms = h_.timers.wall_ms() + ms;
        if (chance(0.1)) spec.generation = 0;
        return spec;
      };
      if (chance(0.4)) {
        IntentSpec patch = make("PatchStatus");
        patch.condition = "Unschedulable";
        add(patch, ms);
        if (chance(0.5)) add(make("Event"), ms);
        ms += pick(0, 200);
      }
      if (chance(0.8)) {
        IntentSpec bind = make("Bind");
        bind.event = chance(0.8);
        add(bind, ms);
        ms += pick(0, 200);
      }
      if (chance(0.3)) add(make(chance(0.5) ? "Evict" : "Delete"), ms);
      for (int times = pick(0, 2); times > 0; --times) {
        h_.timers.at(pick(0, kFaultsEndMs), [this, name] { meddle(name); });
      }
    }
    for (int i = 0; i < 4; ++i) {  // preemptions: nominate, then delete
      const std::string name = numbered("preemptor", static_cast<std::uint64_t>(i));
      IntentSpec patch = intent_for(h_.api.add_pod(name), id, "PatchStatus");
      patch.has_nominated = true;
      patch.nominated = "n3";
      const std::int64_t ms = pick(0, 10'000);
      patch.created_ms = h_.timers.wall_ms() + ms;
      const std::uint64_t first = add(patch, ms);
      if (chance(0.5)) h_.timers.at(pick(0, kFaultsEndMs), [this, name] { meddle(name); });
      for (int victims = pick(1, 3); victims > 0; --victims) {
        IntentSpec erase = intent_for(h_.api.add_pod(numbered("victim", id)), id, "Delete");
        erase.after = first;
        erase.created_ms = patch.created_ms;
        add(erase, ms);
      }
    }
  }

  void give(const std::vector<IntentSpec>& specs) {
    for (const IntentSpec& spec : specs) stages_[spec.id] = 0;
    std::vector<Message> messages;
    for (const IntentSpec& spec : specs) messages.push_back(make_intent(spec));
    h_.executor->issue(std::move(messages));
  }

  void start() {
    if (alive_) return;
    alive_ = true;
    ++life_;
    stages_.clear();
    IntentExecutor::Hooks hooks;
    hooks.authority = [this](std::uint32_t partition, std::uint64_t) {
      return alive_ && (partition != kLapsing || h_.timers.now_ms() < lapsed_ms_);
    };
    hooks.settled = [this](const std::vector<Message>& results) { settled(results); };
    h_.executor = std::make_unique<IntentExecutor>(h_.api, h_.timers, h_.options, hooks);
    std::vector<IntentSpec> pending;
    for (const auto& [id, spec] : journal_) {
      if (spec.partition != kLapsing || h_.timers.now_ms() < lapsed_ms_) pending.push_back(spec);
    }
    give(pending);
  }

  void crash() {
    if (!alive_) return;
    alive_ = false;
    ++life_;
    h_.api.abort();
    h_.executor.reset();
  }

  void settled(const std::vector<Message>& results) {
    if (!alive_) return;
    for (const Message& message : results) {
      const auto& r = message.as<fb::IntentResult>();
      const std::uint64_t id = r.id();
      const IntentSpec& spec = planned_.at(id - 1).spec;
      int& stage = stages_.at(id);
      if (r.stage() == fb::IntentStage::Effect) {
        EXPECT_TRUE(spec.kind == "Bind" && spec.event);
        EXPECT_EQ(stage, 0);
        EXPECT_EQ(r.outcome(), fb::IntentOutcome::Done);
        stage = 1;
        continue;
      }
      EXPECT_LT(stage, 2) << "completed twice";
      if (spec.kind == "Bind" && spec.event && r.outcome() == fb::IntentOutcome::Done) {
        EXPECT_EQ(stage, 1);
      }
      stage = 2;
      const fb::IntentOutcome outcome = r.outcome();
      if (outcome == fb::IntentOutcome::Stopped) {
        EXPECT_TRUE(spec.partition == kLapsing && h_.timers.now_ms() >= lapsed_ms_);
        continue;
      }
      h_.timers.at(h_.timers.now_ms() + pick(0, 3), [this, id, outcome, life = life_] {
        if (life != life_) return;
        journal_.erase(id);
        outcomes_[id] = outcome;
        // As an owner does, in the same write: what waited for an intent without effect is off.
        if (outcome == fb::IntentOutcome::Done) return;
        std::erase_if(journal_, [&](const auto& entry) { return entry.second.after == id; });
      });
    }
  }

  /// Position of the first effect of `what` on `uid`; the number of all when there is none.
  [[nodiscard]] std::size_t applied(const std::string& what, const std::string& uid) const {
    const auto& all = h_.api.applied;
    return static_cast<std::size_t>(
        std::find_if(all.begin(), all.end(),
                     [&](const Applied& a) { return a.what == what && a.uid == uid; }) -
        all.begin());
  }

  void check() {
    EXPECT_FALSE(h_.api.writes_without_uid);
    const std::size_t never = h_.api.applied.size();
    for (const auto& [id, spec] : journal_) {
      EXPECT_TRUE(spec.partition == kLapsing && lapsed_ms_ < h_.timers.now_ms())
          << "intent " << id << " never ended";
    }
    std::map<std::string, int> events;
    for (const Applied& a : h_.api.applied) {
      if (a.what == "event") {
        EXPECT_EQ(++events[a.uid], 1) << "event " << a.uid << " arrived twice";
      }
    }
    std::map<std::string, const IntentSpec*> last_patch;
    for (const Planned& planned : planned_) {
      const IntentSpec& spec = planned.spec;
      const auto known = outcomes_.find(spec.id);
      if (known == outcomes_.end()) continue;
      SCOPED_TRACE("intent " + std::to_string(spec.id) + " " + spec.kind + " " + spec.name + " " +
                   fb::EnumNameIntentOutcome(known->second));
      const bool done = known->second == fb::IntentOutcome::Done;
      if (spec.kind == "Bind") {
        const std::size_t bound = applied("bind", spec.uid);
        const bool ours = bound != never && h_.api.applied[bound].detail == spec.node;
        const bool there = ours || foreign_.contains({spec.uid, spec.node});
        if (done) {
          EXPECT_TRUE(there);
        }
        if (known->second == fb::IntentOutcome::Elsewhere || known->second == fb::IntentOutcome::Refused) {
          EXPECT_FALSE(ours);
        }
        const std::string event = spec.name + "." + hex(spec.id);
        if (spec.event && done) {
          EXPECT_TRUE(h_.api.events.contains(event));
        }
        if (h_.api.events.contains(event)) {
          EXPECT_TRUE(there);
        }
        if (last_patch.contains(spec.uid)) {
          const std::size_t patched = applied("patch", spec.uid);
          if (bound != never && patched != never) {
            EXPECT_LT(patched, bound) << "a patch issued earlier came after the bind";
          }
        }
      } else if (spec.kind == "Event") {
        EXPECT_TRUE(done);
        EXPECT_TRUE(h_.api.events.contains(spec.name + "." + hex(spec.id)));
      } else if (spec.kind == "PatchStatus") {
        last_patch[spec.uid] = &spec;
        if (done) {
          EXPECT_NE(applied("patch", spec.uid), never);
        }
      } else if (spec.kind == "Delete" && spec.after != 0) {
        const std::size_t nominated = applied("patch", planned_.at(spec.after - 1).spec.uid);
        const std::size_t deleted = applied("delete", spec.uid);
        if (deleted != never) {
          EXPECT_LT(nominated, deleted) << "deleted before the nomination was written";
        }
        if (done && h_.api.find(spec.name) != nullptr) {
          EXPECT_TRUE(h_.api.find(spec.name)->deleting);
        }
      }
    }
    for (std::size_t i = log_at_lapse_; i < h_.api.log.size() && lapsed_ms_ != kNever; ++i) {
      const SentRequest& sent = h_.api.log[i];
      if (sent.method == "GET") continue;
      // No name is shared between partitions for long: look for a live intent of another partition on the
      // same pod.
      bool other = false;
      bool any = false;
      for (const Planned& planned : planned_) {
        if (sent.path.find("/pods/" + planned.spec.name + "/") == std::string::npos) continue;
        any = true;
        other |= planned.spec.partition != kLapsing;
      }
      if (any) {
        EXPECT_TRUE(other) << sent.method << " " << sent.path << " without authority";
      }
    }
    EXPECT_LE(h_.api.most_in_flight, static_cast<std::size_t>(h_.options.concurrency));
  }

  static std::string hex(std::uint64_t n) {
    char digits[24];
    std::snprintf(digits, sizeof digits, "%llx", static_cast<unsigned long long>(n));
    return digits;
  }

  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  std::mt19937 rng_;
  Harness h_;
  std::vector<Planned> planned_;
  std::map<std::uint64_t, IntentSpec> journal_;
  std::map<std::uint64_t, int> stages_;
  std::map<std::uint64_t, fb::IntentOutcome> outcomes_;
  std::set<std::pair<std::string, std::string>> foreign_;  // (uid, node) bound by others
  bool alive_ = false;
  int life_ = 0;
  std::int64_t lapsed_ms_ = kNever;
  std::size_t log_at_lapse_ = 0;
};

TEST(IntentProperty, EachEndsOnceWithAtMostOneEffect) {
  const char* wanted = std::getenv("TROUPE_SEEDS");
  const unsigned seeds = wanted == nullptr ? 300 : static_cast<unsigned>(std::atoi(wanted));
  for (unsigned seed = 0; seed < seeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    World(seed).run();
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace troupe::test
