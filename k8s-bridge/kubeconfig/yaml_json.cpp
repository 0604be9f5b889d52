#include "k8s-bridge/kubeconfig/yaml_json.hpp"

#include <yaml-cpp/yaml.h>

#include <array>
#include <charconv>
#include <cmath>

#include "messages/json_text.hpp"

namespace troupe {
namespace {

constexpr int kDeepest = 64;
constexpr std::size_t kLargest = 1U << 20U;

void scalar(const YAML::Node& node, std::string& out) {
  const std::string& text = node.Scalar();
  if (node.Tag() != "!") {  // "!": written with quotes
    bool flag = false;
    long long integer = 0;
    double number = 0;
    if (YAML::convert<bool>::decode(node, flag) && (text == "true" || text == "false")) {
      out += text;
      return;
    }
    if (YAML::convert<long long>::decode(node, integer)) {
      out += std::to_string(integer);
      return;
    }
    if (YAML::convert<double>::decode(node, number) && std::isfinite(number)) {
      std::array<char, 32> digits{};
      out.append(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr);
      return;
    }
  }
  append_json_string(out, text);
}

bool write(const YAML::Node& node, int depth, std::string& out) {
  if (depth > kDeepest || out.size() > kLargest) return false;
  if (node.IsMap()) {
    out += '{';
    for (auto it = node.begin(); it != node.end(); ++it) {
      if (it != node.begin()) out += ',';
      if (!it->first.IsScalar()) return false;
      append_json_string(out, it->first.Scalar());
      out += ':';
      if (!write(it->second, depth + 1, out)) return false;
    }
    out += '}';
  } else if (node.IsSequence()) {
    out += '[';
    for (std::size_t i = 0; i < node.size(); ++i) {
      if (i != 0) out += ',';
      if (!write(node[i], depth + 1, out)) return false;
    }
    out += ']';
  } else if (node.IsScalar()) {
    scalar(node, out);
  } else {
    out += "null";
  }
  return true;
}

}  // namespace

std::string yaml_to_json(const YAML::Node& node) {
  std::string out;
  if (!node.IsDefined() || !write(node, 0, out)) return {};
  return out;
}

}  // namespace troupe
