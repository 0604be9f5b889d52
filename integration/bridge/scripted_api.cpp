#include "integration/bridge/scripted_api.hpp"

#include <poll.h>

#include <utility>

namespace troupe::testing {

void ScriptedApi::serve(ServedConnection& c, const ServedRequest& r) {
  Fault fault;
  {
    const std::lock_guard lock(mutex_);
    requests_.push_back(r.target);
    if (!faults_.empty()) {
      fault = std::move(faults_.front());
      faults_.pop_front();
    }
  }
  if (fault && fault(c, r)) return;
  if (!query(r.target, "watch").empty()) return watch(c, r.target);
  FakeApi::Answer answer;
  {
    const std::lock_guard lock(mutex_);
    answer = api_.list(r.target);
  }
  c.reply(answer.status, answer.body);
}

void ScriptedApi::watch(ServedConnection& c, const std::string& path) {
  std::uint64_t version = std::stoull(query(path, "resourceVersion"));
  c.start_chunked();
  ++watching_;
  while (c.peer_is_there()) {
    std::optional<std::vector<std::string>> lines;
    std::function<void(ServedConnection&, const std::string&)> cut;
    {
      const std::lock_guard lock(mutex_);
      lines = api_.lines_after(version);
      version = api_.version();
      if (lines && !lines->empty()) cut = std::exchange(cut_, nullptr);
    }
    if (!lines) {
      c.chunk(FakeApi::error_line(410, "Expired") + "\n");
      c.chunk({});
      break;
    }
    for (std::size_t i = 0; i < lines->size(); ++i) {
      if (cut && i + 1 == lines->size()) {
        cut(c, (*lines)[i]);
        --watching_;
        return;
      }
      c.chunk((*lines)[i] + "\n");
    }
    ::poll(nullptr, 0, 2);
  }
  --watching_;
}

}  // namespace troupe::testing
