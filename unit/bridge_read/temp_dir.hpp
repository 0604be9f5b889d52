// A temporary directory of one test, removed at its end.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace troupe::testing {

class TempDir {
 public:
  TempDir() : path_((std::filesystem::temp_directory_path() / "troupe-unit-XXXXXX").string()) {
    if (::mkdtemp(path_.data()) == nullptr) throw std::runtime_error("cannot make a temporary directory");
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string file(std::string_view name) const { return path_ + "/" + std::string(name); }
  std::string write(std::string_view name, std::string_view text) const {
    const std::string at = file(name);
    std::filesystem::create_directories(std::filesystem::path(at).parent_path());
    std::ofstream(at, std::ios::binary) << text;
    return at;
  }
  std::string script(std::string_view name, std::string_view body) const {
    std::string at = write(name, std::string("#!/bin/sh\n").append(body));
    ::chmod(at.c_str(), 0700);
    return at;
  }

 private:
  std::string path_;
};

}  // namespace troupe::testing
