// Memory of the device and of the host, and what moves between them.
#include <cstring>

#include "runtime/api.h"

using simgpu::CopyPath;
using simgpu::failed;
using simgpu::machine;
using simgpu::MemoryKind;
using simgpu::Slot;
using simgpu::Stream;

namespace {

cudaError_t allocate(void** address, std::size_t bytes, MemoryKind kind) {
  if (address == nullptr) return failed(cudaErrorInvalidValue);
  *address = nullptr;
  if (bytes == 0) return cudaSuccess;
  if (machine().count_allocation())
    *address = machine().memory().allocate(kind, simgpu::this_thread().device, bytes);
  return *address == nullptr ? failed(cudaErrorMemoryAllocation) : cudaSuccess;
}

// Freeing waits for the device: what still runs may use it.
cudaError_t release(void* address) {
  if (address == nullptr) return cudaSuccess;
  const auto found = machine().memory().find(address);
  if (!found || found->base != address) return failed(cudaErrorInvalidValue);
  machine().wait_until(machine().device(found->device).timeline.idle_at());
  return machine().memory().free(address) ? cudaSuccess : failed(cudaErrorInvalidValue);
}

struct Route {
  CopyPath path;
  bool waits;  // also where the program asked for no waiting: pageable memory must be staged
};

Route route_of(const void* to, const void* from) {
  const auto target = machine().memory().find(to);
  const auto source = machine().memory().find(from);
  const bool to_device = target && target->kind != MemoryKind::kHost;
  const bool from_device = source && source->kind != MemoryKind::kHost;
  if (to_device && from_device)
    return {target->device == source->device ? CopyPath::kWithin : CopyPath::kPeer, false};
  if (to_device) return {CopyPath::kToDevice, !source};
  if (from_device) return {CopyPath::kToHost, !target};
  return {CopyPath::kOnHost, true};
}

bool fits(cudaMemcpyKind kind, CopyPath path) {
  switch (kind) {
    case cudaMemcpyHostToDevice:
      return path == CopyPath::kToDevice;
    case cudaMemcpyDeviceToHost:
      return path == CopyPath::kToHost;
    case cudaMemcpyDeviceToDevice:
      return path == CopyPath::kWithin || path == CopyPath::kPeer;
    case cudaMemcpyHostToHost:
      return path == CopyPath::kOnHost;
    case cudaMemcpyDefault:
      return true;
  }
  return false;
}

// The bytes are moved at once: whoever reads them later, after a synchronisation or from another
// stream that waited, finds them there.
cudaError_t copy(const simgpu::Call& call, void* to, const void* from, std::size_t bytes,
                 cudaMemcpyKind kind, const Stream& stream, bool wait) {
  if (bytes == 0) return cudaSuccess;
  if (to == nullptr || from == nullptr) return failed(cudaErrorInvalidValue);
  const Route route = route_of(to, from);
  if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault)
    return failed(cudaErrorInvalidMemcpyDirection);
  if (!fits(kind, route.path)) return failed(cudaErrorInvalidValue);
  std::memmove(to, from, bytes);
  const Slot slot = machine().run_copy(stream, route.path, bytes, call.correlation());
  if (wait || route.waits) machine().wait_until(slot.end_ns);
  return cudaSuccess;
}

cudaError_t set(const simgpu::Call& call, void* address, int value, std::size_t bytes,
                const Stream& stream) {
  if (bytes == 0) return cudaSuccess;
  const auto found = machine().memory().find(address);
  if (!found || found->base + found->bytes < static_cast<std::byte*>(address) + bytes)
    return failed(cudaErrorInvalidValue);
  if (found->registered) {
    std::memset(address, value, bytes);
  } else {
    simgpu::fill(address, value, bytes);
  }
  machine().run_fill(stream, value, bytes, call.correlation());
  return cudaSuccess;
}

}  // namespace

SIMGPU_API cudaError_t cudaMalloc(void** address, std::size_t bytes) {
  SIMGPU_CALL(call);
  return allocate(address, bytes, MemoryKind::kDevice);
}

SIMGPU_API cudaError_t cudaMallocManaged(void** address, std::size_t bytes, unsigned flags) {
  SIMGPU_CALL(call);
  if (flags != cudaMemAttachGlobal && flags != cudaMemAttachHost)
    return failed(cudaErrorInvalidValue);
  return allocate(address, bytes, MemoryKind::kManaged);
}

SIMGPU_API cudaError_t cudaMallocHost(void** address, std::size_t bytes) {
  SIMGPU_CALL(call);
  return allocate(address, bytes, MemoryKind::kHost);
}

SIMGPU_API cudaError_t cudaHostAlloc(void** address, std::size_t bytes, unsigned /*flags*/) {
  SIMGPU_CALL(call);
  return allocate(address, bytes, MemoryKind::kHost);
}

