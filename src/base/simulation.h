// Whether this process runs on a simulated GPU (simgpu), which a trace must say, and the clock that
// it may bring.
#pragma once

#include <cstdint>

namespace layertrace {

struct Simulation {
  const char* device = "";                     // its name; "" where there is none
  std::uint64_t (*virtual_clock)() = nullptr;  // nanoseconds; nullptr: time is the host's
};

// Looked up once, when it is first asked for.
const Simulation& simulation() noexcept;

}  // namespace layertrace
