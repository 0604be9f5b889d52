#include "k8s-bridge/embedded/embedded_cluster.hpp"

#include <gtest/gtest.h>

#include <map>
#include <mutex>

#include "messages/fb/intent_generated.h"
#include "messages/fb/pod_generated.h"
#include "messages/uid.hpp"

namespace troupe {
namespace {

constexpr std::string_view kUid = "11111111-2222-3333-4444-555555555555";
constexpr std::string_view kOtherUid = "99999999-2222-3333-4444-555555555555";

struct PodSpec {
  std::string name = "web-0";
  std::string uid{kUid};
  std::string node{};
  std::int64_t deletion_ms = 0;
  bool gated = false;
  std::int64_t generation = 0;
};

Message pod_message(const PodSpec& spec) {
  flatbuffers::FlatBufferBuilder b;
  const auto ns = b.CreateString("default");
  const auto name = b.CreateString(spec.name);
  const auto uid_text = b.CreateString(spec.uid);
  const auto node = b.CreateString(spec.node);
  const auto gates =
      b.CreateVectorOfStrings(spec.gated ? std::vector<std::string>{"g"} : std::vector<std::string>{});
  const fb::Uid uid = PodUid::parse(spec.uid).wire();
  fb::PodBuilder pod(b);
  pod.add_namespace_(ns);
  pod.add_name(name);
  pod.add_uid(&uid);
  pod.add_uid_text(uid_text);
  if (!spec.node.empty()) pod.add_node_name(node);
  pod.add_deletion_ms(spec.deletion_ms);
  pod.add_generation(spec.generation);
  if (spec.gated) pod.add_scheduling_gates(gates);
  b.Finish(pod.Finish());
  return {Kind::pod, b};
}

Message node_message(const std::string& name) {
  flatbuffers::FlatBufferBuilder b;
  const auto n = b.CreateString(name);
  fb::NodeBuilder node(b);
  node.add_name(n);
  b.Finish(node.Finish());
  return {Kind::node, b};
}

struct IntentSpec {
  std::uint64_t id = 1;
  fb::IntentKind kind = fb::IntentKind::Bind;
  std::string uid{kUid};
  std::string node = "n1";
  std::uint64_t after = 0;
  std::int64_t generation = 0;
  bool event = false;
  std::string condition_message{};  // PatchStatus: PodScheduled=False with this text
  std::string nominated{};          // PatchStatus: set when not empty
};

Message intent_message(const IntentSpec& spec) {
  flatbuffers::FlatBufferBuilder b;
  const auto key = b.CreateString("n1");
  const auto ns = b.CreateString("default");
  const auto name = b.CreateString("web-0");
  const auto node = b.CreateString(spec.node);
  const auto nominated = b.CreateString(spec.nominated);
  const auto event = fb::CreateEventNoteDirect(b, std::string("e").append(std::to_string(spec.id)).c_str());
  const auto condition = fb::CreatePodConditionDirect(b, "PodScheduled", "False", "Unschedulable",
                                                      spec.condition_message.c_str());
  const fb::Uid uid = PodUid::parse(spec.uid).wire();
  fb::IntentBuilder intent(b);
  intent.add_id(spec.id);
  intent.add_kind(spec.kind);
  intent.add_owner_kind(1);
  intent.add_partition(17);
  intent.add_owner_key(key);
  intent.add_namespace_(ns);
  intent.add_name(name);
  intent.add_uid(&uid);
  intent.add_node(node);
  intent.add_after(spec.after);
  intent.add_generation(spec.generation);
  if (spec.event || spec.kind == fb::IntentKind::Event) intent.add_event(event);
  if (!spec.condition_message.empty()) intent.add_condition(condition);
  if (!spec.nominated.empty()) {
    intent.add_nominated_node(nominated);
    intent.add_has_nominated_node(true);
  }
  b.Finish(intent.Finish());
  return {Kind::intent, b};
}

class Recorder : public ClusterSink {
 public:
  void changed(std::vector<Message> changes) override {
    const std::lock_guard lock(mutex_);
    for (Message& m : changes) {
      // What the port hands out must stand the check for bytes from anywhere.
      ASSERT_TRUE(Message::verified(static_cast<std::uint16_t>(m.kind()), m.bytes().span()).has_value());
      changes_.push_back(std::move(m));
    }
  }
  void synced() override {
    const std::lock_guard lock(mutex_);
    changes_before_sync_ = changes_.size();
    ++synced_;
  }
  void settled(std::vector<Message> results) override {
    const std::lock_guard lock(mutex_);
    for (Message& m : results) results_.push_back(std::move(m));
  }
  void rejected(const Error& error) override { ADD_FAILURE() << error.text(); }
  void active(bool active) override {
    const std::lock_guard lock(mutex_);
    active_ = active;
  }

