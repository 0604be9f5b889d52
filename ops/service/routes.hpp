// Which actors hear of what the cluster tells.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "messages/message.hpp"

namespace troupe {

/// A node goes to its owner and to placement; a pod to placement, and to its node's owner when it has one;
/// everything else to placement. What concerns owners comes first, so that an owner knows its node before
/// placement decides on it.
std::vector<Envelope> route_changes(const std::vector<Message>& changes, std::uint32_t node_partitions);
/// Results go to the instances that own the intents; a node's partition follows from its name, since an
/// intent may be older than the number of partitions.
std::vector<Envelope> route_results(const std::vector<Message>& results, std::uint32_t node_partitions);
/// Every node partition, then placement.
std::vector<Envelope> route_synced(const Message& synced, std::uint32_t node_partitions);

Message query_message(std::uint64_t id, std::string_view verb, std::string_view ns, std::string_view name,
                      std::uint32_t limit);

/// The `error` of a failed fb::QueryResult's JSON; the text itself when it has none.
std::string query_error(std::string_view json);

}  // namespace troupe
