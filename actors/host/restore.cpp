#include "actors/host/restore.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

namespace troupe {

Result<std::vector<std::unique_ptr<Partition>>> restore_partitions(const std::vector<OwnerGroup>& groups,
                                                                   std::uint64_t seed,
                                                                   HostServices& services) {
  std::vector<std::unique_ptr<Partition>> all;
  std::vector<std::size_t> first;  // of each group, in all
  for (const OwnerGroup& group : groups) {
    first.push_back(all.size());
    for (std::uint32_t p = 0; p < group.partitions; ++p) {
      const auto epoch = Partition::next_epoch(services.store(), group.traits->kind, p);
      if (!epoch) return fail(epoch.error());
      all.push_back(std::make_unique<Partition>(group.make(p), p, *epoch, seed, services));
      if (const auto prepared = all.back()->prepare(); !prepared) return fail(prepared.error());
    }
  }
  for (std::size_t f = 0; f < kFamilyNames.size(); ++f) {
    const auto family = static_cast<Family>(f);
    std::vector<std::size_t> readers;
    for (std::size_t g = 0; g < groups.size(); ++g) {
      if (std::ranges::find(groups[g].traits->families, family) != groups[g].traits->families.end()) {
        readers.push_back(g);
      }
    }
    if (readers.empty()) continue;
    const auto read = services.store().scan(family, {}, [&](std::string_view key, std::string_view value) {
      for (const std::size_t g : readers) {
        const std::string_view instance = groups[g].traits->instance_of(family, key, value);
        if (instance.empty()) continue;
        const std::uint32_t p = partition_of(instance, groups[g].partitions);
        all[first[g] + p]->restore_entry(family, instance, key, value);
      }
      return true;
    });
    if (!read) return fail(read.error());
  }
  for (const auto& partition : all) partition->activate();
  return all;
}

}  // namespace troupe
