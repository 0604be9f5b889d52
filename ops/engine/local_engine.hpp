// ops/engine/: the whole way from a pod to its bind on one thread, with a store in memory and a clock that
// stands still: what `troupe simulate` and `troupe explain -f` run. The same actor classes as in a running
// service, hosted by `host_core`.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "messages/error.hpp"
#include "messages/message.hpp"

namespace troupe {

struct LocalEngineOptions {
  std::vector<std::string> scheduler_names = {"koord-scheduler"};
  std::uint64_t seed = 1;
  std::int64_t wall_ms = 0;  // Unix milliseconds: what every timestamp reads
  bool decide = true;        // false: nothing is placed; pending pods stay, for `explain`
};

class LocalEngine {
 public:
  explicit LocalEngine(LocalEngineOptions options);
  ~LocalEngine();
  LocalEngine(const LocalEngine&) = delete;
  LocalEngine& operator=(const LocalEngine&) = delete;

  /// Objects of the cluster (Kind::pod, node, name_space, priority_class), as a mirror would deliver them.
  void put(const std::vector<Message>& objects);
  /// Everything was put: places what can be placed and returns when nothing moves any more.
  void settle();
  /// The pods as they are, by namespace and name; bound ones with their node.
  [[nodiscard]] std::vector<Message> pods() const;
  /// Asks placement; the JSON of docs/api.md.
  Result<std::string> query(std::string_view verb, std::string_view ns = {}, std::string_view name = {},
                            std::uint32_t limit = 0);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace troupe
