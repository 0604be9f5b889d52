#include "k8s-bridge/embedded/embedded_cluster.hpp"

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <unordered_set>
#include <utility>
#include <variant>

#include "k8s-bridge/embedded/embedded_store.hpp"

namespace troupe {
namespace {

struct Put {
  std::vector<Message> objects;
};
struct Remove {
  std::vector<ObjectName> names;
};
struct Issue {
  std::vector<Message> intents;
};
using Command = std::variant<Put, Remove, Issue>;

Message result_message(flatbuffers::FlatBufferBuilder& b, const fb::Intent& intent,
                       const EmbeddedAnswer& answer) {
  b.Clear();
  const auto key = b.CreateString(text(intent.owner_key()));
  const auto message =
      answer.message.empty() ? flatbuffers::Offset<flatbuffers::String>{} : b.CreateString(answer.message);
  b.Finish(fb::CreateIntentResult(b, intent.id(), intent.kind(), fb::IntentStage::Complete, key, intent.uid(),
                                  answer.outcome, answer.http_status, message, intent.owner_kind(),
                                  intent.partition()));
  return {Kind::intent_result, b};
}

}  // namespace

class EmbeddedCluster::Worker {
 public:
  explicit Worker(EmbeddedOptions options) : options_(options) {}
  ~Worker() { stop(); }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void enqueue(Command command) {
    bool wake = false;
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return;
      wake = commands_.empty();
      commands_.push_back(std::move(command));
      ++enqueued_;
    }
    if (wake) wake_.notify_one();
  }

