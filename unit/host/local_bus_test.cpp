#include "actors/host/local_bus.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "unit/host/tally.hpp"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing_host::text_message;

Envelope envelope(ActorKind kind, std::uint32_t partition, std::string_view text, std::string from = {}) {
  return {{ActorKind::api, 0, std::move(from)}, {kind, partition, {}}, text_message(text)};
}

std::vector<std::string> texts(const std::vector<Envelope>& envelopes) {
  std::vector<std::string> out;
  for (const Envelope& e : envelopes) out.emplace_back(e.message.bytes().view());
  return out;
}

TEST(LocalBus, GroupsByDestinationAndKeepsTheOrder) {
  std::vector<std::string> lost;
  LocalBus bus([&](const Envelope& e) { lost.emplace_back(e.message.bytes().view()); });
  int wakes = 0;
  Mailbox& zero = bus.add_mailbox(ActorKind::node, 0, [&] { ++wakes; });
  Mailbox& two = bus.add_mailbox(ActorKind::node, 2, [&] { ++wakes; });
  std::vector<std::vector<std::string>> port;
  bus.add_port(ActorKind::bridge, 0, [&](std::vector<Envelope> e) { port.push_back(texts(e)); });
  std::vector<Envelope> none;
  zero.take(none);
  two.take(none);

  bus.send({envelope(ActorKind::node, 0, "a"), envelope(ActorKind::bridge, 0, "b"),
            envelope(ActorKind::node, 2, "c"), envelope(ActorKind::node, 1, "d"),
            envelope(ActorKind::node, 0, "e"), envelope(ActorKind::bridge, 0, "f"),
            envelope(ActorKind::api, 9, "g")});
  bus.send({envelope(ActorKind::node, 0, "h"), envelope(ActorKind::node, 0, "i")});
  EXPECT_EQ(wakes, 2);
  EXPECT_THAT(lost, ElementsAre("d", "g"));
  EXPECT_THAT(port, ElementsAre(ElementsAre("b", "f")));
  std::vector<Envelope> out;
  zero.take(out);
  EXPECT_THAT(texts(out), ElementsAre("a", "e", "h", "i"));
  out.clear();
  two.take(out);
  EXPECT_THAT(texts(out), ElementsAre("c"));
}

TEST(LocalBus, WakesNobodyBeforeTheFirstTake) {
  LocalBus bus([](const Envelope&) {});
  int wakes = 0;
  Mailbox& box = bus.add_mailbox(ActorKind::node, 0, [&] { ++wakes; });
  bus.send({envelope(ActorKind::node, 0, "a")});
  bus.knock(ActorKind::node, 0);
  EXPECT_EQ(wakes, 0);
  std::vector<Envelope> out;
  box.take(out);
  EXPECT_EQ(out.size(), 1U);
  bus.knock(ActorKind::node, 0);
  bus.knock(ActorKind::node, 0);
  EXPECT_EQ(wakes, 1);
}

TEST(LocalBus, TellsWhenItIsAtRest) {
  LocalBus bus([](const Envelope&) {});
  Mailbox& box = bus.add_mailbox(ActorKind::node, 0, [] {});
  const auto now = [] { return std::chrono::steady_clock::now(); };
  EXPECT_TRUE(bus.wait_for_rest(now()));
  bus.send({envelope(ActorKind::node, 0, "a"), envelope(ActorKind::node, 0, "b")});
  EXPECT_FALSE(bus.wait_for_rest(now()));
  std::thread actor([&] {
    bus.begin_work();
    std::vector<Envelope> out;
    box.take(out);
    bus.end_work(out.size());
  });
  EXPECT_TRUE(bus.wait_for_rest(now() + std::chrono::seconds(30)));
  actor.join();
  bus.send({envelope(ActorKind::node, 0, "c")});
  bus.close();
  EXPECT_TRUE(bus.wait_for_rest(now()));
  EXPECT_EQ(box.size(), 0U);
  bus.send({envelope(ActorKind::node, 0, "late")});
  EXPECT_TRUE(bus.wait_for_rest(now()));
}

TEST(Mailbox, KeepsTheOrderOfEachOfManySenders) {
  LocalBus bus([](const Envelope&) {});
  Mailbox& box = bus.add_mailbox(ActorKind::node, 0, [] {});
  constexpr int kSenders = 4;
  constexpr int kMessages = 5000;
  std::vector<std::thread> senders;
  for (int s = 0; s < kSenders; ++s) {
    senders.emplace_back([&bus, s] {
      for (int i = 0; i < kMessages; ++i) {
        bus.send({envelope(ActorKind::node, 0, std::to_string(i), std::to_string(s))});
      }
    });
  }
  std::vector<int> next(kSenders, 0);
  int taken = 0;
  std::vector<Envelope> out;
  while (taken < kSenders * kMessages) {
    box.take(out);
    for (const Envelope& e : out) {
      EXPECT_EQ(std::stoi(std::string(e.message.bytes().view())), next[std::stoul(e.from.key)]++);
      ++taken;
    }
    out.clear();
    std::this_thread::yield();
  }
  for (std::thread& sender : senders) sender.join();
}

}  // namespace
}  // namespace troupe
