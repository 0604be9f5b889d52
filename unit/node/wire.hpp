// Small builders of wire messages for the node tests.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "messages/fb/commit_generated.h"
#include "messages/fb/intent_generated.h"
#include "messages/fb/ledger_generated.h"
#include "messages/fb/node_generated.h"
#include "messages/fb/pod_generated.h"
#include "messages/message.hpp"
#include "messages/uid.hpp"

namespace troupe::test {

struct ClassSpec {
  std::int64_t cpu = 1000;        // milli-CPU
  std::int64_t memory = 1 << 20;  // bytes
  std::vector<int> host_ports = {};

  [[nodiscard]] std::vector<std::uint8_t> bytes() const {
    flatbuffers::FlatBufferBuilder b;
    std::vector<flatbuffers::Offset<fb::ResourceAmount>> amounts;
    amounts.push_back(fb::CreateResourceAmount(b, b.CreateString("cpu"), cpu));
    amounts.push_back(fb::CreateResourceAmount(b, b.CreateString("memory"), memory));
    const auto requests = b.CreateVector(amounts);
    std::vector<flatbuffers::Offset<fb::HostPort>> ports;
    for (const int p : host_ports)
      ports.push_back(fb::CreateHostPort(b, b.CreateString(""), b.CreateString("TCP"), p));
    const auto ports_at = b.CreateVector(ports);
    fb::PodClassBuilder c(b);
    c.add_requests(requests);
    c.add_non_zero_cpu_milli(cpu);
    c.add_non_zero_memory_bytes(memory);
    c.add_host_ports(ports_at);
    b.Finish(c.Finish());
    return {b.GetBufferPointer(), b.GetBufferPointer() + b.GetSize()};
  }
};

struct NodeSpec {
  std::string name = "n1";
  std::int64_t cpu = 4000;          // milli-CPU
  std::int64_t memory = 1LL << 33;  // bytes
  std::int64_t pods = 110;
  bool unschedulable = false;

  [[nodiscard]] Message message() const {
    flatbuffers::FlatBufferBuilder b;
    std::vector<flatbuffers::Offset<fb::ResourceAmount>> amounts;
    amounts.push_back(fb::CreateResourceAmount(b, b.CreateString("cpu"), cpu));
    amounts.push_back(fb::CreateResourceAmount(b, b.CreateString("memory"), memory));
    amounts.push_back(fb::CreateResourceAmount(b, b.CreateString("pods"), pods));
    const auto allocatable = b.CreateVector(amounts);
    const auto at = b.CreateString(name);
    fb::NodeBuilder n(b);
    n.add_name(at);
    n.add_allocatable(allocatable);
    n.add_unschedulable(unschedulable);
    b.Finish(n.Finish());
    return {Kind::node, b};
  }
};

inline std::string uid_text(unsigned n) {
  return PodUid{0x1111222233334444ULL, n}.text();
}

struct CommitSpec {
  unsigned pod = 1;
  std::uint64_t shard_epoch = 1;
  std::uint64_t n = 1;
  std::string node = "n1";
  ClassSpec cls{};
};

inline Message commit_batch(const std::vector<CommitSpec>& specs) {
  flatbuffers::FlatBufferBuilder b;
  std::vector<flatbuffers::Offset<fb::ClassBytes>> classes;
  std::vector<flatbuffers::Offset<fb::Commit>> commits;
  std::uint64_t epoch = 0;
  for (const CommitSpec& s : specs) {
    const auto bytes = s.cls.bytes();
    b.ForceVectorAlignment(bytes.size(), 1, 8);
    classes.push_back(fb::CreateClassBytes(b, b.CreateVector(bytes)));
    const auto node = b.CreateString(s.node);
    const auto ns = b.CreateString("default");
    const auto name = b.CreateString("pod-" + std::to_string(s.pod));
    const auto uid = b.CreateString(uid_text(s.pod));
    const auto rv = b.CreateString("7");
    const auto scheduler = b.CreateString("koord-scheduler");
    const fb::CommitId id = CommitKey{PodUid::parse(uid_text(s.pod)), s.shard_epoch, s.n}.wire();
    fb::CommitBuilder c(b);
    c.add_id(&id);
    c.add_node(node);
    c.add_class_index(static_cast<std::uint16_t>(classes.size() - 1));
    c.add_namespace_(ns);
    c.add_name(name);
    c.add_uid_text(uid);
    c.add_resource_version(rv);
    c.add_scheduler_name(scheduler);
    commits.push_back(c.Finish());
    epoch = s.shard_epoch;
  }
  const auto classes_at = b.CreateVector(classes);
  const auto commits_at = b.CreateVector(commits);
  fb::CommitBatchBuilder batch(b);
  batch.add_shard_epoch(epoch);
  batch.add_classes(classes_at);
  batch.add_commits(commits_at);
  b.Finish(batch.Finish());
  return {Kind::commit_batch, b};
}

inline Message pod_on(unsigned pod, const std::string& node, const ClassSpec& cls = {}) {
  flatbuffers::FlatBufferBuilder b;
  const auto bytes = cls.bytes();
  b.ForceVectorAlignment(bytes.size(), 1, 8);
  const auto class_at = b.CreateVector(bytes);
  const auto ns = b.CreateString("default");
  const auto name = b.CreateString("pod-" + std::to_string(pod));
  const auto text_at = b.CreateString(uid_text(pod));
  const auto node_at = b.CreateString(node);
  const fb::Uid uid = PodUid::parse(uid_text(pod)).wire();
  fb::PodBuilder p(b);
  p.add_namespace_(ns);
  p.add_name(name);
  p.add_uid(&uid);
  p.add_uid_text(text_at);
  p.add_node_name(node_at);
  p.add_class_bytes(class_at);
  b.Finish(p.Finish());
  return {Kind::pod, b};
}

inline Message gone_pod(unsigned pod, const std::string& node) {
  flatbuffers::FlatBufferBuilder b;
  const fb::Uid uid = PodUid::parse(uid_text(pod)).wire();
  const auto name = b.CreateString("pod-" + std::to_string(pod));
  const auto node_at = b.CreateString(node);
  fb::GoneBuilder g(b);
  g.add_kind(fb::ObjectKind::Pod);
  g.add_name(name);
  g.add_uid(&uid);
  g.add_node_name(node_at);
  b.Finish(g.Finish());
  return {Kind::gone, b};
}

inline Message result(std::uint64_t intent, unsigned pod, fb::IntentStage stage, fb::IntentOutcome outcome) {
  flatbuffers::FlatBufferBuilder b;
  const fb::Uid uid = PodUid::parse(uid_text(pod)).wire();
  const auto key = b.CreateString("n1");
  fb::IntentResultBuilder r(b);
  r.add_id(intent);
  r.add_kind(fb::IntentKind::Bind);
  r.add_stage(stage);
  r.add_owner_key(key);
  r.add_uid(&uid);
  r.add_outcome(outcome);
  b.Finish(r.Finish());
  return {Kind::intent_result, b};
}

}  // namespace troupe::test
