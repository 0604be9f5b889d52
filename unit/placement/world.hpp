// A cluster around one Placement: node owners, partition streams, a mirror and a network, all in one thread
// under a virtual clock. The owners are a model: they keep what a node's owner promises (idempotent commits,
// durable refusal of old shard epochs, ordered deltas) in the plainest way, and a seeded network loses,
// repeats and delays what they say.
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "actors/placement/placement.hpp"
#include "messages/fb/commit_generated.h"
#include "messages/fb/intent_generated.h"
#include "messages/fb/pod_generated.h"
#include "messages/fb/query_generated.h"
#include "unit/placement/wire.hpp"

namespace troupe::testing {

/// A pod to be scheduled.
struct PodSpec {
  std::string name = {};
  std::int64_t cpu = 100;
  std::int64_t memory = 1 << 20;
  std::int32_t priority = 0;
  std::string scheduler = "koord-scheduler";
  std::string pinned = {};
  std::vector<std::string> gates = {};
  std::vector<Toleration> tolerations = {};
  std::map<std::string, std::string> labels = {};
  bool deleting = false;
};

struct NodeSpec {
  std::string name = {};
  std::int64_t cpu = 4000;
  std::int64_t memory = std::int64_t{8} << 30;
  std::int64_t pods = 110;
  bool cordoned = false;
  std::vector<std::string> taints = {};  // keys, NoSchedule
};

struct Faults {
  int lose = 0;  // per cent of the messages between owners and placement
  int repeat = 0;
  int late = 0;
  int refuse = 0;      // of the commits, although there is room
  int bind_fails = 0;  // of the binds
  int move = 0;        // per mille of the steps: a partition gets another owner
};

class World {
 public:
  /// `answering`: owners answer from the start.
  explicit World(PlacementOptions options, std::uint64_t seed = 1, bool answering = true)
      : answer(answering),
        options_(options),
        random_(seed),
        placement_random_(seed),
        placement_(std::make_unique<Placement>(std::move(options))) {
    partitions_.resize(options_.node_partitions);
    placement_->start(turn_);
    collect();
  }

  // --- the cluster ---
  void add_node(const NodeSpec& spec) {
    nodes_[spec.name].spec = spec;
    nodes_[spec.name].exists = true;
    mirror(node_message(spec));
  }
  void update_node(const NodeSpec& spec) { add_node(spec); }
  void remove_node(const std::string& name) {
    nodes_[name].exists = false;
    gone(fb::ObjectKind::Node, {}, name, {});
  }
  void add_pod(const PodSpec& spec) {
    if (!uids_.contains(spec.name)) uids_[spec.name] = PodUid{7, ++next_uid_};
    pods_[spec.name] = spec;
    mirror(pod_message(spec, {}));
  }
  void delete_pod(const std::string& name) {
    const PodUid uid = uids_[name];
    std::string node;
    if (const auto it = bound_.find(name); it != bound_.end()) node = it->second;
    bound_.erase(name);
    pods_.erase(name);
    uids_.erase(name);
    gone(fb::ObjectKind::Pod, "default", name, uid);
    for (auto& [node_name, n] : nodes_) release(node_name, uid);
  }
  void delete_if_exists(const std::string& name) {
    if (pods_.contains(name)) delete_pod(name);
  }
  [[nodiscard]] std::size_t pods() const { return pods_.size(); }
  /// A placement that knows nothing takes over, and is told everything by the mirror.
  void restart(const PlacementOptions& options) {
    placement_ = std::make_unique<Placement>(options);
    timers_.clear();
    placement_->start(turn_);
    collect();
    for (const auto& [name, n] : nodes_) {
      if (n.exists) mirror(node_message(n.spec));
    }
    for (const auto& [name, spec] : pods_) {
      const auto it = bound_.find(name);
      mirror(pod_message(spec, it == bound_.end() ? std::string() : it->second));
    }
    synced();
  }
  void synced() {
    Builder b;
    b.Finish(fb::CreateSynced(b, nodes_.size() + pods_.size()));
    mirror({Kind::synced, b});
  }
  /// Another scheduler binds a pod.
  void bind_foreign(const std::string& name, const std::string& node) {
    bound_[name] = node;
    enter(node, uids_[name], {}, class_of(pods_[name]), fb::EntryState::Bound);
    mirror(pod_message(pods_[name], node));
  }