  Result<void> start(ClusterSink& sink) {
    const std::lock_guard lock(mutex_);
    if (thread_.joinable() || stopping_) {
      return fail({ErrorCode::invalid,
                   "the embedded cluster was started before",
                   {},
                   {},
                   "make another EmbeddedCluster"});
    }
    thread_ = std::thread([this, &sink] { run(sink); });
    return {};
  }

  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_one();
    if (thread_.joinable()) thread_.join();
    handled_changed_.notify_all();
  }

  void settle() {
    std::unique_lock lock(mutex_);
    const std::uint64_t target = enqueued_;
    handled_changed_.wait(lock, [&] { return handled_ >= target || stopping_; });
  }

  std::vector<Message> events() const {
    const std::lock_guard lock(mutex_);
    std::vector<Message> out;
    out.reserve(events_.size());
    for (std::size_t i = 0; i < events_.size(); ++i) {
      out.push_back(events_[(oldest_event_ + i) % events_.size()]);
    }
    return out;
  }

  PortStats stats() const {
    const std::lock_guard lock(mutex_);
    return stats_;
  }

 private:
  void run(ClusterSink& sink) {
    sink.active(true);
    bool synced = false;
    std::vector<Command> batch;
    while (take(batch, synced)) {
      for (const Command& command : batch) {
        if (const auto* put = std::get_if<Put>(&command)) {
          for (const Message& object : put->objects) store_.put(object, changes_);
        } else if (const auto* remove = std::get_if<Remove>(&command)) {
          for (const ObjectName& n : remove->names) store_.remove(n.kind, n.ns, n.name, changes_);
        } else {
          execute(std::get<Issue>(command).intents);
        }
      }
      const std::size_t handled = batch.size();
      batch.clear();
      if (!changes_.empty()) sink.changed(std::exchange(changes_, {}));
      if (!results_.empty()) sink.settled(std::exchange(results_, {}));
      if (!synced) sink.synced();
      synced = true;
      report(handled);
    }
  }

  // The first batch may be empty: `synced` must not wait for somebody to put an object.
  bool take(std::vector<Command>& batch, bool synced) {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [&] { return stopping_ || !commands_.empty() || !synced; });
    if (stopping_) return false;
    batch.swap(commands_);
    return true;
  }

  void report(std::size_t handled) {
    {
      const std::lock_guard lock(mutex_);
      handled_ += handled;
      stats_.intents_done += done_;
      stats_.intents_failed += failed_;
      stats_.requests += done_ + failed_;
      for (Message& event : fresh_events_) remember(std::move(event));
    }
    done_ = failed_ = 0;
    fresh_events_.clear();
    handled_changed_.notify_all();
  }

  void remember(Message event) {
    if (options_.event_ring == 0) return;
    if (events_.size() < options_.event_ring) {
      events_.push_back(std::move(event));
      return;
    }
    events_[oldest_event_] = std::move(event);
    oldest_event_ = (oldest_event_ + 1) % events_.size();
  }

  void execute(const std::vector<Message>& intents) {
    bool ordered = true;  // nearly always: nothing waits, or waits for what stands before it
    for (const Message& m : intents) ordered = ordered && m.as<fb::Intent>().after() == 0;
    if (ordered) {
      for (const Message& m : intents) execute(m);
      return;
    }
    std::unordered_set<std::uint64_t> open;
    for (const Message& m : intents) open.insert(m.as<fb::Intent>().id());
    std::vector<const Message*> waiting;
    for (const Message& m : intents) waiting.push_back(&m);
    while (!waiting.empty()) {
      std::vector<const Message*> still;
      for (const Message* m : waiting) {
        const auto& intent = m->as<fb::Intent>();
        if (intent.after() != 0 && intent.after() != intent.id() && open.contains(intent.after())) {
          still.push_back(m);
          continue;
        }
        execute(*m);
        open.erase(intent.id());
      }
      if (still.size() == waiting.size()) open.clear();  // a circle: nobody can be first, so order is void
      waiting = std::move(still);
    }
  }

  void execute(const Message& message) {
    const auto& intent = message.as<fb::Intent>();
    const EmbeddedAnswer answer = store_.execute(intent, changes_);
    const bool done = answer.outcome == fb::IntentOutcome::Done;
    ++(done ? done_ : failed_);
    if (done && intent.event() != nullptr) keep_event(message);
    results_.push_back(result_message(builder_, intent, answer));
  }

  // Of one batch only the latest can stay in the ring.
  void keep_event(const Message& message) {
    if (fresh_events_.size() >= 2 * options_.event_ring) {
      fresh_events_.erase(fresh_events_.begin(),
                          fresh_events_.end() - static_cast<std::ptrdiff_t>(options_.event_ring));
    }
    fresh_events_.push_back(message);
  }

  const EmbeddedOptions options_;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable handled_changed_;
  std::vector<Command> commands_;
  std::uint64_t enqueued_ = 0;
  std::uint64_t handled_ = 0;
  bool stopping_ = false;
  PortStats stats_;
  std::vector<Message> events_;  // a ring once it is full
  std::size_t oldest_event_ = 0;

  // Of the worker thread alone.
  EmbeddedStore store_;
  std::vector<Message> changes_;
  std::vector<Message> results_;
  std::vector<Message> fresh_events_;
  std::uint64_t done_ = 0;
  std::uint64_t failed_ = 0;
  flatbuffers::FlatBufferBuilder builder_;

  std::thread thread_;
};

EmbeddedCluster::EmbeddedCluster(EmbeddedOptions options) : worker_(std::make_unique<Worker>(options)) {}
EmbeddedCluster::~EmbeddedCluster() = default;

void EmbeddedCluster::put(std::vector<Message> objects) {
  worker_->enqueue(Put{std::move(objects)});
}

void EmbeddedCluster::put_one(Message object) {
  std::vector<Message> one;
  one.push_back(std::move(object));
  put(std::move(one));
}

void EmbeddedCluster::remove(std::vector<ObjectName> names) {
  worker_->enqueue(Remove{std::move(names)});
}

void EmbeddedCluster::delete_pod(std::string ns, std::string name) {
  remove({{fb::ObjectKind::Pod, std::move(ns), std::move(name)}});
}

void EmbeddedCluster::delete_node(std::string name) {
  remove({{fb::ObjectKind::Node, {}, std::move(name)}});
}

void EmbeddedCluster::settle() {
  worker_->settle();
}

std::vector<Message> EmbeddedCluster::events() const {
  return worker_->events();
}

Result<void> EmbeddedCluster::start(ClusterSink& sink) {
  return worker_->start(sink);
}

void EmbeddedCluster::issue(std::vector<Message> intents) {
  worker_->enqueue(Issue{std::move(intents)});
}

void EmbeddedCluster::stop() {
  worker_->stop();
}

PortStats EmbeddedCluster::stats() const {
  return worker_->stats();
}

}  // namespace troupe
