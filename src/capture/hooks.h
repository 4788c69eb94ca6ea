// The side that a framework fills: what has to be switched on for records to come, and off again at
// no trace.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <layertrace/layertrace.h>

#include "record/device_record.h"

namespace layertrace {

class CaptureHooks {
 public:
  virtual ~CaptureHooks() = default;

  // When operators are counted. Before the first enable().
  virtual void set_counting(Counting /*counting*/) noexcept {}
  // A step begins that is recorded, on the calling thread.
  virtual void begin_step() noexcept {}
  // The step that begins is not recorded.
  virtual void end_steps() noexcept {}

  // Both may be called many times, alternating; neither may throw.
  virtual void enable(bool ops) noexcept = 0;
  virtual void disable() noexcept = 0;

  // The key by which autograd knows the calling thread.
  virtual std::uint64_t (*thread_key() const)() = 0;
  // What one recorded operator costs here, in nanoseconds, measured now.
  virtual double measure_op_cost() = 0;
  virtual std::string framework_version() const = 0;
  // With how many threads an operator computes on the CPU.
  virtual int compute_threads() const { return 1; }
  // Memory of the devices in use, now. On the writer's thread.
  virtual std::vector<DeviceSample> sample_devices() { return {}; }
  // What a reader of the result must know, such as layers that could not be hooked.
  virtual std::vector<std::string> notes() const = 0;
};

}  // namespace layertrace
