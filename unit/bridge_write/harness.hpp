// An executor on virtual time, and what it told.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "k8s-bridge/intents/executor.hpp"
#include "messages/fb/intent_generated.h"
#include "unit/bridge_write/fake_api.hpp"
#include "unit/bridge_write/sim_time.hpp"

namespace troupe::test {

struct Told {
  std::uint64_t id = 0;
  fb::IntentKind kind{};
  fb::IntentStage stage{};
  fb::IntentOutcome outcome{};
  int status = 0;
  std::string message;
  std::int64_t ms = 0;
};

struct Harness {
  SimTimers timers;
  FakeApi api{timers};
  bool authority = true;
  ExecutorOptions options;
  std::vector<Told> told;
  std::vector<Message> would;
  std::unique_ptr<IntentExecutor> executor;

  Harness() { options.host_name = "host"; }
  ~Harness() {
    if (executor) end();
  }
  Harness(const Harness&) = delete;
  Harness& operator=(const Harness&) = delete;

  void start() {
    IntentExecutor::Hooks hooks;
    hooks.authority = [this](std::uint32_t, std::uint64_t) { return authority; };
    hooks.settled = [this](const std::vector<Message>& results) {
      for (const Message& m : results) {
        const auto& r = m.as<fb::IntentResult>();
        told.push_back({r.id(), r.kind(), r.stage(), r.outcome(), r.http_status(),
                        std::string(text(r.message())), timers.now_ms()});
      }
    };
    hooks.would = [this](const Message& m) { would.push_back(m); };
    executor = std::make_unique<IntentExecutor>(api, timers, options, hooks);
  }
  /// As a process that is killed: nothing more is sent, and nobody hears of what was under way.
  void end() {
    const auto before = told.size();
    authority = false;
    api.abort();
    executor.reset();
    told.resize(before);
    authority = true;
  }
  void issue(std::vector<IntentSpec> specs) {
    if (!executor) start();
    std::vector<Message> messages;
    for (const IntentSpec& spec : specs) messages.push_back(make_intent(spec));
    executor->issue(std::move(messages));
  }
  /// Runs until nothing is pending; whether that came within the time.
  bool finish(std::int64_t within_ms = 3'600'000) {
    return timers.run_while_not([this] { return executor->stats().waiting == 0; },
                                timers.now_ms() + within_ms);
  }
  [[nodiscard]] const Told* complete(std::uint64_t id) const {
    for (const Told& t : told) {
      if (t.id == id && t.stage == fb::IntentStage::Complete) return &t;
    }
    return nullptr;
  }
  /// Outcome of the Complete; "none" while there is none.
  [[nodiscard]] std::string outcome(std::uint64_t id) const {
    const Told* t = complete(id);
    return t == nullptr ? "none" : fb::EnumNameIntentOutcome(t->outcome);
  }
};

}  // namespace troupe::test
