#include "ops/openb/openb.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "messages/fb/node_generated.h"
#include "messages/fb/pod_generated.h"

namespace troupe {
namespace {

using testing::HasSubstr;
using Amounts = std::map<std::string, std::int64_t>;

template <class List>
Amounts amounts(const List* list) {
  Amounts out;
  if (list == nullptr) return out;
  for (const fb::ResourceAmount* a : *list) out[std::string(text(a->name()))] = a->amount();
  return out;
}

template <class List>
std::string label(const List* labels, std::string_view key) {
  if (labels == nullptr) return "";
  for (const fb::KeyValue* kv : *labels) {
    if (text(kv->key()) == key) return std::string(text(kv->value()));
  }
  return "";
}

const fb::PodClass& class_of(const Message& pod) {
  return *flatbuffers::GetRoot<fb::PodClass>(pod.as<fb::Pod>().class_bytes()->data());
}

std::string all_bytes(const OpenbWorkload& w) {
  std::string out;
  for (const auto* list : {&w.nodes, &w.pods}) {
    for (const Message& m : *list) out.append(m.bytes().view());
  }
  return out;
}

class TraceFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "troupe-openb-XXXXXX").string();
    dir_ = ::mkdtemp(pattern.data());
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }

  std::string write(const std::string& name, std::string_view content) {
    const std::string path = dir_ + "/" + name;
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }
  static std::string failure(const std::string& path) {
    const auto r = read_openb(std::vector{path}, {});
    return r ? "read" : r.error().text();
  }

 private:
  std::string dir_;
};

TEST(Openb, TotalsAreThoseOfTheTrace) {
  const OpenbWorkload w = openb_workload({});
  EXPECT_EQ(w.nodes.size(), 1523U);
  EXPECT_EQ(w.pods.size(), 8152U);
  EXPECT_EQ(w.gpus, 6212);

  Amounts room;
  std::size_t gpu_nodes = 0;
  for (const Message& m : w.nodes) {
    const Amounts a = amounts(m.as<fb::Node>().allocatable());
    for (const auto& [name, amount] : a) room[name] += amount;
    const bool has_gpu = a.count("koordinator.sh/gpu-core") > 0;
    gpu_nodes += has_gpu ? 1 : 0;
    EXPECT_EQ(label(m.as<fb::Node>().labels(), "node.koordinator.sh/gpu-model").empty(), !has_gpu);
  }
  EXPECT_EQ(gpu_nodes, 1213U);
  EXPECT_EQ(room["koordinator.sh/gpu-core"], 621200);
  EXPECT_EQ(room["pods"], 1523 * 110);

  std::map<std::string, int> qos;
  int without_gpu = 0;
  int eight_gpus = 0;
  for (const Message& m : w.pods) {
    ++qos[label(m.as<fb::Pod>().labels(), "koordinator.sh/qosClass")];
    const Amounts a = amounts(class_of(m).requests());
    const auto gpu = a.find("koordinator.sh/gpu-core");
    without_gpu += gpu == a.end() ? 1 : 0;
    eight_gpus += gpu != a.end() && gpu->second == 800 ? 1 : 0;
  }
  EXPECT_EQ(qos, (std::map<std::string, int>{{"BE", 3398}, {"LS", 4747}, {"LSR", 7}}));
  EXPECT_EQ(without_gpu, 1088);
  EXPECT_EQ(eight_gpus, 44);
}

TEST(Openb, TheSeedGivesTheOrder) {
  const std::string one = all_bytes(openb_workload({.seed = 1, .scheduler_name = "s", .name_space = "n"}));
  EXPECT_EQ(one, all_bytes(openb_workload({.seed = 1, .scheduler_name = "s", .name_space = "n"})));
  EXPECT_NE(one, all_bytes(openb_workload({.seed = 2, .scheduler_name = "s", .name_space = "n"})));
}

TEST(Openb, ObjectsAreWellFormed) {
  const OpenbWorkload w = openb_workload({});
  std::set<std::string> names;
  std::set<std::string> uids;
  std::set<std::string> classes;
  for (const Message& m : w.pods) {
    ASSERT_TRUE(Message::verified(static_cast<std::uint16_t>(Kind::pod), m.bytes().span()));
    const auto& pod = m.as<fb::Pod>();
    names.emplace(text(pod.name()));
    uids.emplace(text(pod.uid_text()));
    classes.emplace(pod.class_bytes()->begin(), pod.class_bytes()->end());
    EXPECT_EQ(text(pod.scheduler_name()), "koord-scheduler");
    EXPECT_EQ(text(pod.node_name()), "");
  }
  EXPECT_EQ(names.size(), w.pods.size());
  EXPECT_EQ(uids.size(), w.pods.size());
  // Shapes that differ in QoS alone share a class: it is a label.
  EXPECT_LE(classes.size(), openb_pod_shapes().size());
  for (const Message& m : w.nodes) {
    ASSERT_TRUE(Message::verified(static_cast<std::uint16_t>(Kind::node), m.bytes().span()));
  }
}

