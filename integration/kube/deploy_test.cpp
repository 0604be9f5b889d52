// The manifests of ops/deploy on a real API server: accepted as they are, and with roles of which none is
// missing and none is too much.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "integration/kube/objects.hpp"
#include "integration/kube/rig.hpp"

namespace troupe::rig {
namespace {

using namespace std::chrono_literals;

constexpr const char* space = "koordinator-system";
const std::string cluster_role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/troupe";
const std::string leader_role =
    "/apis/rbac.authorization.k8s.io/v1/namespaces/koordinator-system/roles/troupe-leader";
const std::string leases = "/apis/coordination.k8s.io/v1/namespaces/koordinator-system/leases";

std::string deploy_dir() {
  return (source_dir() / "ops/deploy").string();
}

TEST(Deploy, EveryManifestIsAccepted) {
  auto& rig = KubeRig::shared();
  rig.troupe_access();  // the namespace: a dry run of what is in it needs it
  const auto dry = rig.kubectl({"apply", "--server-side", "--dry-run=server", "-f", deploy_dir()});
  ASSERT_EQ(dry.status.code, 0) << dry.err;
  const auto applied = rig.kubectl({"apply", "--server-side", "-f", deploy_dir()});
  ASSERT_EQ(applied.status.code, 0) << applied.err;
  const auto again = rig.kubectl({"diff", "--server-side", "-f", deploy_dir()});
  EXPECT_EQ(again.status.code, 0) << "applying twice changes something: " << again.out << again.err;
}

TEST(Deploy, TheDeploymentMakesTwoPodsOfTheRestrictedProfile) {
  auto& rig = KubeRig::shared();
  if (rig.external()) GTEST_SKIP() << "would start Troupe on the external cluster";
  rig.troupe_access();
  auto& admin = rig.admin();
  const auto enforce = [&](const Json& level) {
    admin.patch(std::string("/api/v1/namespaces/") + space,
                {{"metadata", {{"labels", {{"pod-security.kubernetes.io/enforce", level}}}}}});
  };
  enforce("restricted");
  ASSERT_EQ(rig.kubectl({"apply", "--server-side", "-f", deploy_dir()}).status.code, 0);
  auto manager = rig.start_controller_manager(
      {"deployment-controller", "replicaset-controller", "disruption-controller"});
  const auto pods = [&] {
    return admin.get(pod_path(space) + "?labelSelector=app.kubernetes.io/name%3Dtroupe").at("items");
  };
  EXPECT_TRUE(wait_until([&] { return pods().size() == 2; }, 30s)) << manager.log_tail();
  for (const auto& pod : pods()) {
    EXPECT_EQ(pod.at("spec").at("serviceAccountName"), "troupe");
    EXPECT_NE(pod.at("spec").at("schedulerName"), "koord-scheduler") << "it would wait for itself";
    EXPECT_GT(pod.at("spec").value("priority", 0), 1000000000);
  }
  const auto budget = std::string("/apis/policy/v1/namespaces/") + space + "/poddisruptionbudgets/troupe";
  EXPECT_TRUE(wait_until([&] { return admin.get(budget).at("status").value("expectedPods", 0) == 2; }, 30s))
      << admin.get(budget).dump(2);
  enforce(nullptr);
  admin.remove(std::string("/apis/apps/v1/namespaces/") + space + "/deployments/troupe");
  manager.kill();
  admin.remove(pod_path(space));
}

/// One thing that Troupe does, the verb that allows it, and the request that shows whether it may.
struct Need {
  std::string verb;
  std::string group;
  std::string resource;  // with subresource
  std::string method;
  std::string path;
  Json body = {};
  std::string content_type = "application/json";
};

class Roles : public testing::Test {
 protected:
  Roles() {
    EXPECT_EQ(rig_.kubectl({"apply", "--server-side", "-f", deploy_dir() + "/00-namespace.yaml", "-f",
                            deploy_dir() + "/10-rbac.yaml"})
                  .status.code,
              0);
    ground_.create_node("node");
    // The Lease exists for those who may not create it.
    rig_.admin().request("POST", leases, lease("koord-scheduler").dump());
  }

  static Json lease(const std::string& name) {
    return {{"apiVersion", "coordination.k8s.io/v1"},
            {"kind", "Lease"},
            {"metadata", {{"name", name}, {"namespace", space}}},
            {"spec", {{"holderIdentity", "nobody"}}}};
  }

