// Warning events about objects that cannot be understood.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "k8s-bridge/decode/decode.hpp"
#include "messages/message.hpp"

namespace troupe {

/// Partition of intents that belong to no owner: the authority for them is the role alone.
inline constexpr std::uint32_t kBridgePartition = 0xFFFFFFFFU;

/// An Event intent (id 0: nobody's) on the object, reason InvalidObject, with the mistake, its field and the
/// remedy.
Message reject_event(const RejectedObject& rejected, const std::string& component, std::int64_t wall_us);

/// How many of them may be posted: a cluster full of broken objects must not drown the API server. What is
/// not posted is counted, logged and in the metric all the same.
class RejectBudget {
 public:
  static constexpr int kPerMinute = 100;
  bool take(std::int64_t now_ms) {
    if (now_ms - since_ms_ >= 60'000) {
      since_ms_ = now_ms;
      left_ = kPerMinute;
    }
    return left_ > 0 && left_-- > 0;
  }

 private:
  std::int64_t since_ms_ = -60'000;
  int left_ = 0;
};

}  // namespace troupe
