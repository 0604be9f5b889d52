#include "k8s-bridge/dump/dump.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "k8s-bridge/dump/yaml_json.hpp"
#include "unit/bridge/decode_support.hpp"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;
using Json = nlohmann::json;

std::string error_of(std::string_view text, const DumpLimits& limits = {}) {
  const auto dump = read_dump_text(text, "d.yaml", limits);
  return dump ? "read" : dump.error().text();
}

std::vector<std::string> names(const std::vector<Message>& messages) {
  std::vector<std::string> out;
  for (const Message& m : messages) out.emplace_back(identity(m).name);
  return out;
}

// A directory of its own, gone at the end.
class TempDir {
 public:
  TempDir() {
    std::string pattern = (std::filesystem::temp_directory_path() / "troupe-dump-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~TempDir() { std::filesystem::remove_all(path_); }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  std::string write(const std::string& name, std::string_view text) const {
    const std::string path = path_ + "/" + name;
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

constexpr std::string_view kYamlList = R"(apiVersion: v1
items:
- apiVersion: v1
  kind: Node
  metadata:
    creationTimestamp: "2026-07-01T09:30:00Z"
    labels:
      kubernetes.io/hostname: n1
      numeric: "1"
      truthy: "true"
    name: n1
  spec: {}
  status:
    allocatable:
      cpu: 7910m
      memory: 31Gi
      pods: "110"
- apiVersion: v1
  kind: Pod
  metadata:
    annotations:
      koordinator.sh/note: |
        two
        lines
    name: web-0
    namespace: shop
  spec:
    containers:
    - image: app:1
      name: app
      resources:
        requests:
          cpu: 1
          memory: 1.5Gi
- apiVersion: v1
  kind: Service
  metadata: {name: s}
- apiVersion: scheduling.k8s.io/v1
  kind: PriorityClass
  metadata:
    name: high
  value: 1000
kind: List
metadata:
  resourceVersion: ""
)";

TEST(Dump, YamlList) {
  const auto dump = read_dump_text(kYamlList, "d.yaml");
  ASSERT_TRUE(dump) << dump.error().text();
  ASSERT_THAT(names(dump->nodes), ElementsAre("n1"));
  const auto& node = dump->nodes[0].as<fb::Node>();
  EXPECT_EQ(pairs(node.labels())["numeric"], "1");
  EXPECT_EQ(pairs(node.labels())["truthy"], "true");
  EXPECT_EQ(amounts(node.allocatable())["memory"], 33285996544);
  EXPECT_EQ(node.creation_ms(), 1782898200000);
  ASSERT_THAT(names(dump->pods), ElementsAre("web-0"));
  EXPECT_EQ(pairs(dump->pods[0].as<fb::Pod>().annotations())["koordinator.sh/note"], "two\nlines\n");
  EXPECT_EQ(amounts(class_of(dump->pods[0]).requests())["cpu"], 1000);
  EXPECT_EQ(amounts(class_of(dump->pods[0]).requests())["memory"], 1610612736);
  EXPECT_THAT(names(dump->priority_classes), ElementsAre("high"));
  EXPECT_THAT(dump->notes, ElementsAre("ignored 1 of kind Service: only nodes, pods, namespaces and priority "
                                       "classes are read"));
}

TEST(Dump, YamlAndJsonGiveTheSameBytes) {
  const auto from_yaml = read_dump_text(kYamlList, "d.yaml");
  ASSERT_TRUE(from_yaml);
  std::string json;
  ASSERT_TRUE(dump::yaml_to_json(kYamlList, 0, [&](const dump::JsonDocument& d) {
    json = Json::parse(d.json).dump(2);  // as kubectl would print it
    return true;
  }));
  const auto from_json = read_dump_text(json, "d.json");
  ASSERT_TRUE(from_json) << from_json.error().text();
  ASSERT_EQ(from_json->pods.size(), 1U);
  EXPECT_EQ(from_yaml->pods[0].bytes().view(), from_json->pods[0].bytes().view());
  EXPECT_EQ(from_yaml->nodes[0].bytes().view(), from_json->nodes[0].bytes().view());
}

TEST(Dump, SeveralDocuments) {
  const auto yaml = read_dump_text(
      "---\nkind: Pod\nmetadata: {name: a}\n---\n# nothing\n---\nkind: Pod\nmetadata: {name: b}\n...\n", "d");
  ASSERT_TRUE(yaml) << yaml.error().text();
  EXPECT_THAT(names(yaml->pods), ElementsAre("a", "b"));
  const auto json = read_dump_text(
      R"({"kind":"Pod","metadata":{"name":"a}"}} {"kind":"PodList","items":[{"metadata":{"name":"b"}}]})",
      "d");
  ASSERT_TRUE(json) << json.error().text();
  EXPECT_THAT(names(json->pods), ElementsAre("a}", "b"));
}

TEST(Dump, SourcesAreFilesDirectoriesAndStandardInput) {
  const TempDir dir;
  const std::string one = dir.write("one.yaml", "kind: Node\nmetadata: {name: n1}\n");
  std::filesystem::create_directory(dir.path() + "/more");
  dir.write("more/b.yml", "kind: Pod\nmetadata: {name: b}\n");
  dir.write("more/a.json", R"({"kind":"Pod","metadata":{"name":"a"}})");
  dir.write("more/readme.txt", "not yaml: [");
  std::istringstream input("kind: Namespace\nmetadata: {name: shop}\n");
  const std::vector<std::string> sources = {one, dir.path() + "/more", "-"};
  const auto dump = read_dump(sources, input);
  ASSERT_TRUE(dump) << dump.error().text();
  EXPECT_THAT(names(dump->nodes), ElementsAre("n1"));
  EXPECT_THAT(names(dump->pods), ElementsAre("a", "b"));
  EXPECT_THAT(names(dump->namespaces), ElementsAre("shop"));
}

TEST(Dump, SourcesThatCannotBeReadAreNamed) {
  const TempDir dir;
  std::istringstream input;
  const auto code = [&](const std::string& source) {
    const auto r = read_dump(std::vector{source}, input);
    return r ? "read" : r.error().text();
  };
  EXPECT_THAT(code(dir.path() + "/absent.yaml"), HasSubstr("absent.yaml; check the path"));
  EXPECT_THAT(code(dir.path()), StartsWith("no *.yaml, *.yml or *.json file in it"));
  EXPECT_THAT(code("-"), StartsWith("nothing in it: standard input"));
}

TEST(Dump, RepeatedObjectsCountOnce) {
  const auto dump = read_dump_text(
      "kind: Pod\nmetadata: {name: a}\nspec: {priority: 1}\n---\nkind: Pod\nmetadata: {name: b}\n---\n"
      "kind: Pod\nmetadata: {name: a}\nspec: {priority: 2}\n",
      "d");
  ASSERT_TRUE(dump);
  EXPECT_THAT(names(dump->pods), ElementsAre("a", "b"));
  EXPECT_EQ(dump->pods[0].as<fb::Pod>().priority(), 2);
  EXPECT_THAT(dump->notes, ElementsAre("Pod default/a comes again; the later one counts"));
}

TEST(Dump, OtherGroupsWithTheSameKindNameAreIgnored) {
  const auto dump = read_dump_text("apiVersion: example.com/v1\nkind: Node\nmetadata: {name: n}\n", "d");
  ASSERT_TRUE(dump);
  EXPECT_TRUE(dump->nodes.empty());
  EXPECT_EQ(dump->notes.size(), 1U);
}

TEST(Dump, ErrorsNamePlaceObjectFieldAndRemedy) {
  EXPECT_EQ(error_of("kind: Pod\nmetadata:\n  name: a\nspec:\n  containers:\n  - name: c\n    resources:\n"
                     "      requests:\n        cpu: 1 core\n"),
            "\"1 core\" is no quantity: its shape is wrong: d.yaml:9:9: Pod a: "
            "spec.containers[0].resources.requests.cpu; write it like 2, 500m, 1.5Gi or 1e3");
  EXPECT_EQ(error_of("{\"kind\": \"Pod\",\n \"metadata\": {\"name\": \"a\", \"namespace\": \"s\"},\n"
                     " \"spec\": {\"priority\": \"1\"}}"),
            "expected a number, found a string: d.yaml:3:12: Pod s/a: spec.priority");
  EXPECT_THAT(error_of("a: 1\n---\nmetadata: {name: x}\n"), StartsWith("missing: d.yaml:1:1: kind"));
  EXPECT_THAT(error_of("kind: Pod\nmetadata:\n  labels:\n    on: yes\n  name: a\n"),
              StartsWith("expected a string, found true or false: d.yaml:4:5: Pod a: metadata.labels.on"));
}

TEST(Dump, ErrorsOfTheSecondDocumentHaveItsLines) {
  EXPECT_THAT(
      error_of("kind: Pod\nmetadata: {name: a}\n---\nkind: Pod\nmetadata: {name: b}\nspec:\n  nodeName: 7\n"),
      HasSubstr("d.yaml:7:3: Pod b: spec.nodeName"));
  EXPECT_THAT(
      error_of("{\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\"}}\n{\"kind\":\"Pod\",\n\"metadata\":7}"),
      HasSubstr("d.yaml:3:2: Pod: metadata"));
}

TEST(Dump, BrokenYaml) {
  EXPECT_THAT(error_of("kind: Pod\n  metadata: x\n"), StartsWith("not YAML: "));
  EXPECT_THAT(error_of("kind: Pod\nspec: [1, 2\n"), HasSubstr("d.yaml:"));
  EXPECT_THAT(error_of("{\"kind\": \"Pod\", \"metadata\": {"),
              StartsWith("not JSON, and a bracket is not closed"));
  EXPECT_THAT(error_of("? [a, b]\n: c\n"), HasSubstr("stands where a key is expected"));
  EXPECT_THAT(error_of("base: &b {x: 1}\nkind: Pod\nmetadata:\n  <<: *b\n"), HasSubstr("merge keys"));
  EXPECT_THAT(error_of("kind: *nowhere\n"), StartsWith("not YAML: "));
  EXPECT_THAT(error_of("just text\n"), StartsWith("not JSON: "));
  EXPECT_THAT(error_of("- a\n- b\n"), StartsWith("not JSON: "));
}

TEST(Dump, TextThatIsNoPlainTextIsRefused) {
  EXPECT_EQ(error_of(std::string("kind: Pod\nname: \xC3(\n")),
            "not UTF-8: d.yaml:2:7; save it as UTF-8; a dump is plain text");
  EXPECT_THAT(error_of(std::string("kind: Pod\n\x04metadata: {}\n")),
              StartsWith("a control character: d.yaml:2:1"));
  EXPECT_THAT(error_of(std::string_view("kind: \0", 7)), StartsWith("a control character"));
  EXPECT_THAT(error_of("\xFF\xFEk"), StartsWith("UTF-16 text"));
  EXPECT_EQ(error_of("\xEF\xBB\xBFkind: Pod\nmetadata: {name: a}\n"), "read");
}

TEST(Dump, AliasesAreCopiedWithinBounds) {
  const auto dump = read_dump_text(
      "kind: List\nitems:\n- kind: Pod\n  metadata: {name: a, labels: &l {x: \"1\"}}\n"
      "- kind: Pod\n  metadata: {name: b, labels: *l}\n",
      "d");
  ASSERT_TRUE(dump) << dump.error().text();
  EXPECT_EQ(pairs(dump->pods[1].as<fb::Pod>().labels()), (std::map<std::string, std::string>{{"x", "1"}}));

  std::string laughs = "a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n";
  for (int i = 1; i < 30; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    laughs += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + before;
    for (int k = 0; k < 8; ++k) laughs += ", " + before;
    laughs += "]\n";
  }
  EXPECT_THAT(error_of(laughs, {.alias_bytes = 1 << 20}), HasSubstr("aliases grow the document"));
  EXPECT_THAT(error_of("a: &x [*x]\n"), HasSubstr("d.yaml:1:8"));
}

TEST(Dump, DeepNestingIsAnError) {
  EXPECT_THAT(error_of(std::string(100000, '[')), StartsWith("a bracket is not closed"));
  EXPECT_THAT(error_of("a:\n  " + std::string(3000, '[') + std::string(3000, ']') + "\n"),
              StartsWith("not YAML: "));
  std::string deep = "kind: Pod\nmetadata: {name: a}\nspec: ";
  EXPECT_NE(error_of(deep + std::string(100000, '{')), "read");
  EXPECT_NE(error_of("{\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\"},\"x\":" + std::string(100000, '[') +
                     std::string(100000, ']') + "}"),
            "");
}

TEST(Dump, SizesAreBounded) {
  DumpLimits limits;
  limits.yaml_bytes = 64;
  EXPECT_THAT(error_of("kind: Pod\nmetadata:\n  name: " + std::string(100, 'x') + "\n", limits),
              StartsWith("larger than 64 bytes: d.yaml"));
}

TEST(PlainScalars, AreTypedAsKubectlTypesThem) {
  using dump::plain_scalar_json;
  for (const auto& [in, out] :
       std::map<std::string, std::string>{{"1", "1"},
                                          {"-7", "-7"},
                                          {"+7", "7"},
                                          {"010", "8"},
                                          {"0x1F", "31"},
                                          {"0b101", "5"},
                                          {"1_000", "1000"},
                                          {"1.5", "1.5"},
                                          {".5", "0.5"},
                                          {"1.", "1"},
                                          {"1e3", "1e3"},
                                          {"1.5E+3", "1.5e3"},
                                          {"08", "8"},
                                          {"on", "true"},
                                          {"N", "false"},
                                          {"~", "null"},
                                          {"", "null"},
                                          {"500m", "\"500m\""},
                                          {"1Gi", "\"1Gi\""},
                                          {"-", "\"-\""},
                                          {".", "\".\""},
                                          {"0x", "\"0x\""},
                                          {"1e", "\"1e\""},
                                          {"tRue", "\"tRue\""},
                                          {"2026-07-01T09:30:00Z", "\"2026-07-01T09:30:00Z\""},
                                          {"-.", "\"-.\""},
                                          {"_", "\"_\""}}) {
    EXPECT_EQ(plain_scalar_json(in), out) << in;
    EXPECT_TRUE(Json::accept(plain_scalar_json(in))) << in;
  }
}

}  // namespace
}  // namespace troupe
