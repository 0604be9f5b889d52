// What people read when a pod does not fit, exactly as kube-scheduler writes it (spec 5.7, 2.3).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "actors/placement/node_view.hpp"

namespace troupe {

/// How many nodes gave each reason. A node counts once per reason that it gives.
using ReasonCounts = std::map<std::string, std::uint64_t, std::less<>>;

/// `0/<nodes> nodes are available: <count> <reason>, ….`, items sorted as strings; without any it ends at the
/// colon. A message of PreFilter replaces the histogram; one of PostFilter follows either. `nodes` are all
/// nodes of the cluster.
std::string failure_message(std::uint64_t nodes, const ReasonCounts& reasons,
                            std::string_view pre_filter = {}, std::string_view post_filter = {});

/// What an attempt without any node says.
inline constexpr std::string_view kNoNodes = "no nodes available to schedule pods";

/// An event's note: at most 1024 bytes; longer text keeps its first 1020 and ends in " ...", not in the
/// middle of a character.
std::string event_note(std::string_view text);

/// `<regarding name>.<lower-case hex of the time>`; `time_ns` in nanoseconds of the Unix epoch. Empty when
/// that is no DNS subdomain, and the caller takes a random UUID.
std::string event_name(std::string_view regarding, std::uint64_t time_ns);

}  // namespace troupe
