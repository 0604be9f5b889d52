// Activation of the partitions of a process: one pass over each column family, whatever their number.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "actors/host/hosted.hpp"
#include "actors/host/partition.hpp"

namespace troupe {

/// The partitions of one owner class.
struct OwnerGroup {
  const OwnerTraits* traits = nullptr;
  std::uint32_t partitions = 0;
  std::function<std::unique_ptr<HostedOwner>(std::uint32_t partition)> make;
};

template <Owner O>
OwnerGroup owner_group(std::uint32_t partitions, SharedFactory<O> shared) {
  return {&traits_of<O>(), partitions, [shared = std::move(shared)](std::uint32_t partition) {
            return std::make_unique<Hosted<O>>(shared(partition));
          }};
}

/// Makes every partition of `groups`, in order, each with a fresh epoch, and restores and activates it. An
/// error means that the store cannot be read; an instance that cannot be restored is reported and refuses its
/// messages.
Result<std::vector<std::unique_ptr<Partition>>> restore_partitions(const std::vector<OwnerGroup>& groups,
                                                                   std::uint64_t seed,
                                                                   HostServices& services);

}  // namespace troupe