  std::string fresh_pod() {
    const auto name = "pod" + std::to_string(++pods_);
    ground_.create_pod(name, {.scheduler = "nobody"});
    return pod_path(ground_.space(), name);
  }

  /// Everything that Troupe asks of an API server, as the bridge asks it.
  std::vector<Need> needs() {
    const auto pod = fresh_pod();
    const auto name = pod.substr(pod.rfind('/') + 1);
    const Json about = {{"kind", "Pod"}, {"namespace", ground_.space()}, {"name", name}};
    const Json event = {{"apiVersion", "events.k8s.io/v1"},
                        {"kind", "Event"},
                        {"metadata", {{"generateName", "event-"}, {"namespace", ground_.space()}}},
                        {"eventTime", "2026-01-01T00:00:00.000000Z"},
                        {"type", "Normal"},
                        {"reason", "Scheduled"},
                        {"action", "Binding"},
                        {"note", "x"},
                        {"reportingController", "koord-scheduler"},
                        {"reportingInstance", "koord-scheduler-x"},
                        {"regarding", about}};
    const Json core_event = {
        {"apiVersion", "v1"},
        {"kind", "Event"},
        {"metadata", {{"generateName", "election-"}, {"namespace", space}}},
        {"type", "Normal"},
        {"reason", "LeaderElection"},
        {"message", "x became leader"},
        {"involvedObject", {{"kind", "Lease"}, {"namespace", space}, {"name", "koord-scheduler"}}}};
    const std::string watch = "?watch=true&timeoutSeconds=60&resourceVersion=0";
    const std::string held = leases + "/koord-scheduler";
    std::vector<Need> all;
    for (const auto& [group, prefix, resource] :
         {std::tuple("", "/api/v1/", "nodes"), std::tuple("", "/api/v1/", "pods"),
          std::tuple("", "/api/v1/", "namespaces"),
          std::tuple("scheduling.k8s.io", "/apis/scheduling.k8s.io/v1/", "priorityclasses")}) {
      const auto path = std::string(prefix) + resource;
      all.push_back({"list", group, resource, "GET", path + "?limit=1"});
      all.push_back({"watch", group, resource, "GET", path + watch});
    }
    all.push_back({"get", "", "pods", "GET", pod});
    all.push_back({"create",
                   "",
                   "pods/binding",
                   "POST",
                   pod + "/binding",
                   {{"apiVersion", "v1"},
                    {"kind", "Binding"},
                    {"metadata", {{"name", name}}},
                    {"target", {{"kind", "Node"}, {"name", ground_.node_name("node")}}}}});
    all.push_back({"patch",
                   "",
                   "pods/status",
                   "PATCH",
                   pod + "/status",
                   {{"status", {{"nominatedNodeName", ground_.node_name("node")}}}},
                   "application/strategic-merge-patch+json"});
    all.push_back({"create",
                   "",
                   "pods/eviction",
                   "POST",
                   pod + "/eviction",
                   {{"apiVersion", "policy/v1"}, {"kind", "Eviction"}, {"metadata", {{"name", name}}}}});
    all.push_back({"delete", "", "pods", "DELETE", pod});
    all.push_back({"create", "events.k8s.io", "events", "POST",
                   "/apis/events.k8s.io/v1/namespaces/" + ground_.space() + "/events", event});
    all.push_back(
        {"create",
         "authentication.k8s.io",
         "tokenreviews",
         "POST",
         "/apis/authentication.k8s.io/v1/tokenreviews",
         {{"apiVersion", "authentication.k8s.io/v1"}, {"kind", "TokenReview"}, {"spec", {{"token", "x"}}}}});
    all.push_back(
        {"create",
         "authorization.k8s.io",
         "subjectaccessreviews",
         "POST",
         "/apis/authorization.k8s.io/v1/subjectaccessreviews",
         {{"apiVersion", "authorization.k8s.io/v1"},
          {"kind", "SubjectAccessReview"},
          {"spec", {{"user", "u"}, {"nonResourceAttributes", {{"path", "/metrics"}, {"verb", "get"}}}}}}});
    all.push_back({"create", "coordination.k8s.io", "leases", "POST", leases, lease("koord-scheduler")});
    all.push_back({"get", "coordination.k8s.io", "leases", "GET", held});
    all.push_back({"update", "coordination.k8s.io", "leases", "PUT", held, lease("koord-scheduler")});
    all.push_back({"watch", "coordination.k8s.io", "leases", "GET",
                   leases + watch + "&fieldSelector=metadata.name%3Dkoord-scheduler"});
    all.push_back(
        {"create", "", "events", "POST", std::string("/api/v1/namespaces/") + space + "/events", core_event});
    return all;
  }

