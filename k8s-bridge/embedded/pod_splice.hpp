// A Pod message with some fields replaced, at the cost of one copy of its bytes: what the API server does to
// a pod when it is bound or its status is patched.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "messages/message.hpp"

namespace troupe {

/// What differs from the pod as it was written. An absent value keeps the pod's own.
struct PodChanges {
  std::optional<std::string_view> resource_version;
  std::optional<std::string_view> node_name;
  std::optional<std::string_view> nominated_node_name;
  /// A finished buffer whose root is fb::PodCondition; empty: kept.
  std::span<const std::uint8_t> scheduled_condition;
};

/// `pod` (Kind::pod, bytes made or verified in this process) with `changes`. `scratch` is working memory that
/// the caller keeps between calls.
Message with_changes(const Message& pod, const PodChanges& changes, std::vector<std::uint8_t>& scratch);

}  // namespace troupe
