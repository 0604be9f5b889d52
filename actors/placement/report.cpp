#include "actors/placement/report.hpp"

#include <xxhash.h>

#include "actors/placement/failure_text.hpp"
#include "messages/fb/query_generated.h"

namespace troupe {
namespace {

constexpr std::string_view kPodScheduled = "PodScheduled";
constexpr std::string_view kFalse = "False";

flatbuffers::Offset<flatbuffers::String> write(flatbuffers::FlatBufferBuilder& b, std::string_view s) {
  return s.empty() ? flatbuffers::Offset<flatbuffers::String>{} : b.CreateString(s.data(), s.size());
}

std::uint64_t hash(std::string_view reason, std::string_view message) {
  return XXH3_64bits_withSeed(message.data(), message.size(), XXH3_64bits(reason.data(), reason.size())) | 1U;
}

std::string joined(const fb::Pod& pod) {
  return std::string(text(pod.namespace_())) + "/" + std::string(text(pod.name()));
}

}  // namespace

template <class AddContent>
void Reporter::send(const fb::Pod& pod, const PodUid& uid, fb::IntentKind kind, FollowerTurn& turn,
                    AddContent&& add) {
  flatbuffers::FlatBufferBuilder& b = builder_;
  b.Clear();
  const std::string key = joined(pod);
  const auto content = add(b);
  const auto key_at = write(b, key);
  const auto ns = write(b, text(pod.namespace_()));
  const auto name = write(b, text(pod.name()));
  const auto uid_text = write(b, text(pod.uid_text()));
  const auto version = write(b, text(pod.resource_version()));
  const fb::Uid wire = uid.wire();
  fb::IntentBuilder intent(b);
  intent.add_kind(kind);
  intent.add_namespace_(ns);
  intent.add_name(name);
  intent.add_uid(&wire);
  intent.add_uid_text(uid_text);
  intent.add_resource_version(version);
  if constexpr (std::is_same_v<decltype(content), const flatbuffers::Offset<fb::PodCondition>>) {
    intent.add_condition(content);
  } else {
    intent.add_event(content);
  }
  intent.add_created_ms(turn.wall_ms());
  const auto intent_at = intent.Finish();
  b.Finish(fb::CreateReportRequest(b, key_at, intent_at));
  turn.send({ActorKind::report, 0, key}, Message(Kind::report_request, b));
}

void Reporter::send_event(const fb::Pod& pod, const PodUid& uid, std::string_view message,
                          std::string_view scheduler, FollowerTurn& turn) {
  // Events of one pod in one millisecond differ in the count, so their names never meet.
  const std::uint64_t time_ns =
      static_cast<std::uint64_t>(turn.wall_ms()) * 1'000'000 + ++events_ % 1'000'000;
  std::string event = event_name(text(pod.name()), time_ns);
  if (event.empty()) event = PodUid{uid.hi ^ time_ns, uid.lo}.text();
  send(pod, uid, fb::IntentKind::Event, turn, [&](flatbuffers::FlatBufferBuilder& b) {
    const auto name = write(b, event);
    const auto type = write(b, "Warning");
    const auto reason = write(b, "FailedScheduling");
    const auto action = write(b, "Scheduling");
    const auto note = write(b, event_note(message));
    const auto controller = write(b, scheduler);
    return fb::CreateEventNote(b, name, turn.wall_ms(), type, reason, action, note, controller);
  });
}

void Reporter::failed(PendingPod& pod, std::string_view reason, std::string_view message,
                      std::string_view scheduler, FollowerTurn& turn) {
  const std::uint64_t told = hash(reason, message);
  if (pod.reported == told) return;
  pod.reported = told;
  const fb::Pod& wire = pod.wire();
  const fb::PodCondition* has = wire.scheduled_condition();
  const bool already = has != nullptr && text(has->status()) == kFalse && text(has->reason()) == reason &&
                       text(has->message()) == message;
  publish(pod, "unschedulable", {}, reason, message, turn);
  if (already) return;
  // lastTransitionTime moves only with the status.
  const bool same_status = has != nullptr && text(has->status()) == kFalse;
  send(wire, pod.uid, fb::IntentKind::PatchStatus, turn, [&](flatbuffers::FlatBufferBuilder& b) {
    const auto type = write(b, kPodScheduled);
    const auto status = write(b, kFalse);
    const auto why = write(b, reason);
    const auto what = write(b, message);
    return fb::CreatePodCondition(b, type, status, why, what, same_status ? 0 : turn.wall_ms());
  });
  send_event(wire, pod.uid, message, scheduler, turn);
}

void Reporter::skipped_deleting(PendingPod& pod, std::string_view scheduler, FollowerTurn& turn) {
  send_event(pod.wire(), pod.uid, "skip schedule deleting pod: " + joined(pod.wire()), scheduler, turn);
}

void Reporter::publish(const PendingPod& pod, std::string_view type, std::string_view node,
                       std::string_view reason, std::string_view message, FollowerTurn& turn) {
  if (!publish_events_) return;
  flatbuffers::FlatBufferBuilder& b = builder_;
  b.Clear();
  const fb::Pod& wire = pod.wire();
  const auto area = write(b, "pod");
  const auto type_at = write(b, type);
  const auto ns = write(b, text(wire.namespace_()));
  const auto name = write(b, text(wire.name()));
  const auto uid = write(b, text(wire.uid_text()));
  const auto node_at = write(b, node);
  const auto reason_at = write(b, reason);
  const auto message_at = write(b, message);
  b.Finish(
      fb::CreatePublicEvent(b, area, type_at, turn.wall_ms(), ns, name, uid, node_at, reason_at, message_at));
  turn.publish(Message(Kind::public_event, b));
}

}  // namespace troupe
