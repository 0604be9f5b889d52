// A small HTTP/1.1 server whose every answer a test writes itself, down to the bytes: for what no
// well-behaved server does. Plain or TLS, one thread per connection.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

struct ssl_st;
struct ssl_ctx_st;

namespace troupe::testing {

struct ServedRequest {
  std::string method;
  std::string target;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
  int connection = 0;  // counts from 1
  std::string client;  // common name of the client certificate; empty: none
};

class ServedConnection {
 public:
  ServedConnection(int fd, ssl_st* tls, const std::atomic<bool>& stopping);
  ~ServedConnection();
  ServedConnection(const ServedConnection&) = delete;
  ServedConnection& operator=(const ServedConnection&) = delete;

  void send(std::string_view bytes);
  void reply(int status, std::string_view body, std::string_view extra_headers = {});
  /// Opens a chunked answer; then `chunk` for each piece, and "" for the end.
  void start_chunked(int status = 200);
  void chunk(std::string_view bytes);
  void close();
  /// Closes with a TCP reset.
  void reset();
  /// Returns when the peer has closed or reset the connection, or the server stops. True: it was a reset.
  bool wait_for_peer();
  /// False when the peer has closed or the server stops. Reads nothing.
  [[nodiscard]] bool peer_is_there() const;
  /// Answers nothing more itself: copies bytes to and from 127.0.0.1:port until one side closes.
  void tunnel(int port);
  /// Blocks until the server stops or the peer has gone.
  void hold() { wait_for_peer(); }
  [[nodiscard]] bool open() const { return fd_ >= 0; }

  bool read_request(ServedRequest& request);

 private:
  long read_some();

  int fd_;
  ssl_st* tls_;
  const std::atomic<bool>& stopping_;
  std::string buffer_;
};

struct TlsFiles {
  std::string certificate;
  std::string key;
  std::string client_ca;  // empty: no client certificate is asked for
};

class ScriptedServer {
 public:
  using Handler = std::function<void(ServedConnection&, const ServedRequest&)>;

  explicit ScriptedServer(Handler handler, const TlsFiles& tls = {});
  ~ScriptedServer();
  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;

  [[nodiscard]] int port() const { return port_; }
  [[nodiscard]] std::string url() const;
  [[nodiscard]] int connections() const { return connections_; }
  [[nodiscard]] int requests() const { return requests_; }
  /// The cause of the last TLS handshake that failed; empty: none.
  [[nodiscard]] std::string handshake_error() const;

 private:
  void accept_loop();
  void serve(int fd, int number);

  Handler handler_;
  ssl_ctx_st* context_ = nullptr;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<bool> stopping_{false};
  std::atomic<int> connections_{0};
  std::atomic<int> requests_{0};
  mutable std::mutex mutex_;
  std::list<std::thread> threads_;
  std::string handshake_error_;
  std::thread acceptor_;
};

/// A temporary directory, removed at the end.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  [[nodiscard]] std::string file(std::string_view name) const { return path_ + "/" + std::string(name); }
  [[nodiscard]] const std::string& path() const { return path_; }
  std::string write(std::string_view name, std::string_view text) const;

 private:
  std::string path_;
};

std::string read_file(const std::string& path);

/// A CA with what it signs, made by the openssl program.
class TestCa {
 public:
  /// `name`: common name of the CA; files are put into `dir`.
  TestCa(const TempDir& dir, std::string name);
  /// Signs a certificate with subjectAltName `san` (e.g. "IP:127.0.0.1,DNS:api.test"); returns its files.
  TlsFiles issue(const std::string& common_name, const std::string& san) const;
  [[nodiscard]] std::string certificate_file() const;
  [[nodiscard]] std::string pem() const { return read_file(certificate_file()); }

 private:
  const TempDir& dir_;
  std::string name_;
};

/// Waits until `condition` holds; false after `seconds`.
bool eventually(const std::function<bool()>& condition, int seconds = 20);

}  // namespace troupe::testing
