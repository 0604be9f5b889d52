#include "integration/bench/e2e/e2e.hpp"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <map>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "integration/kube/objects.hpp"
#include "integration/kube/rig.hpp"

namespace troupe::bench {

namespace {

using namespace std::chrono_literals;
using rig::Json;
using rig::KubeRig;
using rig::Process;
using Line = nlohmann::ordered_json;

constexpr const char* space = "e2e";
constexpr const char* node_prefix = "node-";
constexpr const char* scheduler_name = "e2e-scheduler";
constexpr auto ready_limit = 60s;
constexpr auto run_limit = 20min;

void print(const Line& line) {
  std::puts(line.dump().c_str());
  std::fflush(stdout);
}

struct Measurement {
  double to_last_bind = 0;   // seconds from the first bind seen
  double to_last_event = 0;  // the same; 0 for a contender that posts none
  double cpu_seconds = 0;    // of the contender
  std::size_t rss_bytes = 0;
  double apiserver_cpu_seconds = 0;  // with etcd
  int events = 0;
};

std::vector<Json> json_lines(const std::string& text) {
  std::vector<Json> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(Json::parse(line));
  return lines;
}

Process start_trouped(KubeRig& rig, const std::string& program) {
  const int port = rig::free_port();
  const auto store = rig.scratch("store");
  const auto config = rig.scratch("troupe.yaml");
  rig::write_file(config,
                  "apiVersion: config.troupe.dev/v1alpha1\n"
                  "kind: TroupeConfiguration\n"
                  "clientConnection: {kubeconfig: \"" +
                      rig.troupe_kubeconfig().string() +
                      "\"}\n"
                      "schedulerNames: [" +
                      std::string(scheduler_name) +
                      "]\n"
                      "store: {path: \"" +
                      store.string() +
                      "\"}\n"
                      "http: {port: " +
                      std::to_string(port) +
                      "}\n"
                      "leaderElection: {leaderElect: false}\n");
  return Process({{program, "--config=" + config.string()}, {}, rig.scratch("trouped.log"), {}});
}

Process start_peer(KubeRig& rig, const std::string& command) {
  return Process(
      {{(rig.programs() / "peer").string(), command, "--kubeconfig=" + rig.admin_kubeconfig().string(),
        std::string("--namespace=") + space, std::string("--scheduler=") + scheduler_name},
       {},
       rig.scratch(command + ".log"),
       rig.scratch(command + ".out")});
}

Process start(KubeRig& rig, const std::string& contender, const std::string& trouped) {
  if (contender == "troupe") return start_trouped(rig, trouped);
  if (contender == "kube-scheduler") return rig.start_scheduler({.name = scheduler_name});
  return start_peer(rig, contender);
}

Measurement measure(const std::string& contender, const E2eOptions& options, const std::string& trouped) {
  KubeRig rig;
  if (rig.external()) throw std::runtime_error("unset TROUPE_TEST_KUBECONFIG: e2e measures a rig of its own");
  rig.troupe_access();
  rig::peer(rig, {"create-nodes", std::string("--prefix=") + node_prefix,
                  "--count=" + std::to_string(options.nodes), "--cpu=32", "--memory=128Gi"});
  rig.admin().create("/api/v1/namespaces",
                     {{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", space}}}});
  rig::peer(rig, {"create-pods", std::string("--namespace=") + space, "--prefix=pod-",
                  "--count=" + std::to_string(options.pods), "--cpu=100m", "--memory=64Mi",
                  std::string("--scheduler=") + scheduler_name});

  const bool posts_events = contender != "bind-loop";
  const auto out = rig.scratch("observe.out");
  // kube-scheduler drops events when its queue is full: what it has posted is waited for, not a number.
  Process observer(
      {{(rig.programs() / "peer").string(), "observe", "--kubeconfig=" + rig.admin_kubeconfig().string(),
        std::string("--namespace=") + space, "--count=" + std::to_string(options.pods),
        "--events=" + std::to_string(posts_events ? options.pods : 0),
        contender == "kube-scheduler" ? "--idle=15s" : "--idle=0s"},
       {},
       rig.scratch("observe.log"),
       out});
  if (!rig::wait_until([&] { return rig::read_file(out).find("ready") != std::string::npos; }, ready_limit)) {
    throw std::runtime_error("the observer does not start: " + observer.log_tail());
  }

  const double apiserver_before = rig.apiserver_cpu_seconds();
  Process process = start(rig, contender, trouped);
  Measurement measured;
  const bool done = rig::wait_until(
      [&] {
        measured.rss_bytes = std::max(measured.rss_bytes, process.peak_resident_bytes());
        const bool serves = contender == "troupe" || contender == "kube-scheduler";
        return !observer.running() || (serves && !process.running());
      },
      run_limit);
  measured.cpu_seconds = process.cpu_seconds();
  measured.apiserver_cpu_seconds = rig.apiserver_cpu_seconds() - apiserver_before;
  const auto lines = json_lines(rig::read_file(out));
  if (!done || lines.size() < 2) {
    throw std::runtime_error(contender + " did not bind all pods: " + observer.log_tail() +
                             process.log_tail());
  }
  const auto& seen = lines.back();
  measured.to_last_bind = seen.at("bind_seconds");
  measured.events = seen.at("events");
  if (posts_events) measured.to_last_event = seen.at("to_last_event_seconds");
  if (contender == "troupe" && measured.events != options.pods) {
    throw std::runtime_error("Troupe posted " + std::to_string(measured.events) + " events for " +
                             std::to_string(options.pods) + " pods");
  }
  return measured;
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const auto half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

Line line_of(const std::string& contender, const E2eOptions& options) {
  return {{"bench", "e2e"}, {"contender", contender}, {"nodes", options.nodes}, {"pods", options.pods}};
}

struct Medians {
  double binds_per_s = 0;
  double pods_per_s_to_event = 0;
};

Medians summarise(const std::string& contender, const E2eOptions& options,
                  const std::vector<Measurement>& all, const std::map<std::string, Medians>& others) {
  const double pods = options.pods;
  std::vector<double> binds;
  std::vector<double> events;
  std::vector<double> cpu;
  std::size_t rss = 0;
  for (const auto& one : all) {
    binds.push_back(pods / one.to_last_bind);
    if (one.to_last_event > 0) events.push_back(pods / one.to_last_event);
    cpu.push_back(one.cpu_seconds * 1e6 / pods);
    rss = std::max(rss, one.rss_bytes);
  }
  const Medians medians{median(binds), median(events)};
  auto line = line_of(contender, options);
  line["rounds"] = all.size();
  line["pods_per_s"] = medians.binds_per_s;
  if (!events.empty()) line["pods_per_s_to_last_event"] = medians.pods_per_s_to_event;
  line["cpu_us_per_pod"] = median(cpu);
  line["cpu_us_per_request"] = median(cpu) / (events.empty() ? 1 : 2);
  line["rss_bytes"] = rss;
  const auto ratio = [&](const char* name, const char* other, double Medians::*value) {
    const auto found = others.find(other);
    if (found != others.end() && found->second.*value > 0)
      line[name] = medians.*value / (found->second.*value);
  };
  ratio("ratio_to_bind_loop", "bind-loop", &Medians::binds_per_s);
  ratio("ratio_to_bind_event_loop", "bind-event-loop", &Medians::pods_per_s_to_event);
  ratio("ratio_to_kube_scheduler_bind", "kube-scheduler", &Medians::binds_per_s);
  ratio("ratio_to_kube_scheduler_event", "kube-scheduler", &Medians::pods_per_s_to_event);
  line["summary"] = true;
  print(line);
  return medians;
}

void bind_to_two_cores() {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(0, &cpus);
  CPU_SET(1, &cpus);
  if (::sched_setaffinity(0, sizeof cpus, &cpus) != 0)
    throw std::runtime_error("CPUs 0 and 1 cannot be used");
}

}  // namespace

int e2e(const E2eOptions& options) {
  int code = 0;
  try {
    if (const auto why = rig::unavailable(); !why.empty()) throw std::runtime_error(why);
    if (options.two_cores) bind_to_two_cores();
    const auto trouped =
        options.trouped.empty()
            ? (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "trouped").string()
            : options.trouped;
    std::map<std::string, std::vector<Measurement>> all;
    for (int round = 1; round <= options.rounds; ++round) {
      for (const auto& contender : options.contenders) {
        std::fprintf(stderr, "e2e: round %d of %d, %s\n", round, options.rounds, contender.c_str());
        const auto measured = measure(contender, options, trouped);
        all[contender].push_back(measured);
        auto line = line_of(contender, options);
        line["round"] = round;
        line["seconds"] = measured.to_last_bind;
        line["pods_per_s"] = options.pods / measured.to_last_bind;
        if (measured.to_last_event > 0) line["seconds_to_last_event"] = measured.to_last_event;
        line["events"] = measured.events;
        line["cpu_us_per_pod"] = measured.cpu_seconds * 1e6 / options.pods;
        line["apiserver_cpu_us_per_pod"] = measured.apiserver_cpu_seconds * 1e6 / options.pods;
        line["rss_bytes"] = measured.rss_bytes;
        print(line);
      }
    }
    // Troupe last: its line compares with all others.
    std::map<std::string, Medians> medians;
    for (const auto& [contender, measurements] : all) {
      if (contender != "troupe") medians[contender] = summarise(contender, options, measurements, {});
    }
    if (const auto troupe = all.find("troupe"); troupe != all.end()) {
      summarise("troupe", options, troupe->second, medians);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "e2e: %s\n", error.what());
    code = 1;
  }
  return code;
}

}  // namespace troupe::bench
