// This program as a child process, in one of the modes of main.cpp.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string>
#include <vector>

namespace troupe {

class Child {
 public:
  explicit Child(std::vector<std::string> arguments) {
    std::string name = "unit_store_rocksdb";
    std::vector<char*> argv = {name.data()};
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    int ends[2];
    if (pipe(ends) != 0) std::abort();
    pid_ = fork();
    if (pid_ == 0) {
      dup2(ends[1], STDOUT_FILENO);
      close(ends[0]);
      close(ends[1]);
      execv("/proc/self/exe", argv.data());
      _exit(127);
    }
    close(ends[1]);
    output_ = ends[0];
  }
  ~Child() {
    kill_now();
    close(output_);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// Some output, at least a byte; empty at its end.
  std::string read_some() {
    char buffer[4096];
    ssize_t n = 0;
    do {
      n = read(output_, buffer, sizeof buffer);
    } while (n < 0 && errno == EINTR);
    return n > 0 ? std::string(buffer, static_cast<std::size_t>(n)) : std::string();
  }
  std::string read_all() {
    std::string all;
    for (std::string some = read_some(); !some.empty(); some = read_some()) all += some;
    return all;
  }
  /// SIGKILL, and waits for the end.
  void kill_now() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  pid_t pid_ = 0;
  int output_ = -1;
};

}  // namespace troupe
