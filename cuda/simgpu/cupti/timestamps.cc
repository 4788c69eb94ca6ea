#include "cupti/timestamps.h"

#include <atomic>
#include <cmath>
#include <ctime>

#include "core/machine.h"

namespace simgpu::cupti {
namespace {

std::uint64_t clock_ns(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000U +
         static_cast<std::uint64_t>(time.tv_nsec);
}

// Has the clock been set, as was asked for?
bool was_set() {
  static std::atomic<bool> known = false;
  Machine& machine = Machine::instance();
  const auto after = machine.config().fault(FaultKind::kClockSet);
  if (!after || machine.launches() < *after) return false;
  if (!known.exchange(true, std::memory_order_relaxed)) machine.count_fault(FaultKind::kClockSet);
  return true;
}

std::uint64_t wall_ns() {
  return clock_ns(CLOCK_REALTIME) - (was_set() ? Timestamps::kSetBackNs : 0);
}

std::uint64_t machine_ns() { return Machine::instance().clock().now(); }
bool has_virtual_clock() { return Machine::instance().clock().is_virtual(); }

constexpr std::uint64_t kShortestMeasureNs = 200'000;

}  // namespace

// A virtual clock has nothing to do with the wall's.
Timestamps::Timestamps()
    : callback_(has_virtual_clock() ? &machine_ns : &wall_ns),
      is_machines_clock_(has_virtual_clock()) {}

// Both clocks as close together as a few attempts allow: the thread may lose the processor between.
Timestamps::Sample Timestamps::sample() const {
  constexpr int kAttempts = 5;
  Sample best{};
  std::uint64_t closest_ns = ~std::uint64_t{0};
  for (int i = 0; i < kAttempts; ++i) {
    const std::uint64_t before_ns = clock_ns(CLOCK_MONOTONIC);
    const std::uint64_t client = now();
    const std::uint64_t took_ns = clock_ns(CLOCK_MONOTONIC) - before_ns;
    if (took_ns >= closest_ns) continue;
    closest_ns = took_ns;
    best = {before_ns + took_ns / 2, client};
  }
  return best;
}

void Timestamps::set_callback(CUpti_TimestampCallbackFunc callback) {
  callback_ = callback;
  units_per_ns_ = 1;
  // The client may read the machine's own clock, which may be virtual: then there is nothing to
  // convert.
  const DeviceClock& clock = Machine::instance().clock();
  const std::uint64_t before = clock.now();
  const std::uint64_t read = now();
  is_machines_clock_ = before <= read && read <= clock.now();
  if (is_machines_clock_) return;
  first_ = sample();
  while (clock_ns(CLOCK_MONOTONIC) - first_.host_ns < kShortestMeasureNs) {
  }
  refine();
}

void Timestamps::refine() {
  if (is_machines_clock_ || callback_.load() == &wall_ns) return;
  const Sample last = sample();
  if (last.host_ns <= first_.host_ns || last.client <= first_.client) return;
  units_per_ns_ = static_cast<double>(last.client - first_.client) /
                  static_cast<double>(last.host_ns - first_.host_ns);
}

std::uint64_t Timestamps::at(std::uint64_t ns, std::uint64_t moment_ns,
                             std::uint64_t moment) const {
  if (is_machines_clock_.load(std::memory_order_relaxed)) return ns;
  const double delta = (static_cast<double>(ns) - static_cast<double>(moment_ns)) *
                       units_per_ns_.load(std::memory_order_relaxed);
  return moment + static_cast<std::uint64_t>(std::llround(delta));
}

}  // namespace simgpu::cupti
