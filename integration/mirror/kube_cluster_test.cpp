#include "k8s-bridge/kube_cluster.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <set>

#include "integration/kube/objects.hpp"
#include "k8s-bridge/kubeconfig/api_server.hpp"
#include "messages/fb/intent_generated.h"
#include "messages/fb/pod_generated.h"
#include "messages/uid.hpp"

namespace troupe {
namespace {

using namespace std::chrono_literals;
using rig::KubeRig;
using rig::Playground;
using rig::wait_until;

class Listener : public ClusterSink {
 public:
  void changed(std::vector<Message> changes) override {
    const std::lock_guard lock(mutex_);
    for (const Message& m : changes) {
      EXPECT_TRUE(Message::verified(static_cast<std::uint16_t>(m.kind()), m.bytes().span()).has_value());
      const ObjectIdentity who = m.kind() == Kind::gone ? ObjectIdentity{} : identity(m);
      const std::string key = std::string(who.name_space).append("/").append(who.name);
      switch (m.kind()) {
        case Kind::pod:
          pods_[key] = text(m.as<fb::Pod>().node_name());
          break;
        case Kind::node:
          nodes_.insert(std::string(who.name));
          break;
        case Kind::name_space:
          namespaces_.insert(std::string(who.name));
          break;
        case Kind::priority_class:
          classes_.insert(std::string(who.name));
          break;
        case Kind::gone:
          gone(m.as<fb::Gone>());
          break;
        default:
          ADD_FAILURE() << to_string(m.kind());
      }
    }
  }
  void synced() override {
    const std::lock_guard lock(mutex_);
    ++synced_;
    log_ += "synced ";
  }
  void settled(std::vector<Message> results) override {
    const std::lock_guard lock(mutex_);
    for (Message& m : results) results_.push_back(std::move(m));
  }
  void rejected(const Error& error) override {
    const std::lock_guard lock(mutex_);
    rejected_.push_back(error.text());
  }
  void active(bool active) override {
    const std::lock_guard lock(mutex_);
    active_ = active;
    log_ += active ? "active " : "passive ";
  }
  void trouble(const Error& error) override {
    const std::lock_guard lock(mutex_);
    troubles_.push_back(error.text());
  }

  template <class F>
  bool wait(F&& condition, std::chrono::milliseconds limit = 30s) {
    return wait_until(
        [&] {
          const std::lock_guard lock(mutex_);
          return condition();
        },
        limit);
  }
  bool wait_synced(int times = 1) {
    return wait([&] { return synced_ >= times; });
  }
  bool wait_pod(const std::string& key, const std::string& node) {
    return wait([&] { return pods_.contains(key) && pods_[key] == node; });
  }

  std::mutex mutex_;
  std::map<std::string, std::string> pods_;
  std::set<std::string> nodes_;
  std::set<std::string> namespaces_;
  std::set<std::string> classes_;
  std::vector<std::string> gone_;
  std::vector<Message> results_;
  std::vector<std::string> rejected_;
  std::vector<std::string> troubles_;
  int synced_ = 0;
  bool active_ = false;
  std::string log_;

