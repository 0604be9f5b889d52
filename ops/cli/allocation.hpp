// How full a cluster is, per resource: what its nodes offer and what its pods ask for.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "messages/message.hpp"
#include "ops/cli/output.hpp"

namespace troupe::cli {

struct Amounts {
  std::int64_t allocatable = 0;  // of all nodes; milli-CPU, bytes, counts
  std::int64_t requested = 0;    // of all pods that have a node
};

/// By resource name; `pods` among them.
using Allocation = std::map<std::string, Amounts>;

/// Adds an object: a Kind::node to allocatable, a Kind::pod that has a node to requested.
void count(const Message& object, Allocation& into);
Allocation allocation(const std::vector<Message>& nodes, const std::vector<Message>& pods);

/// An amount of that resource as people read it.
std::string human(const std::string& resource, std::int64_t amount);
std::string percent(const Amounts& amounts);
Json to_json(const Allocation& allocation);

}  // namespace troupe::cli
