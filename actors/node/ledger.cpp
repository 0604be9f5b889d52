#include "actors/node/ledger.hpp"

#include <algorithm>

namespace troupe {

void ResourceAccount::add(const PodClass& cls, std::int64_t sign) {
  for (const ResourceRequest& r : cls.requests) {
    if (requested_.size() <= r.resource) requested_.resize(r.resource + 1U, 0);
    requested_[r.resource] += sign * r.amount;
  }
  non_zero_cpu_ += sign * cls.non_zero_cpu;
  non_zero_memory_ += sign * cls.non_zero_memory;
  pods_ += sign;
}

void PortAccount::take(const PodClass& cls) {
  used_.insert(used_.end(), cls.host_ports.begin(), cls.host_ports.end());
}

void PortAccount::give(const PodClass& cls) {
  for (const HostPort& port : cls.host_ports) {
    const auto it = std::find(used_.begin(), used_.end(), port);
    if (it == used_.end()) continue;
    *it = used_.back();
    used_.pop_back();
  }
}

bool PortAccount::conflicts(const HostPort& port) const {
  return std::any_of(used_.begin(), used_.end(), [&](const HostPort& used) {
    return used.port == port.port && used.protocol == port.protocol &&
           (used.ip == port.ip || used.ip == 0 || port.ip == 0);
  });
}

void Ledger::apply(const LedgerPod* before, const LedgerPod* after) {
  ++*version_;
  const auto each = [this](auto&& use) {
    std::apply([&](auto&... allocator) { (use(allocator), ...); }, allocators_);
  };
  if (before != nullptr) each([&](auto& allocator) { allocator.give(before->cls->compiled); });
  if (after != nullptr) each([&](auto& allocator) { allocator.take(after->cls->compiled); });
  if (before != nullptr) {
    LedgerPod& slot = pods_[static_cast<std::size_t>(before - pods_.data())];
    if (after != nullptr) {
      LedgerPod copy = *after;
      slot = std::move(copy);
      return;
    }
    if (&slot != &pods_.back()) slot = std::move(pods_.back());
    pods_.pop_back();
    return;
  }
  if (after != nullptr) pods_.push_back(*after);
}

LedgerPod* Ledger::find(const PodUid& uid) {
  const auto it =
      std::find_if(pods_.begin(), pods_.end(), [&](const LedgerPod& pod) { return pod.uid == uid; });
  return it == pods_.end() ? nullptr : &*it;
}

}  // namespace troupe
