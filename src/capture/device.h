// The side that a GPU fills: what it did, and for which scope.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <layertrace/profile.h>
#include <layertrace/result.h>

#include "record/device_record.h"

namespace layertrace {

class DeviceCapture {
 public:
  DeviceCapture() = default;
  virtual ~DeviceCapture() = default;
  DeviceCapture(const DeviceCapture&) = delete;  // threads hold its address
  DeviceCapture& operator=(const DeviceCapture&) = delete;

  // Both may be called many times, alternating.
  virtual Result<void> enable() noexcept = 0;
  virtual void disable() noexcept = 0;
  // The session is over: gives back what the vendor's library holds of ours. Threads may still call
  // push() and pop(), which then do nothing.
  virtual void close() noexcept = 0;

  // The calling thread has entered a scope, or left the innermost. On hot paths; they neither wait
  // nor throw. A pop may come when nothing is enabled any more.
  virtual void push(std::uint64_t frame) noexcept = 0;
  virtual void pop() noexcept = 0;

  // Hands over what the devices have done since the last call, all that tells of launches first.
  // On the writer's thread. With `all`, what is not yet delivered is asked for, and waited for a
  // little.
  virtual void drain(DeviceConsumer& consumer, bool all) = 0;

  // All but what the profile itself counts.
  virtual GpuHealth health() const = 0;
  // "NVIDIA H100", or "2 × NVIDIA H100".
  virtual std::string name() const = 0;
};

// The vendor's library, if this process can have it; else why not. Defined in cuda/.
Result<std::shared_ptr<DeviceCapture>> make_device_capture();

}  // namespace layertrace
