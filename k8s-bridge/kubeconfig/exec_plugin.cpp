#include "k8s-bridge/kubeconfig/exec_plugin.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <vector>

#include "k8s-bridge/decode/reader.hpp"
#include "k8s-bridge/kubeconfig/base64.hpp"
#include "messages/json_text.hpp"

extern char** environ;

namespace troupe {
namespace {

constexpr std::size_t kLargestOutput = 1U << 20U;
constexpr std::size_t kErrorTail = 2000;
using Clock = std::chrono::steady_clock;

class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  ~Fd() { close(); }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_ = -1;
};

struct Pipe {
  Fd read;
  Fd write;
  bool open() {
    int ends[2] = {-1, -1};
    if (::pipe2(ends, O_CLOEXEC) != 0) return false;
    read = Fd(ends[0]);
    write = Fd(ends[1]);
    return true;
  }
};

std::vector<std::string> environment(const ExecConfig& config, const std::string& info) {
  std::vector<std::string> out;
  const auto set = [&](const std::string& name, const std::string& value) {
    const std::string prefix = name + "=";
    std::erase_if(out, [&](const std::string& entry) { return entry.starts_with(prefix); });
    out.push_back(prefix + value);
  };
  for (char** entry = environ; *entry != nullptr; ++entry) out.emplace_back(*entry);
  for (const auto& [name, value] : config.env) set(name, value);
  set("KUBERNETES_EXEC_INFO", info);
  return out;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (std::string& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

Error failed(const ExecConfig& config, ErrorCode code, std::string what, std::string remedy) {
  Error error{code,
              "exec plugin " + config.command + " " + std::move(what),
              config.place.file,
              {},
              std::move(remedy)};
  if (config.place.line > 0) error.field = "line " + std::to_string(config.place.line) + ": exec.command";
  return error;
}

// A child in a process group of its own, so that what it starts can be ended with it.
class Child {
 public:
  ~Child() { kill_and_wait(); }

  int spawn(const ExecConfig& config, const std::string& info, Pipe& out, Pipe& err) {
    std::vector<std::string> args{config.command};
    args.insert(args.end(), config.args.begin(), config.args.end());
    std::vector<std::string> env = environment(config, info);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, out.write.get(), 1);
    posix_spawn_file_actions_adddup2(&files, err.write.get(), 2);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    sigset_t none;
    sigemptyset(&none);
    sigset_t all;
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    const int code = ::posix_spawnp(&pid_, config.command.c_str(), &files, &attributes, pointers(args).data(),
                                    pointers(env).data());
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    if (code != 0) pid_ = -1;
    return code;
  }

  // Exit status as waitpid gives it; nullopt: still running at the deadline.
  std::optional<int> wait(Clock::time_point deadline) {
    for (;;) {
      int status = 0;
      if (::waitpid(pid_, &status, WNOHANG) == pid_) {
        pid_ = -1;
        return status;
      }
      if (Clock::now() >= deadline) return std::nullopt;
      ::poll(nullptr, 0, 5);
    }
  }

 private:
  void kill_and_wait() {
    if (pid_ <= 0) return;
    ::kill(-pid_, SIGKILL);
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

  pid_t pid_ = -1;
};

void keep_tail(std::string& text) {
  if (text.size() > 2 * kErrorTail) text.erase(0, text.size() - kErrorTail);
}

// Reads both ends until they are closed. False: the deadline passed, or too much was printed.
bool collect(Pipe& out, Pipe& err, Clock::time_point deadline, std::string& printed, std::string& complaint) {
  std::array<pollfd, 2> ends{pollfd{out.read.get(), POLLIN, 0}, pollfd{err.read.get(), POLLIN, 0}};
  int open = 2;
  while (open > 0) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0 || printed.size() > kLargestOutput) return false;
    if (::poll(ends.data(), ends.size(), static_cast<int>(std::min<long long>(left, 1000))) <= 0) continue;
    for (std::size_t i = 0; i < ends.size(); ++i) {
      if (ends[i].fd < 0 || ends[i].revents == 0) continue;
      std::array<char, 4096> piece{};
      const ssize_t n = ::read(ends[i].fd, piece.data(), piece.size());
      if (n > 0) {
        (i == 0 ? printed : complaint).append(piece.data(), static_cast<std::size_t>(n));
        keep_tail(complaint);
      } else if (n == 0 || errno != EINTR) {
        ends[i].fd = -1;
        --open;
      }
    }
  }
  return true;
}

void field(std::string& out, std::string_view name, std::string_view value) {
  if (value.empty()) return;
  if (out.back() != '{') out += ',';
  append_json_string(out, name);
  out += ':';
  append_json_string(out, value);
}

Error bad_credential(std::string what, std::string field_name) {
  return {ErrorCode::invalid,
          "ExecCredential " + std::move(what),
          {},
          std::move(field_name),
          "correct the exec plugin"};
}

}  // namespace

