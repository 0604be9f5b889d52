// Random histories of one partition against a model: messages, throws, stalls, commits and crashes in any
// order.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "unit/host/rig.hpp"

namespace troupe {
namespace {

using testing_host::kPlacement;
using testing_host::numbered;
using testing_host::Rig;

/// A reader of the delta stream, as placement is one: clears at a copy, applies what follows, sees gaps.
class Reader {
 public:
  void take(const Envelope& e) {
    if (e.message.kind() == Kind::ledger_copy) {
      const auto& copy = e.message.as<fb::LedgerCopy>();
      if (!in_copy_) state_.clear();
      in_copy_ = !copy.last();
      epoch_ = copy.partition_epoch();
      sequence_ = copy.sequence();
      apply(copy.entries());
      synced_ = true;
    } else if (e.message.kind() == Kind::ledger_delta && synced_) {
      const auto& delta = e.message.as<fb::LedgerDelta>();
      const std::uint64_t count = delta.entries() == nullptr ? 0 : delta.entries()->size();
      EXPECT_EQ(delta.partition_epoch(), epoch_);
      EXPECT_EQ(delta.sequence(), sequence_ + count);
      sequence_ = delta.sequence();
      apply(delta.entries());
    }
  }
  [[nodiscard]] const std::map<std::string, std::uint64_t>& state() const { return state_; }

 private:
  void apply(const flatbuffers::Vector<flatbuffers::Offset<fb::DeltaBytes>>* entries) {
    if (entries == nullptr) return;
    for (const fb::DeltaBytes* item : *entries) {
      const auto& entry = *flatbuffers::GetRoot<fb::DeltaEntry>(item->bytes()->data());
      state_[entry.node()->str()] = entry.ledger_version();
    }
  }

  std::map<std::string, std::uint64_t> state_;
  std::uint64_t epoch_ = 0;
  std::uint64_t sequence_ = 0;
  bool synced_ = false;
  bool in_copy_ = false;
};

class History {
 public:
  explicit History(std::uint64_t seed) : random_(seed) { start(); }

  void step() {
    switch (random_.below(16)) {
      case 0:
        rig_->memory.stall(random_.below(2) == 0);
        break;
      case 1:
        crash();
        break;
      case 2:
      case 3:
        rig_->slow.step(1 + random_.below(4));
        break;
      case 4:
        rig_->time.at += static_cast<Millis>(random_.below(1200));
        break;
      case 5:
        rig_->process({Rig::copy_request()});
        break;
      default:
        rig_->process(arbitrary_batch());
    }
    if (rig_->wakes > 0) {
      rig_->wakes = 0;
      rig_->process();
    }
    look();
  }

  /// Everything comes to rest; then model and partition agree.
  void finish() {
    rig_->memory.stall(false);
    rig_->settle();
    look();
    for (const auto& [key, added] : added_) {
      rig_->take_sent();
      rig_->process({Rig::to(key, "get", "end")});
      EXPECT_THAT(rig_->take_sent(), testing::ElementsAre(numbered("end<" + key + "=", added.back())));
    }
    rig_->process({Rig::copy_request()});
    rig_->settle();
    look();
    for (const auto& [key, value] : reader_.state()) EXPECT_EQ(value, added_[key].back()) << key;
    EXPECT_EQ(rig_->partition->stats().write_sets_out, 0U);
    EXPECT_LE(rig_->partition->quarantined().size(), Partition::kMaxQuarantined);
  }

 private:
  void start() {
    rig_ = std::make_unique<Rig>(disk_);
    seen_ = 0;
    reader_ = {};
    rig_->process({Rig::copy_request()});
  }

  // What a life accepted in memory may be lost in a crash from its end backwards, but nothing that was spoken
  // of.
  void crash() {
    rig_.reset();
    start();
    for (auto& [key, sums] : added_) {
      std::uint64_t durable = 0;
      if (const auto value = rig_->memory.get(Family::ledger, key + "/n")) durable = decode_u64(*value);
      const auto at = std::ranges::find(sums, durable);
      ASSERT_NE(at, sums.end()) << key << " restored as " << durable << ", which it never was";
      EXPECT_GE(durable, spoken_[key]) << key << ": released, and forgotten in a crash";
      sums.erase(at + 1, sums.end());
      asked_[key].clear();
    }
  }

