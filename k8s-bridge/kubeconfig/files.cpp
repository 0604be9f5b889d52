#include "k8s-bridge/kubeconfig/files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace troupe {
namespace {

constexpr std::size_t kLargest = 16U << 20U;

Error failed(const std::string& path, const std::string& what, int code) {
  Error error{ErrorCode::io,
              "cannot read the " + what + " (" + std::strerror(code) + ")",
              path,
              {},
              "check the file"};
  if (code == ENOENT || code == ENOTDIR) {
    error.code = ErrorCode::not_found;
    error.remedy = "check the path";
  } else if (code == EACCES || code == EPERM) {
    error.code = ErrorCode::permission;
    error.remedy = "make it readable for this user";
  }
  return error;
}

}  // namespace

Result<std::string> read_text_file(const std::string& path, const std::string& what) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return fail(failed(path, what, errno));
  std::string out;
  std::array<char, 16384> piece{};
  for (;;) {
    const ssize_t n = ::read(fd, piece.data(), piece.size());
    if (n < 0 && errno == EINTR) continue;
    const int code = n < 0 ? errno : out.size() > kLargest ? EFBIG : 0;
    if (n <= 0 || code != 0) {
      ::close(fd);
      if (code != 0) return fail(failed(path, what, code));
      return out;
    }
    out.append(piece.data(), static_cast<std::size_t>(n));
  }
}

}  // namespace troupe