  // --- time ---
  /// Lets `ms` pass in steps, running everything that is due.
  void run(Millis ms, Millis step = 50) {
    for (const Millis end = now_ + ms; now_ < end;) {
      now_ += step;
      turn_.set_time(kEpoch + now_, now_);
      if (random_.below(1000) < static_cast<std::uint64_t>(faults.move)) move(pick_partition());
      settle_binds();
      if (now_ % 1000 == 0) heads();
      std::vector<Timer> due;
      std::erase_if(timers_, [&](const auto& t) {
        if (t.first > now_) return false;
        due.push_back(t.second);
        return true;
      });
      for (Timer& t : due) deliver(t.message, {});
      deliver_due();
      while (placement_->wants_cycle()) {
        placement_->cycle(turn_);
        collect();
        if (!eager) break;
      }
      deliver_due();
    }
  }
  Faults faults;
  bool eager = true;  // cycles until nothing is left, at every step
  bool answer;        // owners answer at all
  bool binds_settle = true;

  // --- looking ---
  [[nodiscard]] const std::map<std::string, std::string>& bound() const { return bound_; }
  [[nodiscard]] Placement& placement() { return *placement_; }
  [[nodiscard]] PlacementStats stats() const { return placement_->stats(); }
  [[nodiscard]] std::string query(const std::string& verb, const std::string& ns = {},
                                  const std::string& name = {}) {
    Builder b;
    const auto v = b.CreateString(verb);
    const auto n = b.CreateString(ns);
    const auto p = b.CreateString(name);
    b.Finish(fb::CreateQuery(b, 5, v, n, p));
    answer_.clear();
    deliver({Kind::query, b}, {ActorKind::api, 0, "test"});
    return answer_;
  }
  /// Per node: how many pods its owner counts.
  [[nodiscard]] std::map<std::string, std::size_t> load() const {
    std::map<std::string, std::size_t> out;
    for (const auto& [name, n] : nodes_) {
      if (n.exists) out[name] = n.ledger.size();
    }
    return out;
  }
  [[nodiscard]] std::size_t entries() const {
    std::size_t n = 0;
    for (const auto& [name, node] : nodes_) n += node.ledger.size();
    return n;
  }
  /// Milli-CPU that a node's owner counts.
  [[nodiscard]] std::int64_t cpu(const std::string& node) const {
    std::int64_t sum = 0;
    for (const auto& [uid, e] : nodes_.at(node).ledger) sum += e.cls.request(kCpu);
    return sum;
  }
  [[nodiscard]] std::vector<std::string> node_names() const {
    std::vector<std::string> out;
    for (const auto& [name, n] : nodes_) {
      if (n.exists) out.push_back(name);
    }
    return out;
  }
  struct Report {
    std::string pod;
    fb::IntentKind kind{};
    std::string reason;
    std::string text;
  };
  std::vector<Report> reports;
  std::vector<std::pair<std::string, std::string>> public_events;  // type, pod
  std::size_t commits_seen = 0;
  std::size_t releases_seen = 0;
  /// Every grant, in order: pod and node.
  std::vector<std::pair<std::string, std::string>> grants;

  Message node_message(const NodeSpec& spec) {
    RowNode row;
    row.node_name = interner_.id(spec.name);
    row.cordoned = spec.cordoned;
    for (const std::string& t : spec.taints)
      row.taint_list.push_back({interner_.id(t), 0, fb::TaintEffect::NoSchedule});
    row.labels[interner_.id("kubernetes.io/hostname")] = row.node_name;
    row.allocatable_amounts = {{kCpu, spec.cpu}, {kMemory, spec.memory}};
    row.pods_allowed = spec.pods;
    return testing::node_message(row, interner_);
  }
  /// Hands a message of the mirror over at once, in order.
  void mirror(const Message& m) { deliver(m, {}); }

 private:
  static constexpr Millis kEpoch = 1'700'000'000'000;

