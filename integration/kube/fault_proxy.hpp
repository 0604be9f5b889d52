// A proxy between a client and the API server that breaks things on demand: requests lost before or after
// they took effect, slow or refused ones, watches cut in the middle of a line. It ends TLS with the rig's
// certificate and talks to the API server on a connection per request, so that nothing is ever sent twice by
// the proxy itself. Clients behind it authenticate with a bearer token; a client certificate does not pass
// through.
#pragma once

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "integration/kube/rig.hpp"

namespace troupe::rig {

struct ProxyRequest {
  std::string method;
  std::string target;  // path and query as sent
  std::string body;
  [[nodiscard]] bool watch() const;
};

enum class Fault {
  none,           // only the hooks
  cut_before,     // closed hard, not forwarded
  cut_after,      // forwarded, its answer dropped, closed hard: applied, but unanswered
  delay_before,   // forwarded after `delay`
  delay_after,    // forwarded at once, answered after `delay`
  answer_before,  // answered with status, headers and body; not forwarded
  answer_after,   // forwarded, its answer replaced by status, headers and body
  stall_before,   // neither forwarded nor answered while the rule exists; then cut
  stall_after,    // forwarded, not answered while the rule exists; then cut
  // Of a watch: `lines` lines pass, and then
  cut_stream,   // it is closed hard
  half_line,    // half of the next line passes, and it is closed hard
  last_line,    // `body` is sent as one more line, and it ends in order
  stall_stream  // nothing passes while the rule exists; then cut
};

struct FaultRule {
  std::string method = {};  // empty: any
  std::string path = {};    // must occur in the target; empty: any
  int skip = 0;             // matching requests that pass unharmed first
  int times = 1;            // how many it strikes; -1: every one
  Fault fault = Fault::none;
  std::chrono::milliseconds delay{0};
  int status = 0;
  std::map<std::string, std::string> headers = {};
  std::string body = {};
  int lines = 0;
  /// Run on the connection's thread when the request has arrived, and when the API server has answered it.
  std::function<void(const ProxyRequest&)> on_request = {};
  std::function<void(const ProxyRequest&)> on_answer = {};
};

/// One request as the proxy saw it.
struct SeenRequest {
  ProxyRequest request;
  int upstream_status = 0;  // what the API server answered; 0: not forwarded, or no answer
  int status = 0;           // what the client got; 0: nothing
};

class FaultProxy {
 public:
  explicit FaultProxy(KubeRig& rig);
  FaultProxy(const FaultProxy&) = delete;
  FaultProxy& operator=(const FaultProxy&) = delete;
  ~FaultProxy();

  [[nodiscard]] std::string url() const;
  /// For Troupe's service account, through this proxy.
  [[nodiscard]] std::filesystem::path kubeconfig();
  /// Access with the token of Troupe's service account, through this proxy.
  [[nodiscard]] KubeAccess access();

  /// Adds a rule; of several that match a request the one added first strikes.
  void add(FaultRule rule);
  /// Removes all rules and ends what they hold.
  void clear();
  /// How often rules have struck since the last clear().
  [[nodiscard]] int struck() const;

  /// Closes every open connection hard.
  void cut_all();
  /// Stops listening, as a server that is down, and cuts; `listen` goes on at the same address.
  void refuse();
  void listen();

  [[nodiscard]] std::vector<SeenRequest> seen() const;
  /// How many requests with this method (empty: any) and text in their target have arrived.
  [[nodiscard]] int count(std::string_view method, std::string_view path) const;
  bool wait_count(std::string_view method, std::string_view path, int count,
                  std::chrono::milliseconds limit = std::chrono::seconds(30)) const;

 private:
  struct Connection;
  struct ActiveRule {
    FaultRule rule;
    int matched = 0;
    int generation = 0;
  };

  void accept_loop(int listener);
  void serve(Connection& connection);
  bool handle(Connection& connection, const ProxyRequest& request, std::size_t index,
              const std::vector<std::pair<std::string, std::string>>& headers);
  bool relay_watch(Connection& connection, Connection& upstream, const std::string& head,
                   const FaultRule& rule, int generation);
  FaultRule strike(const ProxyRequest& request, int& generation);
  std::size_t record(const ProxyRequest& request);
  void set_status(std::size_t index, int upstream, int status);
  void hold(Connection& connection, int generation);
  void reap();

  KubeRig& rig_;
  std::string upstream_host_;
  int upstream_port_ = 443;
  int port_ = 0;
  std::shared_ptr<void> server_context_;  // SSL_CTX
  std::shared_ptr<void> client_context_;

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::vector<ActiveRule> rules_;
  int generation_ = 0;  // raised by clear(): what older rules hold ends
  int struck_ = 0;
  bool stopping_ = false;
  std::vector<SeenRequest> seen_;
  std::vector<std::unique_ptr<Connection>> connections_;

  int listener_ = -1;
  std::thread acceptor_;
};

}  // namespace troupe::rig
