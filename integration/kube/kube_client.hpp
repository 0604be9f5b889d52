// A plain client of the Kubernetes API for tests: one request at a time, JSON in and out.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace troupe::rig {

using Json = nlohmann::json;

/// Where an API server is and who asks. Empty fields are not used.
struct KubeAccess {
  std::string url;  // https://127.0.0.1:port, or http:// for a `kubectl proxy`
  std::filesystem::path ca;
  std::filesystem::path certificate;
  std::filesystem::path key;
  std::string token;
};

/// The text of a kubeconfig for this access; files are referred to by path.
std::string kubeconfig_text(const KubeAccess& access);

struct KubeAnswer {
  int status = 0;       // 0: no whole answer
  int head_status = 0;  // the status line's, even when the rest has not arrived: a watch under way
  std::string error;    // why
  std::string body;     // what has arrived of it
  std::map<std::string, std::string> headers;  // names in lower case
  [[nodiscard]] Json json() const;             // a null value when the body is no JSON
};

/// Not thread-safe; a thread that needs one makes its own (cheap). Methods named after verbs throw
/// std::runtime_error with the request and the answer when the API server refuses.
class KubeClient {
 public:
  explicit KubeClient(KubeAccess access);
  KubeClient(const KubeClient&) = delete;
  KubeClient& operator=(const KubeClient&) = delete;
  ~KubeClient();

  KubeAnswer request(const std::string& method, const std::string& path, const std::string& body = {},
                     const std::string& content_type = "application/json",
                     std::chrono::milliseconds limit = std::chrono::seconds(30));

  Json get(const std::string& path);
  Json create(const std::string& path, const Json& object);
  Json replace(const std::string& path, const Json& object);
  /// JSON merge patch.
  Json patch(const std::string& path, const Json& patch);
  /// Deletes with this grace period in seconds; an absent object is fine.
  void remove(const std::string& path, int grace_seconds = 0);

  /// A connection of its own for every request: libcurl repeats a request when a kept one turns out dead.
  void use_fresh_connections() { fresh_ = true; }
  /// For servers that sign their own certificate, such as the health port of kube-scheduler.
  void accept_any_certificate() { verify_ = false; }

  [[nodiscard]] const KubeAccess& access() const { return access_; }

 private:
  Json expect_success(const std::string& method, const std::string& path, const std::string& body,
                      const std::string& content_type);

  KubeAccess access_;
  void* curl_;
  bool verify_ = true;
  bool fresh_ = false;
};

}  // namespace troupe::rig
