#include "integration/kube/kube_client.hpp"

#include <curl/curl.h>

#include <algorithm>
#include <cctype>
#include <stdexcept>
#include <utility>

namespace troupe::rig {

namespace {

std::size_t append_body(char* data, std::size_t size, std::size_t count, void* target) {
  static_cast<std::string*>(target)->append(data, size * count);
  return size * count;
}

std::size_t add_header(char* data, std::size_t size, std::size_t count, void* target) {
  const std::string_view line(data, size * count);
  const auto colon = line.find(':');
  if (colon != std::string_view::npos) {
    std::string name(line.substr(0, colon));
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    auto value = line.substr(colon + 1);
    while (!value.empty() && std::isspace(static_cast<unsigned char>(value.front()))) value.remove_prefix(1);
    while (!value.empty() && std::isspace(static_cast<unsigned char>(value.back()))) value.remove_suffix(1);
    (*static_cast<std::map<std::string, std::string>*>(target))[name] = value;
  }
  return size * count;
}

}  // namespace

std::string kubeconfig_text(const KubeAccess& access) {
  Json cluster = {{"server", access.url}};
  Json user = Json::object();
  if (!access.ca.empty()) cluster["certificate-authority"] = access.ca.string();
  if (!access.certificate.empty()) user["client-certificate"] = access.certificate.string();
  if (!access.key.empty()) user["client-key"] = access.key.string();
  if (!access.token.empty()) user["token"] = access.token;
  const Json config = {{"apiVersion", "v1"},
                       {"kind", "Config"},
                       {"clusters", {{{"name", "rig"}, {"cluster", cluster}}}},
                       {"users", {{{"name", "rig"}, {"user", user}}}},
                       {"contexts", {{{"name", "rig"}, {"context", {{"cluster", "rig"}, {"user", "rig"}}}}}},
                       {"current-context", "rig"}};
  return config.dump(2) + "\n";
}

Json KubeAnswer::json() const {
  auto parsed = Json::parse(body, nullptr, false);
  return parsed.is_discarded() ? Json() : parsed;
}

KubeClient::KubeClient(KubeAccess access) : access_(std::move(access)), curl_(curl_easy_init()) {
  if (curl_ == nullptr) throw std::runtime_error("curl_easy_init failed");
}

KubeClient::~KubeClient() {
  curl_easy_cleanup(curl_);
}

KubeAnswer KubeClient::request(const std::string& method, const std::string& path, const std::string& body,
                               const std::string& content_type, std::chrono::milliseconds limit) {
  KubeAnswer answer;
  curl_easy_reset(curl_);  // keeps the connection
  const auto url = access_.url + path;
  curl_easy_setopt(curl_, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl_, CURLOPT_CUSTOMREQUEST, method.c_str());
  curl_easy_setopt(curl_, CURLOPT_TIMEOUT_MS, static_cast<long>(limit.count()));
  curl_easy_setopt(curl_, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl_, CURLOPT_PROXY, "");
  curl_easy_setopt(curl_, CURLOPT_WRITEFUNCTION, append_body);
  curl_easy_setopt(curl_, CURLOPT_WRITEDATA, &answer.body);
  curl_easy_setopt(curl_, CURLOPT_HEADERFUNCTION, add_header);
  curl_easy_setopt(curl_, CURLOPT_HEADERDATA, &answer.headers);
  curl_easy_setopt(curl_, CURLOPT_FORBID_REUSE, fresh_ ? 1L : 0L);
  if (!verify_) {
    curl_easy_setopt(curl_, CURLOPT_SSL_VERIFYPEER, 0L);
    curl_easy_setopt(curl_, CURLOPT_SSL_VERIFYHOST, 0L);
  }
  if (!access_.ca.empty()) curl_easy_setopt(curl_, CURLOPT_CAINFO, access_.ca.c_str());
  if (!access_.certificate.empty()) curl_easy_setopt(curl_, CURLOPT_SSLCERT, access_.certificate.c_str());
  if (!access_.key.empty()) curl_easy_setopt(curl_, CURLOPT_SSLKEY, access_.key.c_str());
  curl_slist* headers = curl_slist_append(nullptr, "Accept: application/json");
  if (!access_.token.empty()) {
    headers = curl_slist_append(headers, ("Authorization: Bearer " + access_.token).c_str());
  }
  if (!body.empty()) {
    headers = curl_slist_append(headers, ("Content-Type: " + content_type).c_str());
    curl_easy_setopt(curl_, CURLOPT_POSTFIELDS, body.data());
    curl_easy_setopt(curl_, CURLOPT_POSTFIELDSIZE, static_cast<long>(body.size()));
  }
  curl_easy_setopt(curl_, CURLOPT_HTTPHEADER, headers);
  const auto code = curl_easy_perform(curl_);
  curl_slist_free_all(headers);
  long status = 0;
  curl_easy_getinfo(curl_, CURLINFO_RESPONSE_CODE, &status);
  answer.head_status = static_cast<int>(status);
  if (code != CURLE_OK) {
    answer.error = curl_easy_strerror(code);
    return answer;
  }
  answer.status = answer.head_status;
  return answer;
}

Json KubeClient::expect_success(const std::string& method, const std::string& path, const std::string& body,
                                const std::string& content_type) {
  const auto answer = request(method, path, body, content_type);
  if (answer.status < 200 || answer.status > 299) {
    throw std::runtime_error(method + " " + path + ": " + std::to_string(answer.status) + " " + answer.error +
                             answer.body.substr(0, 2000));
  }
  return answer.json();
}

Json KubeClient::get(const std::string& path) {
  return expect_success("GET", path, {}, {});
}

Json KubeClient::create(const std::string& path, const Json& object) {
  return expect_success("POST", path, object.dump(), "application/json");
}

Json KubeClient::replace(const std::string& path, const Json& object) {
  return expect_success("PUT", path, object.dump(), "application/json");
}

Json KubeClient::patch(const std::string& path, const Json& patch) {
  return expect_success("PATCH", path, patch.dump(), "application/merge-patch+json");
}

void KubeClient::remove(const std::string& path, int grace_seconds) {
  const Json options = {{"apiVersion", "v1"},
                        {"kind", "DeleteOptions"},
                        {"gracePeriodSeconds", grace_seconds},
                        {"propagationPolicy", "Background"}};
  const auto answer = request("DELETE", path, options.dump());
  if (answer.status != 404 && (answer.status < 200 || answer.status > 299)) {
    throw std::runtime_error("DELETE " + path + ": " + std::to_string(answer.status) + " " + answer.error +
                             answer.body);
  }
}

}  // namespace troupe::rig
