#include "k8s-bridge/reject_events.hpp"

#include <array>
#include <charconv>

#include "messages/fb/intent_generated.h"
#include "messages/uid.hpp"

namespace troupe {
namespace {

constexpr std::size_t kLongestNote = 1024;  // spec 2.3

std::string event_name(std::string_view object, std::int64_t wall_us) {
  std::array<char, 20> hex{};
  const auto end = std::to_chars(hex.data(), hex.data() + hex.size(), wall_us * 1000, 16).ptr;
  return std::string(object).append(".").append(hex.data(), end);
}

}  // namespace

Message reject_event(const RejectedObject& rejected, const std::string& component, std::int64_t wall_us) {
  const ObjectKindInfo& kind = info(rejected.ref.kind);
  const Error& error = rejected.error;
  std::string note = error.what;
  if (!error.field.empty()) note.append(": ").append(error.field);
  if (!error.remedy.empty()) note.append("; ").append(error.remedy);
  if (note.size() > kLongestNote) note = note.substr(0, kLongestNote - 4) + " ...";

  flatbuffers::FlatBufferBuilder b(1024);
  const auto name = b.CreateString(event_name(rejected.ref.name, wall_us));
  const auto type = b.CreateString("Warning");
  const auto reason = b.CreateString("InvalidObject");
  const auto action = b.CreateString("Decoding");
  const auto text = b.CreateString(note);
  const auto controller = b.CreateString(component);
  const auto regarding = b.CreateString(kind.name);
  const auto version = b.CreateString(kind.api_version);
  fb::EventNoteBuilder event(b);
  event.add_name(name);
  event.add_event_ms(wall_us / 1000);
  event.add_type(type);
  event.add_reason(reason);
  event.add_action(action);
  event.add_note(text);
  event.add_controller(controller);
  event.add_regarding_kind(regarding);
  event.add_regarding_api_version(version);
  const auto note_at = event.Finish();
  const auto name_space = b.CreateString(rejected.ref.name_space);
  const auto object = b.CreateString(rejected.ref.name);
  const auto uid_text = b.CreateString(rejected.ref.uid);
  const fb::Uid uid = PodUid::parse(rejected.ref.uid).wire();
  fb::IntentBuilder intent(b);
  intent.add_kind(fb::IntentKind::Event);
  intent.add_partition(kBridgePartition);
  intent.add_namespace_(name_space);
  intent.add_name(object);
  intent.add_uid(&uid);
  intent.add_uid_text(uid_text);
  intent.add_event(note_at);
  intent.add_created_ms(wall_us / 1000);
  b.Finish(intent.Finish());
  return {Kind::intent, b};
}

}  // namespace troupe