 private:
  void gone(const fb::Gone& gone) {
    const std::string name(text(gone.name()));
    if (gone.kind() == fb::ObjectKind::Pod) {
      const std::string key = std::string(text(gone.namespace_())).append("/").append(name);
      pods_.erase(key);
      gone_.push_back(key + "@" + std::string(text(gone.node_name())));
    }
    if (gone.kind() == fb::ObjectKind::Node) nodes_.erase(name);
  }
};

ApiServer server_of(const std::filesystem::path& kubeconfig) {
  ApiServerChoice choice;
  choice.kubeconfig = kubeconfig.string();
  auto server = find_api_server(choice);
  if (!server) throw std::runtime_error(server.error().text());
  return *server;
}

KubeClusterOptions options_for(KubeRig& rig) {
  KubeClusterOptions options;
  options.server = server_of(rig.troupe_kubeconfig());
  options.executor.host_name = "test-host";
  options.stop_limit = 5s;
  return options;
}

std::unique_ptr<KubeCluster> make(KubeClusterOptions options) {
  auto made = KubeCluster::make(std::move(options));
  if (!made) throw std::runtime_error(made.error().text());
  return std::move(*made);
}

Message bind_intent(std::uint64_t id, const rig::Json& pod, const std::string& node) {
  const auto& meta = pod.at("metadata");
  const std::string uid_text = meta.at("uid");
  flatbuffers::FlatBufferBuilder b;
  const auto key = b.CreateString(node);
  const auto name_space = b.CreateString(meta.at("namespace").get<std::string>());
  const auto name = b.CreateString(meta.at("name").get<std::string>());
  const auto uid_at = b.CreateString(uid_text);
  const auto version = b.CreateString(meta.at("resourceVersion").get<std::string>());
  const fb::Uid uid = PodUid::parse(uid_text).wire();
  fb::IntentBuilder intent(b);
  intent.add_id(id);
  intent.add_kind(fb::IntentKind::Bind);
  intent.add_owner_key(key);
  intent.add_namespace_(name_space);
  intent.add_name(name);
  intent.add_uid(&uid);
  intent.add_uid_text(uid_at);
  intent.add_resource_version(version);
  intent.add_node(key);
  b.Finish(intent.Finish());
  return {Kind::intent, b};
}

TEST(KubeCluster, MirrorsWhatIsThereAndWhatComes) {
  auto& rig = KubeRig::shared();
  Playground ground(rig);
  ground.create_nodes("node", 3);
  ground.create_pods("pod", 23);
  KubeClusterOptions options = options_for(rig);
  options.reflect.logic.page_size = 5;
  Listener sink;
  const auto cluster = make(std::move(options));
  const auto started = cluster->start(sink);
  ASSERT_TRUE(started.has_value()) << started.error().text();
  ASSERT_TRUE(sink.wait_synced());
  {
    const std::lock_guard lock(sink.mutex_);
    EXPECT_EQ(sink.log_, "active synced ");
    EXPECT_EQ(std::count_if(sink.pods_.begin(), sink.pods_.end(),
                            [&](const auto& p) { return p.first.starts_with(ground.space() + "/"); }),
              23);
    for (const std::string n : {"node0", "node1", "node2"})
      EXPECT_TRUE(sink.nodes_.contains(ground.node_name(n)));
    EXPECT_TRUE(sink.namespaces_.contains(ground.space()));
    EXPECT_TRUE(sink.classes_.contains("system-node-critical"));
  }
  ground.create_pod("late");
  EXPECT_TRUE(sink.wait_pod(ground.space() + "/late", ""));
  EXPECT_EQ(ground.bind("late", ground.node_name("node1")).status, 201);
  EXPECT_TRUE(sink.wait_pod(ground.space() + "/late", ground.node_name("node1")));
  ground.delete_pod("late");
  EXPECT_TRUE(sink.wait([&] {
    return std::find(sink.gone_.begin(), sink.gone_.end(),
                     ground.space() + "/late@" + ground.node_name("node1")) != sink.gone_.end();
  }));
  EXPECT_TRUE(sink.rejected_.empty()) << sink.rejected_.front();
  EXPECT_TRUE(sink.troubles_.empty()) << sink.troubles_.front();
  cluster->stop();
}

TEST(KubeCluster, BindsAndSeesItself) {
  auto& rig = KubeRig::shared();
  Playground ground(rig);
  ground.create_nodes("node", 1);
  const auto pod = ground.create_pod("pod");
  Listener sink;
  const auto cluster = make(options_for(rig));
  ASSERT_TRUE(cluster->start(sink).has_value());
  ASSERT_TRUE(sink.wait_synced());
  cluster->issue({bind_intent(7, pod, ground.node_name("node0"))});
  ASSERT_TRUE(sink.wait([&] { return !sink.results_.empty(); }));
  EXPECT_EQ(sink.results_[0].as<fb::IntentResult>().outcome(), fb::IntentOutcome::Done);
  EXPECT_TRUE(sink.wait_pod(ground.space() + "/pod", ground.node_name("node0")));
  EXPECT_EQ(cluster->stats().intents_done, 1U);
  EXPECT_EQ(ground.placements().at("pod"), ground.node_name("node0"));
}

TEST(KubeCluster, StartTellsWhyItCannot) {
  auto& rig = KubeRig::shared();
  Playground ground(rig);
  rig.admin().create(
      "/api/v1/namespaces/" + ground.space() + "/serviceaccounts",
      {{"apiVersion", "v1"}, {"kind", "ServiceAccount"}, {"metadata", {{"name", "powerless"}}}});
  Listener sink;
  KubeClusterOptions options = options_for(rig);
  options.server.token = [](bool) -> Result<std::string> { return std::string("no-such-token"); };
  auto refused = make(options)->start(sink);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::permission);
  EXPECT_FALSE(refused.error().remedy.empty());

