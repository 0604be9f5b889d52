// Whatever the server and the network do, once they behave again the actors' picture equals the server's.
#include <gtest/gtest.h>

#include <random>

#include "k8s-bridge/reflect/reflector_logic.hpp"
#include "messages/fb/pod_generated.h"
#include "unit/bridge_read/fake_api.hpp"

namespace troupe {
namespace {

using testing::FakeApi;
using testing::FakePod;
using Ask = NextRequest::Ask;

// What an actor that hears the changes believes.
class Believer {
 public:
  struct Known {
    PodUid uid;
    std::string node;
    std::int64_t cpu = 0;
  };

  void hear(const std::vector<Message>& changes) {
    for (const Message& m : changes) {
      ASSERT_TRUE(Message::verified(static_cast<std::uint16_t>(m.kind()), m.bytes().span()).has_value());
      if (m.kind() == Kind::gone) {
        hear_gone(m.as<fb::Gone>());
      } else {
        ASSERT_EQ(m.kind(), Kind::pod);
        hear_pod(m.as<fb::Pod>());
      }
    }
  }
  [[nodiscard]] const std::map<std::string, Known>& pods() const { return pods_; }

 private:
  void hear_gone(const fb::Gone& gone) {
    const auto it = pods_.find(std::string(text(gone.name())));
    ASSERT_NE(it, pods_.end()) << "gone, but never there";
    EXPECT_EQ(it->second.uid, PodUid::from(gone.uid()));
    if (!it->second.node.empty()) {
      EXPECT_EQ(it->second.node, text(gone.node_name()));
    }
    pods_.erase(it);
  }
  void hear_pod(const fb::Pod& pod) {
    const std::string name(text(pod.name()));
    const auto it = pods_.find(name);
    if (it != pods_.end()) {
      ASSERT_EQ(it->second.uid, PodUid::from(pod.uid())) << name << " recreated without gone";
    }
    pods_[name] = {PodUid::from(pod.uid()), std::string(text(pod.node_name())),
                   pod.class_bytes_nested_root()->non_zero_cpu_milli()};
  }

  std::map<std::string, Known> pods_;
};

class Scenario {
 public:
  explicit Scenario(std::uint64_t seed)
      : rng_(seed), logic_(fb::ObjectKind::Pod, options(seed)), next_(logic_.start()) {}

  void faulty(int steps) {
    for (int i = 0; i < steps && !::testing::Test::HasFatalFailure(); ++i) {
      if (chance(60)) change();
      if (chance(2)) api_.compact();
      if (chance(1)) {
        // Versions that are reused before anybody has looked cannot be told apart, by nobody.
        settle();
        api_.restore_older(below(50));
        settle();
      }
      if (chance(1)) next_ = logic_.start();
      step(true);
    }
  }

  void settle() {
    for (int i = 0; i < 2000; ++i) {
      if (next_.ask == Ask::watch && watching_ && logic_.version() == std::to_string(api_.version())) return;
      step(false);
    }
    FAIL() << "does not settle: version " << logic_.version() << " of " << api_.version();
  }

  void expect_converged() {
    for (const auto& [name, pod] : api_.pods()) {
      const auto known = believer_.pods().find(name);
      if (pod.finished) {
        EXPECT_EQ(known, believer_.pods().end()) << name;
        continue;
      }
      if (pod.broken) {  // its last version that could be understood, or nothing
        if (known != believer_.pods().end()) {
          EXPECT_EQ(known->second.uid, PodUid::parse(pod.uid)) << name;
        }
        continue;
      }
      ASSERT_NE(known, believer_.pods().end()) << name;
      EXPECT_EQ(known->second.uid, PodUid::parse(pod.uid)) << name;
      EXPECT_EQ(known->second.node, pod.node) << name;
      EXPECT_EQ(known->second.cpu, pod.cpu_milli) << name;
    }
    for (const auto& [name, known] : believer_.pods()) EXPECT_TRUE(api_.pods().contains(name)) << name;
    EXPECT_TRUE(consistent_);
  }

 private:
  static ReflectOptions options(std::uint64_t seed) {
    ReflectOptions out;
    out.page_size = 3;
    out.seed = seed;
    return out;
  }
  std::uint64_t below(std::uint64_t n) { return rng_() % n; }
  bool chance(unsigned percent) { return below(100) < percent; }

