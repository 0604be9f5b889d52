#include "unit/store_rocksdb/support.hpp"

#include <algorithm>

namespace troupe {
namespace {

std::string ledger_key(std::uint64_t n) {
  return "node-" + std::to_string(n * 7919 % 97) + '\0' + encode_u64(n);
}

std::string ledger_value(std::uint64_t n) {
  std::string value = "entry " + std::to_string(n) + " ";
  value.append(n * 131 % 900, static_cast<char>('a' + n % 26));
  return value;
}

}  // namespace

WriteSet numbered_set(std::uint64_t n) {
  WriteSet set;
  set.writes.put(Family::ledger, ledger_key(n), ledger_value(n));
  set.writes.put(Family::journal, encode_u64(n), ledger_value(n + 1));
  if (n >= 3) set.writes.erase(Family::journal, encode_u64(n - 3));
  if (n % 3 == 0 && n >= 3) set.writes.erase(Family::ledger, ledger_key(n - 3));
  set.writes.put(Family::meta, "last", encode_u64(n));
  set.messages.push_back(message_to(std::to_string(n)));
  return set;
}

std::uint64_t stored_prefix(Store& store, std::uint64_t written) {
  std::map<std::string, std::string> meta = everything(store, Family::meta);
  meta.erase(std::string(kSchemaKey));
  const std::uint64_t prefix = meta.empty() ? 0 : decode_u64(meta.at("last")) + 1;
  EXPECT_LE(prefix, written);
  std::map<std::string, std::string> ledger;
  std::map<std::string, std::string> journal;
  for (std::uint64_t n = 0; n < prefix; ++n) {
    const bool erased = n % 3 == 0 && n + 3 < prefix;
    if (!erased) ledger.emplace(ledger_key(n), ledger_value(n));
    if (n + 3 >= prefix) journal.emplace(encode_u64(n), ledger_value(n + 1));
  }
  EXPECT_TRUE(everything(store, Family::ledger) == ledger) << "of " << prefix;
  EXPECT_TRUE(everything(store, Family::journal) == journal) << "of " << prefix;
  return prefix;
}

}  // namespace troupe
