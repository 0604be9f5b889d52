#include "integration/bridge/scripted_server.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace troupe::testing {
namespace {

constexpr int kPollMs = 20;

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

int listen_on_loopback(int& port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (fd < 0 || ::bind(fd, reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(fd, 128) != 0 ||
      ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw std::runtime_error("cannot listen on 127.0.0.1");
  }
  port = ntohs(address.sin_port);
  return fd;
}

void run(const std::string& command) {
  if (std::system(command.c_str()) != 0) throw std::runtime_error("failed: " + command);
}

}  // namespace

ServedConnection::ServedConnection(int fd, ssl_st* tls, const std::atomic<bool>& stopping)
    : fd_(fd), tls_(tls), stopping_(stopping) {}

ServedConnection::~ServedConnection() {
  close();
  SSL_free(tls_);
}

void ServedConnection::send(std::string_view bytes) {
  while (open() && !bytes.empty()) {
    const long n = tls_ != nullptr ? SSL_write(tls_, bytes.data(), static_cast<int>(bytes.size()))
                                   : ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n <= 0) return close();
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
}

void ServedConnection::reply(int status, std::string_view body, std::string_view extra_headers) {
  send("HTTP/1.1 " + std::to_string(status) + " X\r\nContent-Length: " + std::to_string(body.size()) +
       "\r\n" + std::string(extra_headers) + "\r\n" + std::string(body));
}

void ServedConnection::start_chunked(int status) {
  send("HTTP/1.1 " + std::to_string(status) + " X\r\nTransfer-Encoding: chunked\r\n\r\n");
}

void ServedConnection::chunk(std::string_view bytes) {
  std::ostringstream head;
  head << std::hex << bytes.size() << "\r\n";
  send(head.str() + std::string(bytes) + "\r\n");
}

void ServedConnection::close() {
  if (!open()) return;
  ::shutdown(fd_, SHUT_RDWR);
  ::close(fd_);
  fd_ = -1;
}

void ServedConnection::reset() {
  if (!open()) return;
  const linger hard{1, 0};
  ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
  ::close(fd_);
  fd_ = -1;
}

bool ServedConnection::wait_for_peer() {
  while (open() && !stopping_) {
    pollfd p{fd_, POLLIN, 0};
    if (::poll(&p, 1, kPollMs) <= 0) continue;
    std::array<char, 4096> sink{};
    const long n = ::recv(fd_, sink.data(), sink.size(), 0);
    if (n > 0) continue;
    bool was_reset = n < 0 && errno == ECONNRESET;
    if (n == 0) {  // a FIN; a reset may follow it
      pollfd broken{fd_, 0, 0};
      was_reset = ::poll(&broken, 1, 1000) > 0 && (broken.revents & POLLERR) != 0;
    }
    close();
    return was_reset;
  }
  return false;
}

bool ServedConnection::peer_is_there() const {
  if (!open() || stopping_) return false;
  char byte = 0;
  return ::recv(fd_, &byte, 1, MSG_PEEK | MSG_DONTWAIT) != 0;
}

void ServedConnection::tunnel(int port) {
  const int out = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  if (::connect(out, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) {
    const std::array<int, 2> ends{fd_, out};
    bool alive = true;
    while (alive && !stopping_) {
      std::array<pollfd, 2> p{pollfd{fd_, POLLIN, 0}, pollfd{out, POLLIN, 0}};
      if (::poll(p.data(), 2, kPollMs) <= 0) continue;
      for (std::size_t i = 0; i < 2 && alive; ++i) {
        if (p[i].revents == 0) continue;
        std::array<char, 16384> bytes{};
        const long n = ::recv(ends[i], bytes.data(), bytes.size(), 0);
        alive = n > 0 && ::send(ends[1 - i], bytes.data(), static_cast<std::size_t>(n), MSG_NOSIGNAL) == n;
      }
    }
  }
  ::close(out);
  close();
}

long ServedConnection::read_some() {
  std::array<char, 16384> bytes{};
  while (open() && !stopping_) {
    if (tls_ == nullptr || SSL_pending(tls_) == 0) {
      pollfd p{fd_, POLLIN, 0};
      if (::poll(&p, 1, kPollMs) <= 0) continue;
    }
    const long n = tls_ != nullptr ? SSL_read(tls_, bytes.data(), static_cast<int>(bytes.size()))
                                   : ::recv(fd_, bytes.data(), bytes.size(), 0);
    if (n > 0) buffer_.append(bytes.data(), static_cast<std::size_t>(n));
    return n;
  }
  return -1;
}

bool ServedConnection::read_request(ServedRequest& request) {
  std::size_t head_end = 0;
  while ((head_end = buffer_.find("\r\n\r\n")) == std::string::npos) {
    if (read_some() <= 0) return false;
  }
  std::istringstream head(buffer_.substr(0, head_end));
  buffer_.erase(0, head_end + 4);
  std::string version;
  head >> request.method >> request.target >> version;
  std::string line;
  std::getline(head, line);
  request.headers.clear();
  while (std::getline(head, line)) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    const auto colon = line.find(':');
    if (colon == std::string::npos) continue;
    const auto value = line.find_first_not_of(' ', colon + 1);
    request.headers[lower(line.substr(0, colon))] = value == std::string::npos ? "" : line.substr(value);
  }
  const auto length = request.headers.find("content-length");
  const std::size_t size = length == request.headers.end() ? 0 : std::stoul(length->second);
  while (buffer_.size() < size) {
    if (read_some() <= 0) return false;
  }
  request.body = buffer_.substr(0, size);
  buffer_.erase(0, size);
  return true;
}

ScriptedServer::ScriptedServer(Handler handler, const TlsFiles& tls) : handler_(std::move(handler)) {
  std::signal(SIGPIPE, SIG_IGN);  // OpenSSL writes without MSG_NOSIGNAL
  if (!tls.certificate.empty()) {
    context_ = SSL_CTX_new(TLS_server_method());
    if (SSL_CTX_use_certificate_chain_file(context_, tls.certificate.c_str()) != 1 ||
        SSL_CTX_use_PrivateKey_file(context_, tls.key.c_str(), SSL_FILETYPE_PEM) != 1) {
      throw std::runtime_error("cannot read " + tls.certificate);
    }
    if (!tls.client_ca.empty()) {
      SSL_CTX_load_verify_locations(context_, tls.client_ca.c_str(), nullptr);
      SSL_CTX_set_verify(context_, SSL_VERIFY_PEER, nullptr);
    }
  }
  listener_ = listen_on_loopback(port_);
  acceptor_ = std::thread([this] { accept_loop(); });
}

ScriptedServer::~ScriptedServer() {
  stopping_ = true;
  acceptor_.join();
  for (std::thread& thread : threads_) thread.join();
  ::close(listener_);
  SSL_CTX_free(context_);
}

std::string ScriptedServer::url() const {
  return (context_ != nullptr ? "https://127.0.0.1:" : "http://127.0.0.1:") + std::to_string(port_);
}

std::string ScriptedServer::handshake_error() const {
  const std::lock_guard lock(mutex_);
  return handshake_error_;
}

void ScriptedServer::accept_loop() {
  while (!stopping_) {
    pollfd p{listener_, POLLIN, 0};
    if (::poll(&p, 1, kPollMs) <= 0) continue;
    const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) continue;
    const int number = ++connections_;
    threads_.emplace_back([this, fd, number] { serve(fd, number); });
  }
}

