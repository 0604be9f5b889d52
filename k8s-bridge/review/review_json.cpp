#include "k8s-bridge/review/review_json.hpp"

#include <simdjson.h>

#include "messages/json_text.hpp"

namespace troupe {
namespace {

namespace json = simdjson::dom;

void append_field(std::string& out, std::string_view key, std::string_view value) {
  if (out.back() != '{') out += ',';
  append_json_string(out, key);
  out += ':';
  append_json_string(out, value);
}

void append_list(std::string& out, std::string_view key, const std::vector<std::string>& values) {
  if (out.back() != '{') out += ',';
  append_json_string(out, key);
  out += ":[";
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0) out += ',';
    append_json_string(out, values[i]);
  }
  out += ']';
}

std::string string_at(const json::element& object, std::string_view key) {
  std::string_view value;
  return object[key].get(value) == simdjson::SUCCESS ? std::string(value) : std::string();
}

std::vector<std::string> strings_of(const json::element& list) {
  std::vector<std::string> out;
  json::array values;
  if (list.get(values) != simdjson::SUCCESS) return out;
  for (const json::element value : values) {
    std::string_view text;
    if (value.get(text) == simdjson::SUCCESS) out.emplace_back(text);
  }
  return out;
}

tl::unexpected<Error> bad(const char* what) {
  return fail({ErrorCode::invalid, what, "", "status", ""});
}

}  // namespace

std::string encode_token_review(std::string_view token, const std::vector<std::string>& audiences) {
  std::string out = R"({"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","spec":{)";
  append_field(out, "token", token);
  if (!audiences.empty()) append_list(out, "audiences", audiences);
  out += "}}";
  return out;
}

std::string encode_access_review(const ReviewedUser& user, std::string_view verb, std::string_view path) {
  std::string out = R"({"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","spec":{)";
  append_field(out, "user", user.name);
  if (!user.uid.empty()) append_field(out, "uid", user.uid);
  if (!user.groups.empty()) append_list(out, "groups", user.groups);
  if (!user.extra.empty()) {
    out += ",\"extra\":{";
    for (const auto& [key, values] : user.extra) append_list(out, key, values);
    out += '}';
  }
  out += ",\"nonResourceAttributes\":{";
  append_field(out, "verb", verb);
  append_field(out, "path", path);
  out += "}}}";
  return out;
}

Result<TokenAnswer> read_token_review(std::string_view text) {
  json::parser parser;
  json::element review;
  json::element status;
  if (parser.parse(text.data(), text.size()).get(review) != simdjson::SUCCESS ||
      review["status"].get(status) != simdjson::SUCCESS) {
    return bad("the API server's answer is not a TokenReview");
  }
  TokenAnswer answer;
  if (status["authenticated"].get(answer.authenticated) != simdjson::SUCCESS) answer.authenticated = false;
  answer.error = string_at(status, "error");
  json::element user;
  if (status["user"].get(user) == simdjson::SUCCESS) {
    answer.user.name = string_at(user, "username");
    answer.user.uid = string_at(user, "uid");
    json::element groups;
    if (user["groups"].get(groups) == simdjson::SUCCESS) answer.user.groups = strings_of(groups);
    json::object extra;
    if (user["extra"].get(extra) == simdjson::SUCCESS) {
      for (const auto field : extra)
        answer.user.extra.emplace_back(std::string(field.key), strings_of(field.value));
    }
  }
  if (answer.user.name.empty()) answer.authenticated = false;
  return answer;
}

Result<AccessAnswer> read_access_review(std::string_view text) {
  json::parser parser;
  json::element review;
  json::element status;
  if (parser.parse(text.data(), text.size()).get(review) != simdjson::SUCCESS ||
      review["status"].get(status) != simdjson::SUCCESS) {
    return bad("the API server's answer is not a SubjectAccessReview");
  }
  AccessAnswer answer;
  if (status["allowed"].get(answer.allowed) != simdjson::SUCCESS) answer.allowed = false;
  bool denied = false;
  if (status["denied"].get(denied) == simdjson::SUCCESS && denied) answer.allowed = false;
  answer.reason = string_at(status, "reason");
  return answer;
}

}  // namespace troupe