Result<ExecCredential> parse_exec_credential(std::string_view json, std::string_view api_version) {
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  if (const auto e = parser.parse(json.data(), json.size()).get(root)) {
    return fail(bad_credential(std::string("is not JSON (") + simdjson::error_message(e) + ")", {}));
  }
  const auto text = [&](std::string_view pointer) -> std::string_view {
    std::string_view value;
    if (root.at_pointer(pointer).get(value)) return {};
    return value;
  };
  if (text("/kind") != "ExecCredential") return fail(bad_credential("has another kind", "kind"));
  if (text("/apiVersion") != api_version) {
    return fail(bad_credential("is not of " + std::string(api_version), "apiVersion"));
  }
  ExecCredential out;
  out.token = text("/status/token");
  // Plain PEM here, unlike the fields of a kubeconfig.
  out.certificate_pem = text("/status/clientCertificateData");
  out.key_pem = text("/status/clientKeyData");
  if (out.token.empty() && out.certificate_pem.empty() && out.key_pem.empty()) {
    return fail(bad_credential("has neither token nor client certificate", "status"));
  }
  if (out.certificate_pem.empty() != out.key_pem.empty()) {
    return fail(bad_credential("has only one of clientCertificateData and clientKeyData", "status"));
  }
  if (const std::string_view expires = text("/status/expirationTimestamp"); !expires.empty()) {
    const auto ms = decode::parse_rfc3339(expires);
    if (!ms) return fail(bad_credential("has a time that is not RFC 3339", "status.expirationTimestamp"));
    out.expires_ms = *ms;
  }
  return out;
}

std::string exec_info(const ExecConfig& config, const KubeconfigCluster* cluster, std::string_view ca_pem) {
  std::string out = "{";
  field(out, "kind", "ExecCredential");
  field(out, "apiVersion", config.api_version);
  out += R"(,"spec":{)";
  if (cluster != nullptr) {
    out += R"("cluster":{)";
    field(out, "server", cluster->server);
    field(out, "tls-server-name", cluster->tls_server_name);
    if (cluster->insecure_skip_tls_verify) out += R"(,"insecure-skip-tls-verify":true)";
    if (!ca_pem.empty()) field(out, "certificate-authority-data", base64_encode(ca_pem));
    field(out, "proxy-url", cluster->proxy_url);
    if (!cluster->exec_config_json.empty()) out += R"(,"config":)" + cluster->exec_config_json;
    out += "},";
  }
  return out + R"("interactive":false}})";
}

Result<ExecCredential> run_exec_plugin(const ExecConfig& config, const std::string& info,
                                       std::chrono::milliseconds timeout) {
  const auto deadline = Clock::now() + timeout;
  Pipe out;
  Pipe err;
  Child child;
  if (!out.open() || !err.open()) {
    return fail(failed(config, ErrorCode::io, std::string("cannot be run (") + std::strerror(errno) + ")",
                       "raise the limit of open files"));
  }
  const int code = child.spawn(config, info, out, err);
  out.write.close();
  err.write.close();
  if (code != 0) {
    return fail(failed(config, code == ENOENT ? ErrorCode::not_found : ErrorCode::io,
                       std::string("cannot be run (") + std::strerror(code) + ")",
                       config.install_hint.empty() ? "install it or correct the path" : config.install_hint));
  }
  std::string printed;
  std::string complaint;
  const bool complete = collect(out, err, deadline, printed, complaint);
  const std::optional<int> status = complete ? child.wait(deadline) : std::nullopt;
  if (!status) {
    const std::string why = printed.size() > kLargestOutput
                                ? "printed more than 1 MiB"
                                : "did not end within " + std::to_string(timeout.count()) + " ms";
    return fail(failed(config, ErrorCode::unavailable, why, "run it by hand and see what it waits for"));
  }
  if (!WIFEXITED(*status) || WEXITSTATUS(*status) != 0) {
    const std::string how = WIFEXITED(*status) ? "failed with status " + std::to_string(WEXITSTATUS(*status))
                                               : "was killed by signal " + std::to_string(WTERMSIG(*status));
    while (!complaint.empty() && (complaint.back() == '\n' || complaint.back() == '\r')) complaint.pop_back();
    return fail(failed(config, ErrorCode::unavailable, complaint.empty() ? how : how + " (" + complaint + ")",
                       config.install_hint.empty() ? "run it by hand" : config.install_hint));
  }
  auto credential = parse_exec_credential(printed, config.api_version);
  if (!credential) {
    Error error =
        failed(config, ErrorCode::invalid, "printed something else: " + credential.error().text(), {});
    return fail(std::move(error));
  }
  return credential;
}

}  // namespace troupe
