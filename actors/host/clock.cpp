#include "actors/host/clock.hpp"

#include <ctime>

namespace troupe {
namespace {

std::int64_t read_nanos(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

}  // namespace

Millis SystemClock::wall_ms() const {
  return read_nanos(CLOCK_REALTIME) / 1'000'000;
}

Millis SystemClock::now() const {
  return read_nanos(CLOCK_BOOTTIME) / 1'000'000;
}

std::int64_t SystemClock::nanos() const {
  return read_nanos(CLOCK_MONOTONIC);
}

}  // namespace troupe
