// What host tests on threads share: a port that collects replies, and a folder that disappears.
#pragma once

#include <stdlib.h>

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "actors/host/runtime.hpp"
#include "unit/host/tally.hpp"

namespace troupe::testing_host {

inline constexpr std::uint32_t kPartitions = 32;
inline constexpr std::chrono::seconds kPatience{
    60};  // far longer than anything takes: reached only by a failure

/// Texts in the order in which they arrived, "TEXT" alone.
class Inbox {
 public:
  [[nodiscard]] Runtime::Take port() {
    return [this](std::vector<Envelope> envelopes) {
      {
        const std::lock_guard lock(mutex_);
        for (const Envelope& e : envelopes) texts_.emplace_back(e.message.bytes().view());
      }
      changed_.notify_all();
    };
  }
  /// Waits until `done(texts)`; false when patience ended first.
  bool wait(const std::function<bool(const std::vector<std::string>&)>& done) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, [&] { return done(texts_); });
  }
  bool wait_for(std::size_t count) {
    return wait([count](const auto& texts) { return texts.size() >= count; });
  }
  [[nodiscard]] std::vector<std::string> texts() const {
    const std::lock_guard lock(mutex_);
    return texts_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> texts_;
};

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string path = (std::filesystem::temp_directory_path() / "troupe-host-XXXXXX").string();
    if (::mkdtemp(path.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = path;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  [[nodiscard]] std::string path(std::string_view name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

/// Text to an instance of Tally, or to one partition with an empty key.
inline Envelope tell(std::string key, std::string_view text, std::string from = "t") {
  const std::uint32_t partition = partition_of(key, kPartitions);
  return {
      {ActorKind::api, 0, std::move(from)}, {ActorKind::node, partition, std::move(key)}, text_message(text)};
}

}  // namespace troupe::testing_host
