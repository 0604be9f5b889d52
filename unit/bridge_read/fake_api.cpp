#include "unit/bridge_read/fake_api.hpp"

#include <algorithm>

namespace troupe::testing {
namespace {

std::string line(const std::string& type, const std::string& object) {
  return R"({"type":")" + type + R"(","object":)" + object + "}";
}

}  // namespace

std::string query(const std::string& path, const std::string& name) {
  auto at = path.find("?" + name + "=");
  if (at == std::string::npos) at = path.find("&" + name + "=");
  if (at == std::string::npos) return {};
  at += name.size() + 2;
  return path.substr(at, path.find('&', at) - at);
}

std::string FakePod::json() const {
  return R"({"metadata":{"namespace":"default","name":")" + name + R"(","uid":")" + uid +
         R"(","resourceVersion":")" + std::to_string(version) + R"("},"spec":{"nodeName":")" + node +
         R"(","containers":[{"name":"c","resources":{"requests":{"cpu":")" +
         (broken ? std::string("many") : std::to_string(cpu_milli).append("m")) +
         R"("}}}]},"status":{"phase":")" + (finished ? "Succeeded" : "Pending") + R"("}})";
}

void FakeApi::record(std::string type, const FakePod& pod, bool was_selected) {
  history_.push_back({std::move(type), pod, was_selected});
}

void FakeApi::put(FakePod pod) {
  const auto it = pods_.find(pod.name);
  if (it != pods_.end() && it->second.uid != pod.uid) {
    erase(pod.name);
    return put(std::move(pod));
  }
  pod.version = ++version_;
  const bool was_selected = it != pods_.end() && !it->second.finished;
  record(it == pods_.end() ? "ADDED" : "MODIFIED", pod, was_selected);
  pods_[pod.name] = pod;
}

void FakeApi::erase(const std::string& name) {
  const auto it = pods_.find(name);
  if (it == pods_.end()) return;
  FakePod last = it->second;
  const bool was_selected = !last.finished;
  last.version = ++version_;
  record("DELETED", last, was_selected);
  pods_.erase(it);
}

void FakeApi::compact() {
  history_.clear();
  oldest_ = version_;
  snapshots_.clear();
}

void FakeApi::restore_older(std::uint64_t versions_back) {
  version_ -= std::min(versions_back, version_ - 1);
  compact();
}

FakeApi::Answer FakeApi::list(const std::string& path) {
  const std::string limit = query(path, "limit");
  const std::string token = query(path, "continue");
  const std::string wanted = query(path, "resourceVersion");
  Snapshot snapshot;
  std::size_t from = 0;
  std::string id;
  if (!token.empty()) {
    const auto colon = token.find("%3A");
    id = token.substr(0, colon);
    const auto it = snapshots_.find(id);
    if (it == snapshots_.end()) return {410, status(410, "Expired")};
    snapshot = it->second;
    from = std::stoul(token.substr(colon + 3));
  } else {
    if (!wanted.empty() && std::stoull(wanted) > version_) {
      return {504, status(504, "Timeout", "Too large resource version: " + wanted)};
    }
    for (const auto& [name, pod] : pods_) {
      if (!pod.finished) snapshot.pods.push_back(pod);
    }
    snapshot.version = version_;
  }
  const std::size_t size = limit.empty() ? snapshot.pods.size() : std::stoul(limit);
  const std::size_t to = std::min(snapshot.pods.size(), from + size);
  std::string next;
  if (to < snapshot.pods.size()) {
    if (id.empty()) id = std::to_string(next_snapshot_++);
    snapshots_[id] = snapshot;
    next = std::string(id).append(":").append(std::to_string(to));
  }
  std::string body = R"({"kind":"PodList","metadata":{"resourceVersion":")" +
                     std::to_string(snapshot.version) + R"(","continue":")" + next + R"("},"items":[)";
  for (std::size_t i = from; i < to; ++i) body.append(i == from ? "" : ",").append(snapshot.pods[i].json());
  return {200, body + "]}"};
}

std::optional<std::vector<std::string>> FakeApi::lines_after(std::uint64_t version) const {
  if (version < oldest_ || version > version_) return std::nullopt;
  std::vector<std::string> out;
  for (const Event& event : history_) {
    if (event.pod.version <= version) continue;
    const bool selected = event.type != "DELETED" && !event.pod.finished;
    // As the API server does it: what leaves the selection is told as deleted, what enters it as added.
    if (selected) {
      out.push_back(line(event.was_selected ? "MODIFIED" : "ADDED", event.pod.json()));
    } else if (event.was_selected) {
      out.push_back(line("DELETED", event.pod.json()));
    }
  }
  return out;
}

std::string FakeApi::bookmark() const {
  return line("BOOKMARK",
              R"({"kind":"Pod","metadata":{"resourceVersion":")" + std::to_string(version_) + R"("}})");
}

std::string FakeApi::error_line(int code, const std::string& reason) {
  return line("ERROR", status(code, reason));
}

std::string FakeApi::status(int code, const std::string& reason, const std::string& message) {
  return R"({"kind":"Status","apiVersion":"v1","status":"Failure","code":)" + std::to_string(code) +
         R"(,"reason":")" + reason + R"(","message":")" + message + R"("})";
}

}  // namespace troupe::testing
