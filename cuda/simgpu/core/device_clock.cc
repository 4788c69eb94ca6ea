#include "core/device_clock.h"

#include <cerrno>
#include <ctime>

namespace simgpu {
namespace {

// Sleeping takes some 60 µs however short it is asked to be; what is shorter is waited for awake.
constexpr std::uint64_t kShortestSleepNs = 100'000;

std::uint64_t monotonic_ns() noexcept {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000U +
         static_cast<std::uint64_t>(time.tv_nsec);
}

}  // namespace

std::uint64_t DeviceClock::now() const noexcept {
  return virtual_ ? virtual_ns_.load(std::memory_order_relaxed) : monotonic_ns();
}

void DeviceClock::wait_until(std::uint64_t ns) noexcept {
  if (virtual_) {
    std::uint64_t now = virtual_ns_.load(std::memory_order_relaxed);
    while (now < ns && !virtual_ns_.compare_exchange_weak(now, ns, std::memory_order_relaxed)) {
    }
    return;
  }
  for (std::uint64_t now = monotonic_ns(); now < ns; now = monotonic_ns()) {
    if (ns - now < kShortestSleepNs) continue;
    const std::uint64_t until = ns - kShortestSleepNs;
    const timespec time{static_cast<time_t>(until / 1'000'000'000U),
                        static_cast<long>(until % 1'000'000'000U)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr) == EINTR) {
    }
  }
}

}  // namespace simgpu
