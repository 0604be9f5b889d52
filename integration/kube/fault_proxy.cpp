#include "integration/kube/fault_proxy.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "integration/kube/http_wire.hpp"

namespace troupe::rig {

namespace {

std::shared_ptr<SSL_CTX> make_context(const SSL_METHOD* method) {
  std::shared_ptr<SSL_CTX> context(SSL_CTX_new(method), SSL_CTX_free);
  if (!context) throw std::runtime_error("SSL_CTX_new failed");
  return context;
}

int listen_on(int port, int* chosen) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  socklen_t size = sizeof address;
  if (::bind(fd, generic, size) != 0 || ::listen(fd, 128) != 0 || ::getsockname(fd, generic, &size) != 0) {
    const std::string why = std::strerror(errno);
    ::close(fd);
    throw std::runtime_error("the fault proxy cannot listen on port " + std::to_string(port) + ": " + why);
  }
  *chosen = ntohs(address.sin_port);
  return fd;
}

int connect_to(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) return -1;
  int fd = -1;
  for (const addrinfo* at = found; at != nullptr && fd < 0; at = at->ai_next) {
    fd = ::socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, at->ai_protocol);
    if (fd >= 0 && ::connect(fd, at->ai_addr, at->ai_addrlen) != 0) {
      ::close(fd);
      fd = -1;
    }
  }
  ::freeaddrinfo(found);
  return fd;
}

void send_at_once(int fd) {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

// "HTTP/1.1 200 OK" -> 200
int status_of(const std::string& start_line) {
  int status = 0;
  if (const auto space = start_line.find(' '); space != std::string::npos) {
    std::from_chars(start_line.data() + space + 1, start_line.data() + start_line.size(), status);
  }
  return status;
}

// A head with the headers that still hold after the proxy has framed the body itself.
std::string head_text(const Head& head, std::string_view framing) {
  std::string text = head.start_line + "\r\n";
  for (const auto& [key, value] : head.headers) {
    const Headers one = {{key, value}};
    const bool framed = !header(one, "transfer-encoding").empty() || !header(one, "content-length").empty() ||
                        !header(one, "connection").empty() || !header(one, "expect").empty();
    if (!framed) text += key + ": " + value + "\r\n";
  }
  return text.append(framing).append("\r\n\r\n");
}

std::string content_length(const std::string& body) {
  return "Content-Length: " + std::to_string(body.size());
}

}  // namespace

bool ProxyRequest::watch() const {
  return target.find("watch=true") != std::string::npos || target.find("watch=1") != std::string::npos;
}

struct FaultProxy::Connection {
  Connection(int fd, SSL_CTX* context, bool server, const std::string& name)
      : socket(fd, context, server, name) {}
  TlsSocket socket;
  std::thread thread;
  std::atomic<bool> done{false};
  std::atomic<bool> cut{false};
};

FaultProxy::FaultProxy(KubeRig& rig) : rig_(rig) {
  ::signal(SIGPIPE, SIG_IGN);  // a client may be gone before its answer
  auto url = rig_.troupe_access().url;
  if (!url.starts_with("https://"))
    throw std::runtime_error("the fault proxy needs an https API server: " + url);
  url.erase(0, std::strlen("https://"));
  url.erase(std::min(url.find('/'), url.size()));
  if (const auto colon = url.rfind(':'); colon != std::string::npos) {
    upstream_port_ = std::stoi(url.substr(colon + 1));
    url.erase(colon);
  }
  upstream_host_ = url;

  auto served = make_context(TLS_server_method());
  if (SSL_CTX_use_certificate_chain_file(served.get(), rig_.server_certificate().c_str()) != 1 ||
      SSL_CTX_use_PrivateKey_file(served.get(), rig_.server_key().c_str(), SSL_FILETYPE_PEM) != 1) {
    throw std::runtime_error("the fault proxy cannot read " + rig_.server_certificate().string());
  }
  server_context_ = served;
  auto asking = make_context(TLS_client_method());
  SSL_CTX_set_verify(asking.get(), SSL_VERIFY_PEER, nullptr);
  if (const auto& ca = rig_.troupe_access().ca; ca.empty()) {
    SSL_CTX_set_default_verify_paths(asking.get());
  } else if (SSL_CTX_load_verify_locations(asking.get(), ca.c_str(), nullptr) != 1) {
    throw std::runtime_error("the fault proxy cannot read " + ca.string());
  }
  client_context_ = asking;
  listen();
}

