#include "k8s-bridge/kubeconfig/credentials.hpp"

#include "k8s-bridge/kubeconfig/files.hpp"

namespace troupe {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kReadAgain = std::chrono::seconds(10);
constexpr auto kSameRefusal = std::chrono::seconds(5);
constexpr std::int64_t kExpirySlackMs = 10'000;

std::string trimmed(const std::string& text) {
  const auto from = text.find_first_not_of(" \t\r\n");
  if (from == std::string::npos) return {};
  return text.substr(from, text.find_last_not_of(" \t\r\n") - from + 1);
}

std::int64_t unix_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

Result<std::string> FileToken::get(bool refresh) {
  const std::lock_guard lock(mutex_);
  const auto now = Clock::now();
  if (!token_.empty() && !refresh && now - read_at_ < kReadAgain) return token_;
  auto text = read_text_file(path_, "bearer token");
  read_at_ = now;
  if (text) {
    if (std::string token = trimmed(*text); !token.empty()) token_ = std::move(token);
  }
  if (!token_.empty()) return token_;
  if (!text) return fail(text.error());
  return fail({ErrorCode::invalid, "bearer token is empty", path_, {}, "put a token into the file"});
}

Result<void> ExecCredentials::ensure(bool refresh) {
  const auto now = Clock::now();
  const bool expired = credential_.expires_ms != 0 && unix_ms() >= credential_.expires_ms - kExpirySlackMs;
  // Requests that were refused together ask one after the other: the first one's run serves them all. One
  // that has expired as it came would otherwise be asked for at each request.
  const bool just_run = have_ && now - run_at_ < kSameRefusal;
  if (have_ && (just_run || (!refresh && !expired))) return {};
  auto fresh = run_exec_plugin(config_, info_, timeout_);
  if (!fresh) return fail(fresh.error());
  credential_ = std::move(*fresh);
  have_ = true;
  run_at_ = Clock::now();
  return {};
}

Result<std::string> ExecCredentials::token(bool refresh) {
  const std::lock_guard lock(mutex_);
  if (auto ready = ensure(refresh); !ready) return fail(ready.error());
  return credential_.token;
}

Result<ClientCertificate> ExecCredentials::certificate() {
  const std::lock_guard lock(mutex_);
  if (auto ready = ensure(false); !ready) return fail(ready.error());
  return ClientCertificate{credential_.certificate_pem, credential_.key_pem};
}

Result<ClientCertificate> FileCertificate::get() const {
  auto certificate = read_blob(certificate_, "client-certificate");
  if (!certificate) return fail(certificate.error());
  auto key = read_blob(key_, "client-key");
  if (!key) return fail(key.error());
  return ClientCertificate{std::move(*certificate), std::move(*key)};
}

Result<std::string> read_blob(const KubeconfigBlob& blob, const std::string& what) {
  if (!blob.data.empty() || blob.path.empty()) return blob.data;
  auto text = read_text_file(blob.path, what);
  if (!text && !blob.place.file.empty()) {
    Error error = text.error();
    error.field = "named in " + blob.place.file + " line " + std::to_string(blob.place.line);
    return fail(std::move(error));
  }
  return text;
}

}  // namespace troupe
