#include "ops/daemon/daemon.hpp"

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <future>
#include <memory>
#include <random>

#include "k8s-bridge/kube_cluster.hpp"
#include "k8s-bridge/kubeconfig/api_server.hpp"
#include "k8s-bridge/review/access.hpp"
#include "messages/fb/intent_generated.h"
#include "ops/api/api.hpp"
#include "ops/daemon/signals.hpp"
#include "ops/http/server.hpp"
#include "ops/log/log.hpp"
#include "ops/service/service.hpp"
#include "ops/version.hpp"

namespace troupe {
namespace {

constexpr std::chrono::seconds kReviewLimit{10};

std::string host_name() {
  char name[256] = {};
  gethostname(name, sizeof(name) - 1);
  return name;
}

std::string random_uuid() {
  std::random_device device;
  const auto half = [&] { return (std::uint64_t{device()} << 32U) | device(); };
  return PodUid{half(), half()}.text();
}

KubeClusterOptions cluster_options(const DaemonOptions& options, ApiServer server) {
  static const Log bridge("bridge");
  KubeClusterOptions out;
  out.server = std::move(server);
  out.http.connections = options.connections;
  out.http.user_agent = std::string("troupe/") + kVersion;
  out.executor.concurrency = options.connections;
  out.executor.background_concurrency = std::max(1, options.connections / 2);
  out.executor.qps = options.qps;
  out.executor.burst = options.burst;
  out.executor.background_qps = options.background_qps;
  out.executor.background_burst = options.background_burst;
  out.executor.host_name = host_name();
  out.executor.dry_run = options.dry_run;
  out.component = options.scheduler_names.front();
  out.note = [](const std::string& line) { bridge.info(line); };
  if (options.dry_run) {
    out.would = [](const Message& message) {
      const auto& intent = message.as<fb::Intent>();
      bridge.info("would " + std::string(fb::EnumNameIntentKind(intent.kind())),
                  {{"pod", std::string(text(intent.namespace_())) + "/" + std::string(text(intent.name()))},
                   {"node", std::string(text(intent.node()))}});
    };
  }
  // A dry run decides beside the scheduler that holds the lease.
  if (options.leader_elect && !options.dry_run) {
    LeaseOptions lease;
    lease.identity = host_name() + "_" + random_uuid();
    lease.name_space = options.lease_namespace;
    lease.name = options.lease_name;
    lease.lease_duration_ms = options.lease_duration_ms;
    lease.renew_deadline_ms = options.renew_deadline_ms;
    lease.retry_period_ms = options.retry_period_ms;
    lease.seed = std::random_device{}();
    out.lease = lease;
  }
  return out;
}

int status_of(Access access) {
  switch (access) {
    case Access::allowed:
      return 200;
    case Access::unauthenticated:
      return 401;
    case Access::forbidden:
      return 403;
    case Access::unavailable:
      break;
  }
  return 503;
}

int complain(const Error& error) {
  Log("trouped").error(error.text());
  flush_logging();
  return error.code == ErrorCode::invalid ? 2 : 1;
}

}  // namespace

int run_daemon(const DaemonOptions& options) {
  const Log log("trouped");
  // Before any thread exists: every thread inherits the mask, and only wait_for_end takes the signals.
  EndSignals signals;

  auto api_server = find_api_server({.kubeconfig = options.kubeconfig, .context = options.context});
  if (!api_server) return complain(api_server.error());
  auto review_client =
      make_http_client(*api_server, {.connections = 4, .user_agent = std::string("troupe/") + kVersion});
  if (!review_client) return complain(review_client.error());
  const std::unique_ptr<Timers> timers = make_timers();
  AccessReviewer reviewer(**review_client, *timers);

  auto cluster = KubeCluster::make(cluster_options(options, *api_server));
  if (!cluster) return complain(cluster.error());

  ServiceOptions service_options;
  service_options.store.path = options.store_path;
  service_options.store.discard_and_rebuild = options.rebuild_from_apiserver;
  service_options.threads = options.threads;
  service_options.seed = options.seed != 0 ? options.seed : std::random_device{}();
  service_options.scheduler_names = options.scheduler_names;
  Service service(std::move(service_options), std::move(*cluster),
                  [&signals](const Error&) { signals.end(1); });

  HttpServerOptions http;
  http.host = options.http_address;
  http.port = options.http_port;
  http.tls_certificate_file = options.tls_certificate_file;
  http.tls_key_file = options.tls_key_file;
  http.authorize = [&reviewer](std::string_view token, std::string_view method, std::string_view path) {
    auto answer = std::make_shared<std::promise<int>>();
    std::string verb = method == "GET" || method == "HEAD" ? "get" : "update";
    reviewer.review(std::string(token), verb, std::string(path), [answer](const AccessDecision& decision) {
      answer->set_value(status_of(decision.access));
    });
    std::future<int> status = answer->get_future();
    return status.wait_for(kReviewLimit) == std::future_status::ready ? status.get() : 503;
  };
  const std::unique_ptr<HttpServer> server = make_http_server(std::move(http));
  register_api(*server, service, options.scheduler_names.front());
  if (auto started = server->start(); !started) return complain(started.error());
  log.info("serving", {{"address", options.http_address + ":" + std::to_string(options.http_port)},
                       {"version", kVersion}});

  if (auto started = service.start(); !started) {
    server->stop();
    return complain(started.error());
  }
  const int code = signals.wait();
  service.stop();
  server->stop();
  log.info("ended", {{"code", std::to_string(code)}});
  flush_logging();
  // After a failed write nothing may be written on the way out.
  if (code != 0) std::_Exit(code);
  return code;
}

}  // namespace troupe