FaultProxy::~FaultProxy() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    ++generation_;
  }
  changed_.notify_all();
  refuse();
  for (const auto& connection : connections_) connection->thread.join();
}

std::string FaultProxy::url() const {
  return "https://127.0.0.1:" + std::to_string(port_);
}

std::filesystem::path FaultProxy::kubeconfig() {
  return rig_.troupe_kubeconfig(url(), rig_.ca());
}

KubeAccess FaultProxy::access() {
  auto access = rig_.troupe_access();
  access.url = url();
  access.ca = rig_.ca();
  return access;
}

void FaultProxy::add(FaultRule rule) {
  const std::lock_guard lock(mutex_);
  rules_.push_back({std::move(rule), 0, generation_});
}

void FaultProxy::clear() {
  {
    const std::lock_guard lock(mutex_);
    rules_.clear();
    ++generation_;
    struck_ = 0;
  }
  changed_.notify_all();
}

int FaultProxy::struck() const {
  const std::lock_guard lock(mutex_);
  return struck_;
}

void FaultProxy::cut_all() {
  {
    const std::lock_guard lock(mutex_);
    for (const auto& connection : connections_) {
      if (connection->done) continue;
      connection->cut = true;
      connection->socket.cut();
    }
  }
  changed_.notify_all();
}

void FaultProxy::refuse() {
  if (acceptor_.joinable()) {
    ::shutdown(listener_, SHUT_RDWR);
    acceptor_.join();
    ::close(listener_);
  }
  cut_all();
}

void FaultProxy::listen() {
  if (acceptor_.joinable()) return;
  listener_ = listen_on(port_, &port_);
  acceptor_ = std::thread([this, fd = listener_] { accept_loop(fd); });
}

std::vector<SeenRequest> FaultProxy::seen() const {
  const std::lock_guard lock(mutex_);
  return seen_;
}

int FaultProxy::count(std::string_view method, std::string_view path) const {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(std::count_if(seen_.begin(), seen_.end(), [&](const SeenRequest& seen) {
    return (method.empty() || seen.request.method == method) &&
           seen.request.target.find(path) != std::string::npos;
  }));
}

bool FaultProxy::wait_count(std::string_view method, std::string_view path, int wanted,
                            std::chrono::milliseconds limit) const {
  return wait_until([&] { return count(method, path) >= wanted; }, limit);
}

void FaultProxy::reap() {
  const std::lock_guard lock(mutex_);
  std::erase_if(connections_, [](const auto& connection) {
    if (!connection->done) return false;
    connection->thread.join();
    return true;
  });
}

void FaultProxy::accept_loop(int listener) {
  while (true) {
    const int fd = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      return;  // shut down by refuse()
    }
    send_at_once(fd);
    reap();
    auto connection =
        std::make_unique<Connection>(fd, static_cast<SSL_CTX*>(server_context_.get()), true, std::string());
    auto* serving = connection.get();
    const std::lock_guard lock(mutex_);
    connections_.push_back(std::move(connection));
    serving->thread = std::thread([this, serving] { serve(*serving); });
  }
}

void FaultProxy::serve(Connection& connection) {
  bool open = connection.socket.handshake();
  while (open) {
    auto head = connection.socket.read_head();
    if (!head) break;
    auto body = connection.socket.read_body(head->headers, false);
    if (!body) break;
    ProxyRequest request;
    request.method = head->start_line.substr(0, head->start_line.find(' '));
    const auto target = request.method.size() + 1;
    request.target = head->start_line.substr(target, head->start_line.find(' ', target) - target);
    request.body = std::move(*body);
    const auto index = record(request);
    open = handle(connection, request, index, head->headers);
  }
  connection.socket.finish();
  connection.done = true;
}

FaultRule FaultProxy::strike(const ProxyRequest& request, int& generation) {
  const std::lock_guard lock(mutex_);
  generation = generation_;
  for (auto& active : rules_) {
    const auto& rule = active.rule;
    if (!rule.method.empty() && rule.method != request.method) continue;
    if (request.target.find(rule.path) == std::string::npos) continue;
    const int nth = active.matched++;
    if (nth < rule.skip || (rule.times >= 0 && nth >= rule.skip + rule.times)) continue;
    ++struck_;
    return rule;
  }
  return {};
}

std::size_t FaultProxy::record(const ProxyRequest& request) {
  const std::lock_guard lock(mutex_);
  seen_.push_back({request, 0, 0});
  return seen_.size() - 1;
}

void FaultProxy::set_status(std::size_t index, int upstream, int status) {
  const std::lock_guard lock(mutex_);
  seen_[index].upstream_status = upstream;
  seen_[index].status = status;
}

