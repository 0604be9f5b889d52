#include "store/memory_store.hpp"

#include <iterator>
#include <utility>
#include <vector>

namespace troupe {
namespace {

std::size_t index_of(Family family) {
  return static_cast<std::size_t>(family);
}

}  // namespace

void MemoryDisk::apply(const Writes& writes) {
  for (const Write write : writes) {
    auto& map = families[index_of(write.family)];
    const auto at = map.lower_bound(write.key);
    const bool found = at != map.end() && at->first == write.key;
    if (write.erase) {
      if (found) map.erase(at);
    } else if (found) {
      at->second = write.value;
    } else {
      map.emplace_hint(at, write.key, write.value);
    }
  }
}

MemoryStore::MemoryStore(StoreHooks hooks, Mode mode, std::shared_ptr<MemoryDisk> disk)
    : hooks_(std::move(hooks)), mode_(mode), disk_(std::move(disk)) {}

void MemoryStore::commit(WriteSet set) {
  if (failed_ || closed_) return;
  queue_.push_back(std::move(set));
  if (mode_ == Mode::immediate && !stalled_) drain();
}

// A hook that commits again lands here while a group is being released; its set takes the next round.
void MemoryStore::drain() {
  if (committing_) return;
  committing_ = true;
  while (!queue_.empty() && !failed_) commit_group();
  committing_ = false;
}

std::size_t MemoryStore::step() {
  if (stalled_ || committing_) return 0;
  committing_ = true;
  const std::size_t released = commit_group();
  committing_ = false;
  return released;
}

std::size_t MemoryStore::commit_group() {
  if (queue_.empty() || failed_) return 0;
  std::deque<WriteSet> group = std::exchange(queue_, {});
  std::uint64_t operations = 0;
  std::uint64_t bytes = 0;
  for (const WriteSet& set : group) {
    operations += set.writes.size();
    bytes += set.writes.bytes();
  }
  // A group without writes has nothing to sync and cannot fail.
  if (fail_next_ && operations > 0) {
    failed_ = true;
    if (fail_written_) {
      for (const WriteSet& set : group) disk_->apply(set.writes);
    }
    const Error error = *std::exchange(fail_next_, std::nullopt);
    if (hooks_.failed) hooks_.failed(error);
    return 0;
  }
  std::vector<Envelope> messages;
  for (const WriteSet& set : group) disk_->apply(set.writes);
  for (WriteSet& set : group) {
    if (set.durable) set.durable(set.messages);
    messages.insert(messages.end(), std::make_move_iterator(set.messages.begin()),
                    std::make_move_iterator(set.messages.end()));
  }
  stats_.commits += operations > 0 ? 1 : 0;
  stats_.write_sets += group.size();
  stats_.operations += operations;
  stats_.wal_bytes += bytes;
  if (!messages.empty() && hooks_.release) hooks_.release(std::move(messages));
  for (const WriteSet& set : group) {
    if (set.released) set.released();
  }
  return group.size();
}

Result<void> MemoryStore::scan(Family family, std::string_view prefix,
                               const std::function<bool(std::string_view, std::string_view)>& visit) {
  const auto& map = disk_->families[index_of(family)];
  // A copy: `visit` may commit, and sees the state from before.
  std::vector<std::pair<std::string, std::string>> found;
  for (auto at = map.lower_bound(prefix); at != map.end() && at->first.starts_with(prefix); ++at) {
    found.emplace_back(*at);
  }
  for (const auto& [key, value] : found) {
    if (!visit(key, value)) break;
  }
  return {};
}

Result<std::string> MemoryStore::get(Family family, std::string_view key) {
  const auto& map = disk_->families[index_of(family)];
  const auto at = map.find(key);
  if (at == map.end()) {
    return fail({ErrorCode::not_found, "no such key", std::string(kFamilyNames[index_of(family)]), {}, {}});
  }
  return at->second;
}

StoreStats MemoryStore::stats() const {
  return stats_;
}

void MemoryStore::close() {
  if (closed_) return;
  stalled_ = false;
  drain();
  closed_ = true;
}

void MemoryStore::stall(bool stalled) {
  stalled_ = stalled;
  if (mode_ == Mode::immediate && !stalled_) drain();
}

void MemoryStore::fail_next(Error error, bool written) {
  fail_next_ = std::move(error);
  fail_written_ = written;
}

}  // namespace troupe
