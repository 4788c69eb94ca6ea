// Times as the client wants them: in the unit of its own callback, or in nanoseconds of the wall
// clock, or of the machine's where that is virtual.
//
// A call into the API is stamped by the callback itself. What the device does is placed relative to
// the call that launched it, by how many of the client's units a nanosecond has.
#pragma once

#include <cupti.h>

#include <atomic>
#include <cstdint>

namespace simgpu::cupti {

class Timestamps {
 public:
  Timestamps();

  // By how much the wall clock is set, where that was asked for.
  static constexpr std::uint64_t kSetBackNs = 60'000'000'000;

  void set_callback(CUpti_TimestampCallbackFunc callback);

  std::uint64_t now() const { return callback_.load(std::memory_order_relaxed)(); }

  // A time of the machine, given one moment on both clocks.
  std::uint64_t at(std::uint64_t ns, std::uint64_t moment_ns, std::uint64_t moment) const;

  // Whether so little time lies between the two that one may stand for the other.
  bool are_close(std::uint64_t first, std::uint64_t second) const noexcept {
    constexpr double kCloseNs = 5'000;
    return static_cast<double>(second - first) <
           kCloseNs * units_per_ns_.load(std::memory_order_relaxed);
  }

  // Measures the unit anew; the longer ago the callback was set, the better.
  void refine();

 private:
  struct Sample {
    std::uint64_t host_ns;
    std::uint64_t client;
  };
  Sample sample() const;

  std::atomic<CUpti_TimestampCallbackFunc> callback_;
  std::atomic<bool> is_machines_clock_{false};
  std::atomic<double> units_per_ns_{1};
  Sample first_{};
};

}  // namespace simgpu::cupti
