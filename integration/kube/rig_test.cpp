// The rig itself: what the other kube tests rely on.
#include "integration/kube/rig.hpp"

#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>

#include "integration/kube/objects.hpp"

namespace troupe::rig {
namespace {

using namespace std::chrono_literals;

TEST(KubeRig, SaysWhichVersionItIs) {
  const auto version = KubeRig::shared().admin().get("/version");
  if (KubeRig::shared().external()) GTEST_SKIP() << "an external cluster may have any version";
  EXPECT_EQ(version.at("gitVersion"), "v1.35.4");
}

TEST(KubeRig, KubeSchedulerBindsTenPodsToTenNodes) {
  auto& rig = KubeRig::shared();
  if (rig.programs().empty()) GTEST_SKIP() << "an external cluster has a kube-scheduler already";
  Playground ground(rig);
  ground.create_nodes("node", 10);
  ground.create_pods("pod", 10, {.scheduler = "peer-scheduler"});
  auto scheduler = rig.start_scheduler({.name = "peer-scheduler"});
  ASSERT_TRUE(ground.wait_bound(10)) << scheduler.log_tail();
  for (const auto& [pod, node] : ground.placements()) {
    EXPECT_TRUE(node.starts_with(ground.node_name("node"))) << pod << " on " << node;
    EXPECT_TRUE(ground.wait_event(pod, "Scheduled"));
  }
}

TEST(KubeRig, PodsOfAnotherSchedulerStayPending) {
  Playground ground(KubeRig::shared());
  ground.create_nodes("node", 1);
  ground.create_pod("pod", {.scheduler = "nobody"});
  EXPECT_EQ(ground.placements().at("pod"), "");
  EXPECT_EQ(ground.bind("pod", ground.node_name("node0")).status, 201);
  EXPECT_EQ(ground.placements().at("pod"), ground.node_name("node0"));
  const auto again = ground.bind("pod", ground.node_name("node0"));
  EXPECT_EQ(again.status, 409);
  EXPECT_NE(again.body.find("is already assigned to node"), std::string::npos) << again.body;
}

TEST(KubeRig, ChecksRoles) {
  auto& rig = KubeRig::shared();
  KubeClient troupe(rig.troupe_access());
  EXPECT_EQ(troupe.request("GET", "/api/v1/nodes").status, 200);
  EXPECT_EQ(troupe.request("GET", "/api/v1/secrets").status, 403);
  auto nobody = rig.troupe_access();
  nobody.token = "no-such-token";
  EXPECT_EQ(KubeClient(nobody).request("GET", "/api/v1/nodes").status, 401);
}

TEST(KubeRig, ComesBackAtTheSameAddressWithTheSameObjects) {
  auto& rig = KubeRig::shared();
  if (rig.external()) GTEST_SKIP() << "an external API server cannot be stopped";
  Playground ground(rig);
  ground.create_pod("pod", {});
  rig.stop_apiserver();
  EXPECT_EQ(rig.admin().request("GET", "/readyz").status, 0);
  rig.start_apiserver();
  EXPECT_EQ(ground.placements().count("pod"), 1U);
}

TEST(KubeRig, ControllerManagerRunsTheControllersAskedFor) {
  auto& rig = KubeRig::shared();
  if (rig.programs().empty()) GTEST_SKIP() << "an external cluster has controllers already";
  Playground ground(rig);
  const auto budgets = "/apis/policy/v1/namespaces/" + ground.space() + "/poddisruptionbudgets";
  ground.rig().admin().create(
      budgets, {{"apiVersion", "policy/v1"},
                {"kind", "PodDisruptionBudget"},
                {"metadata", {{"name", "budget"}}},
                {"spec", {{"maxUnavailable", 1}, {"selector", {{"matchLabels", {{"a", "b"}}}}}}}});
  auto manager = rig.start_controller_manager({"disruption-controller"});
  EXPECT_TRUE(wait_until(
      [&] { return rig.admin().get(budgets + "/budget").at("status").contains("observedGeneration"); }, 30s))
      << manager.log_tail();
}

TEST(Peer, CreatesBindsObservesAndDeletes) {
  auto& rig = KubeRig::shared();
  if (rig.programs().empty()) GTEST_SKIP() << "the peer program is not built for external clusters";
  Playground ground(rig);
  const auto space = "--namespace=" + ground.space();
  const auto prefix = "--prefix=" + ground.space() + "-";
  peer(rig, {"create-nodes", prefix, "--count=5", "--cpu=8", "--memory=16Gi"});
  const auto made =
      peer(rig, {"create-pods", space, "--prefix=p", "--count=20", "--cpu=100m", "--scheduler=nobody"});
  EXPECT_EQ(made.at(0).at("count"), 20);
  const auto out = rig.scratch("observe.out");
  Process observer({{(rig.programs() / "peer").string(), "observe", space, "--count=20", "--events=20",
                     "--kubeconfig=" + rig.admin_kubeconfig().string()},
                    {},
                    rig.scratch("observe.log"),
                    out});
  ASSERT_TRUE(wait_until([&] { return read_file(out).find("ready") != std::string::npos; }, 30s))
      << observer.log_tail();
  const auto bound = peer(rig, {"bind-event-loop", space});
  EXPECT_EQ(bound.at(0).at("count"), 20);
  const auto status = observer.wait(30s);
  ASSERT_TRUE(status.has_value()) << read_file(out);
  EXPECT_EQ(status->code, 0) << observer.log_tail();
  EXPECT_TRUE(ground.wait_bound(20, 0s));
  EXPECT_EQ(ground.events({}, "Scheduled").size(), 20U);
  EXPECT_EQ(peer(rig, {"delete-pods", space}).at(0).at("count"), 20);
  EXPECT_EQ(peer(rig, {"delete-nodes", prefix}).at(0).at("count"), 5);
  EXPECT_TRUE(ground.placements().empty());
}

TEST(Process, EndsWithItsOwner) {
  Process sleeper({{"sleep", "600"}, {}, {}, {}});
  EXPECT_TRUE(sleeper.running());
  EXPECT_FALSE(sleeper.wait(0ms).has_value());
  const auto pid = sleeper.pid();
  sleeper = Process();
  EXPECT_EQ(::kill(pid, 0), -1);
  EXPECT_THROW(Process({{"/no/such/program"}, {}, {}, {}}), std::runtime_error);
  EXPECT_EQ(run({"sh", "-c", "echo out; echo err >&2; exit 3"}).status.code, 3);
  EXPECT_EQ(run({"sh", "-c", "kill -9 $$"}).status.signal, SIGKILL);
}

}  // namespace
}  // namespace troupe::rig
