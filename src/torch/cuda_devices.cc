#include "torch/cuda_devices.h"

#include <ATen/Context.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <array>
#include <atomic>

#include "base/clock.h"

namespace layertrace {
namespace {

constexpr std::size_t kMostDevices = 64;

// Once a device is in use it stays so; until then asking for its stream would begin to use it.
bool is_in_use(c10::DeviceIndex device) {
  static std::array<std::atomic<bool>, kMostDevices> in_use{};
  const auto index = std::size_t{static_cast<unsigned char>(device)};
  if (device < 0 || index >= kMostDevices) return false;
  if (in_use[index].load(std::memory_order_relaxed)) return true;
  if (!at::detail::getCUDAHooks().hasPrimaryContext(device)) return false;
  in_use[index].store(true, std::memory_order_relaxed);
  return true;
}

thread_local std::optional<c10::Stream> assumed_stream;

}  // namespace

AssumedStream::AssumedStream(const std::optional<c10::Stream>& stream) noexcept
    : outer_(assumed_stream) {
  if (stream && stream->device_type() == c10::DeviceType::CUDA) assumed_stream = stream;
}

AssumedStream::~AssumedStream() { assumed_stream = outer_; }

bool has_cuda_device() noexcept {
  try {
    return at::hasCUDA();
  } catch (...) {  // a driver that does not fit
    return false;
  }
}

CurrentStream current_cuda_stream() noexcept {
  try {
    const auto* cuda = c10::impl::getDeviceGuardImpl(c10::DeviceType::CUDA);
    const c10::Device device = assumed_stream ? assumed_stream->device() : cuda->getDevice();
    if (!is_in_use(device.index())) return {};
    const c10::Stream stream = assumed_stream ? *assumed_stream : cuda->getStream(device);
    return {device.index(), cuda->getStreamNativeHandle(stream)};
  } catch (...) {  // a device that was lost
    return {};
  }
}

std::vector<DeviceSample> sample_cuda_memory() {
  std::vector<DeviceSample> samples;
  try {
    const auto* cuda = c10::impl::getDeviceGuardImpl(c10::DeviceType::CUDA);
    auto* allocator = at::getDeviceAllocator(c10::DeviceType::CUDA);
    if (allocator == nullptr || !allocator->initialized()) return samples;
    for (c10::DeviceIndex i = 0; i < cuda->deviceCount(); ++i) {
      if (!is_in_use(i)) continue;
      constexpr auto kAll = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
      const auto stats = allocator->getDeviceStats(i);
      const auto device = std::uint32_t{static_cast<unsigned char>(i)};
      const std::uint64_t now = clock_ticks();
      const auto add = [&](std::int64_t bytes, DeviceCounter counter) {
        samples.push_back({now, static_cast<std::uint64_t>(bytes), device, counter});
      };
      add(stats.allocated_bytes[kAll].current, DeviceCounter::kMemoryAllocated);
      add(stats.reserved_bytes[kAll].current, DeviceCounter::kMemoryReserved);
    }
  } catch (...) {  // an allocator of the user's, which keeps no statistics
  }
  return samples;
}

}  // namespace layertrace
