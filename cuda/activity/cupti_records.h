// Reads CUPTI's records, whose layouts differ between versions, into our own.
#pragma once

#include <cupti.h>

#include <cstdint>

#include "capture/device.h"

namespace layertrace::cuda {

// Turns CUPTI's timestamps into ticks of our clock.
class DeviceClock {
 public:
  // Records have our ticks already: CUPTI asks us for the time.
  DeviceClock() = default;
  // Records have nanoseconds of CUPTI's own clock, which is so far from ours.
  DeviceClock(std::uint64_t cupti_ns, std::uint64_t ticks, double ns_per_tick)
      : is_ours_(false), cupti_ns_(cupti_ns), ticks_(ticks), ticks_per_ns_(1 / ns_per_tick) {}

  std::uint64_t to_ticks(std::uint64_t timestamp) const noexcept {
    if (is_ours_) return timestamp;
    const auto since = static_cast<double>(static_cast<std::int64_t>(timestamp - cupti_ns_));
    return ticks_ + static_cast<std::uint64_t>(static_cast<std::int64_t>(since * ticks_per_ns_));
  }

 private:
  bool is_ours_ = true;
  std::uint64_t cupti_ns_ = 0;
  std::uint64_t ticks_ = 0;
  double ticks_per_ns_ = 1;
};

// Hands one record to the consumer, or counts why not. `version` is CUPTI's.
void read_launch_record(const CUpti_Activity& record, const DeviceClock& clock,
                        DeviceConsumer& consumer);
void read_device_record(const CUpti_Activity& record, std::uint32_t version,
                        const DeviceClock& clock, DeviceConsumer& consumer, GpuHealth& health);

// Which of the two a record is for.
bool is_launch_record(const CUpti_Activity& record) noexcept;

}  // namespace layertrace::cuda
