#include "ops/daemon/options.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

constexpr const char* kFull = R"(apiVersion: config.troupe.dev/v1alpha1
kind: TroupeConfiguration
schedulerNames: [koord-scheduler, batch]
clientConnection:
  kubeconfig: /etc/kube
  qps: 200
  connections: 8
leaderElection:
  leaseDuration: 6s
  renewDeadline: 4s
  retryPeriod: 500ms
http:
  port: 8080
logging:
  format: json
  levels: warn,store=debug
)";

TEST(Configuration, TakesEveryKindOfField) {
  DaemonOptions o;
  ASSERT_TRUE(parse_configuration(kFull, "c.yaml", o));
  EXPECT_EQ(o.scheduler_names, (std::vector<std::string>{"koord-scheduler", "batch"}));
  EXPECT_EQ(o.kubeconfig, "/etc/kube");
  EXPECT_EQ(o.qps, 200);
  EXPECT_EQ(o.connections, 8);
  EXPECT_EQ(o.lease_duration_ms, 6000);
  EXPECT_EQ(o.retry_period_ms, 500);
  EXPECT_EQ(o.http_port, 8080);
  EXPECT_TRUE(o.log.json);
  EXPECT_EQ(o.log.level, LogLevel::warn);
  EXPECT_TRUE(validate(o));
}

struct Bad {
  const char* yaml;
  const char* object;
  const char* field;
};

class BadConfiguration : public testing::TestWithParam<Bad> {};

TEST_P(BadConfiguration, NamesLineAndField) {
  DaemonOptions o;
  const auto r = parse_configuration(GetParam().yaml, "c.yaml", o);
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().object, GetParam().object);
  EXPECT_EQ(r.error().field, GetParam().field);
  EXPECT_FALSE(r.error().remedy.empty());
}

INSTANTIATE_TEST_SUITE_P(
    All, BadConfiguration,
    testing::Values(Bad{"kind: TroupeConfiguration\nhtp: {}\n", "c.yaml:2", "htp"},
                    Bad{"kind: TroupeConfiguration\nhttp:\n  prt: 1\n", "c.yaml:3", "http.prt"},
                    Bad{"kind: TroupeConfiguration\nhttp:\n  port: 99999\n", "c.yaml:3", "http.port"},
                    Bad{"kind: TroupeConfiguration\nhttp: 5\n", "c.yaml:2", "http"},
                    Bad{"kind: TroupeConfiguration\ndryRun: true\ndryRun: false\n", "c.yaml:3", "dryRun"},
                    Bad{"kind: KubeSchedulerConfiguration\n", "c.yaml:1", "kind"},
                    Bad{"a: b\n", "c.yaml:1", "kind"}, Bad{"kind: [\n", "c.yaml:2", ""},
                    Bad{"kind: TroupeConfiguration\nleaderElection:\n  retryPeriod: 5\n", "c.yaml:3",
                        "leaderElection.retryPeriod"},
                    Bad{"kind: TroupeConfiguration\nlogging:\n  levels: loud\n", "c.yaml:3",
                        "logging.levels"},
                    Bad{"kind: TroupeConfiguration\nschedulerNames: []\n", "c.yaml:2", "schedulerNames"}));

TEST(Configuration, LeaseTimesMustFitEachOther) {
  DaemonOptions o;
  o.renew_deadline_ms = o.lease_duration_ms;
  EXPECT_EQ(validate(o).error().field, "leaderElection.leaseDuration");
  o = {};
  o.retry_period_ms = 9000;
  EXPECT_EQ(validate(o).error().field, "leaderElection.renewDeadline");
  o = {};
  o.tls_key_file = "k";
  EXPECT_EQ(validate(o).error().field, "http.tlsKeyFile");
}

}  // namespace
}  // namespace troupe
