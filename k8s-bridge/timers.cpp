#include "k8s-bridge/timers.hpp"

#include <time.h>

#include <condition_variable>
#include <mutex>
#include <queue>
#include <thread>
#include <utility>
#include <vector>

namespace troupe {
namespace {

std::int64_t read_clock(clockid_t clock, std::int64_t per_second) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<std::int64_t>(t.tv_sec) * per_second + t.tv_nsec / (1'000'000'000 / per_second);
}

class TimerThread final : public Timers {
 public:
  TimerThread() : thread_([this] { run(); }) {}
  ~TimerThread() override {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }
  TimerThread(const TimerThread&) = delete;
  TimerThread& operator=(const TimerThread&) = delete;

  [[nodiscard]] std::int64_t now_ms() const override { return read_clock(CLOCK_BOOTTIME, 1000); }
  [[nodiscard]] std::int64_t wall_us() const override { return read_clock(CLOCK_REALTIME, 1'000'000); }

  void at(std::int64_t due_ms, std::function<void()> call) override {
    bool first = false;
    {
      const std::lock_guard lock(mutex_);
      first = due_.empty() || due_ms < due_.top().due_ms;
      due_.push({due_ms, next_++, std::move(call)});
    }
    if (first) changed_.notify_one();
  }

 private:
  struct Entry {
    std::int64_t due_ms;
    std::uint64_t n;  // keeps equal times in order
    std::function<void()> call;
    bool operator<(const Entry& other) const {
      return std::pair(due_ms, n) > std::pair(other.due_ms, other.n);
    }
  };

  void run() {
    std::unique_lock lock(mutex_);
    while (!stop_) {
      if (due_.empty()) {
        changed_.wait(lock);
        continue;
      }
      const std::int64_t wait = due_.top().due_ms - now_ms();
      if (wait > 0) {
        changed_.wait_for(lock, std::chrono::milliseconds(wait));
        continue;
      }
      auto call = std::move(const_cast<Entry&>(due_.top()).call);
      due_.pop();
      lock.unlock();
      call();
      call = nullptr;
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::priority_queue<Entry> due_;
  std::uint64_t next_ = 0;
  bool stop_ = false;
  std::thread thread_;  // last: starts when the rest is there
};

}  // namespace

std::unique_ptr<Timers> make_timers() {
  return std::make_unique<TimerThread>();
}

}  // namespace troupe