  struct Entry {
    PodUid uid;
    CommitKey commit;
    std::vector<std::uint8_t> bytes;
    PodClass cls;
    fb::EntryState state = fb::EntryState::Granted;
    std::string pod;
    Millis bind_at = 0;  // when its bind ends; 0: has ended
  };
  struct Node {
    NodeSpec spec;
    bool exists = false;
    std::map<PodUid, Entry> ledger;
    std::uint64_t version = 0;
  };
  struct Partition {
    std::uint64_t epoch = 3;
    std::uint64_t sequence = 0;
    std::uint64_t shard_epoch = 0;
  };
  struct InTransit {
    Millis at = 0;
    std::uint64_t order = 0;
    int channel = 0;
    Message message;
    Address from;
  };

  std::uint32_t pick_partition() { return static_cast<std::uint32_t>(random_.below(partitions_.size())); }
  std::uint32_t partition_of_node(const std::string& node) const {
    return partition_of(node, options_.node_partitions);
  }
  bool chance(int percent) { return random_.below(100) < static_cast<std::uint64_t>(percent); }

  std::vector<std::uint8_t> class_of(const PodSpec& spec) {
    PodClass c;
    if (spec.cpu > 0) c.requests.push_back({kCpu, spec.cpu});
    if (spec.memory > 0) c.requests.push_back({kMemory, spec.memory});
    c.non_zero_cpu = spec.cpu > 0 ? spec.cpu : 100;
    c.non_zero_memory = spec.memory > 0 ? spec.memory : std::int64_t{200} << 20;
    c.score_cpu = c.non_zero_cpu;
    c.score_memory = c.non_zero_memory;
    c.score_requests = c.requests;
    c.tolerations = spec.tolerations;
    return class_bytes(c, interner_);
  }

 public:
  Interner& interner() { return interner_; }
  Message pod_message(const PodSpec& spec, const std::string& node) {
    Builder b;
    const auto bytes = class_of(spec);
    b.ForceVectorAlignment(bytes.size(), 1, 8);
    const auto cls = b.CreateVector(bytes);
    Offsets<flatbuffers::String> gates;
    for (const std::string& g : spec.gates) gates.push_back(b.CreateString(g));
    const auto gate_list = b.CreateVector(gates);
    Offsets<fb::KeyValue> labels;
    for (const auto& [k, v] : spec.labels) labels.push_back(write_pair(b, k, v));
    const auto label_list = b.CreateVector(labels);
    const auto ns = b.CreateString("default");
    const auto name = b.CreateString(spec.name);
    const PodUid uid = uids_[spec.name];
    const auto uid_text = b.CreateString(uid.text());
    const auto version = b.CreateString(std::to_string(++resource_version_));
    const auto scheduler = b.CreateString(spec.scheduler);
    const auto node_name = b.CreateString(node);
    const auto pinned = b.CreateString(spec.pinned);
    const fb::Uid wire = uid.wire();
    fb::PodBuilder p(b);
    p.add_namespace_(ns);
    p.add_name(name);
    p.add_uid(&wire);
    p.add_uid_text(uid_text);
    p.add_resource_version(version);
    p.add_labels(label_list);
    p.add_scheduler_name(scheduler);
    p.add_node_name(node_name);
    p.add_pinned_node(pinned);
    p.add_priority(spec.priority);
    p.add_scheduling_gates(gate_list);
    p.add_class_bytes(cls);
    p.add_deletion_ms(spec.deleting ? kEpoch : 0);
    b.Finish(p.Finish());
    return {Kind::pod, b};
  }

 private:
  void gone(fb::ObjectKind kind, const std::string& ns, const std::string& name, const PodUid& uid) {
    Builder b;
    const auto ns_at = b.CreateString(ns);
    const auto name_at = b.CreateString(name);
    const fb::Uid wire = uid.wire();
    fb::GoneBuilder g(b);
    g.add_kind(kind);
    g.add_namespace_(ns_at);
    g.add_name(name_at);
    g.add_uid(&wire);
    b.Finish(g.Finish());
    mirror({Kind::gone, b});
  }

  void deliver(const Message& m, const Address& from) {
    turn_.set_sender(from);
    placement_->on(m, turn_);
    collect();
  }

