// ops/api/: what a replica answers over HTTP (docs/api.md): health, metrics, the state of the scheduler as
// JSON, and live events.
#pragma once

#include <memory>
#include <string>

#include "ops/http/server.hpp"
#include "ops/service/service.hpp"

namespace troupe {

/// Registers every path on `server`, answered from `service`, which must outlive it. `profile` labels the
/// metrics.
void register_api(HttpServer& server, Service& service, const std::string& profile);

/// One fb::PublicEvent as the JSON object that the event stream carries.
std::string event_json(const Message& event);

}  // namespace troupe
