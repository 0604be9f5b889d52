// Intents as the JSON bodies that the API server takes (spec 2.1 to 2.3). Pure string building.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "messages/fb/intent_generated.h"
#include "messages/json_text.hpp"

namespace troupe {

/// Unix milliseconds as RFC 3339 in UTC: "2026-07-01T09:30:00Z".
std::string rfc3339(std::int64_t unix_ms);
/// The same with microseconds: "2026-07-01T09:30:00.123000Z".
std::string rfc3339_micro(std::int64_t unix_ms);

/// v1 Binding, POST to pods/{name}/binding: uid, resourceVersion (where known) and annotations in its
/// metadata.
std::string encode_binding(const fb::Intent& intent);
/// The same with another resourceVersion, after the pod was read again.
std::string encode_binding(const fb::Intent& intent, std::string_view resource_version);

/// events.k8s.io/v1 Event about the object of `intent`, POST to events.k8s.io/v1/namespaces/{ns}/events.
/// Empty where the intent carries no event. `instance`: reportingInstance, <scheduler name>-<host name>, cut
/// to 128 bytes.
std::string encode_event(const fb::Intent& intent, std::string_view instance);

/// Strategic merge patch of pods/{name}/status: the condition (with lastTransitionTime where it carries one)
/// and, where the intent says so, nominatedNodeName (null when empty). Carries the uid, so that a pod
/// recreated under the same name answers 409.
std::string encode_status_patch(const fb::Intent& intent);

/// policy/v1 Eviction, POST to pods/{name}/eviction, with the uid as precondition.
std::string encode_eviction(const fb::Intent& intent);

/// v1 DeleteOptions with the uid as precondition, body of DELETE pods/{name}.
std::string encode_delete_options(const fb::Intent& intent);

}  // namespace troupe
