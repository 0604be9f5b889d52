// A list-and-watch server for pods as a value: no thread, no clock. It keeps a history like etcd's, can
// forget its older part, and answers paths as NextRequest writes them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe::testing {

struct FakePod {
  std::string name{};
  std::string uid{};
  std::string node{};
  std::int64_t cpu_milli = 100;
  bool finished = false;  // phase Succeeded: no longer selected
  bool broken = false;    // its cpu request is no quantity
  std::uint64_t version = 0;

  [[nodiscard]] std::string json() const;
};

class FakeApi {
 public:
  struct Answer {
    int status = 200;
    std::string body;
  };

  /// Creates or changes; a pod with another UID is deleted first.
  void put(FakePod pod);
  void erase(const std::string& name);
  /// Forgets the history before the present version; watches from there and pages under way expire.
  void compact();
  /// Continues at a lower version, as after a restore from a backup; nothing of the history is left.
  void restore_older(std::uint64_t versions_back);

  Answer list(const std::string& path);
  /// Lines of a watch from `version` on; nullopt: that version is too old.
  [[nodiscard]] std::optional<std::vector<std::string>> lines_after(std::uint64_t version) const;
  [[nodiscard]] std::string bookmark() const;
  static std::string error_line(int code, const std::string& reason);
  static std::string status(int code, const std::string& reason, const std::string& message = {});

  [[nodiscard]] const std::map<std::string, FakePod>& pods() const { return pods_; }
  [[nodiscard]] std::uint64_t version() const { return version_; }

 private:
  struct Event {
    std::string type;
    FakePod pod;
    bool was_selected = false;
  };
  void record(std::string type, const FakePod& pod, bool was_selected);

  std::map<std::string, FakePod> pods_;
  std::vector<Event> history_;
  std::uint64_t version_ = 100;
  std::uint64_t oldest_ = 100;
  struct Snapshot {
    std::vector<FakePod> pods;
    std::uint64_t version = 0;
  };
  std::map<std::string, Snapshot> snapshots_;
  int next_snapshot_ = 1;
};

/// The value of a query parameter of `path`; empty when absent.
std::string query(const std::string& path, const std::string& name);

}  // namespace troupe::testing
