// What a tool in the same process may ask, by name: that there is a simulated device, what it calls
// itself, its clock, and what it did wrong on purpose. Tools must not link to the simulation; they
// look these up with dlsym().
#include <cstdint>
#include <string_view>

#include "core/face.h"
#include "core/machine.h"

SIMGPU_API const char* simgpu_device_name() {
  return simgpu::Machine::instance().profile().device_name.data();  // a literal
}

// The virtual clock's time in nanoseconds; 0 where the clock is the host's.
SIMGPU_API std::uint64_t simgpu_virtual_ns() {
  const simgpu::DeviceClock& clock = simgpu::Machine::instance().clock();
  return clock.is_virtual() ? clock.now() : 0;
}

// How often a fault has come so far: launches that were refused, records and buffers that were
// spoiled or lost. 0 for those that refuse once and for all, and for what is no fault.
SIMGPU_API std::uint64_t simgpu_faults(const char* name) {
  for (const simgpu::FaultName& fault : simgpu::fault_names()) {
    if (name != nullptr && fault.name == std::string_view(name))
      return simgpu::Machine::instance().faults(fault.kind);
  }
  return 0;
}