TEST_F(TraceFiles, LinesBecomeObjects) {
  const std::string nodes = write("nodes.csv",
                                  "sn,cpu_milli,memory_mib,gpu,model\r\n"
                                  "a,32000,1024,0,\r\nb,64000,2048,2,P100\r\n");
  const std::string pods = write("pods.csv",
                                 "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,creation_time\n"
                                 "p0,1000,16,1,465,A10|T4,Guaranteed,7\n\np1,2000,32,4,1000,,BE,8");
  const auto w = read_openb(std::vector{pods, nodes}, {});
  ASSERT_TRUE(w) << w.error().text();
  ASSERT_EQ(w->nodes.size(), 2U);
  ASSERT_EQ(w->pods.size(), 2U);
  EXPECT_EQ(w->gpus, 2);
  EXPECT_EQ(amounts(w->nodes[0].as<fb::Node>().allocatable()),
            (Amounts{{"cpu", 32000}, {"memory", 1073741824}, {"pods", 110}}));
  EXPECT_EQ(amounts(w->nodes[1].as<fb::Node>().allocatable())["koordinator.sh/gpu-core"], 200);
  EXPECT_EQ(label(w->nodes[1].as<fb::Node>().labels(), "node.koordinator.sh/gpu-model"), "P100");

  const fb::PodClass& shared = class_of(w->pods[0]);
  EXPECT_EQ(amounts(shared.requests()),
            (Amounts{{"cpu", 1000}, {"koordinator.sh/gpu-core", 47}, {"memory", 16777216}}));
  EXPECT_TRUE(shared.has_required());
  const auto* requirement = shared.required()->Get(0)->match_expressions()->Get(0);
  EXPECT_EQ(text(requirement->key()), "node.koordinator.sh/gpu-model");
  ASSERT_EQ(requirement->values()->size(), 2U);
  EXPECT_EQ(text(requirement->values()->Get(1)), "T4");
  EXPECT_EQ(label(w->pods[0].as<fb::Pod>().labels(), "koordinator.sh/qosClass"), "LSR");
  EXPECT_EQ(w->pods[0].as<fb::Pod>().creation_ms(), 7000);
  EXPECT_EQ(amounts(class_of(w->pods[1]).requests())["koordinator.sh/gpu-core"], 400);
  EXPECT_FALSE(class_of(w->pods[1]).has_required());
}

TEST_F(TraceFiles, ColumnsMayBeMissingAndNodesComeFromTheTable) {
  const std::string pods =
      write("pods.csv", "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np0,12000,16384,1,1000\n");
  const auto w = read_openb(std::vector{pods}, {});
  ASSERT_TRUE(w) << w.error().text();
  EXPECT_EQ(w->nodes.size(), 1523U);
  ASSERT_EQ(w->pods.size(), 1U);
  EXPECT_EQ(w->pods[0].as<fb::Pod>().labels(), nullptr);
}

TEST_F(TraceFiles, ErrorsNameFileLineColumnAndRemedy) {
  const std::string header = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n";
  EXPECT_THAT(failure(write("a.csv", header + "p,1,2,3,4\nq,x,2,3,4\n")),
              testing::AllOf(HasSubstr("\"x\" is no number"), HasSubstr("a.csv: line 3, column cpu_milli;")));
  EXPECT_THAT(failure(write("b.csv", header + "p,1,2,3\n")), HasSubstr("line 2, column gpu_milli"));
  EXPECT_THAT(failure(write("c.csv", header + "p,-1,2,3,4\n")), HasSubstr("column cpu_milli"));
  EXPECT_THAT(failure(write("d.csv", header + "p,99999999999999999999,2,3,4\n")), HasSubstr("no number"));
  EXPECT_THAT(failure(write("e.csv", header + ",1,2,3,4\n")), HasSubstr("missing"));
  EXPECT_THAT(failure(write("f.csv", "a,b\n1,2\n")), HasSubstr("neither a node list nor a pod list"));
  EXPECT_THAT(failure(write("g.csv", "")), HasSubstr("an empty file"));
  EXPECT_THAT(failure(write("h.csv", std::string(1 << 20, 'x'))), HasSubstr("a line of more than"));
  EXPECT_THAT(failure("/nonexistent/openb.csv"), HasSubstr("cannot be opened"));
}

}  // namespace
}  // namespace troupe
