#include "integration/kube/fault_proxy.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <future>

#include "integration/kube/objects.hpp"

namespace troupe::rig {
namespace {

using namespace std::chrono_literals;

constexpr const char* nodes_path = "/api/v1/nodes";

// A watch of one namespace's pods through the proxy, and three pods for it to show.
struct WatchTest : testing::Test {
  KubeRig& rig = KubeRig::shared();
  Playground ground{rig};
  FaultProxy proxy{rig};

  std::string watch_path() {
    const auto list = rig.admin().get(pod_path(ground.space()));
    ground.create_pods("pod", 3);
    return "/api/v1/pods?watch=true&fieldSelector=metadata.namespace%3D" + ground.space() +
           "&resourceVersion=" + list.at("metadata").at("resourceVersion").get<std::string>();
  }

  KubeAnswer watch(const std::string& path) {
    KubeClient client(proxy.access());
    return client.request("GET", path, {}, {}, 20s);
  }
};

std::ptrdiff_t lines(const std::string& text) {
  return std::count(text.begin(), text.end(), '\n');
}

TEST(FaultProxy, PassesOnWhatNoRuleTouches) {
  auto& rig = KubeRig::shared();
  Playground ground(rig);
  FaultProxy proxy(rig);
  KubeClient client(proxy.access());
  EXPECT_EQ(client.request("GET", nodes_path).body.substr(0, 17), R"({"kind":"NodeList)");
  EXPECT_EQ(client.request("GET", "/api/v1/secrets").status, 403);
  ground.create_node("n");
  ground.create_pod("p");
  const Json binding = {{"apiVersion", "v1"},
                        {"kind", "Binding"},
                        {"metadata", {{"name", "p"}}},
                        {"target", {{"kind", "Node"}, {"name", ground.node_name("n")}}}};
  EXPECT_EQ(client.request("POST", pod_path(ground.space(), "p") + "/binding", binding.dump()).status, 201);
  EXPECT_EQ(ground.placements().at("p"), ground.node_name("n"));
  const auto seen = proxy.seen();
  ASSERT_EQ(seen.size(), 3U);
  EXPECT_EQ(seen[2].request.body, binding.dump());
  EXPECT_EQ(seen[2].status, 201);
  EXPECT_EQ(proxy.count("POST", "/binding"), 1);
  EXPECT_EQ(proxy.struck(), 0);
}

TEST(FaultProxy, LosesRequestsBeforeAndAfterTheyTakeEffect) {
  auto& rig = KubeRig::shared();
  FaultProxy proxy(rig);
  KubeClient client(proxy.access());
  client.use_fresh_connections();
  const std::string reviews = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
  const std::string review =
      R"({"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","spec":{"user":"u","nonResourceAttributes":{"path":"/x","verb":"get"}}})";
  const auto last = [&] { return proxy.seen().back(); };
  proxy.add({.method = "POST", .path = "reviews", .fault = Fault::cut_before});
  EXPECT_EQ(client.request("POST", reviews, review).status, 0);
  EXPECT_EQ(last().upstream_status, 0);
  proxy.add({.method = "POST", .path = "reviews", .fault = Fault::cut_after});
  EXPECT_EQ(client.request("POST", reviews, review).status, 0);
  EXPECT_EQ(last().upstream_status, 201);
  EXPECT_EQ(last().status, 0);
  proxy.add({.method = "POST", .path = "reviews", .fault = Fault::answer_after, .status = 504, .body = "{}"});
  EXPECT_EQ(client.request("POST", reviews, review).status, 504);
  EXPECT_EQ(last().upstream_status, 201);
  proxy.add({.method = "POST",
             .path = "reviews",
             .fault = Fault::answer_before,
             .status = 429,
             .headers = {{"Retry-After", "1"}}});
  const auto refused = client.request("POST", reviews, review);
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(refused.headers.at("retry-after"), "1");
  EXPECT_EQ(last().upstream_status, 0);
  EXPECT_EQ(client.request("POST", reviews, review).status, 201);
  EXPECT_EQ(proxy.struck(), 4);
}

TEST(FaultProxy, CountsWhatItStrikesAndCallsHooks) {
  auto& rig = KubeRig::shared();
  FaultProxy proxy(rig);
  KubeClient client(proxy.access());
  int before = 0;
  int after = 0;
  proxy.add({.method = "GET", .path = "namespaces", .times = -1, .on_request = [&](const ProxyRequest&) {
               ++before;
             }});
  proxy.add({.method = "GET",
             .path = "nodes",
             .skip = 1,
             .times = 2,
             .fault = Fault::answer_before,
             .status = 500,
             .on_answer = [&](const ProxyRequest&) { ++after; }});
  std::vector<int> statuses;
  for (int i = 0; i < 5; ++i) statuses.push_back(client.request("GET", nodes_path).status);
  EXPECT_EQ(statuses, (std::vector<int>{200, 500, 500, 200, 200}));
  EXPECT_EQ(client.request("GET", "/api/v1/namespaces").status, 200);
  EXPECT_EQ(before, 1);
  EXPECT_EQ(after, 0);  // nothing that it struck was forwarded
}

TEST(FaultProxy, StallsUntilCleared) {
  auto& rig = KubeRig::shared();
  FaultProxy proxy(rig);
  proxy.add({.path = "nodes", .fault = Fault::stall_after});
  auto held = std::async(std::launch::async, [&] {
    KubeClient client(proxy.access());
    client.use_fresh_connections();
    return client.request("GET", nodes_path).status;
  });
  ASSERT_TRUE(proxy.wait_count("GET", "nodes", 1));
  KubeClient other(proxy.access());
  EXPECT_EQ(other.request("GET", "/api/v1/namespaces").status, 200);
  EXPECT_EQ(held.wait_for(0ms), std::future_status::timeout);
  proxy.clear();
  EXPECT_EQ(held.get(), 0);
}

TEST(FaultProxy, RefusesAndListensAgain) {
  auto& rig = KubeRig::shared();
  FaultProxy proxy(rig);
  KubeClient client(proxy.access());
  EXPECT_EQ(client.request("GET", nodes_path).status, 200);
  proxy.refuse();
  EXPECT_EQ(client.request("GET", nodes_path).status, 0);
  proxy.listen();
  EXPECT_EQ(client.request("GET", nodes_path).status, 200);
}

TEST_F(WatchTest, CutBetweenLines) {
  proxy.add({.path = "watch", .fault = Fault::cut_stream, .lines = 2});
  const auto answer = watch(watch_path());
  EXPECT_EQ(answer.status, 0);
  EXPECT_EQ(lines(answer.body), 2);
  EXPECT_EQ(answer.body.back(), '\n');
}

TEST_F(WatchTest, CutInTheMiddleOfALine) {
  proxy.add({.path = "watch", .fault = Fault::half_line, .lines = 1});
  const auto answer = watch(watch_path());
  EXPECT_EQ(answer.status, 0);
  EXPECT_EQ(lines(answer.body), 1);
  EXPECT_NE(answer.body.back(), '\n');
}

TEST_F(WatchTest, EndsWithAnErrorLine) {
  const std::string expired =
      R"({"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}})";
  proxy.add({.path = "watch", .fault = Fault::last_line, .body = expired, .lines = 3});
  const auto answer = watch(watch_path());
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(lines(answer.body), 4);
  EXPECT_TRUE(answer.body.ends_with(expired + "\n"));
}

TEST_F(WatchTest, EndsWhenEverythingIsCut) {
  const auto path = watch_path();
  auto watching = std::async(std::launch::async, [&] { return watch(path); });
  ASSERT_TRUE(proxy.wait_count("GET", "watch", 1));
  ASSERT_TRUE(wait_until([&] { return proxy.seen().back().status == 200; }, 30s));
  proxy.cut_all();
  EXPECT_EQ(watching.get().status, 0);
}

}  // namespace
}  // namespace troupe::rig
