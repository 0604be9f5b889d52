// fuzz_replay CORPUS [ENTRY]: every file of CORPUS/<entry>/ through its entry. Fails when an entry has no
// file.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "integration/fuzz/entry.hpp"

namespace troupe::fuzz {
namespace {

std::size_t replay(const Entry& entry, const std::filesystem::path& dir) {
  std::vector<std::filesystem::path> files;
  std::error_code error;
  for (const auto& f : std::filesystem::directory_iterator(dir, error)) files.push_back(f.path());
  std::sort(files.begin(), files.end());
  for (const auto& path : files) {
    std::ifstream in(path, std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    std::printf("%.*s %s\n", static_cast<int>(entry.name.size()), entry.name.data(), path.filename().c_str());
    std::fflush(stdout);  // the last line names the input of a crash
    entry.run({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
  }
  return files.size();
}

}  // namespace
}  // namespace troupe::fuzz

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: fuzz_replay CORPUS [ENTRY]\n");
    return 2;
  }
  int code = 0;
  for (const troupe::fuzz::Entry& entry : troupe::fuzz::entries()) {
    if (argc > 2 && entry.name != argv[2]) continue;
    if (troupe::fuzz::replay(entry, std::filesystem::path(argv[1]) / entry.name) > 0) continue;
    std::fprintf(stderr, "fuzz_replay: %s/%.*s has no files\n", argv[1], static_cast<int>(entry.name.size()),
                 entry.name.data());
    code = 1;
  }
  return code;
}