  std::mutex mutex_;
  std::vector<Message> changes_;
  std::vector<Message> results_;
  std::size_t changes_before_sync_ = 0;
  int synced_ = 0;
  bool active_ = false;
};

class Embedded : public ::testing::Test {
 protected:
  void begin() { ASSERT_TRUE(cluster_.start(sink_).has_value()); }
  const fb::IntentResult& run(const IntentSpec& spec) {
    cluster_.issue({intent_message(spec)});
    cluster_.settle();
    return sink_.results_.back().as<fb::IntentResult>();
  }
  const fb::Pod& last_pod() { return sink_.changes_.back().as<fb::Pod>(); }

  Recorder sink_;
  EmbeddedCluster cluster_{{.event_ring = 4}};
};

TEST_F(Embedded, WhatWasPutBeforeStartComesBeforeSynced) {
  cluster_.add_node(node_message("n1"));
  cluster_.add_pod(pod_message({}));
  begin();
  cluster_.settle();
  EXPECT_TRUE(sink_.active_);
  EXPECT_EQ(sink_.synced_, 1);
  EXPECT_EQ(sink_.changes_before_sync_, 2U);
}

TEST_F(Embedded, AnEmptyClusterIsSyncedToo) {
  begin();
  cluster_.add_pod(pod_message({}));
  cluster_.settle();
  EXPECT_EQ(sink_.synced_, 1);
  EXPECT_FALSE(cluster_.start(sink_).has_value());
}

TEST_F(Embedded, BindShowsThePodOnItsNode) {
  begin();
  cluster_.add_pod(pod_message({}));
  const auto& result = run({.event = true});
  EXPECT_EQ(result.outcome(), fb::IntentOutcome::Done);
  EXPECT_EQ(result.stage(), fb::IntentStage::Complete);
  EXPECT_EQ(result.http_status(), 201);
  EXPECT_EQ(text(result.owner_key()), "n1");
  EXPECT_EQ(result.owner_kind(), 1);
  EXPECT_EQ(result.partition(), 17U);
  EXPECT_EQ(PodUid::from(result.uid()).text(), kUid);
  EXPECT_EQ(sink_.changes_.back().kind(), Kind::pod);
  EXPECT_EQ(text(last_pod().node_name()), "n1");
  EXPECT_EQ(text(last_pod().scheduled_condition()->status()), "True");
  EXPECT_EQ(cluster_.events().size(), 1U);
}

TEST_F(Embedded, BindIsIdempotentAndRefusesAnotherNode) {
  begin();
  cluster_.add_pod(pod_message({}));
  run({.id = 1});
  EXPECT_EQ(run({.id = 2}).outcome(), fb::IntentOutcome::Done);
  const auto& other = run({.id = 3, .node = "n2"});
  EXPECT_EQ(other.outcome(), fb::IntentOutcome::Elsewhere);
  EXPECT_EQ(text(other.message()), R"(pod web-0 is already assigned to node "n1")");
  EXPECT_EQ(text(last_pod().node_name()), "n1");
  EXPECT_EQ(cluster_.stats().intents_done, 2U);
  EXPECT_EQ(cluster_.stats().intents_failed, 1U);
}

TEST_F(Embedded, BindOfAMissingOrRecreatedPodIsGone) {
  begin();
  const auto& missing = run({});
  EXPECT_EQ(missing.outcome(), fb::IntentOutcome::Gone);
  EXPECT_EQ(missing.http_status(), 404);
  cluster_.add_pod(pod_message({.uid = std::string(kOtherUid)}));
  const auto& recreated = run({});
  EXPECT_EQ(recreated.outcome(), fb::IntentOutcome::Gone);
  EXPECT_EQ(recreated.http_status(), 409);
}

TEST_F(Embedded, BindRefusesLeavingAndGatedPods) {
  begin();
  cluster_.add_pod(pod_message({.deletion_ms = 5}));
  EXPECT_EQ(run({}).outcome(), fb::IntentOutcome::Gone);
  cluster_.add_pod(pod_message({.gated = true}));
  const auto& gated = run({});
  EXPECT_EQ(gated.outcome(), fb::IntentOutcome::Refused);
  EXPECT_EQ(text(gated.message()), "pod web-0 has non-empty .spec.schedulingGates");
}

TEST_F(Embedded, BindRefusesAPodWhoseSpecHasChanged) {
  begin();
  cluster_.add_pod(pod_message({.generation = 3}));
  EXPECT_EQ(run({.generation = 2}).outcome(), fb::IntentOutcome::Refused);
  EXPECT_EQ(run({.generation = 3}).outcome(), fb::IntentOutcome::Done);
}

TEST_F(Embedded, ARecreatedPodArrivesAsGoneThenAdded) {
  begin();
  cluster_.add_pod(pod_message({}));
  run({});
  cluster_.add_pod(pod_message({.uid = std::string(kOtherUid)}));
  cluster_.settle();
  const auto n = sink_.changes_.size();
  ASSERT_GE(n, 2U);
  ASSERT_EQ(sink_.changes_[n - 2].kind(), Kind::gone);
  const auto& gone = sink_.changes_[n - 2].as<fb::Gone>();
  EXPECT_EQ(PodUid::from(gone.uid()).text(), kUid);
  EXPECT_EQ(text(gone.node_name()), "n1");
  EXPECT_EQ(PodUid::from(last_pod().uid()).text(), kOtherUid);
  EXPECT_EQ(text(last_pod().node_name()), "");
}

TEST_F(Embedded, DeleteAndEvictRemoveThePod) {
  for (const auto kind : {fb::IntentKind::Delete, fb::IntentKind::Evict}) {
    EmbeddedCluster cluster;
    Recorder sink;
    ASSERT_TRUE(cluster.start(sink).has_value());
    cluster.add_pod(pod_message({.node = "n9"}));
    cluster.issue({intent_message({.id = 1, .kind = kind}), intent_message({.id = 2, .kind = kind})});
    cluster.settle();
    ASSERT_EQ(sink.results_.size(), 2U);
    EXPECT_EQ(sink.results_[0].as<fb::IntentResult>().outcome(), fb::IntentOutcome::Done);
    EXPECT_EQ(sink.results_[1].as<fb::IntentResult>().outcome(), fb::IntentOutcome::Gone);
    ASSERT_EQ(sink.changes_.back().kind(), Kind::gone);
    EXPECT_EQ(text(sink.changes_.back().as<fb::Gone>().node_name()), "n9");
  }
}

TEST_F(Embedded, APatchThatChangesNothingWritesNothing) {
  begin();
  cluster_.add_pod(pod_message({}));
  const IntentSpec spec{
      .kind = fb::IntentKind::PatchStatus, .condition_message = "0/1 nodes are available", .nominated = "n7"};
  run(spec);
  const auto changes = sink_.changes_.size();
  EXPECT_EQ(text(last_pod().scheduled_condition()->message()), "0/1 nodes are available");
  EXPECT_EQ(text(last_pod().nominated_node_name()), "n7");
  EXPECT_EQ(run(spec).outcome(), fb::IntentOutcome::Done);
  EXPECT_EQ(sink_.changes_.size(), changes);
}

TEST_F(Embedded, AnIntentWaitsForTheOneThatItNames) {
  begin();
  cluster_.add_pod(pod_message({}));
  cluster_.issue(
      {intent_message({.id = 2, .kind = fb::IntentKind::Delete, .after = 1}), intent_message({.id = 1})});
  cluster_.settle();
  ASSERT_EQ(sink_.results_.size(), 2U);
  EXPECT_EQ(sink_.results_[0].as<fb::IntentResult>().id(), 1U);
  EXPECT_EQ(sink_.results_[0].as<fb::IntentResult>().outcome(), fb::IntentOutcome::Done);
  EXPECT_EQ(sink_.results_[1].as<fb::IntentResult>().id(), 2U);
}

TEST_F(Embedded, IntentsThatWaitInACircleAllEnd) {
  begin();
  cluster_.issue({intent_message({.id = 1, .after = 2}), intent_message({.id = 2, .after = 1})});
  cluster_.settle();
  EXPECT_EQ(sink_.results_.size(), 2U);
}

TEST_F(Embedded, KeepsTheLatestEventsOldestFirst) {
  begin();
  for (std::uint64_t id = 1; id <= 11; ++id) {
    cluster_.issue({intent_message({.id = id, .kind = fb::IntentKind::Event})});
    if (id % 3 == 0) cluster_.settle();
  }
  cluster_.settle();
  const auto events = cluster_.events();
  ASSERT_EQ(events.size(), 4U);
  for (std::size_t i = 0; i < events.size(); ++i) EXPECT_EQ(events[i].as<fb::Intent>().id(), 8 + i);
}

TEST_F(Embedded, DeletingByNameTellsTheLastNode) {
  begin();
  cluster_.add_node(node_message("n1"));
  cluster_.add_pod(pod_message({}));
  run({});
  cluster_.delete_pod("default", "web-0");
  cluster_.delete_pod("default", "web-0");
  cluster_.delete_node("n1");
  cluster_.settle();
  const auto n = sink_.changes_.size();
  EXPECT_EQ(text(sink_.changes_[n - 2].as<fb::Gone>().node_name()), "n1");
  EXPECT_EQ(sink_.changes_[n - 1].as<fb::Gone>().kind(), fb::ObjectKind::Node);
}

TEST_F(Embedded, StopLeavesTheRestUnsettled) {
  begin();
  cluster_.settle();
  cluster_.stop();
  cluster_.issue({intent_message({})});
  cluster_.settle();
  EXPECT_TRUE(sink_.results_.empty());
}

}  // namespace
}  // namespace troupe
