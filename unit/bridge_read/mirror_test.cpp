#include "k8s-bridge/reflect/mirror.hpp"

#include <gtest/gtest.h>

#include "messages/fb/pod_generated.h"
#include "unit/bridge_read/fake_api.hpp"

namespace troupe {
namespace {

using testing::FakePod;

class MirrorTest : public ::testing::Test {
 protected:
  Message pod(const FakePod& p) {
    auto decoded = decoder_.object(fb::ObjectKind::Pod, p.json());
    EXPECT_TRUE(decoded.has_value());
    return *decoded;
  }
  std::vector<Message> put(const FakePod& p) {
    std::vector<Message> out;
    mirror_.put(pod(p), out);
    return out;
  }
  static ObjectRef ref(std::string name, std::string uid = {}) {
    return {fb::ObjectKind::Pod, "default", std::move(name), std::move(uid), {}};
  }

  Decoder decoder_;
  Mirror mirror_{fb::ObjectKind::Pod};
};

TEST_F(MirrorTest, TellsWhatIsThereForTheFirstTimeAndWhatChanged) {
  EXPECT_EQ(put({.name = "a", .uid = "1", .version = 5}).size(), 1U);
  EXPECT_EQ(put({.name = "a", .uid = "1", .cpu_milli = 200, .version = 6}).size(), 1U);
  EXPECT_EQ(mirror_.size(), 1U);
}

TEST_F(MirrorTest, ABoundPodThatOnlyGotAnotherVersionIsNoNews) {
  put({.name = "a", .uid = "1", .node = "n", .version = 5});
  EXPECT_TRUE(put({.name = "a", .uid = "1", .node = "n", .version = 6}).empty());
  EXPECT_EQ(put({.name = "a", .uid = "1", .node = "n", .finished = true, .version = 7}).size(), 1U);
}

TEST_F(MirrorTest, TheVersionOfAnUnboundPodIsNews) {
  put({.name = "a", .uid = "1", .version = 5});
  EXPECT_TRUE(put({.name = "a", .uid = "1", .version = 5}).empty());
  EXPECT_EQ(put({.name = "a", .uid = "1", .version = 6}).size(), 1U);
}

TEST_F(MirrorTest, ARecreatedObjectIsGoneThenAdded) {
  put({.name = "a", .uid = "1", .node = "n7", .version = 5});
  const auto changes = put({.name = "a", .uid = "2", .version = 6});
  ASSERT_EQ(changes.size(), 2U);
  ASSERT_EQ(changes[0].kind(), Kind::gone);
  const auto& gone = changes[0].as<fb::Gone>();
  EXPECT_EQ(PodUid::from(gone.uid()), PodUid::parse("1"));
  EXPECT_EQ(text(gone.node_name()), "n7");
  EXPECT_EQ(text(gone.namespace_()), "default");
  EXPECT_EQ(text(gone.name()), "a");
  EXPECT_EQ(changes[1].kind(), Kind::pod);
}

TEST_F(MirrorTest, ADeletionTellsTheNodeOfTheLastState) {
  put({.name = "a", .uid = "1", .version = 5});
  std::vector<Message> changes;
  const Message last = pod({.name = "a", .uid = "1", .node = "n3", .version = 9});
  mirror_.remove(ref("a"), &last, changes);
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(text(changes[0].as<fb::Gone>().node_name()), "n3");
  changes.clear();
  mirror_.remove(ref("a"), &last, changes);
  EXPECT_TRUE(changes.empty());
}

TEST_F(MirrorTest, AListFindsWhatWasDeletedMeanwhile) {
  put({.name = "a", .uid = "1", .version = 5});
  put({.name = "b", .uid = "2", .node = "n1", .version = 5});
  put({.name = "c", .uid = "3", .version = 5});
  std::vector<Message> changes;
  mirror_.begin_list();
  mirror_.put(pod({.name = "a", .uid = "1", .version = 5}), changes);
  mirror_.keep(ref("c", "3"), changes);
  mirror_.end_list(changes);
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(text(changes[0].as<fb::Gone>().name()), "b");
  EXPECT_EQ(text(changes[0].as<fb::Gone>().node_name()), "n1");
  EXPECT_EQ(mirror_.size(), 2U);
}

TEST_F(MirrorTest, WhatCannotBeUnderstoodKeepsItsLastVersionUnlessItIsAnother) {
  put({.name = "a", .uid = "1", .version = 5});
  std::vector<Message> changes;
  mirror_.keep(ref("a", "1"), changes);
  mirror_.keep(ref("never-seen", "9"), changes);
  EXPECT_TRUE(changes.empty());
  mirror_.keep(ref("a", "2"), changes);
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].kind(), Kind::gone);
  EXPECT_EQ(mirror_.size(), 0U);
}

TEST(MirrorOfOtherKinds, WorksWithoutUids) {
  Decoder decoder;
  Mirror mirror(fb::ObjectKind::Namespace);
  std::vector<Message> changes;
  const auto object = [&](const std::string& version, const std::string& label) {
    return *decoder.object(fb::ObjectKind::Namespace,
                           R"({"metadata":{"name":"web","uid":"u","resourceVersion":")" + version +
                               R"(","labels":{"a":")" + label + R"("}}})");
  };
  mirror.put(object("1", "x"), changes);
  mirror.put(object("2", "x"), changes);
  EXPECT_EQ(changes.size(), 1U);
  mirror.put(object("3", "y"), changes);
  EXPECT_EQ(changes.size(), 2U);
  mirror.begin_list();
  mirror.end_list(changes);
  ASSERT_EQ(changes.size(), 3U);
  EXPECT_EQ(changes[2].as<fb::Gone>().kind(), fb::ObjectKind::Namespace);
  EXPECT_EQ(text(changes[2].as<fb::Gone>().name()), "web");
}

}  // namespace
}  // namespace troupe
