// Memory in the order of a stream. It is the device's memory as any other, taken at once and given
// back when all that is in the stream before has had its effect.
#include <vector>

#include "runtime/api.h"

using simgpu::failed;
using simgpu::machine;

namespace {

// One pool for each device.
struct Pool {
  int device;
};
Pool* pools() {
  static auto* all = [] {
    auto* made = new std::vector<Pool>;
    for (int i = 0; i < machine().device_count(); ++i) made->push_back({i});
    return made;
  }();
  return all->data();
}
cudaMemPool_t handle_of(int device) { return reinterpret_cast<cudaMemPool_t>(pools() + device); }
bool is_pool(cudaMemPool_t handle) {
  const auto* pool = reinterpret_cast<const Pool*>(handle);
  return pool >= pools() && pool < pools() + machine().device_count();
}
int device_of(cudaMemPool_t handle) { return reinterpret_cast<const Pool*>(handle)->device; }

std::atomic<std::uint64_t> release_threshold{0};

}  // namespace

SIMGPU_API cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  SIMGPU_CALL(call, cudaDeviceGetDefaultMemPool_v11020, pool, device);
  if (pool == nullptr) return failed(cudaErrorInvalidValue);
  if (!simgpu::is_device(device)) return failed(cudaErrorInvalidDevice);
  *pool = handle_of(device);
  return cudaSuccess;
}

SIMGPU_API cudaError_t cudaMallocAsync(void** address, std::size_t bytes, cudaStream_t stream) {
  SIMGPU_CALL(call, cudaMallocAsync_v11020, address, bytes, stream);
  if (address == nullptr) return failed(cudaErrorInvalidValue);
  *address = nullptr;
  if (bytes == 0) return cudaSuccess;
  const int device = simgpu::stream_of(stream).device;
  if (machine().count_allocation())
    *address = machine().memory().allocate(simgpu::MemoryKind::kDevice, device, bytes);
  return *address != nullptr ? cudaSuccess : failed(cudaErrorMemoryAllocation);
}

SIMGPU_API cudaError_t cudaFreeAsync(void* address, cudaStream_t stream) {
  SIMGPU_CALL(call, cudaFreeAsync_v11020, address, stream);
  if (address == nullptr) return cudaSuccess;
  const auto found = machine().memory().find(address);
  if (!found || found->base != address) return failed(cudaErrorInvalidValue);
  const simgpu::Stream& of = simgpu::stream_of(stream);
  machine().apply(of, simgpu::timeline_of(of).idle_at(of.queue),
                  [address] { machine().memory().free(address); });
  return cudaSuccess;
}

SIMGPU_API cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute,
                                               void* value) {
  SIMGPU_CALL(call, cudaMemPoolGetAttribute_v11020, pool, attribute, value);
  if (!is_pool(pool) || value == nullptr) return failed(cudaErrorInvalidValue);
  switch (attribute) {
    case cudaMemPoolAttrReleaseThreshold:
      *static_cast<std::uint64_t*>(value) = release_threshold.load();
      return cudaSuccess;
    case cudaMemPoolAttrReservedMemCurrent:
    case cudaMemPoolAttrReservedMemHigh:
    case cudaMemPoolAttrUsedMemCurrent:
    case cudaMemPoolAttrUsedMemHigh:
      *static_cast<std::uint64_t*>(value) = machine().memory().used_bytes(device_of(pool));
      return cudaSuccess;
    default:
      *static_cast<int*>(value) = 1;  // reuse, in each of its ways, is allowed
      return cudaSuccess;
  }
}

SIMGPU_API cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute,
                                               void* value) {
  SIMGPU_CALL(call, cudaMemPoolSetAttribute_v11020, pool, attribute, value);
  if (!is_pool(pool) || value == nullptr) return failed(cudaErrorInvalidValue);
  if (attribute == cudaMemPoolAttrReleaseThreshold)
    release_threshold.store(*static_cast<const std::uint64_t*>(value));
  return cudaSuccess;
}

SIMGPU_API cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc* access,
                                            std::size_t count) {
  SIMGPU_CALL(call, cudaMemPoolSetAccess_v11020, pool, access, count);
  if (!is_pool(pool) || (access == nullptr && count != 0)) return failed(cudaErrorInvalidValue);
  return cudaSuccess;
}

SIMGPU_API cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, std::size_t bytes) {
  SIMGPU_CALL(call, cudaMemPoolTrimTo_v11020, pool, bytes);
  return is_pool(pool) ? cudaSuccess : failed(cudaErrorInvalidValue);
}
