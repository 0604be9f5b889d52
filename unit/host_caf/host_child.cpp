// A process to be killed: adds to 100 keys without end, and prints every reply as it is released.

#include <unistd.h>

#include <semaphore>

#include "unit/host_caf/inbox.hpp"

namespace troupe {
namespace {

using testing_host::kPartitions;
using testing_host::numbered;
using testing_host::Tally;
using testing_host::tell;

int run(const char* path) {
  std::counting_semaphore<1 << 20> credit(500);
  RuntimeOptions options;
  options.store.path = path;
  Runtime runtime(std::move(options));
  runtime.add_owner<Tally>(kPartitions);
  runtime.add_port(ActorKind::api, 0, [&](std::vector<Envelope> envelopes) {
    std::string lines;
    for (const Envelope& e : envelopes) lines.append(e.message.bytes().view()).push_back('\n');
    // One write: a line that is in the pipe was released.
    for (std::string_view rest = lines; !rest.empty();) {
      const ssize_t n = ::write(STDOUT_FILENO, rest.data(), rest.size());
      if (n <= 0) ::_exit(1);
      rest.remove_prefix(static_cast<std::size_t>(n));
    }
    credit.release(static_cast<std::ptrdiff_t>(envelopes.size()));
  });
  if (!runtime.start()) return 2;
  for (std::uint64_t i = 0;; ++i) {
    credit.acquire();
    runtime.bus().send({tell(numbered("n", i % 100), "add 1")});
  }
}

}  // namespace
}  // namespace troupe

int main(int argc, char** argv) {
  return argc == 2 ? troupe::run(argv[1]) : 64;
}