  void change() {
    const std::string name = std::string("pod-").append(std::to_string(below(12)));
    const auto it = api_.pods().find(name);
    if (it == api_.pods().end()) {
      api_.put({.name = name,
                .uid = std::string("uid-").append(std::to_string(++uids_)),
                .cpu_milli = cpu(),
                .broken = chance(10)});
      return;
    }
    FakePod pod = it->second;
    switch (below(6)) {
      case 0:
        return api_.erase(name);
      case 1:
        pod.uid = std::string("uid-").append(std::to_string(++uids_));
        pod.node.clear();
        pod.finished = false;
        break;
      case 2:
        if (pod.node.empty()) pod.node = std::string("n").append(std::to_string(below(5)));
        break;
      case 3:
        pod.finished = true;
        break;
      case 4:
        pod.broken = !pod.broken;
        break;
      default:
        pod.cpu_milli = cpu();
    }
    api_.put(pod);
  }
  std::int64_t cpu() { return static_cast<std::int64_t>(100 + below(900)); }

  void step(bool faults) {
    now_ += next_.delay_ms + static_cast<std::int64_t>(below(400));
    next_.delay_ms = 0;
    if (next_.ask == Ask::list) {
      list(faults);
    } else {
      watch(faults);
    }
  }

  void list(bool faults) {
    watching_ = false;
    FakeApi::Answer answer = api_.list(next_.path(info(fb::ObjectKind::Pod)));
    if (faults && chance(30)) {
      static const std::vector<FakeApi::Answer> kFaults = {
          {0, {}},
          {500, FakeApi::status(500, "InternalError")},
          {429, FakeApi::status(429, "TooManyRequests")},
          {410, FakeApi::status(410, "Expired")},
          {504, FakeApi::status(504, "Timeout", "Too large resource version: 1")},
          {403, FakeApi::status(403, "Forbidden")},
          {200, "{\"items\":[{\"metadata\":"},
      };
      answer = kFaults[below(kFaults.size())];
    }
    if (answer.status == 200) {
      const auto chunk = decoder_.list_chunk(fb::ObjectKind::Pod, answer.body);
      if (chunk.has_value()) {
        Reflected out;
        next_ = logic_.page(*chunk, now_, out);
        return take(out);
      }
      answer.status = 0;
    }
    next_ = logic_.list_failed(failure(answer), now_);
  }

  ReflectFailure failure(const FakeApi::Answer& answer) {
    ReflectFailure out;
    out.http_status = answer.status;
    if (const auto status = decoder_.status(answer.body)) out.status = *status;
    return out;
  }

  void watch(bool faults) {
    if (!watching_) {
      logic_.watch_started(now_);
      if (faults && chance(10)) return refuse(chance(50) ? 500 : 429, "InternalError");
      watching_ = true;
    }
    const auto lines = api_.lines_after(std::stoull(logic_.version()));
    if (!lines.has_value()) {
      return chance(50) ? refuse(410, "Expired") : hear(FakeApi::error_line(410, "Expired"));
    }
    std::size_t count = lines->size();
    if (faults) count = std::min<std::size_t>(count, below(4));
    for (std::size_t i = 0; i < count && watching_; ++i) {
      if (faults && chance(5))
        return hear((*lines)[i].substr(0, (*lines)[i].size() / 2));  // half a line, told as one
      hear((*lines)[i]);
      if (faults && watching_ && chance(5)) hear((*lines)[i]);  // the same version twice
    }
    if (!watching_) return;
    if (faults && chance(20)) {
      watching_ = false;
      next_ = logic_.watch_ended(chance(50), now_);
    } else if (faults && chance(5)) {
      hear(FakeApi::error_line(500, "InternalError"));
    } else if (count == lines->size()) {
      hear(api_.bookmark());
    }
  }

  void refuse(int code, const std::string& reason) {
    watching_ = false;
    next_ = logic_.watch_refused(failure({code, FakeApi::status(code, reason)}), now_);
  }

  void hear(const std::string& line) {
    const auto event = decoder_.watch_event(fb::ObjectKind::Pod, line);
    if (!event.has_value()) {
      watching_ = false;
      next_ = logic_.broken_line(now_);
      return;
    }
    Reflected out;
    if (auto next = logic_.event(*event, now_, out)) {
      watching_ = false;
      next_ = *next;
    }
    take(out);
  }

  void take(const Reflected& out) {
    believer_.hear(out.changes);
    consistent_ = consistent_ || out.consistent;
  }

  std::mt19937_64 rng_;
  FakeApi api_;
  Decoder decoder_;
  ReflectorLogic logic_;
  NextRequest next_;
  Believer believer_;
  std::int64_t now_ = 1'000'000;
  bool watching_ = false;
  bool consistent_ = false;
  int uids_ = 0;
};

TEST(ReflectorProperty, ConvergesWhateverHappened) {
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE(std::string("seed ").append(std::to_string(seed)));
    Scenario run(seed);
    for (int round = 0; round < 3; ++round) {
      run.faulty(80);
      run.settle();
      run.expect_converged();
    }
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace troupe
