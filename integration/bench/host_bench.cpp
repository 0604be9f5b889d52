// What the host costs: turns that put two values of 200 bytes and answer, alone and through CAF and RocksDB,
// and the restoration of a full store. TROUPE_BENCH_DIR names a folder on the disk to be measured (default:
// here).

#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <semaphore>
#include <string>
#include <vector>

#include "actors/host/runtime.hpp"
#include "store/store.hpp"

namespace troupe {
namespace {

constexpr std::uint32_t kPartitions = 32;
constexpr std::size_t kNodes = 5000;
constexpr std::size_t kBatch = 2000;
constexpr std::size_t kNameBytes = 16;

std::string node_name(std::size_t i) {
  std::string number = std::to_string(i);
  return "worker-node-" + std::string(4 - number.size(), '0') + number;
}

/// One instance per node. A message to the partition is names of 16 bytes, one part each.
class Writer {
 public:
  static constexpr ActorKind kind = ActorKind::node;
  static constexpr std::array families = {Family::ledger};
  static constexpr bool streams = false;
  struct Shared : PartitionShared {};

  Writer(std::string key, Shared&) : key_(std::move(key)), value_(200, 'v') {}
  static void split(const Message& message, PartSink& sink) {
    const std::string_view names = message.bytes().view();
    for (std::uint32_t i = 0; i * kNameBytes < names.size(); ++i) {
      sink.part(names.substr(i * kNameBytes, kNameBytes), i);
    }
  }
  void on(const Message&, Turn&) {}
  void on_part(const Message& message, std::uint32_t index, Turn& turn) {
    const std::string id = encode_u64(turn.new_intent_id());
    ledger_key_.assign(key_).append("/").append(id);
    turn.put(Family::ledger, ledger_key_, value_);
    turn.put(Family::journal, id, value_);
    turn.reply(Message(Kind::self, Bytes(message.bytes().span().subspan(index * kNameBytes, kNameBytes))));
  }
  void refuse_part(const Message&, std::uint32_t, Turn&) {}
  static std::string_view instance_of(Family, std::string_view key, std::string_view) {
    return key.substr(0, kNameBytes);
  }
  static std::string prefix_of(Family, std::string_view instance) { return std::string(instance); }
  void restore_entry(Family, std::string_view, std::string_view value) { restored_ += value.size(); }
  void restored(Turn&) {}
  void describe(CopySink&) const {}
  [[nodiscard]] bool empty() const { return false; }

 private:
  std::string key_;
  std::string value_;
  std::string ledger_key_;
  std::size_t restored_ = 0;
};

const std::vector<std::string>& names() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> out;
    for (std::size_t i = 0; i < kNodes; ++i) out.push_back(node_name(i));
    return out;
  }();
  return all;
}

/// Decision batch `n`: other nodes each time, one envelope per partition.
std::vector<Envelope> batch(std::size_t n) {
  std::array<std::string, kPartitions> parts;
  for (std::size_t i = 0; i < kBatch; ++i) {
    const std::string& name = names()[(n * kBatch + i * 7) % kNodes];
    parts[partition_of(name, kPartitions)] += name;
  }
  std::vector<Envelope> out;
  for (std::uint32_t p = 0; p < kPartitions; ++p) {
    if (parts[p].empty()) continue;
    const Bytes bytes({reinterpret_cast<const std::uint8_t*>(parts[p].data()), parts[p].size()});
    out.push_back({{ActorKind::placement, 0, "0"}, {ActorKind::node, p, {}}, Message(Kind::query, bytes)});
  }
  return out;
}

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

std::filesystem::path fresh_folder() {
  const char* base = std::getenv("TROUPE_BENCH_DIR");
  const std::filesystem::path path = std::filesystem::path(base == nullptr ? "." : base) / "host-bench-store";
  std::filesystem::remove_all(path);
  return path;
}

