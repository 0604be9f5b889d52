// SIGTERM and SIGINT, taken by one thread that waits for them.
#pragma once

#include <csignal>

namespace troupe {

/// Blocks the two signals for this thread and all that it starts afterwards: make it before any other thread
/// exists.
class EndSignals {
 public:
  EndSignals() {
    sigemptyset(&set_);
    sigaddset(&set_, SIGTERM);
    sigaddset(&set_, SIGINT);
    sigaddset(&set_, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &set_, nullptr);
    std::signal(SIGPIPE, SIG_IGN);
    waiter_ = pthread_self();
  }

  /// Until a signal, or `end` from any thread. Returns the exit code: 0 for a signal.
  int wait() {
    int signal = 0;
    while (sigwait(&set_, &signal) != 0) {
    }
    return signal == SIGUSR1 ? code_ : 0;
  }
  void end(int code) {
    code_ = code;
    pthread_kill(waiter_, SIGUSR1);
  }

 private:
  sigset_t set_{};
  pthread_t waiter_{};
  volatile std::sig_atomic_t code_ = 0;
};

}  // namespace troupe
