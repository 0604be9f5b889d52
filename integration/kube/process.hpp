// Child processes of the integration tests: started with their output in files, ended with the test whatever
// becomes of it, measured while they run.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace troupe::rig {

struct ProcessOptions {
  std::vector<std::string> argv = {};         // argv[0] is looked up in PATH
  std::vector<std::string> environment = {};  // KEY=VALUE, added to this process's own
  std::filesystem::path log =
      {};  // standard error, and standard output unless `output` is set; empty: discarded
  std::filesystem::path output = {};  // standard output on its own
};

/// How a process ended.
struct ExitStatus {
  int code = 0;    // exit code; -1 when a signal ended it
  int signal = 0;  // the signal, or 0
};

/// One child. Its destructor kills it and waits. The kernel kills it, too, when the thread that started it
/// ends, so start it from a thread that lives as long as the test.
class Process {
 public:
  Process() = default;
  /// Throws std::runtime_error when the program cannot be started.
  explicit Process(const ProcessOptions& options);
  Process(Process&& other) noexcept;
  Process& operator=(Process&& other) noexcept;
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process();

  [[nodiscard]] pid_t pid() const { return pid_; }
  /// True until it has ended; reaps it.
  bool running();
  void signal(int number) const;
  /// Waits for its end; nullopt when it still runs after `limit`.
  std::optional<ExitStatus> wait(std::chrono::milliseconds limit);
  /// SIGKILL, then waits until it is gone (its ports are free again).
  void kill();
  /// SIGTERM, and SIGKILL after `limit`; tells how it ended.
  ExitStatus terminate(std::chrono::milliseconds limit);

  /// User and system time so far, in seconds; of an ended process, all of it.
  [[nodiscard]] double cpu_seconds() const;
  /// Resident memory now, and its highest mark, in bytes; 0 when it has ended.
  [[nodiscard]] std::size_t resident_bytes() const;
  [[nodiscard]] std::size_t peak_resident_bytes() const;
  /// The last `bytes` of `log`.
  [[nodiscard]] std::string log_tail(std::size_t bytes = 4096) const;

 private:
  std::optional<ExitStatus> reap(bool block);

  pid_t pid_ = -1;
  int handle_ = -1;  // pidfd
  std::optional<ExitStatus> ended_;
  double ended_cpu_seconds_ = 0;
  std::filesystem::path log_;
};

struct Finished {
  ExitStatus status;
  std::string out;
  std::string err;
};

/// Runs a program to its end. Throws when it cannot be started or is not done after `limit`.
Finished run(const std::vector<std::string>& argv, std::chrono::milliseconds limit = std::chrono::minutes(2),
             const std::vector<std::string>& environment = {});

std::string read_file(const std::filesystem::path& path);
void write_file(const std::filesystem::path& path, std::string_view text);

/// A directory under TMPDIR, removed with all its content; kept when TROUPE_KEEP_TMP is set.
class TempDir {
 public:
  explicit TempDir(std::string_view prefix);
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir();
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// A TCP port on 127.0.0.1 that nobody listened on a moment ago.
int free_port();

/// Tries `condition` every few milliseconds until it holds or `limit` has passed; returns whether it held.
template <typename Condition>
bool wait_until(Condition&& condition, std::chrono::milliseconds limit);

void pause_between_tries();

template <typename Condition>
bool wait_until(Condition&& condition, std::chrono::milliseconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    pause_between_tries();
  }
  return true;
}

}  // namespace troupe::rig