  // A watch that is allowed goes on: its first line tells.
  int status(const Need& need) {
    const auto limit = need.verb == "watch" ? 300ms : 30s;
    return troupe_
        .request(need.method, need.path, need.body.is_null() ? std::string() : need.body.dump(),
                 need.content_type, limit)
        .head_status;
  }

  bool allowed(const Need& need) {
    const int code = status(need);
    return code != 0 && code != 403;
  }

  /// Both roles without one verb of one resource.
  static Json without(Json role, const Need& need) {
    Json rules = Json::array();
    for (auto& rule : role.at("rules")) {
      const bool applies = rule.at("apiGroups").at(0) == need.group;
      for (const auto& resource : rule.at("resources")) {
        Json one = rule;
        one["resources"] = {resource};
        if (applies && resource == need.resource) {
          Json verbs = Json::array();
          for (const auto& verb : rule.at("verbs")) {
            if (verb != need.verb) verbs.push_back(verb);
          }
          one["verbs"] = verbs;
        }
        if (!one["verbs"].empty()) rules.push_back(one);
      }
    }
    role["rules"] = rules;
    return role;
  }

  void set_rules(const std::string& path, const Json& role) {
    rig_.admin().patch(path, {{"rules", role.at("rules")}});
  }

  KubeRig& rig_ = KubeRig::shared();
  Playground ground_{rig_};
  KubeClient troupe_{rig_.troupe_access()};
  int pods_ = 0;
};

TEST_F(Roles, AllowEverythingThatTroupeDoes) {
  for (const auto& need : needs()) {
    EXPECT_TRUE(wait_until([&] { return allowed(need); }, 10s)) << need.verb << " " << need.resource;
  }
}

TEST_F(Roles, AllowNothingElse) {
  std::set<std::tuple<std::string, std::string, std::string>> granted;
  for (const auto& path : {cluster_role, leader_role}) {
    const auto role = rig_.admin().get(path);
    for (const auto& rule : role.at("rules")) {
      EXPECT_FALSE(rule.contains("nonResourceURLs"));
      for (const auto& group : rule.at("apiGroups")) {
        for (const auto& resource : rule.at("resources")) {
          for (const auto& verb : rule.at("verbs")) granted.emplace(group, resource, verb);
        }
      }
    }
  }
  std::set<std::tuple<std::string, std::string, std::string>> needed;
  for (const auto& need : needs()) needed.emplace(need.group, need.resource, need.verb);
  EXPECT_EQ(granted, needed);
}

TEST_F(Roles, WithOneVerbLessSomethingIsRefused) {
  if (rig_.external()) GTEST_SKIP() << "would take roles from Troupe on the external cluster";
  const auto cluster = rig_.admin().get(cluster_role);
  const auto leader = rig_.admin().get(leader_role);
  for (const auto& need : needs()) {
    const bool in_leader =
        need.group == "coordination.k8s.io" || (need.group.empty() && need.resource == "events");
    const auto& role = in_leader ? leader : cluster;
    set_rules(in_leader ? leader_role : cluster_role, without(role, need));
    EXPECT_TRUE(wait_until([&] { return status(need) == 403; }, 10s)) << need.verb << " " << need.resource;
    set_rules(in_leader ? leader_role : cluster_role, role);
  }
  // The last change has arrived before another test relies on the roles.
  for (const auto& need : needs()) {
    EXPECT_TRUE(wait_until([&] { return allowed(need); }, 10s)) << need.verb << " " << need.resource;
  }
}

TEST_F(Roles, OtherLeasesAreNotTroupes) {
  EXPECT_EQ(troupe_.request("GET", leases + "/another").status, 403);
  EXPECT_EQ(troupe_.request("PUT", leases + "/another", lease("another").dump()).status, 403);
  EXPECT_EQ(
      troupe_.request("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/koord-scheduler")
          .status,
      403);
}

}  // namespace
}  // namespace troupe::rig