// Until clear(), a cut, or the end.
void FaultProxy::hold(Connection& connection, int generation) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return stopping_ || generation_ != generation || connection.cut; });
}

bool FaultProxy::handle(Connection& connection, const ProxyRequest& request, std::size_t index,
                        const Headers& headers) {
  int generation = 0;
  const auto rule = strike(request, generation);
  auto& client = connection.socket;
  const auto cut = [&] {
    client.cut();
    return false;
  };
  const auto wait = [&] {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, rule.delay, [&] { return stopping_ || connection.cut; });
  };
  const auto answer = [&](int upstream_status) {
    Head head{"HTTP/1.1 " + std::to_string(rule.status) + " Fault", {{"Content-Type", "application/json"}}};
    head.headers.insert(head.headers.end(), rule.headers.begin(), rule.headers.end());
    set_status(index, upstream_status, rule.status);
    return client.write(head_text(head, content_length(rule.body)) + rule.body);
  };

  if (rule.on_request) rule.on_request(request);
  if (rule.fault == Fault::cut_before) return cut();
  if (rule.fault == Fault::answer_before) return answer(0);
  if (rule.fault == Fault::delay_before) wait();
  if (rule.fault == Fault::stall_before) {
    hold(connection, generation);
    return cut();
  }

  const int fd = connect_to(upstream_host_, upstream_port_);
  if (fd < 0) return cut();
  send_at_once(fd);
  Connection upstream(fd, static_cast<SSL_CTX*>(client_context_.get()), false, upstream_host_);
  const Head forwarded{request.method + " " + request.target + " HTTP/1.1", headers};
  if (!upstream.socket.handshake() ||
      !upstream.socket.write(head_text(forwarded, content_length(request.body) + "\r\nConnection: close") +
                             request.body)) {
    return cut();
  }
  const auto head = upstream.socket.read_head();
  if (!head) return cut();
  const int status = status_of(head->start_line);
  set_status(index, status, 0);
  if (request.watch() && status == 200) {
    if (rule.on_answer) rule.on_answer(request);
    set_status(index, status, status);
    return relay_watch(connection, upstream, head_text(*head, "Transfer-Encoding: chunked"), rule,
                       generation);
  }
  const auto body = upstream.socket.read_body(head->headers, true);
  if (!body) return cut();
  if (rule.on_answer) rule.on_answer(request);
  if (rule.fault == Fault::cut_after) return cut();
  if (rule.fault == Fault::answer_after) return answer(status);
  if (rule.fault == Fault::delay_after) wait();
  if (rule.fault == Fault::stall_after) {
    hold(connection, generation);
    return cut();
  }
  set_status(index, status, status);
  return client.write(head_text(*head, content_length(*body)) + *body);
}

bool FaultProxy::relay_watch(Connection& connection, Connection& upstream, const std::string& head,
                             const FaultRule& rule, int generation) {
  auto& client = connection.socket;
  const auto cut = [&] {
    client.cut();
    return false;
  };
  const bool counts = rule.fault == Fault::cut_stream || rule.fault == Fault::half_line ||
                      rule.fault == Fault::last_line || rule.fault == Fault::stall_stream;
  if (!client.write(head)) return false;
  std::string pending;  // of an unfinished line
  int passed = 0;
  while (true) {
    // The lines of a chunk pass one by one as far as the rule lets them.
    std::size_t end = 0;
    while ((end = pending.find('\n')) != std::string::npos || (counts && passed == rule.lines)) {
      if (counts && passed == rule.lines) {
        if (rule.fault == Fault::cut_stream) return cut();
        if (rule.fault == Fault::last_line) {
          return client.write_chunk(rule.body + "\n") && client.write_chunk({});
        }
        if (rule.fault == Fault::stall_stream) {
          hold(connection, generation);
          return cut();
        }
        if (end == std::string::npos) break;  // half_line waits for the line
        client.write_chunk(std::string_view(pending).substr(0, end / 2));
        return cut();
      }
      if (!client.write_chunk(std::string_view(pending).substr(0, end + 1))) return false;
      pending.erase(0, end + 1);
      ++passed;
    }
    if (!upstream.socket.wait_readable_or_ended(client)) return false;
    auto chunk = upstream.socket.read_chunk();
    if (!chunk) return cut();
    if (chunk->empty()) return (pending.empty() || client.write_chunk(pending)) && client.write_chunk({});
    pending += *chunk;
  }
}

}  // namespace troupe::rig
