// Power cuts, failing disks and killed processes, through the whole host.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>

#include "store/rocksdb_open.hpp"
#include "store/testing/fault_file_system.hpp"
#include "unit/host_caf/inbox.hpp"

namespace troupe {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing_host::Inbox;
using testing_host::kPartitions;
using testing_host::kPatience;
using testing_host::numbered;
using testing_host::Tally;
using testing_host::tell;
using testing_host::TemporaryFolder;

using Values = std::map<std::string, std::uint64_t>;

/// The largest value per key in texts "KEY=VALUE".
Values largest(const std::vector<std::string>& texts) {
  Values out;
  for (const std::string& text : texts) {
    const std::size_t at = text.find('=');
    if (at == std::string::npos) continue;
    std::uint64_t& value = out[text.substr(0, at)];
    value = std::max<std::uint64_t>(value, std::stoull(text.substr(at + 1)));
  }
  return out;
}

/// What the store at `path` holds, read through a host.
Values stored(const std::string& path, std::uint64_t keys) {
  RuntimeOptions options;
  options.store.path = path;
  Inbox inbox;
  Runtime runtime(std::move(options));
  runtime.add_owner<Tally>(kPartitions);
  runtime.add_port(ActorKind::api, 0, inbox.port());
  const auto started = runtime.start();
  EXPECT_TRUE(started.has_value()) << (started ? "" : started.error().text());
  if (!started) return {};
  std::vector<Envelope> batch;
  for (std::uint64_t key = 0; key < keys; ++key) batch.push_back(tell(numbered("n", key), "get"));
  runtime.bus().send(std::move(batch));
  EXPECT_TRUE(inbox.wait_for(keys));
  runtime.drain(kPatience);
  return largest(inbox.texts());
}

/// Keys whose released value the store does not have.
std::size_t forgotten(const Values& promised, const Values& kept) {
  std::size_t out = 0;
  for (const auto& [key, value] : promised) {
    const auto at = kept.find(key);
    if (at == kept.end() || at->second < value) ++out;
  }
  return out;
}

struct Power {
  std::size_t promised = 0;   // keys with a released value, over all rounds
  std::size_t forgotten = 0;  // of these, lost
};

/// Adds to 40 keys until the power fails at a random write or sync; five lives on one disk.
Power power_cuts(std::uint64_t seed, FaultFileSystem::Unsynced unsynced, bool skip_sync) {
  constexpr std::uint64_t kKeys = 40;
  TemporaryFolder folder;
  Random random(seed);
  Power out;
  for (int life = 0; life < 5; ++life) {
    FaultFileSystem disk;
    Inbox inbox;
    {
      std::atomic<bool> over{false};
      RuntimeOptions options;
      options.store.path = folder.path("store");
      options.open = [&](StoreHooks hooks) {
        StoreTestKnobs knobs;
        knobs.env = disk.env();
        knobs.skip_sync = skip_sync;
        StoreOptions store;
        store.path = folder.path("store");
        return open_store(store, std::move(hooks), knobs);
      };
      options.fatal = [&](const Error&) {
        over = true;
        inbox.port()({});
      };
      Runtime runtime(std::move(options));
      runtime.add_owner<Tally>(kPartitions);
      runtime.add_port(ActorKind::api, 0, inbox.port());
      const auto started = runtime.start();
      EXPECT_TRUE(started.has_value()) << (started ? "" : started.error().text());
      if (!started) return out;
      disk.crash_after(random.below(60) + 1, unsynced, random.next());
      // Every reply asks for the next: what is in flight is bounded, and the disk is kept busy until it dies.
      std::size_t asked = 0;
      const auto until = std::chrono::steady_clock::now() + kPatience;
      while (!over && !disk.crashed() && std::chrono::steady_clock::now() < until) {
        std::vector<Envelope> batch;
        for (int i = 0; i < 20; ++i) batch.push_back(tell(numbered("n", random.below(kKeys)), "add 1"));
        asked += batch.size();
        runtime.bus().send(std::move(batch));
        inbox.wait([&](const auto& texts) { return over || disk.crashed() || texts.size() + 100 >= asked; });
      }
      EXPECT_TRUE(over || disk.crashed());
      disk.crash(unsynced, random.next());
    }
    const Values promised = largest(inbox.texts());
    out.promised += promised.size();
    out.forgotten += forgotten(promised, stored(folder.path("store"), kKeys));
  }
  return out;
}

TEST(HostCrash, APowerCutForgetsNothingThatWasReleased) {
  Power sum;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Power one = power_cuts(
        seed, seed % 2 == 0 ? FaultFileSystem::Unsynced::lost : FaultFileSystem::Unsynced::torn, false);
    EXPECT_EQ(one.forgotten, 0U);
    sum.promised += one.promised;
  }
  EXPECT_GT(sum.promised, 100U);
}

TEST(HostCrash, WithoutTheSyncThePowerCutsAreNoticed) {
  Power sum;
  for (std::uint64_t seed = 1; seed <= 4 && sum.forgotten == 0; ++seed) {
    sum.forgotten += power_cuts(seed, FaultFileSystem::Unsynced::lost, true).forgotten;
  }
  EXPECT_GT(sum.forgotten, 0U);
}

