// Credentials that change while the service runs: token files and exec plugins.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "k8s-bridge/http.hpp"
#include "k8s-bridge/kubeconfig/exec_plugin.hpp"

namespace troupe {

/// A token in a file that somebody rotates: read again every ten seconds, and at once after a 401. A read
/// that fails keeps the last token, unless there is none. Thread-safe.
class FileToken {
 public:
  explicit FileToken(std::string path) : path_(std::move(path)) {}
  Result<std::string> get(bool refresh);

 private:
  const std::string path_;
  std::mutex mutex_;
  std::string token_;
  std::chrono::steady_clock::time_point read_at_{};
};

/// What an exec plugin gave, until it expires or is refused. One run at a time; requests that were refused
/// together run it once. Thread-safe.
class ExecCredentials {
 public:
  ExecCredentials(ExecConfig config, std::string info, std::chrono::milliseconds timeout)
      : config_(std::move(config)), info_(std::move(info)), timeout_(timeout) {}
  Result<std::string> token(bool refresh);
  Result<ClientCertificate> certificate();

 private:
  Result<void> ensure(bool refresh);

  const ExecConfig config_;
  const std::string info_;
  const std::chrono::milliseconds timeout_;
  std::mutex mutex_;
  ExecCredential credential_;
  bool have_ = false;
  std::chrono::steady_clock::time_point run_at_{};
};

/// Certificate and key in files that somebody renews: read again for each connection. Thread-safe.
class FileCertificate {
 public:
  FileCertificate(KubeconfigBlob certificate, KubeconfigBlob key)
      : certificate_(std::move(certificate)), key_(std::move(key)) {}
  [[nodiscard]] Result<ClientCertificate> get() const;

 private:
  const KubeconfigBlob certificate_;
  const KubeconfigBlob key_;
};

/// The bytes of a blob: its data, else its file's text. `what` names the field in errors.
Result<std::string> read_blob(const KubeconfigBlob& blob, const std::string& what);

}  // namespace troupe