void ScriptedServer::serve(int fd, int number) {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  SSL* tls = nullptr;
  std::string client;
  if (context_ != nullptr) {
    const timeval patience{10, 0};
    ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    tls = SSL_new(context_);
    SSL_set_fd(tls, fd);
    if (SSL_accept(tls) != 1) {
      const char* reason = ERR_reason_error_string(ERR_get_error());
      const std::lock_guard lock(mutex_);
      handshake_error_ = reason == nullptr ? "closed by the client" : reason;
      SSL_free(tls);
      ::close(fd);
      return;
    }
    if (X509* certificate = SSL_get1_peer_certificate(tls)) {
      std::array<char, 256> name{};
      X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, name.data(), name.size());
      client = name.data();
      X509_free(certificate);
    }
  }
  ServedConnection connection(fd, tls, stopping_);
  ServedRequest request;
  while (connection.open() && connection.read_request(request)) {
    request.connection = number;
    request.client = client;
    ++requests_;
    handler_(connection, request);
  }
}

TempDir::TempDir() {
  std::string pattern = (std::filesystem::temp_directory_path() / "troupe-bridge-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("cannot make a temporary directory");
  path_ = pattern;
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TempDir::write(std::string_view name, std::string_view text) const {
  std::ofstream(file(name), std::ios::binary) << text;
  return file(name);
}

std::string read_file(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

TestCa::TestCa(const TempDir& dir, std::string name) : dir_(dir), name_(std::move(name)) {
  run("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=" + name_ +
      " -keyout " + dir_.file(name_ + ".key") + " -out " + certificate_file() + " 2>/dev/null");
}

std::string TestCa::certificate_file() const {
  return dir_.file(name_ + ".pem");
}

TlsFiles TestCa::issue(const std::string& common_name, const std::string& san) const {
  const std::string base = dir_.file(common_name);
  const std::string extensions = dir_.write(common_name + ".ext", "subjectAltName=" + san + "\n");
  run("openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=" + common_name +
      " -keyout " + base + ".key -out " + base + ".csr 2>/dev/null");
  run("openssl x509 -req -days 2 -in " + base + ".csr -CA " + certificate_file() + " -CAkey " +
      dir_.file(name_ + ".key") + " -CAcreateserial -extfile " + extensions + " -out " + base +
      ".pem 2>/dev/null");
  return {base + ".pem", base + ".key", {}};
}

bool eventually(const std::function<bool()>& condition, int seconds) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::yield();
    ::poll(nullptr, 0, 1);
  }
  return true;
}

}  // namespace troupe::testing
