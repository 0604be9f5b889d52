// What placement tells the world about pods: the condition and event of a failed attempt (through the report
// owner, which makes them durable), and public events.
//
// A condition is patched when it differs from the one that the pod has and from the one sent last; one Event
// goes with it. kube-scheduler posts an Event for every attempt and folds repeats into a series; here a
// repeat with the same text posts nothing, and a text that changed is an event of its own.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "actors/host/turn.hpp"
#include "actors/placement/queue.hpp"
#include "messages/fb/intent_generated.h"

namespace troupe {

class Reporter {
 public:
  explicit Reporter(bool publish_events) : publish_events_(publish_events) {}

  /// An attempt failed: condition PodScheduled False with `reason` (Unschedulable or SchedulerError) and the
  /// event FailedScheduling. `scheduler`: the profile's scheduler name.
  void failed(PendingPod& pod, std::string_view reason, std::string_view message, std::string_view scheduler,
              FollowerTurn& turn);
  /// A pod that is being deleted reached the front of the queue: an event, once.
  void skipped_deleting(PendingPod& pod, std::string_view scheduler, FollowerTurn& turn);
  /// Public event `type` (queued, scheduled, unschedulable).
  void publish(const PendingPod& pod, std::string_view type, std::string_view node, std::string_view reason,
               std::string_view message, FollowerTurn& turn);

 private:
  void send_event(const fb::Pod& pod, const PodUid& uid, std::string_view message, std::string_view scheduler,
                  FollowerTurn& turn);
  template <class AddContent>
  void send(const fb::Pod& pod, const PodUid& uid, fb::IntentKind kind, FollowerTurn& turn, AddContent&& add);

  bool publish_events_;
  std::uint64_t events_ = 0;
  flatbuffers::FlatBufferBuilder builder_{1024};
};

}  // namespace troupe
