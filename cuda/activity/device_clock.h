// A device's timestamps, as ticks of the session's clock.
#pragma once

#include <cstdint>
#include <deque>

namespace layertrace::cuda {

// Either the vendor's library asks us for the time, and there is nothing to do. Or its clock is
// another, which differs from ours by an offset that drifts: both are read together now and then,
// and what lies between two readings is on the line between them.
//
// That clock may be set, by the system's owner or its servers of time. Then the readings before and
// after are two lines, and a timestamp that is on both was taken on the later one, unless that
// would be a moment that was not yet.
class DeviceClock {
 public:
  // Records have our ticks already.
  DeviceClock() = default;
  // Records have nanoseconds of another clock; `ns_per_tick` is our own.
  explicit DeviceClock(double ns_per_tick) : is_ours_(false), ticks_per_ns_(1 / ns_per_tick) {}

  bool is_ours() const noexcept { return is_ours_; }

  // Both clocks at one moment, later than the last. True if the other one has been set meanwhile.
  bool add_reading(std::uint64_t device_ns, std::uint64_t ticks);
  std::uint64_t to_ticks(std::uint64_t timestamp) const noexcept;

 private:
  static constexpr std::size_t kMostReadings = 4096;
  struct Reading {
    std::uint64_t device_ns;
    std::uint64_t ticks;
  };

  using Line = std::deque<Reading>;

  bool is_set(const Reading& last, const Reading& next) const noexcept;
  std::uint64_t on_line(const Line& line, std::uint64_t timestamp) const noexcept;

  bool is_ours_ = true;
  double ticks_per_ns_ = 1;
  std::deque<Line> lines_;  // none is empty; their readings are in the order of our ticks
  std::size_t count_ = 0;   // of all readings
};

}  // namespace layertrace::cuda
