#include "actors/report/report_owner.hpp"

#include <algorithm>
#include <stdexcept>

namespace troupe {
namespace {

using StringOffset = flatbuffers::Offset<flatbuffers::String>;

StringOffset copy(flatbuffers::FlatBufferBuilder& b, const flatbuffers::String* s) {
  return s == nullptr ? StringOffset{} : b.CreateString(s);
}

flatbuffers::Offset<fb::PodCondition> copy(flatbuffers::FlatBufferBuilder& b, const fb::PodCondition* c) {
  if (c == nullptr) return 0;
  const auto type = copy(b, c->type());
  const auto status = copy(b, c->status());
  const auto reason = copy(b, c->reason());
  const auto message = copy(b, c->message());
  return fb::CreatePodCondition(b, type, status, reason, message, c->transition_ms());
}

flatbuffers::Offset<fb::EventNote> copy(flatbuffers::FlatBufferBuilder& b, const fb::EventNote* e) {
  if (e == nullptr) return 0;
  const auto name = copy(b, e->name());
  const auto type = copy(b, e->type());
  const auto reason = copy(b, e->reason());
  const auto action = copy(b, e->action());
  const auto note = copy(b, e->note());
  const auto controller = copy(b, e->controller());
  const auto regarding_kind = copy(b, e->regarding_kind());
  const auto regarding_version = copy(b, e->regarding_api_version());
  return fb::CreateEventNote(b, name, e->event_ms(), type, reason, action, note, controller, regarding_kind,
                             regarding_version);
}

const Address& bridge_address() {
  static const Address address{ActorKind::bridge, 0, {}};
  return address;
}

}  // namespace

void ReportOwner::on(const Message& message, Turn& turn) {
  if (message.kind() == Kind::report_request) on_request(message.as<fb::ReportRequest>(), turn);
  if (message.kind() == Kind::intent_result) on_result(message.as<fb::IntentResult>(), turn);
}

void ReportOwner::on_request(const fb::ReportRequest& request, Turn& turn) {
  const fb::Intent* wish = request.intent();
  if (wish == nullptr) return;
  const std::uint64_t id = turn.new_intent_id();
  flatbuffers::FlatBufferBuilder& b = shared_->builder;
  b.Clear();
  const auto condition = copy(b, wish->condition());
  const auto event = copy(b, wish->event());
  const auto owner = b.CreateString(key_);
  const auto ns = copy(b, wish->namespace_());
  const auto name = copy(b, wish->name());
  const auto uid_text = copy(b, wish->uid_text());
  const auto rv = copy(b, wish->resource_version());
  const auto nominated = copy(b, wish->nominated_node());
  fb::IntentBuilder i(b);
  i.add_id(id);
  i.add_kind(wish->kind());
  i.add_owner_kind(static_cast<std::uint8_t>(ActorKind::report));
  i.add_owner_key(owner);
  i.add_partition(turn.self().partition);
  i.add_partition_epoch(turn.partition_epoch());
  i.add_namespace_(ns);
  i.add_name(name);
  if (wish->uid() != nullptr) i.add_uid(wish->uid());
  i.add_uid_text(uid_text);
  i.add_resource_version(rv);
  i.add_condition(condition);
  i.add_nominated_node(nominated);
  i.add_has_nominated_node(wish->has_nominated_node());
  i.add_event(event);
  i.add_created_ms(turn.wall_ms());
  b.Finish(i.Finish());
  turn.put(Family::journal, encode_u64(id), b);
  turn.send(bridge_address(), Message(Kind::intent, b));
  pending_.push_back(id);
}

void ReportOwner::on_result(const fb::IntentResult& result, Turn& turn) {
  if (result.stage() != fb::IntentStage::Complete || result.outcome() == fb::IntentOutcome::Stopped) return;
  turn.erase(Family::journal, encode_u64(result.id()));
  std::erase(pending_, result.id());
}

std::string_view ReportOwner::instance_of(Family, std::string_view, std::string_view value) {
  const auto* data = reinterpret_cast<const std::uint8_t*>(value.data());
  flatbuffers::Verifier verifier(data, value.size());
  if (!verifier.VerifyBuffer<fb::Intent>(nullptr))
    throw std::runtime_error("a stored intent does not match its schema");
  const auto& intent = *flatbuffers::GetRoot<fb::Intent>(data);
  return intent.owner_kind() == static_cast<std::uint8_t>(kind) ? text(intent.owner_key())
                                                                : std::string_view{};
}

void ReportOwner::restore_entry(Family family, std::string_view, std::string_view value) {
  if (family != Family::journal) return;
  restored_.emplace_back(
      std::span<const std::uint8_t>(reinterpret_cast<const std::uint8_t*>(value.data()), value.size()));
}

void ReportOwner::restored(Turn& turn) {
  for (const Bytes& bytes : restored_) {
    pending_.push_back(flatbuffers::GetRoot<fb::Intent>(bytes.data())->id());
    turn.send(bridge_address(), Message(Kind::intent, bytes));
  }
  restored_.clear();
}

}  // namespace troupe
