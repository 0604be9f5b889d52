#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <iostream>
#include <mutex>

#include "ops/cli/commands.hpp"

namespace troupe::cli {

void add_format(CLI::App& command, std::string& format) {
  command.add_option("-o,--output", format, "output: table, wide, json or yaml")
      ->check(CLI::IsMember({"table", "wide", "json", "yaml"}))
      ->default_str("table");
}

int complain(const Error& error, int code) {
  std::cerr << "troupe: " << error.text() << '\n';
  return code;
}

int repeat(bool watch, double seconds, const std::function<int()>& once) {
  if (!watch) return once();
  // Signals are taken by this thread alone, so that Ctrl-C ends the wait and not the process in the middle of
  // a line.
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  for (;;) {
    if (on_terminal()) std::cout << "\x1b[H\x1b[2J";
    const int code = once();
    std::cout.flush();
    if (code != kOk && code != kPending) return code;
    timespec wait{};
    wait.tv_sec = static_cast<time_t>(seconds);
    wait.tv_nsec = static_cast<long>((seconds - static_cast<double>(wait.tv_sec)) * 1e9);
    if (sigtimedwait(&set, nullptr, &wait) > 0) return kOk;
  }
}

}  // namespace troupe::cli
