// One JSON line per measurement, and what a process has used.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace troupe::bench {

/// Builds one line of JSON, fields in the order in which they are added.
class Line {
 public:
  explicit Line(std::string_view bench) { add("bench", bench); }
  Line& add(std::string_view name, std::string_view text);
  Line& add(std::string_view name, const char* text) { return add(name, std::string_view(text)); }
  Line& add(std::string_view name, double number);
  Line& add(std::string_view name, std::uint64_t number);
  Line& add(std::string_view name, bool value);
  /// Writes it to standard output.
  void print() const;

 private:
  Line& raw(std::string_view name, std::string_view value);
  std::string json_;
};

/// User and system CPU time of this process, microseconds.
std::uint64_t process_cpu_us();
/// Resident memory of this process, bytes.
std::uint64_t resident_bytes();
/// Type of the file system that holds `path`: ext4, xfs, overlay, tmpfs, ..., or its magic number.
std::string filesystem_of(const std::string& path);

}  // namespace troupe::bench