  /// Takes what placement sent.
  void collect() {
    for (Timer& t : turn_.timers()) timers_.emplace_back(now_ + t.delay, std::move(t));
    turn_.timers().clear();
    std::vector<Envelope> sent;
    sent.swap(turn_.sent());
    for (Envelope& e : sent) {
      if (e.to.kind == ActorKind::node) {
        if (!answer || chance(faults.lose)) continue;
        on_node_message(e);
        if (chance(faults.repeat)) on_node_message(e);
      } else if (e.to.kind == ActorKind::report) {
        note_report(e);
      } else if (e.message.kind() == Kind::public_event) {
        const auto& event = e.message.as<fb::PublicEvent>();
        public_events.emplace_back(text(event.type()), text(event.name()));
      } else if (e.message.kind() == Kind::query_result) {
        answer_ = std::string(text(e.message.as<fb::QueryResult>().json()));
      }
    }
  }

  void note_report(const Envelope& e) {
    const auto& intent = *e.message.as<fb::ReportRequest>().intent();
    Report r;
    r.pod = std::string(text(intent.name()));
    r.kind = intent.kind();
    if (intent.condition() != nullptr) {
      r.reason = std::string(text(intent.condition()->reason()));
      r.text = std::string(text(intent.condition()->message()));
    } else {
      r.reason = std::string(text(intent.event()->reason()));
      r.text = std::string(text(intent.event()->note()));
    }
    reports.push_back(std::move(r));
  }

  /// From a partition to placement; in order within a channel unless late.
  void transmit(int channel, const Message& m, const Address& from) {
    if (chance(faults.lose)) return;
    const int times = chance(faults.repeat) ? 2 : 1;
    Millis& busy = channel_busy_[channel];
    busy = std::max(busy, now_ + (chance(faults.late) ? static_cast<Millis>(random_.below(3000)) : 0));
    for (int i = 0; i < times; ++i) transit_.push_back({busy, ++order_, channel, m, from});
  }
  void deliver_due() {
    for (;;) {
      const auto due = std::min_element(transit_.begin(), transit_.end(), [](const auto& a, const auto& b) {
        return std::pair(a.at, a.order) < std::pair(b.at, b.order);
      });
      if (due == transit_.end() || due->at > now_) return;
      const InTransit t = *due;
      transit_.erase(due);
      deliver(t.message, t.from);
    }
  }
  int results_channel(std::uint32_t p) const { return static_cast<int>(p) * 2; }
  int stream_channel(std::uint32_t p) const { return static_cast<int>(p) * 2 + 1; }

  void on_node_message(const Envelope& e) {
    const std::uint32_t p = e.to.partition;
    switch (e.message.kind()) {
      case Kind::commit_batch:
        on_batch(e.message.as<fb::CommitBatch>());
        break;
      case Kind::raise_shard_epoch: {
        const auto& raise = e.message.as<fb::RaiseShardEpoch>();
        partitions_[p].shard_epoch = std::max(partitions_[p].shard_epoch, raise.shard_epoch());
        Builder b;
        b.Finish(fb::CreateShardEpochRaised(b, raise.shard(), partitions_[p].shard_epoch, p));
        transmit(results_channel(p), {Kind::shard_epoch_raised, b}, e.to);
        break;
      }
      case Kind::copy_request:
        send_copy(p);
        break;
      case Kind::release: {
        ++releases_seen;
        const auto& r = e.message.as<fb::Release>();
        release(std::string(text(r.node())), PodUid::from(r.uid()));
        break;
      }
      default:
        break;
    }
  }

