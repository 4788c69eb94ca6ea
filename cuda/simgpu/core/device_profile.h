// The devices that can be stood in for: what a program may ask of one, and what the cost model
// reckons with. Figures are those that vendors publish for the class, rounded; none was measured.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace simgpu {

struct DeviceProfile {
  std::string_view name;         // how SIMGPU_PROFILE calls it
  std::string_view device_name;  // what the program is told; says "simulated"
  int major;                     // compute capability
  int minor;
  int multiprocessors;
  int threads_per_multiprocessor;
  int blocks_per_multiprocessor;
  int shared_bytes_per_multiprocessor;
  int shared_bytes_per_block_optin;
  int clock_khz;
  int memory_clock_khz;
  int memory_bus_bits;
  std::uint64_t memory_bytes;
  std::uint64_t l2_bytes;
  double memory_bytes_per_ns;  // to and from its own memory
  double host_bytes_per_ns;    // across the bus, each direction
  double peer_bytes_per_ns;    // to another device
  double fp64_flops_per_ns;
  double fp32_flops_per_ns;
  double tf32_flops_per_ns;         // matrix products of 32-bit numbers, where TF32 is allowed
  double half_flops_per_ns;         // matrix products of 16-bit numbers
  double byte_flops_per_ns;         // of 8-bit ones
  std::uint64_t launch_latency_ns;  // from the launch to the kernel's start on an idle stream
  std::uint64_t shortest_kernel_ns;
};

std::span<const DeviceProfile> device_profiles() noexcept;

// nullptr for a name that is none.
const DeviceProfile* find_profile(std::string_view name) noexcept;

}  // namespace simgpu
