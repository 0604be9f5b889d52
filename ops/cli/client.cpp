#include "ops/cli/client.hpp"

#include <curl/curl.h>

#include <memory>
#include <nlohmann/json.hpp>

namespace troupe::cli {
namespace {

using Sink = std::function<bool(std::string_view)>;

std::size_t on_bytes(char* data, std::size_t size, std::size_t count, void* sink) {
  const std::size_t bytes = size * count;
  return (*static_cast<const Sink*>(sink))({data, bytes}) ? bytes : 0;
}

/// Runs one GET; `sink` gets the body as it comes and may end it by returning false.
Result<long> request(const Server& server, const std::string& path, long timeout_s, const Sink& sink) {
  const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> curl(curl_easy_init(), &curl_easy_cleanup);
  if (curl == nullptr) return fail({ErrorCode::io, "cannot start an HTTP request", {}, {}, {}});
  const std::string url = server.url + path;
  curl_easy_setopt(curl.get(), CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl.get(), CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_CONNECTTIMEOUT, 5L);
  curl_easy_setopt(curl.get(), CURLOPT_TIMEOUT, timeout_s);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, on_bytes);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &sink);
  if (!server.ca_file.empty()) curl_easy_setopt(curl.get(), CURLOPT_CAINFO, server.ca_file.c_str());
  std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)> headers(nullptr, &curl_slist_free_all);
  if (!server.token.empty()) {
    headers.reset(curl_slist_append(nullptr, ("Authorization: Bearer " + server.token).c_str()));
    curl_easy_setopt(curl.get(), CURLOPT_HTTPHEADER, headers.get());
  }
  const CURLcode code = curl_easy_perform(curl.get());
  if (code != CURLE_OK && code != CURLE_WRITE_ERROR) {
    return fail({ErrorCode::unavailable,
                 std::string("cannot reach the service: ") + curl_easy_strerror(code),
                 server.url,
                 {},
                 "start `troupe up` or `trouped`, or name the address with --server"});
  }
  long status = 0;
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &status);
  return status;
}

Error refusal(long status, const std::string& body, const std::string& path) {
  std::string why = body;
  const auto parsed = nlohmann::json::parse(body, nullptr, false);
  if (parsed.is_object() && parsed.contains("error") && parsed["error"].is_string())
    why = parsed["error"].get<std::string>();
  while (!why.empty() && why.back() == '\n') why.pop_back();
  const ErrorCode code = status == 404                    ? ErrorCode::not_found
                         : status == 401 || status == 403 ? ErrorCode::permission
                                                          : ErrorCode::unavailable;
  return {code, why, path, "HTTP " + std::to_string(status),
          code == ErrorCode::permission ? "give a token that may read this with --token" : ""};
}

}  // namespace

Result<std::string> get(const Server& server, const std::string& path) {
  std::string body;
  auto status = request(server, path, 30, [&](std::string_view bytes) {
    body += bytes;
    return true;
  });
  if (!status) return fail(status.error());
  if (*status != 200) return fail(refusal(*status, body, path));
  return body;
}

Result<void> follow(const Server& server, const std::string& path,
                    const std::function<bool(std::string_view)>& on_event) {
  std::string buffer;
  auto status = request(server, path, 0, [&](std::string_view bytes) {
    buffer += bytes;
    for (std::size_t end = buffer.find("\n\n"); end != std::string::npos; end = buffer.find("\n\n")) {
      const std::string_view event = std::string_view(buffer).substr(0, end);
      constexpr std::string_view kData = "data: ";
      if (event.starts_with(kData) && !on_event(event.substr(kData.size()))) return false;
      buffer.erase(0, end + 2);
    }
    return true;
  });
  if (!status) return fail(status.error());
  if (*status != 200) return fail(refusal(*status, buffer, path));
  return {};
}

std::string encode_segment(std::string_view text) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
        c == '_' || c == '~') {
      out += c;
    } else {
      out += '%';
      out += kHex[byte >> 4U];
      out += kHex[byte & 0xFU];
    }
  }
  return out;
}

}  // namespace troupe::cli
