#include "ops/bench/report.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

namespace troupe::bench {

Line& Line::raw(std::string_view name, std::string_view value) {
  json_ += fmt::format("{}\"{}\":{}", json_.empty() ? "" : ",", name, value);
  return *this;
}

Line& Line::add(std::string_view name, std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return raw(name, quoted + "\"");
}

Line& Line::add(std::string_view name, double number) {
  return raw(name, fmt::format("{:.3f}", number));
}
Line& Line::add(std::string_view name, std::uint64_t number) {
  return raw(name, std::to_string(number));
}
Line& Line::add(std::string_view name, bool value) {
  return raw(name, value ? "true" : "false");
}

void Line::print() const {
  std::fputs(("{" + json_ + "}\n").c_str(), stdout);
  std::fflush(stdout);
}

std::uint64_t process_cpu_us() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto us = [](const timeval& t) {
    return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000 + static_cast<std::uint64_t>(t.tv_usec);
  };
  return us(usage.ru_utime) + us(usage.ru_stime);
}

std::uint64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::uint64_t total = 0;
  std::uint64_t resident = 0;
  statm >> total >> resident;
  return resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

std::string filesystem_of(const std::string& path) {
  struct statfs fs {};
  if (statfs(path.c_str(), &fs) != 0) return "unknown";
  switch (static_cast<std::uint64_t>(fs.f_type)) {
    case 0xEF53:
      return "ext4";
    case 0x58465342:
      return "xfs";
    case 0x9123683E:
      return "btrfs";
    case 0x01021994:
      return "tmpfs";
    case 0x794C7630:
      return "overlay";
    case 0x65735546:
      return "fuse";
    default:
      return fmt::format("{:#x}", static_cast<std::uint64_t>(fs.f_type));
  }
}

}  // namespace troupe::bench
