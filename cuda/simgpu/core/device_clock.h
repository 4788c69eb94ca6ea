// The time of the simulated machine, in nanoseconds.
//
// The real clock is the host's. The virtual one stands still until something happens: each call
// into the runtime takes a fixed time, and waiting for the device moves it to where the device is
// done. A program of one thread then sees the same times in every run, and never waits.
#pragma once

#include <atomic>
#include <cstdint>

namespace simgpu {

class DeviceClock {
 public:
  explicit DeviceClock(bool is_virtual) noexcept : virtual_(is_virtual) {}

  bool is_virtual() const noexcept { return virtual_; }
  std::uint64_t now() const noexcept;

  // A call into the runtime was made. Only the virtual clock takes notice.
  void charge(std::uint64_t ns) noexcept {
    if (virtual_) virtual_ns_.fetch_add(ns, std::memory_order_relaxed);
  }

  // Returns when it is that time: at once on the virtual clock, which is then moved there.
  void wait_until(std::uint64_t ns) noexcept;

 private:
  const bool virtual_;
  // Not from zero: a zero time means "none" to many who read one.
  std::atomic<std::uint64_t> virtual_ns_{1'000'000'000};
};

}  // namespace simgpu
