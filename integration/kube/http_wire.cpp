#include "integration/kube/http_wire.hpp"

#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>

namespace troupe::rig {

namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r'))
    text.remove_suffix(1);
  return text;
}

bool same_name(std::string_view a, std::string_view b) {
  return a.size() == b.size() && ::strncasecmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace

std::string_view header(const Headers& headers, std::string_view name) {
  for (const auto& [key, value] : headers) {
    if (same_name(key, name)) return value;
  }
  return {};
}

TlsSocket::TlsSocket(int fd, SSL_CTX* context, bool server, const std::string& server_name)
    : fd_(fd), ssl_(SSL_new(context)), server_(server) {
  SSL_set_fd(ssl_, fd_);
  if (server || server_name.empty()) return;
  if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl_), server_name.c_str()) != 1) {
    SSL_set1_host(ssl_, server_name.c_str());
    SSL_ctrl(ssl_, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
             const_cast<char*>(server_name.c_str()));
  }
}

TlsSocket::~TlsSocket() {
  finish();
  SSL_free(ssl_);
}

void TlsSocket::finish() {
  const std::lock_guard lock(closing_);
  if (fd_ < 0) return;
  if (!cut_) SSL_shutdown(ssl_);
  ::close(fd_);
  fd_ = -1;
}

bool TlsSocket::handshake() {
  return (server_ ? SSL_accept(ssl_) : SSL_connect(ssl_)) == 1;
}

bool TlsSocket::fill() {
  std::array<char, 16384> block{};
  const int got = cut_ ? 0 : SSL_read(ssl_, block.data(), static_cast<int>(block.size()));
  if (got <= 0) return false;
  buffer_.append(block.data(), static_cast<std::size_t>(got));
  return true;
}

std::optional<Head> TlsSocket::read_head() {
  std::size_t end = 0;
  while ((end = buffer_.find("\r\n\r\n")) == std::string::npos) {
    if (!fill()) return std::nullopt;
  }
  Head head;
  std::string_view text(buffer_.data(), end);
  for (bool first = true; !text.empty(); first = false) {
    const auto line_end = std::min(text.find("\r\n"), text.size());
    const auto line = text.substr(0, line_end);
    text.remove_prefix(std::min(line_end + 2, text.size()));
    if (first) {
      head.start_line = line;
    } else if (const auto colon = line.find(':'); colon != std::string_view::npos) {
      head.headers.emplace_back(line.substr(0, colon), trimmed(line.substr(colon + 1)));
    }
  }
  buffer_.erase(0, end + 4);
  return head;
}

std::optional<std::string> TlsSocket::read_body(const Headers& headers, bool until_end) {
  if (same_name(header(headers, "transfer-encoding"), "chunked")) {
    std::string body;
    while (true) {
      auto chunk = read_chunk();
      if (!chunk) return std::nullopt;
      if (chunk->empty()) return body;
      body += *chunk;
    }
  }
  const auto length_text = header(headers, "content-length");
  if (length_text.empty()) {
    if (!until_end) return std::string();
    while (fill()) {
    }
    return std::exchange(buffer_, {});
  }
  std::size_t length = 0;
  std::from_chars(length_text.data(), length_text.data() + length_text.size(), length);
  while (buffer_.size() < length) {
    if (!fill()) return std::nullopt;
  }
  std::string body = buffer_.substr(0, length);
  buffer_.erase(0, length);
  return body;
}

std::optional<std::string> TlsSocket::read_chunk() {
  std::size_t line_end = 0;
  while ((line_end = buffer_.find("\r\n")) == std::string::npos) {
    if (!fill()) return std::nullopt;
  }
  std::size_t size = 0;
  std::from_chars(buffer_.data(), buffer_.data() + line_end, size, 16);
  const std::size_t whole = line_end + 2 + size + 2;
  while (buffer_.size() < whole) {
    if (!fill()) return std::nullopt;
  }
  std::string chunk = buffer_.substr(line_end + 2, size);
  buffer_.erase(0, whole);
  return chunk;
}

bool TlsSocket::write(std::string_view bytes) {
  return !cut_ && (bytes.empty() || SSL_write(ssl_, bytes.data(), static_cast<int>(bytes.size())) > 0);
}

bool TlsSocket::write_chunk(std::string_view bytes) {
  std::array<char, 20> size{};
  const int digits = std::snprintf(size.data(), size.size(), "%zx\r\n", bytes.size());
  std::string frame(size.data(), static_cast<std::size_t>(digits));
  frame.append(bytes).append("\r\n");
  return write(frame);
}

bool TlsSocket::wait_readable_or_ended(TlsSocket& other) {
  if (!buffer_.empty() || SSL_pending(ssl_) > 0) return true;
  std::array<pollfd, 2> both{{{fd_, POLLIN, 0}, {other.fd_, POLLIN | POLLRDHUP, 0}}};
  ::poll(both.data(), both.size(), -1);
  return both[1].revents == 0;
}

void TlsSocket::cut() {
  const std::lock_guard lock(closing_);
  cut_ = true;
  if (fd_ < 0) return;
  const linger hard{1, 0};
  ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
  ::shutdown(fd_, SHUT_RD);
}

}  // namespace troupe::rig
