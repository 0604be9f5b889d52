// Runs the tests; or, as a child of one of them, a process that opens a store and reports what happens:
//   --open <path> [uid]   prints the error code's number and its text, or "opened"
//   --write <path>        commits numbered sets from the stored prefix on and prints the number of each when
//   it
//                         is released, until it is killed
//   --fill <path>         commits numbered sets until that fails; prints the error's code number and text,
//   and how
//                         many were released
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "unit/store_rocksdb/support.hpp"

namespace troupe {
namespace {

int open_once(const std::string& path) {
  StoreOptions options;
  options.path = path;
  const Result<std::unique_ptr<Store>> store = open_store(options, {});
  if (store) {
    std::puts("opened");
  } else {
    std::printf("%d %s\n", static_cast<int>(store.error().code), store.error().text().c_str());
  }
  return 0;
}

int write_until_killed(const std::string& path) {
  std::mutex mutex;
  std::condition_variable changed;
  std::uint64_t released = 0;
  StoreOptions options;
  options.path = path;
  options.write_buffer_bytes = 256U << 10U;
  const StoreHooks hooks{[&](std::vector<Envelope> envelopes) {
                           std::string lines;
                           for (const Envelope& e : envelopes) lines += e.to.key + "\n";
                           if (write(STDOUT_FILENO, lines.data(), lines.size()) < 0) std::abort();
                           const std::lock_guard lock(mutex);
                           released += envelopes.size();
                           changed.notify_one();
                         },
                         [](const Error&) { std::abort(); }};
  const Result<std::unique_ptr<Store>> store = open_store(options, hooks);
  if (!store) return 1;
  const Result<std::string> last = (*store)->get(Family::meta, "last");
  std::uint64_t next = last ? decode_u64(*last) + 1 : 0;
  for (std::uint64_t sent = 0;; ++sent) {
    (*store)->commit(numbered_set(next++));
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return sent < released + 64; });
  }
}

int write_until_it_fails(const std::string& path) {
  Listener listener;
  const std::unique_ptr<Store> store = must_open(path, listener);
  std::size_t sent = 0;
  while (listener.failures().empty()) {
    for (int i = 0; i < 50; ++i) store->commit(numbered_set(sent++));
    if (!listener.wait(sent)) return 1;
  }
  store->close();
  const Error error = listener.failures().front();
  std::printf("released %zu\nfailed %d %s\n", listener.released().size(), static_cast<int>(error.code),
              error.text().c_str());
  return 0;
}

}  // namespace
}  // namespace troupe

int main(int argc, char** argv) {
  const std::string_view mode = argc > 2 ? argv[1] : "";
  if (mode == "--open") {
    if (argc > 3 && setuid(static_cast<uid_t>(std::atoi(argv[3]))) != 0) return 2;
    return troupe::open_once(argv[2]);
  }
  if (mode == "--write") return troupe::write_until_killed(argv[2]);
  if (mode == "--fill") return troupe::write_until_it_fails(argv[2]);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
