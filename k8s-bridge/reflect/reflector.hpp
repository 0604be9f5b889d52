// Asks the API server what ReflectorLogic wants to know, for one kind.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "k8s-bridge/http.hpp"
#include "k8s-bridge/reflect/reflector_logic.hpp"
#include "k8s-bridge/timers.hpp"

namespace troupe {

struct ReflectorOptions {
  ReflectOptions logic;
  std::int64_t list_timeout_ms = 60'000;
  /// Longest silence of a watch: bookmarks come once a minute.
  std::int64_t idle_ms = 100'000;
};

struct ReflectorStats {
  std::uint64_t requests = 0;
  std::uint64_t relists = 0;   // lists after the first
  std::uint64_t rejected = 0;  // objects that could not be understood
  std::size_t objects = 0;
  std::string version;
  std::optional<Error> trouble;  // why there is no list or watch at the moment
};

class Reflector {
 public:
  /// Called in order, one call at a time, under the reflector's lock: quick, and never calling back.
  struct Hooks {
    std::function<void(Reflected)> reflected;
    /// A request failed that had worked before, or works again (nullopt).
    std::function<void(std::optional<Error>)> trouble;
  };

  /// `http` and `timers` outlive the reflector.
  Reflector(const ObjectKindInfo& kind, HttpClient& http, Timers& timers, ReflectorOptions options,
            Hooks hooks);
  ~Reflector();
  Reflector(const Reflector&) = delete;
  Reflector& operator=(const Reflector&) = delete;

  /// Begins; called again, takes a fresh list of the most recent state.
  void start();
  /// No hook is called after it returns.
  void stop();
  [[nodiscard]] ReflectorStats stats() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace troupe
