#include "activity/occupancy.h"

#include <cuda.h>
#include <dlfcn.h>

#include <algorithm>
#include <limits>

namespace layertrace::cuda {
namespace {

constexpr std::uint32_t kWarp = 32;

constexpr std::uint32_t round_up(std::uint32_t value, std::uint32_t unit) {
  return (value + unit - 1) / unit * unit;
}

MultiprocessorLimits ask_driver(std::uint32_t device) {
  MultiprocessorLimits limits;
  void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  const auto ask =
      driver != nullptr
          ? reinterpret_cast<decltype(&cuDeviceGetAttribute)>(dlsym(driver, "cuDeviceGetAttribute"))
          : nullptr;
  if (ask == nullptr) return limits;
  const auto attribute = [&](CUdevice_attribute which) {
    int value = 0;
    const bool told = ask(&value, which, static_cast<CUdevice>(device)) == CUDA_SUCCESS;
    return told && value > 0 ? static_cast<std::uint32_t>(value) : 0;
  };
  limits.threads = attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
  limits.blocks = attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
  limits.registers = attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
  limits.shared_bytes = attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  limits.reserved_shared_bytes = attribute(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
  return limits;
}

}  // namespace

float occupancy(const MultiprocessorLimits& limits, const KernelNeeds& kernel) noexcept {
  // The units in which a multiprocessor hands out registers to warps, warps to blocks of registers,
  // and shared memory (compute capability 7.0 to 12.0).
  constexpr std::uint32_t kRegisterUnit = 256;
  constexpr std::uint32_t kWarpUnit = 4;
  constexpr std::uint32_t kSharedUnit = 128;
  const std::uint32_t most_warps = limits.threads / kWarp;
  const std::uint32_t warps = (kernel.threads + kWarp - 1) / kWarp;
  if (most_warps == 0 || warps == 0) return 0;
  std::uint32_t blocks = most_warps / warps;
  if (limits.blocks != 0) blocks = std::min(blocks, limits.blocks);
  if (kernel.registers != 0 && limits.registers != 0) {
    const std::uint32_t of_warp = round_up(kernel.registers * kWarp, kRegisterUnit);
    const std::uint32_t fitting = limits.registers / of_warp / kWarpUnit * kWarpUnit;
    blocks = std::min(blocks, fitting / warps);
  }
  const std::uint32_t shared =
      round_up(kernel.shared_bytes + limits.reserved_shared_bytes, kSharedUnit);
  if (shared != 0 && limits.shared_bytes != 0)
    blocks = std::min(blocks, limits.shared_bytes / shared);
  return static_cast<float>(blocks * warps) / static_cast<float>(most_warps);
}

float Occupancies::of(std::uint32_t device, const KernelNeeds& kernel) {
  constexpr std::uint32_t kMostDevices = 256;
  constexpr std::size_t kMostKnown = 1 << 14;
  if (device >= kMostDevices) return 0;
  while (devices_.size() <= device)
    devices_.push_back(ask_driver(static_cast<std::uint32_t>(devices_.size())));
  if (known_.size() > kMostKnown) known_.clear();
  const std::uint64_t key = std::uint64_t{device} << 56 |
                            (std::uint64_t{kernel.threads} & 0xfffU) << 44 |
                            (std::uint64_t{kernel.registers} & 0xfffU) << 32 | kernel.shared_bytes;
  const auto [known, fresh] = known_.try_emplace(key, 0.0F);
  if (fresh) known->second = occupancy(devices_[device], kernel);
  return known->second;
}

}  // namespace layertrace::cuda
