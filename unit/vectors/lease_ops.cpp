// Leader election (spec 5.11).
#include "k8s-bridge/lease/election.hpp"
#include "unit/vectors/vectors.hpp"

namespace troupe::vectors {
namespace {

Json run_lease(const Json& row, const Json&) {
  LeaseRecord record;
  const Json& given = row.at("record");
  if (!given.is_null()) {
    record.holder = given.at("holderIdentity");
    record.duration_s = given.at("leaseDurationSeconds");
    record.transitions = given.at("leaseTransitions");
    record.acquire_time = given.value("acquireTime", "");
  }
  const auto decision =
      decide_lease(given.is_null() ? nullptr : &record, row.value("observedSecondsAgo", 0) * 1000,
                   row.at("identity"), row.at("leaseDurationSeconds"), "now");
  switch (decision.action) {
    case LeaseAction::create:
      return {{"action", "create"}, {"leaseTransitions", decision.record.transitions}};
    case LeaseAction::update:
      return {{"action", "update"},
              {"leaseTransitions", decision.record.transitions},
              {"acquireTime", decision.record.acquire_time}};
    case LeaseAction::wait:
      break;
  }
  return {{"action", "wait"}};
}

const bool lease = register_op("lease", run_lease);

}  // namespace
}  // namespace troupe::vectors
