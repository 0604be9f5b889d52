// The coordination.k8s.io/v1 Lease as leader election uses it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "messages/error.hpp"

namespace troupe {

/// spec of a Lease. Times are text: they are written and compared, never reckoned with (spec 5.11).
struct LeaseRecord {
  std::string holder;           // holderIdentity; empty: nobody
  std::int64_t duration_s = 0;  // leaseDurationSeconds
  std::string acquire_time;     // RFC 3339, microseconds
  std::string renew_time;
  std::int64_t transitions = 0;  // leaseTransitions

  friend bool operator==(const LeaseRecord&, const LeaseRecord&) = default;
};

/// A Lease as it was read: what goes back unchanged with an update is kept as text.
struct LeaseObject {
  LeaseRecord record;
  std::string metadata;  // the metadata object; its resourceVersion makes an update a compare-and-set
  std::string resource_version;
  std::string uid;
};

/// Error: no JSON object with metadata.resourceVersion.
Result<LeaseObject> read_lease(std::string_view json);

/// One line of a watch.
struct LeaseEvent {
  std::string type;  // ADDED, MODIFIED, DELETED, ERROR
  LeaseObject object;
};
/// Error: not an event, or its object is not a Lease.
Result<LeaseEvent> read_lease_event(std::string_view line);

/// Body of a PUT (with the metadata that was read) or, with empty `metadata`, of a POST of that name.
std::string encode_lease(const LeaseRecord& record, std::string_view metadata, std::string_view name_space,
                         std::string_view name);

/// Whether resourceVersion `a` is newer than `b` (spec 5.10: longer text is newer, else string order).
bool newer_version(std::string_view a, std::string_view b);

}  // namespace troupe