  options = options_for(rig);
  options.server.token = [&](bool) -> Result<std::string> { return rig.token(ground.space(), "powerless"); };
  refused = make(options)->start(sink);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::permission);
  EXPECT_NE(refused.error().field.find("cannot list resource"), std::string::npos) << refused.error().text();

  options = options_for(rig);
  options.server.url = "https://127.0.0.1:" + std::to_string(rig::free_port());
  refused = make(options)->start(sink);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::unavailable);
}

TEST(KubeCluster, ComesThroughARestartOfTheApiServer) {
  auto& rig = KubeRig::shared();
  if (rig.external()) GTEST_SKIP() << "an external API server cannot be stopped";
  Playground ground(rig);
  ground.create_pod("before");
  Listener sink;
  const auto cluster = make(options_for(rig));
  ASSERT_TRUE(cluster->start(sink).has_value());
  ASSERT_TRUE(sink.wait_synced());
  rig.stop_apiserver();
  ASSERT_TRUE(sink.wait([&] { return !sink.troubles_.empty(); }));
  rig.start_apiserver();
  ground.create_pod("after");
  ground.delete_pod("before");
  EXPECT_TRUE(sink.wait_pod(ground.space() + "/after", ""));
  EXPECT_TRUE(sink.wait([&] { return !sink.pods_.contains(ground.space() + "/before"); }));
  EXPECT_EQ(sink.synced_, 1);
}

TEST(KubeCluster, OneOfTwoIsActiveAndHandsOverWithinASecond) {
  auto& rig = KubeRig::shared();
  Playground ground(rig);
  KubeClusterOptions options = options_for(rig);
  options.lease.emplace();
  options.lease->identity = "first_1";
  Listener first_sink;
  Listener second_sink;
  auto first = make(options);
  options.lease->identity = "second_2";
  options.lease->seed = 2;
  const auto second = make(options);
  ASSERT_TRUE(first->start(first_sink).has_value());
  ASSERT_TRUE(first_sink.wait([&] { return first_sink.active_; }));
  ASSERT_TRUE(second->start(second_sink).has_value());
  ASSERT_TRUE(second_sink.wait_synced());
  EXPECT_FALSE(second->leading());
  EXPECT_TRUE(wait_until([&] { return second->leader() == "first_1"; }, 30s));
  EXPECT_TRUE(first_sink.wait([&] { return first_sink.log_.ends_with("synced "); }));

  // A standby issues nothing.
  ground.create_nodes("node", 1);
  const auto pod = ground.create_pod("pod");
  second->issue({bind_intent(7, pod, ground.node_name("node0"))});
  ASSERT_TRUE(second_sink.wait([&] { return !second_sink.results_.empty(); }));
  EXPECT_EQ(second_sink.results_[0].as<fb::IntentResult>().outcome(), fb::IntentOutcome::Stopped);
  EXPECT_EQ(ground.placements().at("pod"), "");

  first->stop();
  const auto stopped = std::chrono::steady_clock::now();
  ASSERT_TRUE(second_sink.wait([&] { return second_sink.active_; }, 10s));
  RecordProperty("handover_ms", static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(
                                                     std::chrono::steady_clock::now() - stopped)
                                                     .count()));
  EXPECT_TRUE(second_sink.wait([&] { return second_sink.log_ == "synced active synced "; }))
      << second_sink.log_;
  EXPECT_TRUE(second->leading());
  EXPECT_FALSE(first->leading());
}

}  // namespace
}  // namespace troupe
