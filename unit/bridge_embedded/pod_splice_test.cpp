#include "k8s-bridge/embedded/pod_splice.hpp"

#include <gtest/gtest.h>

#include <random>

#include "messages/fb/pod_generated.h"
#include "messages/uid.hpp"

namespace troupe {
namespace {

struct Source {
  std::mt19937_64 rng;
  bool coin() { return (rng() & 1U) != 0; }
  std::string word() { return std::to_string(rng() % 100000).append(rng() % 9, 'x'); }
};

// A pod in which each optional field is present or not by chance.
Message random_pod(Source& s) {
  flatbuffers::FlatBufferBuilder b;
  const auto maybe = [&]() -> flatbuffers::Offset<flatbuffers::String> {
    return s.coin() ? b.CreateString(s.word()) : flatbuffers::Offset<flatbuffers::String>{};
  };
  const auto ns = b.CreateString(s.word());
  const auto name = b.CreateString(s.word());
  const auto uid_text = maybe();
  const auto version = maybe();
  std::vector<flatbuffers::Offset<fb::KeyValue>> pairs;
  for (std::uint64_t i = s.rng() % 4; i > 0; --i) {
    pairs.push_back(fb::CreateKeyValueDirect(b, s.word().c_str(), s.word().c_str()));
  }
  const auto labels = s.coin() ? b.CreateVector(pairs) : 0;
  const auto scheduler = maybe();
  const auto node = maybe();
  const auto nominated = maybe();
  const auto phase = maybe();
  const auto gates = s.coin() ? b.CreateVectorOfStrings({"a", "b"}) : 0;
  flatbuffers::FlatBufferBuilder nested;
  fb::PodClassBuilder cls(nested);
  cls.add_non_zero_cpu_milli(static_cast<std::int64_t>(s.rng() % 1000));
  nested.Finish(cls.Finish());
  b.ForceVectorAlignment(nested.GetSize(), 1, nested.GetBufferMinAlignment());
  const auto class_bytes = b.CreateVector(nested.GetBufferPointer(), nested.GetSize());
  const auto pinned = maybe();
  const auto condition = s.coin() ? fb::CreatePodConditionDirect(b, "PodScheduled", "False", "R", "M") : 0;
  std::vector<flatbuffers::Offset<fb::OwnerReference>> refs{
      fb::CreateOwnerReferenceDirect(b, "ReplicaSet", s.word().c_str(), "u", true)};
  const auto owners = s.coin() ? b.CreateVector(refs) : 0;
  fb::PodBuilder pod(b);
  pod.add_namespace_(ns);
  pod.add_name(name);
  const fb::Uid uid(s.rng(), s.rng());
  if (s.coin()) pod.add_uid(&uid);
  pod.add_uid_text(uid_text);
  pod.add_resource_version(version);
  pod.add_labels(labels);
  if (s.coin()) pod.add_creation_ms(static_cast<std::int64_t>(s.rng() >> 1U));
  if (s.coin()) pod.add_deletion_ms(static_cast<std::int64_t>(s.rng() >> 1U));
  if (s.coin()) pod.add_start_ms(static_cast<std::int64_t>(s.rng() >> 1U));
  pod.add_scheduler_name(scheduler);
  pod.add_node_name(node);
  pod.add_nominated_node_name(nominated);
  if (s.coin()) pod.add_priority(static_cast<std::int32_t>(s.rng() >> 33U));
  if (s.coin()) pod.add_preemption_never(true);
  pod.add_phase(phase);
  pod.add_scheduling_gates(gates);
  pod.add_class_bytes(class_bytes);
  pod.add_pinned_node(pinned);
  pod.add_scheduled_condition(condition);
  pod.add_owners(owners);
  b.Finish(pod.Finish());
  return {Kind::pod, b};
}

std::string words(const flatbuffers::Vector<flatbuffers::Offset<fb::KeyValue>>* pairs) {
  if (pairs == nullptr) return "absent";
  std::string out;
  for (const auto* p : *pairs) out += std::string(text(p->key())) + "=" + std::string(text(p->value())) + ",";
  return out;
}

void expect_rest_equal(const fb::Pod& a, const fb::Pod& b) {
  EXPECT_EQ(text(a.namespace_()), text(b.namespace_()));
  EXPECT_EQ(text(a.name()), text(b.name()));
  EXPECT_EQ(PodUid::from(a.uid()), PodUid::from(b.uid()));
  EXPECT_EQ(a.uid() == nullptr, b.uid() == nullptr);
  EXPECT_EQ(text(a.uid_text()), text(b.uid_text()));
  EXPECT_EQ(words(a.labels()), words(b.labels()));
  EXPECT_EQ(a.creation_ms(), b.creation_ms());
  EXPECT_EQ(a.deletion_ms(), b.deletion_ms());
  EXPECT_EQ(a.start_ms(), b.start_ms());
  EXPECT_EQ(text(a.scheduler_name()), text(b.scheduler_name()));
  EXPECT_EQ(a.priority(), b.priority());
  EXPECT_EQ(a.preemption_never(), b.preemption_never());
  EXPECT_EQ(text(a.phase()), text(b.phase()));
  EXPECT_EQ(a.scheduling_gates() == nullptr, b.scheduling_gates() == nullptr);
  ASSERT_NE(b.class_bytes_nested_root(), nullptr);
  EXPECT_EQ(a.class_bytes_nested_root()->non_zero_cpu_milli(),
            b.class_bytes_nested_root()->non_zero_cpu_milli());
  EXPECT_EQ(text(a.pinned_node()), text(b.pinned_node()));
  ASSERT_EQ(a.owners() == nullptr, b.owners() == nullptr);
  if (a.owners() == nullptr) return;
  EXPECT_EQ(text(a.owners()->Get(0)->name()), text(b.owners()->Get(0)->name()));
}

TEST(PodSplice, ReplacesWhatIsAskedAndKeepsEverythingElse) {
  Source s{std::mt19937_64(7)};
  std::vector<std::uint8_t> scratch;
  flatbuffers::FlatBufferBuilder condition;
  condition.Finish(fb::CreatePodConditionDirect(condition, "PodScheduled", "True", "", "m"));
  for (int i = 0; i < 2000; ++i) {
    const Message pod = random_pod(s);
    PodChanges changes;
    const std::string version = s.word();
    const std::string node = s.coin() ? s.word() : std::string();
    const std::string nominated = s.word();
    if (s.coin()) changes.resource_version = version;
    if (s.coin()) changes.node_name = node;
    if (s.coin()) changes.nominated_node_name = nominated;
    if (s.coin()) changes.scheduled_condition = {condition.GetBufferPointer(), condition.GetSize()};
    const Message after = with_changes(pod, changes, scratch);
    const auto checked = Message::verified(static_cast<std::uint16_t>(Kind::pod), after.bytes().span());
    ASSERT_TRUE(checked.has_value());
    const auto& was = pod.as<fb::Pod>();
    const auto& is = checked->as<fb::Pod>();
    expect_rest_equal(was, is);
    EXPECT_EQ(text(is.resource_version()), changes.resource_version ? version : text(was.resource_version()));
    EXPECT_EQ(text(is.node_name()), changes.node_name ? node : text(was.node_name()));
    EXPECT_EQ(text(is.nominated_node_name()),
              changes.nominated_node_name ? nominated : text(was.nominated_node_name()));
    if (!changes.scheduled_condition.empty()) {
      EXPECT_EQ(text(is.scheduled_condition()->status()), "True");
    } else {
      EXPECT_EQ(is.scheduled_condition() == nullptr, was.scheduled_condition() == nullptr);
    }
  }
}

TEST(PodSplice, CanBeAppliedToItsOwnResult) {
  Source s{std::mt19937_64(11)};
  std::vector<std::uint8_t> scratch;
  const Message pod = random_pod(s);
  Message m = pod;
  for (const std::string node : {"n-1", "a-much-longer-node-name.example", "n"}) {
    PodChanges changes;
    changes.node_name = node;
    m = with_changes(m, changes, scratch);
    ASSERT_TRUE(Message::verified(static_cast<std::uint16_t>(Kind::pod), m.bytes().span()).has_value());
    EXPECT_EQ(text(m.as<fb::Pod>().node_name()), node);
    expect_rest_equal(pod.as<fb::Pod>(), m.as<fb::Pod>());
  }
}

}  // namespace
}  // namespace troupe
