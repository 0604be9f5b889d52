// HTTP/1.1 over TLS as the fault proxy needs it: whole heads and bodies, and the lines of a chunked stream.
#pragma once

#include <openssl/types.h>

#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::rig {

using Headers = std::vector<std::pair<std::string, std::string>>;

/// The value of a header, compared without case; empty when absent.
std::string_view header(const Headers& headers, std::string_view name);

struct Head {
  std::string start_line;
  Headers headers;
};

/// One TLS connection, used by one thread; only `cut` may come from others. Reads and writes return nullopt
/// or false when the connection has ended, for whatever reason.
class TlsSocket {
 public:
  /// Takes over the descriptor.
  TlsSocket(int fd, SSL_CTX* context, bool server, const std::string& server_name);
  TlsSocket(const TlsSocket&) = delete;
  TlsSocket& operator=(const TlsSocket&) = delete;
  ~TlsSocket();

  bool handshake();
  std::optional<Head> read_head();
  /// A whole body, framed as the headers say; a body without framing lasts until the connection ends.
  std::optional<std::string> read_body(const Headers& headers, bool until_end);
  /// The content of the next chunk; empty: the last one.
  std::optional<std::string> read_chunk();
  bool write(std::string_view bytes);
  bool write_chunk(std::string_view bytes);
  /// Waits until this or `other` has something to read; false when `other` has ended or speaks out of turn.
  bool wait_readable_or_ended(TlsSocket& other);
  /// Ends the connection with a reset, as soon as the thread that uses it, which it wakes, calls finish().
  void cut();
  /// Ends the connection in order, unless it was cut, and closes the descriptor.
  void finish();
  [[nodiscard]] int fd() const { return fd_; }

 private:
  bool fill();

  int fd_;
  SSL* ssl_;
  bool server_;
  std::string buffer_;
  std::mutex closing_;  // cut() from another thread must not meet a closed descriptor
  std::atomic<bool> cut_{false};
};

}  // namespace troupe::rig