SIMGPU_API cudaError_t cudaFree(void* address) {
  SIMGPU_CALL(call);
  return release(address);
}

SIMGPU_API cudaError_t cudaFreeHost(void* address) {
  SIMGPU_CALL(call);
  return release(address);
}

SIMGPU_API cudaError_t cudaHostRegister(void* address, std::size_t bytes, unsigned /*flags*/) {
  SIMGPU_CALL(call);
  if (address == nullptr || bytes == 0) return failed(cudaErrorInvalidValue);
  return machine().memory().add_registered(address, bytes, simgpu::this_thread().device)
             ? cudaSuccess
             : failed(cudaErrorHostMemoryAlreadyRegistered);
}

SIMGPU_API cudaError_t cudaHostUnregister(void* address) {
  SIMGPU_CALL(call);
  return machine().memory().remove_registered(address) ? cudaSuccess
                                                       : failed(cudaErrorHostMemoryNotRegistered);
}

SIMGPU_API cudaError_t cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes) {
  SIMGPU_CALL(call);
  if (free_bytes == nullptr || total_bytes == nullptr) return failed(cudaErrorInvalidValue);
  *total_bytes = machine().memory().total_bytes();
  *free_bytes = *total_bytes - machine().memory().used_bytes(simgpu::this_thread().device);
  return cudaSuccess;
}

SIMGPU_API cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes,
                                  cudaMemcpyKind kind) {
  SIMGPU_CALL(call);
  return copy(call, to, from, bytes, kind, simgpu::stream_of(nullptr), /*wait=*/true);
}

SIMGPU_API cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes,
                                       cudaMemcpyKind kind, cudaStream_t stream) {
  SIMGPU_CALL(call);
  return copy(call, to, from, bytes, kind, simgpu::stream_of(stream), /*wait=*/false);
}

SIMGPU_API cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from,
                                         std::size_t from_pitch, std::size_t width,
                                         std::size_t height, cudaMemcpyKind kind,
                                         cudaStream_t stream) {
  SIMGPU_CALL(call);
  if (width > to_pitch || width > from_pitch) return failed(cudaErrorInvalidPitchValue);
  if (width == 0 || height == 0) return cudaSuccess;
  if (to == nullptr || from == nullptr) return failed(cudaErrorInvalidValue);
  const Route route = route_of(to, from);
  if (!fits(kind, route.path)) return failed(cudaErrorInvalidValue);
  for (std::size_t row = 0; row < height; ++row) {
    std::memmove(static_cast<std::byte*>(to) + row * to_pitch,
                 static_cast<const std::byte*>(from) + row * from_pitch, width);
  }
  const Slot slot =
      machine().run_copy(simgpu::stream_of(stream), route.path, width * height, call.correlation());
  if (route.waits) machine().wait_until(slot.end_ns);
  return cudaSuccess;
}

SIMGPU_API cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from,
                                           int from_device, std::size_t bytes,
                                           cudaStream_t stream) {
  SIMGPU_CALL(call);
  if (!simgpu::is_device(to_device) || !simgpu::is_device(from_device))
    return failed(cudaErrorInvalidDevice);
  return copy(call, to, from, bytes, cudaMemcpyDefault, simgpu::stream_of(stream), /*wait=*/false);
}

SIMGPU_API cudaError_t cudaMemset(void* address, int value, std::size_t bytes) {
  SIMGPU_CALL(call);
  return set(call, address, value, bytes, simgpu::stream_of(nullptr));
}

SIMGPU_API cudaError_t cudaMemsetAsync(void* address, int value, std::size_t bytes,
                                       cudaStream_t stream) {
  SIMGPU_CALL(call);
  return set(call, address, value, bytes, simgpu::stream_of(stream));
}

SIMGPU_API cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes,
                                                const void* address) {
  SIMGPU_CALL(call);
  if (attributes == nullptr) return failed(cudaErrorInvalidValue);
  *attributes = {};
  attributes->type = cudaMemoryTypeUnregistered;
  attributes->device = cudaInvalidDeviceId;
  const auto found = machine().memory().find(address);
  if (!found) return cudaSuccess;
  void* pointer = const_cast<void*>(address);
  attributes->device = found->device;
  attributes->devicePointer = pointer;
  switch (found->kind) {
    case MemoryKind::kDevice:
      attributes->type = cudaMemoryTypeDevice;
      break;
    case MemoryKind::kHost:
      attributes->type = cudaMemoryTypeHost;
      attributes->hostPointer = pointer;
      break;
    case MemoryKind::kManaged:
      attributes->type = cudaMemoryTypeManaged;
      attributes->hostPointer = pointer;
      break;
  }
  return cudaSuccess;
}
