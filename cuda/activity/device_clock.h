// A device's timestamps, as ticks of the session's clock.
#pragma once

#include <cstdint>
#include <deque>

namespace layertrace::cuda {

// Either the vendor's library asks us for the time, and there is nothing to do. Or its clock is
// another, which differs from ours by an offset that drifts: both are read together now and then,
// and what lies between two readings is on the line between them.
class DeviceClock {
 public:
  // Records have our ticks already.
  DeviceClock() = default;
  // Records have nanoseconds of another clock; `ns_per_tick` is our own.
  explicit DeviceClock(double ns_per_tick) : is_ours_(false), ticks_per_ns_(1 / ns_per_tick) {}

  bool is_ours() const noexcept { return is_ours_; }

  // Both clocks at one moment, later than the last.
  void add_reading(std::uint64_t device_ns, std::uint64_t ticks);
  std::uint64_t to_ticks(std::uint64_t timestamp) const noexcept;

 private:
  static constexpr std::size_t kMostReadings = 4096;
  struct Reading {
    std::uint64_t device_ns;
    std::uint64_t ticks;
  };

  bool is_ours_ = true;
  double ticks_per_ns_ = 1;
  std::deque<Reading> readings_;
};

}  // namespace layertrace::cuda