/// CAF and RocksDB, four batches in flight. Argument: threads that the partitions share.
void host_turns(benchmark::State& state) {
  const std::filesystem::path folder = fresh_folder();
  std::counting_semaphore<1 << 20> replies(0);
  RuntimeOptions options;
  options.store.path = folder.string();
  options.threads = static_cast<std::size_t>(state.range(0));
  Runtime runtime(std::move(options));
  runtime.add_owner<Writer>(kPartitions);
  runtime.add_port(ActorKind::placement, 0, [&](std::vector<Envelope> envelopes) {
    replies.release(static_cast<std::ptrdiff_t>(envelopes.size()));
  });
  if (!runtime.start()) {
    state.SkipWithError("the store does not open");
    return;
  }
  std::size_t in_flight = 0;
  std::size_t sent = 0;
  const double cpu_before = cpu_seconds();
  const StoreStats before = runtime.store_stats();
  for (auto _ : state) {
    runtime.bus().send(batch(sent++));
    in_flight += kBatch;
    for (; in_flight > 3 * kBatch; --in_flight) replies.acquire();
  }
  for (; in_flight > 0; --in_flight) replies.acquire();
  const auto turns = static_cast<double>(sent * kBatch);
  const StoreStats after = runtime.store_stats();
  state.counters["turns_per_s"] = benchmark::Counter(turns, benchmark::Counter::kIsRate);
  state.counters["cpu_us_per_turn"] = (cpu_seconds() - cpu_before) * 1e6 / turns;
  state.counters["turns_per_sync"] = turns / static_cast<double>(after.commits - before.commits);
  state.counters["wal_bytes_per_turn"] = static_cast<double>(after.wal_bytes - before.wal_bytes) / turns;
  runtime.drain(std::chrono::seconds(60));
  std::filesystem::remove_all(folder);
}
BENCHMARK(host_turns)->Arg(1)->Arg(2)->UseRealTime()->Unit(benchmark::kMillisecond)->MinTime(5);

/// Releases at once, keeps nothing.
class Bare final : public HostServices, public Store {
 public:
  void send(std::vector<Envelope> envelopes) override { replies += envelopes.size(); }
  Store& store() override { return *this; }
  [[nodiscard]] const Authority& authority() const override { return rights; }
  [[nodiscard]] const Clock& clock() const override { return time; }
  void report(const HostEvent&) override {}
  void wake(ActorKind, std::uint32_t) override {}

  void commit(WriteSet set) override {
    set.durable(set.messages);
    send(std::move(set.messages));
    set.released();
  }
  Result<void> scan(Family, std::string_view,
                    const std::function<bool(std::string_view, std::string_view)>&) override {
    return {};
  }
  Result<std::string> get(Family, std::string_view) override {
    return fail({ErrorCode::not_found, "none", {}, {}, {}});
  }
  [[nodiscard]] StoreStats stats() const override { return {}; }
  void close() override {}

  std::size_t replies = 0;
  EmbeddedAuthority rights;
  SystemClock time;
};

/// The engine alone: one thread, no bus, a store that releases at once.
void engine_turns(benchmark::State& state) {
  Bare host;
  std::vector<std::unique_ptr<Partition>> partitions;
  for (std::uint32_t p = 0; p < kPartitions; ++p) {
    partitions.push_back(std::make_unique<Partition>(
        std::make_unique<Hosted<Writer>>(std::make_unique<Writer::Shared>()), p, 1, 1, host));
    partitions.back()->activate();
  }
  std::size_t sent = 0;
  for (auto _ : state) {
    for (Envelope& envelope : batch(sent++)) partitions[envelope.to.partition]->process({&envelope, 1});
  }
  benchmark::DoNotOptimize(host.replies);
  state.SetItemsProcessed(static_cast<std::int64_t>(sent * kBatch));
}
BENCHMARK(engine_turns)->Unit(benchmark::kMillisecond);

/// Opening a store of 5,000 nodes with 10 entries of 400 bytes each, until the host takes messages.
void host_start(benchmark::State& state) {
  const std::filesystem::path folder = fresh_folder();
  StoreOptions store;
  store.path = folder.string();
  {
    auto open = open_store(store, {});
    if (!open) {
      state.SkipWithError("the store does not open");
      return;
    }
    WriteSet set;
    const std::string value(400, 'v');
    for (const std::string& name : names()) {
      for (std::uint64_t i = 0; i < 10; ++i) set.writes.put(Family::ledger, name + encode_u64(i), value);
    }
    (*open)->commit(std::move(set));
    (*open)->close();
  }
  for (auto _ : state) {
    RuntimeOptions options;
    options.store = store;
    Runtime runtime(std::move(options));
    runtime.add_owner<Writer>(kPartitions);
    if (!runtime.start()) state.SkipWithError("the host does not start");
    state.PauseTiming();
    runtime.drain(std::chrono::seconds(60));
    state.ResumeTiming();
  }
  std::filesystem::remove_all(folder);
}
BENCHMARK(host_start)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace troupe
