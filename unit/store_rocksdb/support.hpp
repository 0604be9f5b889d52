// What the store's tests share: a directory of their own, a listener to the hooks, and write sets that can be
// checked after a crash.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/rocksdb_open.hpp"
#include "store/store.hpp"
#include "store/testing/fault_file_system.hpp"

namespace troupe {

inline constexpr std::chrono::seconds kDeadline{20};

/// Removed with everything in it. In memory where there is room: these tests need no real disk under the
/// simulated one, and thousands of syncs take their time on it.
class TempDir {
 public:
  TempDir() {
    std::error_code none;
    const bool memory = std::filesystem::space("/dev/shm", none).available + 1 > kRoom;
    const std::filesystem::path parent = memory ? "/dev/shm" : std::filesystem::temp_directory_path();
    std::string name = (parent / "troupe-store-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) std::abort();
    path_ = name;
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  [[nodiscard]] std::string path() const { return path_; }
  [[nodiscard]] std::string db() const { return path_ + "/db"; }

 private:
  static constexpr std::uintmax_t kRoom = 512U << 20U;
  std::string path_;
};

/// Records what the store releases: the keys of the messages' addresses.
class Listener {
 public:
  StoreHooks hooks() {
    return {[this](std::vector<Envelope> envelopes) {
              const std::lock_guard lock(mutex_);
              for (Envelope& e : envelopes) released_.push_back(std::move(e.to.key));
              changed_.notify_all();
            },
            [this](const Error& error) {
              const std::lock_guard lock(mutex_);
              failures_.push_back(error);
              changed_.notify_all();
            }};
  }
  std::vector<std::string> released() const {
    const std::lock_guard lock(mutex_);
    return released_;
  }
  std::vector<Error> failures() const {
    const std::lock_guard lock(mutex_);
    return failures_;
  }
  /// Waits for `n` messages, or a failure; false: neither came in time.
  bool wait(std::size_t n) const {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kDeadline, [&] { return released_.size() >= n || !failures_.empty(); });
  }

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::vector<std::string> released_;
  std::vector<Error> failures_;
};

inline Envelope message_to(std::string key) {
  return {{ActorKind::node, 0, "from"}, {ActorKind::placement, 0, std::move(key)}, {}};
}

inline WriteSet put(std::string_view key, std::string_view value, std::string message = {}) {
  WriteSet set;
  set.writes.put(Family::ledger, key, value);
  if (!message.empty()) set.messages.push_back(message_to(std::move(message)));
  return set;
}

inline WriteSet only(std::string message) {
  WriteSet set;
  set.messages.push_back(message_to(std::move(message)));
  return set;
}

inline std::map<std::string, std::string> everything(Store& store, Family family) {
  std::map<std::string, std::string> out;
  const Result<void> scanned = store.scan(family, {}, [&](std::string_view key, std::string_view value) {
    EXPECT_TRUE(out.emplace(key, value).second);
    return true;
  });
  EXPECT_TRUE(scanned) << scanned.error().text();
  return out;
}

/// Opens `path`; the test fails when that fails.
inline std::unique_ptr<Store> must_open(const std::string& path, Listener& listener,
                                        const StoreTestKnobs& knobs = {},
                                        std::size_t write_buffer = 16U << 20U) {
  StoreOptions options;
  options.path = path;
  options.write_buffer_bytes = write_buffer;
  Result<std::unique_ptr<Store>> store = open_store(options, listener.hooks(), knobs);
  if (!store) {
    ADD_FAILURE() << store.error().text();
    std::abort();
  }
  return std::move(*store);
}

/// Opens `path`, expecting an error; closed again if there is none.
inline Error open_error(const StoreOptions& options, const StoreTestKnobs& knobs = {}) {
  const Result<std::unique_ptr<Store>> store = open_store(options, {}, knobs);
  if (store) {
    ADD_FAILURE() << "opened";
    return {};
  }
  return store.error();
}

inline Error open_error(const std::string& path, const StoreTestKnobs& knobs = {}) {
  StoreOptions options;
  options.path = path;
  return open_error(options, knobs);
}

/// Write set number `n` of a crash test: what it writes can be told from n alone. Every third erases what the
/// one three before it put.
WriteSet numbered_set(std::uint64_t n);
/// How many of the first `written` numbered sets are in the store: it must hold exactly what a prefix of them
/// leaves; otherwise the test fails.
std::uint64_t stored_prefix(Store& store, std::uint64_t written);

}  // namespace troupe