  std::vector<Envelope> arbitrary_batch() {
    std::vector<Envelope> batch;
    for (std::uint64_t n = 1 + random_.below(6); n > 0; --n) {
      if (random_.below(3) == 0) {
        std::string parts;
        for (std::uint64_t p = 1 + random_.below(5); p > 0; --p) {
          const std::string key = arbitrary_key();
          parts += (parts.empty() ? "" : ";") + key + ":" + arbitrary_command(key);
        }
        poison(parts);
        batch.push_back(Rig::batch(parts));
      } else {
        const std::string key = arbitrary_key();
        const std::string command = arbitrary_command(key);
        apply(key, command);
        batch.push_back(Rig::to(key, command));
      }
    }
    return batch;
  }
  std::string arbitrary_key() { return numbered("k", random_.below(5)); }
  std::string arbitrary_command(const std::string&) {
    switch (random_.below(8)) {
      case 0:
        return "boom";
      case 1:
        return "get";
      case 2:
        return numbered("tell ", ++told_);
      default:
        return numbered("add ", 1 + random_.below(9));
    }
  }
  void apply(const std::string& key, const std::string& command) {
    std::vector<std::uint64_t>& sums = sums_of(key);
    if (command.starts_with("add ")) sums.push_back(sums.back() + std::stoull(command.substr(4)));
    if (command.starts_with("tell ")) asked_[key].push_back(command.substr(5));
  }
  // A key with a boom among its parts loses all of them: they are refused in the end.
  void poison(const std::string& parts) {
    std::map<std::string, std::vector<std::string>> by_key;
    for (const std::string_view item : testing_host::cut(parts, ';')) {
      const std::size_t colon = item.find(':');
      by_key[std::string(item.substr(0, colon))].emplace_back(item.substr(colon + 1));
    }
    for (const auto& [key, commands] : by_key) {
      sums_of(key);
      if (std::ranges::find(commands, "boom") != commands.end()) continue;
      for (const std::string& command : commands) apply(key, command);
    }
  }
  std::vector<std::uint64_t>& sums_of(const std::string& key) {
    std::vector<std::uint64_t>& sums = added_[key];
    if (sums.empty()) sums.push_back(0);
    return sums;
  }

  // Judges what left since the last look.
  void look() {
    for (; seen_ < rig_->order.size(); ++seen_) {
      const Envelope& e = rig_->order[seen_];
      reader_.take(e);
      if (e.message.kind() != Kind::self) continue;
      const std::string text(e.message.bytes().view());
      if (e.to.kind == ActorKind::placement) {  // told: in the order of asking, none twice
        auto& asked = asked_[e.from.key];
        ASSERT_FALSE(asked.empty());
        EXPECT_EQ(text, asked.front()) << "from " << e.from.key;
        asked.erase(asked.begin());
      } else if (text.find('=') != std::string::npos) {
        const std::string key = text.substr(0, text.find('='));
        const std::uint64_t value = std::stoull(text.substr(text.find('=') + 1));
        EXPECT_GE(value, spoken_[key]) << "out of order";
        spoken_[key] = value;
        // Output commit itself: at this moment the disk holds what is spoken of.
        std::uint64_t durable = 0;
        if (const auto stored = rig_->memory.get(Family::ledger, key + "/n")) durable = decode_u64(*stored);
        EXPECT_GE(durable, value) << key << ": spoken of before it was durable";
      }
    }
  }

  Random random_;
  std::shared_ptr<MemoryDisk> disk_ = std::make_shared<MemoryDisk>();
  std::unique_ptr<Rig> rig_;
  Reader reader_;
  std::size_t seen_ = 0;
  std::uint64_t told_ = 0;
  std::map<std::string, std::vector<std::uint64_t>> added_;  // per key: its values, in order
  std::map<std::string, std::uint64_t> spoken_;              // per key: the largest value that left
  std::map<std::string, std::vector<std::string>> asked_;  // per key: what it was asked to tell, and has not
};

TEST(History, EveryReleasedEffectIsDurableAndOrdersAreKept) {
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    History history(seed);
    for (int i = 0; i < 150 && !testing::Test::HasFailure(); ++i) history.step();
    if (!testing::Test::HasFailure()) history.finish();
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace troupe
