// A Store in memory with the contract of the real one, for host tests and the simulator: one thread, no
// clock, commits when told to.
#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "store/store.hpp"

namespace troupe {

/// What survives a crash: the durable bytes. Outlives the stores that are opened on it, one at a time.
struct MemoryDisk {
  std::array<std::map<std::string, std::string, std::less<>>, kFamilyNames.size()> families;

  void apply(const Writes& writes);
};

/// Single-threaded; hooks and `durable` run inside commit() or step() and may commit again. Destroying it
/// without close() is a crash: what is queued is lost, the disk keeps what was committed.
class MemoryStore final : public Store {
 public:
  enum class Mode {
    immediate,  // commit() commits at once, unless stalled
    stepped,    // commits happen in step()
  };

  explicit MemoryStore(StoreHooks hooks, Mode mode = Mode::stepped,
                       std::shared_ptr<MemoryDisk> disk = std::make_shared<MemoryDisk>());

  void commit(WriteSet set) override;
  Result<void> scan(Family family, std::string_view prefix,
                    const std::function<bool(std::string_view, std::string_view)>& visit) override;
  Result<std::string> get(Family family, std::string_view key) override;
  [[nodiscard]] StoreStats stats() const override;
  /// Commits what is queued, stalled or not.
  void close() override;

  /// One group commit of everything queued now; sets that are queued meanwhile wait for the next step.
  /// Returns how many sets were released: 0 when nothing is queued, when stalled, or after a failure.
  std::size_t step();
  /// Write sets that wait.
  [[nodiscard]] std::size_t queued() const { return queue_.size(); }

  /// While stalled no commit happens: a disk that does not answer. Ending the stall commits what is queued in
  /// immediate mode.
  void stall(bool stalled);
  /// The next group commit fails with `error`. `written`: its bytes are found on the disk afterwards all the
  /// same, as a failed sync permits.
  void fail_next(Error error, bool written = false);
  [[nodiscard]] bool failed() const { return failed_; }
  [[nodiscard]] const std::shared_ptr<MemoryDisk>& disk() const { return disk_; }

 private:
  std::size_t commit_group();
  void drain();

  StoreHooks hooks_;
  Mode mode_;
  std::shared_ptr<MemoryDisk> disk_;
  std::deque<WriteSet> queue_;
  std::optional<Error> fail_next_;
  bool fail_written_ = false;
  bool stalled_ = false;
  bool failed_ = false;
  bool closed_ = false;
  bool committing_ = false;
  StoreStats stats_;
};

}  // namespace troupe
