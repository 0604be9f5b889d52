// The bodies of TokenReview (authentication.k8s.io/v1) and SubjectAccessReview (authorization.k8s.io/v1).
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "messages/error.hpp"

namespace troupe {

/// A user as TokenReview names it; travels into SubjectAccessReview unchanged.
struct ReviewedUser {
  std::string name;
  std::string uid;
  std::vector<std::string> groups;
  std::vector<std::pair<std::string, std::vector<std::string>>> extra;
};

struct TokenAnswer {
  bool authenticated = false;
  ReviewedUser user;
  std::string error;  // why not, where the API server says so
};

struct AccessAnswer {
  bool allowed = false;
  std::string reason;
};

std::string encode_token_review(std::string_view token, const std::vector<std::string>& audiences);
std::string encode_access_review(const ReviewedUser& user, std::string_view verb, std::string_view path);
/// Error: not an answer of that kind.
Result<TokenAnswer> read_token_review(std::string_view json);
Result<AccessAnswer> read_access_review(std::string_view json);

}  // namespace troupe