  void on_batch(const fb::CommitBatch& batch) {
    Partition& partition = partitions_[batch.partition()];
    for (const fb::Commit* c : *batch.commits()) {
      ++commits_seen;
      const std::string node_name(text(c->node()));
      Node& node = nodes_[node_name];
      const CommitKey id = CommitKey::from(c->id());
      const auto known = node.ledger.find(id.uid);
      bool grant = false;
      if (batch.shard_epoch() < partition.shard_epoch) {
        grant = false;
      } else if (known != node.ledger.end()) {
        grant = known->second.commit == id;
      } else if (node.exists && !chance(faults.refuse)) {
        const auto* bytes = batch.classes()->Get(c->class_index())->bytes();
        const std::vector<std::uint8_t> copied(bytes->begin(), bytes->end());
        grant = fits(node, copied);
        if (grant) {
          enter(node_name, id.uid, id, copied, fb::EntryState::Granted, std::string(text(c->name())));
          grants.emplace_back(text(c->name()), node_name);
        }
      }
      Builder b;
      const auto at = b.CreateString(node_name);
      fb::CommitResultBuilder r(b);
      r.add_id(c->id());
      r.add_node(at);
      r.add_outcome(grant ? fb::CommitOutcome::Granted : fb::CommitOutcome::Refused);
      r.add_ledger_version(node.version);
      b.Finish(r.Finish());
      transmit(results_channel(batch.partition()), {Kind::commit_result, b},
               {ActorKind::node, batch.partition(), {}});
    }
  }

  bool fits(const Node& node, const std::vector<std::uint8_t>& bytes) {
    const PodClass cls = compile(*flatbuffers::GetRoot<fb::PodClass>(bytes.data()), interner_);
    std::int64_t cpu = cls.request(kCpu);
    std::int64_t memory = cls.request(kMemory);
    for (const auto& [uid, e] : node.ledger) {
      cpu += e.cls.request(kCpu);
      memory += e.cls.request(kMemory);
    }
    return cpu <= node.spec.cpu && memory <= node.spec.memory &&
           static_cast<std::int64_t>(node.ledger.size()) < node.spec.pods;
  }

  void enter(const std::string& node_name, const PodUid& uid, const CommitKey& commit,
             const std::vector<std::uint8_t>& bytes, fb::EntryState state, const std::string& pod = {}) {
    Node& node = nodes_[node_name];
    Entry e{uid,   commit, bytes, compile(*flatbuffers::GetRoot<fb::PodClass>(bytes.data()), interner_),
            state, pod,    0};
    if (state == fb::EntryState::Granted) e.bind_at = now_ + 20 + static_cast<Millis>(random_.below(400));
    ++node.version;
    send_delta(node_name, entry_delta(node_name, e, fb::LedgerChange::Added));
    node.ledger[uid] = std::move(e);
  }

  void release(const std::string& node_name, const PodUid& uid) {
    Node& node = nodes_[node_name];
    const auto it = node.ledger.find(uid);
    if (it == node.ledger.end()) return;
    ++node.version;
    send_delta(node_name, entry_delta(node_name, it->second, fb::LedgerChange::Removed));
    node.ledger.erase(it);
  }

  std::vector<std::uint8_t> entry_delta(const std::string& node_name, const Entry& e,
                                        fb::LedgerChange change) {
    DeltaSpec d;
    d.node = node_name;
    d.uid = e.uid;
    d.ledger_version = nodes_[node_name].version;
    d.change = change;
    d.commit = e.commit;
    d.state = e.state;
    d.class_bytes = e.bytes;
    d.name = e.pod.empty() ? "foreign" : e.pod;
    return delta_bytes(d);
  }

