// How long would it take? A rough answer that is the same every time: matrix products by their
// operations and bytes against the device's peak, copies by their bytes, every other kernel by its
// grid, block and name. It tells big from small and bound by arithmetic from bound by memory; it
// does not tell how fast a program would be on a real device.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/device_profile.h"

namespace simgpu {

enum class NumberType : std::uint8_t { kFp64, kFp32, kTf32, kHalf, kByte };

std::uint64_t bytes_of(NumberType type) noexcept;

// A batch of products (m × k)·(k × n).
struct MatrixProduct {
  std::uint64_t m = 0;
  std::uint64_t n = 0;
  std::uint64_t k = 0;
  std::uint64_t batch = 1;
  NumberType type = NumberType::kFp32;
};

struct KernelShape {
  std::uint64_t blocks = 1;
  std::uint64_t threads = 1;  // in a block
};

enum class CopyPath : std::uint8_t { kToDevice, kToHost, kWithin, kPeer, kOnHost };

std::uint64_t product_ns(const DeviceProfile& device, const MatrixProduct& product) noexcept;
// How much heavier than a plain read and write of its elements a kernel is, by what its name tells.
// Names are long: who launches often remembers it.
double kernel_weight(std::string_view name) noexcept;
std::uint64_t kernel_ns(const DeviceProfile& device, double weight, KernelShape shape) noexcept;
std::uint64_t copy_ns(const DeviceProfile& device, CopyPath path, std::uint64_t bytes) noexcept;
std::uint64_t fill_ns(const DeviceProfile& device, std::uint64_t bytes) noexcept;

}  // namespace simgpu
