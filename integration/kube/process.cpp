#include "integration/kube/process.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <utility>

namespace troupe::rig {

namespace {

std::runtime_error system_error(const std::string& what) {
  return std::runtime_error(what + ": " + std::strerror(errno));
}

int open_output(const std::filesystem::path& path) {
  const std::string name = path.empty() ? "/dev/null" : path.string();
  const int fd = ::open(name.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) throw system_error("open " + name);
  return fd;
}

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

// A line "VmRSS:   1234 kB" of /proc/<pid>/status, in bytes.
std::size_t status_bytes(pid_t pid, const std::string& field) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with(field + ":")) return std::stoull(line.substr(field.size() + 1)) * 1024;
  }
  return 0;
}

}  // namespace

Process::Process(const ProcessOptions& options) : log_(options.log) {
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) environment.emplace_back(*entry);
  environment.insert(environment.end(), options.environment.begin(), options.environment.end());
  // Everything that allocates happens before fork: the child of a threaded process may only make system
  // calls.
  std::vector<char*> argv;
  argv.reserve(options.argv.size() + 1);
  for (const auto& argument : options.argv) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  std::vector<char*> envp;
  envp.reserve(environment.size() + 1);
  for (const auto& entry : environment) envp.push_back(const_cast<char*>(entry.c_str()));
  envp.push_back(nullptr);
  const int err = open_output(options.log);
  const int out = options.output.empty() ? err : open_output(options.output);
  int exec_failed[2];
  if (::pipe2(exec_failed, O_CLOEXEC) != 0) throw system_error("pipe");

  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(127);  // the parent died before the line above
    ::signal(SIGPIPE, SIG_DFL);               // an ignored signal would stay ignored
    const int in = ::open("/dev/null", O_RDONLY);
    ::dup2(in, STDIN_FILENO);
    ::dup2(out, STDOUT_FILENO);
    ::dup2(err, STDERR_FILENO);
    ::execvpe(argv[0], argv.data(), envp.data());
    const int code = errno;
    [[maybe_unused]] const auto written = ::write(exec_failed[1], &code, sizeof code);
    ::_exit(127);
  }
  ::close(err);
  if (out != err) ::close(out);
  ::close(exec_failed[1]);
  if (pid_ < 0) {
    ::close(exec_failed[0]);
    throw system_error("fork");
  }
  int code = 0;
  const auto got = ::read(exec_failed[0], &code, sizeof code);
  ::close(exec_failed[0]);
  if (got > 0) {
    reap(true);
    throw std::runtime_error("cannot start " + options.argv[0] + ": " + std::strerror(code));
  }
  handle_ = static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0));
}

Process::Process(Process&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      handle_(std::exchange(other.handle_, -1)),
      ended_(std::exchange(other.ended_, std::nullopt)),
      ended_cpu_seconds_(other.ended_cpu_seconds_),
      log_(std::move(other.log_)) {}

Process& Process::operator=(Process&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(handle_, other.handle_);
  std::swap(ended_, other.ended_);
  std::swap(ended_cpu_seconds_, other.ended_cpu_seconds_);
  std::swap(log_, other.log_);
  other.kill();
  return *this;
}

Process::~Process() {
  kill();
  if (handle_ >= 0) ::close(handle_);
}

std::optional<ExitStatus> Process::reap(bool block) {
  if (pid_ < 0 || ended_) return ended_;
  int status = 0;
  rusage usage{};
  if (::wait4(pid_, &status, block ? 0 : WNOHANG, &usage) == pid_) {
    ended_ = WIFSIGNALED(status) ? ExitStatus{-1, WTERMSIG(status)} : ExitStatus{WEXITSTATUS(status), 0};
    ended_cpu_seconds_ = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  }
  return ended_;
}

bool Process::running() {
  return pid_ > 0 && !reap(false);
}

void Process::signal(int number) const {
  if (pid_ > 0 && !ended_) ::kill(pid_, number);
}

std::optional<ExitStatus> Process::wait(std::chrono::milliseconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (running()) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now()).count();
    if (left <= 0) return std::nullopt;
    pollfd ended{handle_, POLLIN, 0};
    ::poll(&ended, 1, static_cast<int>(left));
  }
  return ended_;
}

void Process::kill() {
  if (pid_ <= 0 || ended_) return;
  ::kill(pid_, SIGKILL);
  reap(true);
}

ExitStatus Process::terminate(std::chrono::milliseconds limit) {
  signal(SIGTERM);
  if (!wait(limit)) kill();
  return ended_.value_or(ExitStatus{});
}

double Process::cpu_seconds() const {
  if (ended_) return ended_cpu_seconds_;
  // Fields 14 and 15 of stat, counted after the name, which ends at the last parenthesis.
  const auto text = read_file("/proc/" + std::to_string(pid_) + "/stat");
  const auto after_name = text.rfind(')');
  if (after_name == std::string::npos) return 0;
  std::istringstream fields(text.substr(after_name + 2));
  std::string skipped;
  for (int i = 3; i < 14; ++i) fields >> skipped;
  double user = 0;
  double system = 0;
  fields >> user >> system;
  return (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

std::size_t Process::resident_bytes() const {
  return ended_ ? 0 : status_bytes(pid_, "VmRSS");
}

std::size_t Process::peak_resident_bytes() const {
  return ended_ ? 0 : status_bytes(pid_, "VmHWM");
}

std::string Process::log_tail(std::size_t bytes) const {
  auto text = log_.empty() ? std::string() : read_file(log_);
  return text.size() > bytes ? "..." + text.substr(text.size() - bytes) : text;
}

Finished run(const std::vector<std::string>& argv, std::chrono::milliseconds limit,
             const std::vector<std::string>& environment) {
  const TempDir dir("troupe-run");
  Process process({argv, environment, dir.path() / "err", dir.path() / "out"});
  const auto status = process.wait(limit);
  if (!status) throw std::runtime_error(argv[0] + " did not end in time: " + process.log_tail());
  return {*status, read_file(dir.path() / "out"), read_file(dir.path() / "err")};
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return std::move(text).str();
}

void write_file(const std::filesystem::path& path, std::string_view text) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << text;
  out.close();
  if (!out) throw std::runtime_error("cannot write " + path.string());
}

TempDir::TempDir(std::string_view prefix) {
  auto name = (std::filesystem::temp_directory_path() / prefix).string() + "-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) throw system_error("mkdtemp " + name);
  path_ = name;
}

TempDir::~TempDir() {
  std::error_code ignored;
  if (std::getenv("TROUPE_KEEP_TMP") == nullptr) std::filesystem::remove_all(path_, ignored);
}

int free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  const bool bound = ::bind(fd, generic, size) == 0 && ::getsockname(fd, generic, &size) == 0;
  ::close(fd);
  if (!bound) throw system_error("no free port");
  return ntohs(address.sin_port);
}

void pause_between_tries() {
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

}  // namespace troupe::rig
