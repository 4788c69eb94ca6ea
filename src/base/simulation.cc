#include "base/simulation.h"

#include <dlfcn.h>

namespace layertrace {
namespace {

// Simgpu's libraries are preloaded, so its functions are in the global scope where it is.
template <typename Function>
Function find(const char* name) noexcept {
  return reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
}

Simulation look_up() noexcept {
  Simulation found;
  const auto device_name = find<const char* (*)()>("simgpu_device_name");
  if (device_name == nullptr) return found;
  found.device = device_name();
  const auto clock = find<std::uint64_t (*)()>("simgpu_virtual_ns");
  if (clock != nullptr && clock() != 0) found.virtual_clock = clock;
  return found;
}

}  // namespace

const Simulation& simulation() noexcept {
  static const Simulation found = look_up();
  return found;
}

}  // namespace layertrace
