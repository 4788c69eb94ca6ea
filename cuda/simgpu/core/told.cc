// What a tool in the same process may ask, by name: that there is a simulated device, what it calls
// itself, and its clock. Tools must not link to the simulation; they look these up with dlsym().
#include <cstdint>

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