  static flatbuffers::Offset<fb::DeltaBytes> wrap(Builder& b, const std::vector<std::uint8_t>& entry) {
    b.ForceVectorAlignment(entry.size(), 1, 8);
    return fb::CreateDeltaBytes(b, b.CreateVector(entry));
  }
  void send_delta(const std::string& node, const std::vector<std::uint8_t>& entry) {
    const std::uint32_t p = partition_of_node(node);
    Builder b;
    const auto list = b.CreateVector(Offsets<fb::DeltaBytes>{wrap(b, entry)});
    b.Finish(fb::CreateLedgerDelta(b, p, partitions_[p].epoch, ++partitions_[p].sequence, list));
    transmit(stream_channel(p), {Kind::ledger_delta, b}, {ActorKind::node, p, {}});
  }
  void heads() {
    for (std::uint32_t p = 0; p < partitions_.size(); ++p) {
      Builder b;
      b.Finish(fb::CreateLedgerDelta(b, p, partitions_[p].epoch, partitions_[p].sequence));
      transmit(stream_channel(p), {Kind::ledger_delta, b}, {ActorKind::node, p, {}});
    }
  }
  void send_copy(std::uint32_t p) {
    std::vector<std::vector<std::uint8_t>> entries;
    for (const auto& [name, node] : nodes_) {
      if (partition_of_node(name) != p) continue;
      for (const auto& [uid, e] : node.ledger)
        entries.push_back(entry_delta(name, e, fb::LedgerChange::Added));
    }
    // Three entries to a chunk: copies of several chunks are the rule.
    std::uint32_t chunk = 0;
    std::size_t i = 0;
    do {
      Builder b;
      Offsets<fb::DeltaBytes> list;
      for (int k = 0; k < 3 && i < entries.size(); ++k) list.push_back(wrap(b, entries[i++]));
      const auto at = b.CreateVector(list);
      b.Finish(fb::CreateLedgerCopy(b, p, partitions_[p].epoch, partitions_[p].sequence, at,
                                    i >= entries.size(), chunk++));
      transmit(stream_channel(p), {Kind::ledger_copy, b}, {ActorKind::node, p, {}});
    } while (i < entries.size());
  }

  /// Another owner takes the partition over: a new epoch, and grants whose bind has not ended are void.
  void move(std::uint32_t p) {
    ++partitions_[p].epoch;
    partitions_[p].sequence = 0;
    for (auto& [name, node] : nodes_) {
      if (partition_of_node(name) != p) continue;
      node.version = 0;
      std::erase_if(node.ledger,
                    [](const auto& item) { return item.second.state == fb::EntryState::Granted; });
    }
  }

  void settle_binds() {
    if (!binds_settle) return;
    for (auto& [name, node] : nodes_) {
      std::vector<PodUid> due;
      for (const auto& [uid, e] : node.ledger) {
        if (e.state == fb::EntryState::Granted && e.bind_at <= now_) due.push_back(uid);
      }
      for (const PodUid& uid : due) settle(name, uid);
    }
  }
  void settle(const std::string& node_name, const PodUid& uid) {
    Entry& e = nodes_[node_name].ledger[uid];
    const bool exists = uids_.contains(e.pod) && uids_[e.pod] == uid;
    const bool elsewhere = exists && bound_.contains(e.pod) && bound_[e.pod] != node_name;
    const bool fails = exists && !elsewhere && chance(faults.bind_fails);
    const bool done = exists && !elsewhere && !fails;
    Builder b;
    const auto at = b.CreateString(node_name);
    const auto why = b.CreateString(fails ? "Operation cannot be fulfilled" : "");
    const fb::CommitId id = e.commit.wire();
    fb::BindSettledBuilder s(b);
    s.add_id(&id);
    s.add_node(at);
    s.add_bound(done);
    s.add_gone(!exists || elsewhere);
    s.add_message(why);
    b.Finish(s.Finish());
    const std::uint32_t p = partition_of_node(node_name);
    transmit(results_channel(p), {Kind::bind_settled, b}, {ActorKind::node, p, {}});
    if (!done) {
      release(node_name, uid);
      return;
    }
    e.state = fb::EntryState::Bound;
    EXPECT_FALSE(bound_.contains(e.pod)) << e.pod << " is bound twice";
    bound_[e.pod] = node_name;
    mirror(pod_message(pods_[e.pod], node_name));
  }

  PlacementOptions options_;
  Random random_;
  Random placement_random_;
  Interner interner_;
  std::unique_ptr<Placement> placement_;
  Millis now_ = 0;
  FollowerTurn turn_{{ActorKind::placement, 0, "0"}, kEpoch, 0, placement_random_};
  std::map<std::string, Node> nodes_;
  std::vector<Partition> partitions_;
  std::map<std::string, PodSpec> pods_;
  std::map<std::string, PodUid> uids_;
  std::map<std::string, std::string> bound_;
  std::vector<std::pair<Millis, Timer>> timers_;
  std::vector<InTransit> transit_;
  std::map<int, Millis> channel_busy_;
  std::uint64_t order_ = 0;
  std::uint64_t next_uid_ = 0;
  std::uint64_t resource_version_ = 0;
  std::string answer_;
};

}  // namespace troupe::testing
