#include "actors/host/local_bus.hpp"

#include <utility>

namespace troupe {

LocalBus::Destination& LocalBus::add(ActorKind kind, std::uint32_t partition) {
  std::vector<Destination*>& row = directory_.at(static_cast<std::size_t>(kind));
  if (row.size() <= partition) row.resize(partition + 1, nullptr);
  destinations_.push_back(std::make_unique<Destination>());
  row[partition] = destinations_.back().get();
  row[partition]->index = static_cast<std::uint32_t>(destinations_.size() - 1);
  return *row[partition];
}

Mailbox& LocalBus::add_mailbox(ActorKind kind, std::uint32_t partition, Wake wake) {
  Destination& to = add(kind, partition);
  to.mailbox = std::make_unique<Mailbox>();
  to.wake = std::move(wake);
  return *to.mailbox;
}

void LocalBus::add_port(ActorKind kind, std::uint32_t partition, Take take) {
  add(kind, partition).take = std::move(take);
}

LocalBus::Destination* LocalBus::find(const Address& address) const {
  const auto kind = static_cast<std::size_t>(address.kind);
  if (kind >= kKinds || address.partition >= directory_[kind].size()) return nullptr;
  return directory_[kind][address.partition];
}

void LocalBus::send(std::vector<Envelope> envelopes) {
  if (envelopes.empty()) return;
  // Most vectors are for one destination; they travel as they are.
  Destination* first = find(envelopes.front().to);
  std::size_t same = 1;
  while (same < envelopes.size() && envelopes[same].to.kind == envelopes.front().to.kind &&
         envelopes[same].to.partition == envelopes.front().to.partition) {
    ++same;
  }
  if (same == envelopes.size() && first != nullptr) return deliver(*first, std::move(envelopes));

  std::vector<std::pair<Destination*, std::vector<Envelope>>> groups;
  std::vector<std::uint32_t> group_of(destinations_.size(), 0);  // 1 + index in groups
  for (Envelope& envelope : envelopes) {
    Destination* to = find(envelope.to);
    if (to == nullptr) {
      undeliverable_(envelope);
      continue;
    }
    std::uint32_t& group = group_of[to->index];
    if (group == 0) {
      groups.emplace_back(to, std::vector<Envelope>());
      group = static_cast<std::uint32_t>(groups.size());
    }
    groups[group - 1].second.push_back(std::move(envelope));
  }
  for (auto& [to, items] : groups) deliver(*to, std::move(items));
}

void LocalBus::deliver(Destination& to, std::vector<Envelope> envelopes) {
  if (to.take) return to.take(std::move(envelopes));
  const std::size_t messages = envelopes.size();
  in_flight_.fetch_add(messages);
  deliveries_.fetch_add(1);
  switch (to.mailbox->push(std::move(envelopes))) {
    case Mailbox::Pushed::closed:
      landed(messages);
      break;
    case Mailbox::Pushed::waits:
      break;
    case Mailbox::Pushed::wake:
      to.wake();
  }
}

void LocalBus::knock(ActorKind kind, std::uint32_t partition) {
  Destination* to = find({kind, partition, {}});
  if (to != nullptr && to->mailbox != nullptr && to->mailbox->knock()) to->wake();
}

void LocalBus::end_work(std::size_t messages) {
  landed(messages + 1);
}

void LocalBus::landed(std::size_t messages) {
  if (in_flight_.fetch_sub(messages) != messages) return;
  const std::lock_guard lock(rest_mutex_);
  rest_.notify_all();
}

bool LocalBus::wait_for_rest(std::chrono::steady_clock::time_point deadline) {
  std::unique_lock lock(rest_mutex_);
  return rest_.wait_until(lock, deadline, [this] { return in_flight_.load() == 0; });
}

void LocalBus::close() {
  for (const auto& destination : destinations_) {
    if (destination->mailbox == nullptr) continue;
    const std::size_t lost = destination->mailbox->close();
    if (lost > 0) landed(lost);
  }
}

}  // namespace troupe