class HostDisk : public testing::Test {
 protected:
  void start() {
    RuntimeOptions options;
    options.open = [&](StoreHooks hooks) {
      StoreTestKnobs knobs;
      knobs.env = disk_.env();
      StoreOptions store;
      store.path = folder_.path("store");
      return open_store(store, std::move(hooks), knobs);
    };
    options.fatal = [&](const Error& error) {
      fatal_.push_back(error);
      inbox_.port()({});
    };
    runtime_ = std::make_unique<Runtime>(std::move(options));
    runtime_->add_owner<Tally>(kPartitions);
    runtime_->add_port(ActorKind::api, 0, inbox_.port());
    ASSERT_TRUE(runtime_->start());
  }

  TemporaryFolder folder_;
  FaultFileSystem disk_;
  Inbox inbox_;
  std::vector<Error> fatal_;
  std::unique_ptr<Runtime> runtime_;
};

TEST_F(HostDisk, AStalledSyncDelaysExactlyWhatDependsOnIt) {
  start();
  runtime_->bus().send({tell("a", "add 1"), tell("b", "add 1")});
  ASSERT_TRUE(inbox_.wait_for(2));
  disk_.stall(FaultFileSystem::Operation::sync);
  runtime_->bus().send({tell("a", "add 1"), tell("a", "get")});
  ASSERT_TRUE(disk_.wait_stalled(kPatience));
  // Another instance, of the same partition or not, goes on.
  for (std::size_t i = 0; i < 20; ++i) {
    runtime_->bus().send({tell("b", "get"), tell(numbered("c", i), "get"), tell("a", "get")});
    ASSERT_TRUE(inbox_.wait_for(2 + 2 * (i + 1)));
  }
  EXPECT_THAT(inbox_.texts(), testing::Not(Contains("a=2")));
  disk_.release();
  ASSERT_TRUE(inbox_.wait_for(2 + 40 + 22));
  EXPECT_TRUE(runtime_->drain(kPatience));
}

TEST_F(HostDisk, AFailingSyncReleasesNothingAndIsFatal) {
  start();
  runtime_->bus().send({tell("a", "add 1")});
  ASSERT_TRUE(inbox_.wait_for(1));
  disk_.fail(FaultFileSystem::Operation::sync, ErrorCode::io);
  runtime_->bus().send({tell("a", "add 1"), tell("b", "add 1")});
  ASSERT_TRUE(inbox_.wait([&](const auto&) { return runtime_->failed(); }));
  runtime_->bus().send({tell("c", "get"), tell("c", "add 1")});
  EXPECT_FALSE(runtime_->drain(kPatience));
  EXPECT_THAT(inbox_.texts(), ElementsAre("a=1"));
  ASSERT_EQ(fatal_.size(), 1U);
  EXPECT_FALSE(runtime_->authority().holds(ActorKind::node, 0, 1));
}

TEST_F(HostDisk, AFullDiskSaysSo) {
  start();
  disk_.fail(FaultFileSystem::Operation::write, ErrorCode::no_space);
  runtime_->bus().send({tell("a", "add 1")});
  ASSERT_TRUE(inbox_.wait([&](const auto&) { return runtime_->failed(); }));
  runtime_.reset();
  ASSERT_EQ(fatal_.size(), 1U);
  EXPECT_EQ(fatal_[0].code, ErrorCode::no_space);
  EXPECT_TRUE(inbox_.texts().empty());
}

/// Starts host_child on `path` and kills it after `lines` lines of its output. Returns what it said.
std::vector<std::string> killed_after(const std::string& path, std::size_t lines) {
  int ends[2];
  if (::pipe(ends) != 0) return {};
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], STDOUT_FILENO);
    ::close(ends[0]);
    ::execl(HOST_CHILD, HOST_CHILD, path.c_str(), nullptr);
    ::_exit(127);
  }
  ::close(ends[1]);
  std::string text;
  std::array<char, 4096> buffer{};
  bool killed = false;
  ssize_t n = 0;
  while ((n = ::read(ends[0], buffer.data(), buffer.size())) > 0) {
    text.append(buffer.data(), static_cast<std::size_t>(n));
    if (!killed && static_cast<std::size_t>(std::ranges::count(text, '\n')) >= lines) {
      killed = ::kill(child, SIGKILL) == 0;  // what is left in the pipe was released too
    }
  }
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(killed) << "the child ended by itself, with status " << status;
  text.resize(text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n'));
  std::vector<std::string> out;
  for (const std::string_view line : testing_host::cut(text, '\n')) out.emplace_back(line);
  return out;
}

TEST(HostCrash, KillNineForgetsNothingThatWasReleased) {
  TemporaryFolder folder;
  Random random(11);
  for (int life = 0; life < 8; ++life) {
    const std::vector<std::string> said = killed_after(folder.path("store"), 1 + random.below(3000));
    const Values promised = largest(said);
    EXPECT_FALSE(promised.empty());
    EXPECT_EQ(forgotten(promised, stored(folder.path("store"), 100)), 0U);
  }
}

}  // namespace
}  // namespace troupe
