// The side that a framework fills: what has to be switched on for records to come, and off again at
// no trace.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "record/device_record.h"

namespace layertrace {

class CaptureHooks {
 public:
  virtual ~CaptureHooks() = default;

  // Both may be called many times, alternating; neither may throw.
  virtual void enable(bool ops) noexcept = 0;
  virtual void disable() noexcept = 0;

  // The key by which autograd knows the calling thread.
  virtual std::uint64_t (*thread_key() const)() = 0;
  // What one recorded operator costs here, in nanoseconds, measured now.
  virtual double measure_op_cost() = 0;
  virtual std::string framework_version() const = 0;
  // Memory of the devices in use, now. On the writer's thread.
  virtual std::vector<DeviceSample> sample_devices() { return {}; }
  // What a reader of the result must know, such as layers that could not be hooked.
  virtual std::vector<std::string> notes() const = 0;
};

}  // namespace layertrace
