// Memory of the device and of the host, and what moves between them.
#include <cstring>

#include "runtime/api.h"
#include "runtime/capture.h"

using simgpu::CopyPath;
using simgpu::failed;
using simgpu::machine;
using simgpu::MemoryKind;
using simgpu::Stream;

namespace {

cudaError_t allocate(void** address, std::size_t bytes, MemoryKind kind) {
  if (address == nullptr) return failed(cudaErrorInvalidValue);
  *address = nullptr;
  if (const cudaError_t error = simgpu::allowed_now(); error != cudaSuccess) return failed(error);
  if (bytes == 0) return cudaSuccess;
  if (machine().count_allocation())
    *address = machine().memory().allocate(kind, simgpu::this_thread().device, bytes);
  return *address == nullptr ? failed(cudaErrorMemoryAllocation) : cudaSuccess;
}

// Freeing waits for the device: what still runs may use it.
cudaError_t release(void* address) {
  if (address == nullptr) return cudaSuccess;
  if (const cudaError_t error = simgpu::allowed_now(); error != cudaSuccess) return failed(error);
  const auto found = machine().memory().find(address);
  if (!found || found->base != address) return failed(cudaErrorInvalidValue);
  machine().wait_until(machine().device(found->device).timeline.idle_at());
  return machine().memory().free(address) ? cudaSuccess : failed(cudaErrorInvalidValue);
}

struct Route {
  CopyPath path;
  int to_device;
  bool waits;  // also where the program asked for no waiting: pageable memory must be staged
};

Route route_of(const void* to, const void* from) {
  const auto target = machine().memory().find(to);
  const auto source = machine().memory().find(from);
  const bool to_device = target && target->kind != MemoryKind::kHost;
  const bool from_device = source && source->kind != MemoryKind::kHost;
  if (to_device && from_device) {
    const bool within = target->device == source->device;
    return {within ? CopyPath::kWithin : CopyPath::kPeer, target->device, false};
  }
  if (to_device) return {CopyPath::kToDevice, target->device, !source};
  if (from_device) return {CopyPath::kToHost, 0, !target};
  return {CopyPath::kOnHost, 0, true};
}

// Whether the memory that an address is in, if it is the runtime's, goes on for so many bytes.
bool reaches(const void* address, std::size_t bytes) {
  const auto found = machine().memory().find(address);
  if (!found) return true;
  const auto used = static_cast<std::size_t>(static_cast<const std::byte*>(address) - found->base);
  return bytes <= found->bytes - used;
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

simgpu::Task copy_task(const Route& route, std::size_t bytes, bool is_async) {
  simgpu::Task task = machine().copy(route.path, bytes);
  task.activity.from_pageable = route.path == CopyPath::kToDevice && route.waits;
  task.activity.to_pageable = route.path == CopyPath::kToHost && route.waits;
  task.activity.peer_device = route.to_device;
  task.activity.is_async = is_async;
  return task;
}

// The bytes are moved at once: whoever reads them later, after a synchronisation or from another
// stream that waited, finds them there.
cudaError_t copy(const simgpu::Call& call, void* to, const void* from, std::size_t bytes,
                 cudaMemcpyKind kind, Stream& stream, bool wait) {
  if (bytes == 0) return cudaSuccess;
  if (to == nullptr || from == nullptr) return failed(cudaErrorInvalidValue);
  const Route route = route_of(to, from);
  if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault)
    return failed(cudaErrorInvalidMemcpyDirection);
  if (!fits(kind, route.path) || !reaches(to, bytes) || !reaches(from, bytes))
    return failed(cudaErrorInvalidValue);
  std::uint64_t end_ns = 0;
  const cudaError_t result = simgpu::submit(
      call, stream, copy_task(route, bytes, !wait), [=] { std::memmove(to, from, bytes); },
      &end_ns);
  if (wait || route.waits) machine().wait_until(end_ns, machine().dues_of(stream, end_ns));
  return result;
}

cudaError_t set(const simgpu::Call& call, void* address, int value, std::size_t bytes,
                Stream& stream, bool is_async) {
  if (bytes == 0) return cudaSuccess;
  const auto found = machine().memory().find(address);
  if (!found || found->base + found->bytes < static_cast<std::byte*>(address) + bytes)
    return failed(cudaErrorInvalidValue);
  const bool registered = found->registered;
  simgpu::Task task = machine().fill(value, bytes);
  task.activity.is_async = is_async;
  std::uint64_t end_ns = 0;
  return simgpu::submit(
      call, stream, task,
      [=] {
        if (registered) {
          std::memset(address, value, bytes);
        } else {
          simgpu::fill(address, value, bytes);
        }
      },
      &end_ns);
}

}  // namespace

SIMGPU_API cudaError_t cudaMalloc(void** address, std::size_t bytes) {
  SIMGPU_CALL(call, cudaMalloc_v3020, address, bytes);
  return allocate(address, bytes, MemoryKind::kDevice);
}

SIMGPU_API cudaError_t cudaMallocManaged(void** address, std::size_t bytes, unsigned flags) {
  SIMGPU_CALL(call, cudaMallocManaged_v6000, address, bytes, flags);
  if (flags != cudaMemAttachGlobal && flags != cudaMemAttachHost)
    return failed(cudaErrorInvalidValue);
  return allocate(address, bytes, MemoryKind::kManaged);
}

SIMGPU_API cudaError_t cudaMallocHost(void** address, std::size_t bytes) {
  SIMGPU_CALL(call, cudaMallocHost_v3020, address, bytes);
  return allocate(address, bytes, MemoryKind::kHost);
}

SIMGPU_API cudaError_t cudaHostAlloc(void** address, std::size_t bytes, unsigned flags) {
  SIMGPU_CALL(call, cudaHostAlloc_v3020, address, bytes, flags);
  return allocate(address, bytes, MemoryKind::kHost);
}

SIMGPU_API cudaError_t cudaFree(void* address) {
  SIMGPU_CALL(call, cudaFree_v3020, address);
  return release(address);
}

SIMGPU_API cudaError_t cudaFreeHost(void* address) {
  SIMGPU_CALL(call, cudaFreeHost_v3020, address);
  return release(address);
}

SIMGPU_API cudaError_t cudaHostRegister(void* address, std::size_t bytes, unsigned flags) {
  SIMGPU_CALL(call, cudaHostRegister_v4000, address, bytes, flags);
  if (address == nullptr || bytes == 0) return failed(cudaErrorInvalidValue);
  return machine().memory().add_registered(address, bytes, simgpu::this_thread().device)
             ? cudaSuccess
             : failed(cudaErrorHostMemoryAlreadyRegistered);
}

SIMGPU_API cudaError_t cudaHostUnregister(void* address) {
  SIMGPU_CALL(call, cudaHostUnregister_v4000, address);
  return machine().memory().remove_registered(address) ? cudaSuccess
                                                       : failed(cudaErrorHostMemoryNotRegistered);
}

SIMGPU_API cudaError_t cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes) {
  SIMGPU_CALL(call, cudaMemGetInfo_v3020, free_bytes, total_bytes);
  if (free_bytes == nullptr || total_bytes == nullptr) return failed(cudaErrorInvalidValue);
  *total_bytes = machine().memory().total_bytes();
  *free_bytes = *total_bytes - machine().memory().used_bytes(simgpu::this_thread().device);
  return cudaSuccess;
}

SIMGPU_API cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes,
                                  cudaMemcpyKind kind) {
  SIMGPU_CALL(call, cudaMemcpy_v3020, to, from, bytes, kind);
  return copy(call, to, from, bytes, kind, simgpu::stream_of(nullptr), /*wait=*/true);
}

SIMGPU_API cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes,
                                       cudaMemcpyKind kind, cudaStream_t stream) {
  SIMGPU_CALL(call, cudaMemcpyAsync_v3020, to, from, bytes, kind, stream);
  return copy(call, to, from, bytes, kind, simgpu::stream_of(stream), /*wait=*/false);
}

SIMGPU_API cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from,
                                         std::size_t from_pitch, std::size_t width,
                                         std::size_t height, cudaMemcpyKind kind,
                                         cudaStream_t stream) {
  SIMGPU_CALL(call, cudaMemcpy2DAsync_v3020, to, to_pitch, from, from_pitch, width, height, kind,
              stream);
  if (width > to_pitch || width > from_pitch) return failed(cudaErrorInvalidPitchValue);
  if (width == 0 || height == 0) return cudaSuccess;
  if (to == nullptr || from == nullptr) return failed(cudaErrorInvalidValue);
  const Route route = route_of(to, from);
  if (!fits(kind, route.path) || !reaches(to, (height - 1) * to_pitch + width) ||
      !reaches(from, (height - 1) * from_pitch + width))
    return failed(cudaErrorInvalidValue);
  std::uint64_t end_ns = 0;
  const cudaError_t result = simgpu::submit(
      call, simgpu::stream_of(stream), copy_task(route, width * height, /*is_async=*/true),
      [=] {
        for (std::size_t row = 0; row < height; ++row) {
          std::memmove(static_cast<std::byte*>(to) + row * to_pitch,
                       static_cast<const std::byte*>(from) + row * from_pitch, width);
        }
      },
      &end_ns);
  if (route.waits)
    machine().wait_until(end_ns, machine().dues_of(simgpu::stream_of(stream), end_ns));
  return result;
}

SIMGPU_API cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from,
                                           int from_device, std::size_t bytes,
                                           cudaStream_t stream) {
  SIMGPU_CALL(call, cudaMemcpyPeerAsync_v4000, to, to_device, from, from_device, bytes, stream);
  if (!simgpu::is_device(to_device) || !simgpu::is_device(from_device))
    return failed(cudaErrorInvalidDevice);
  return copy(call, to, from, bytes, cudaMemcpyDefault, simgpu::stream_of(stream), /*wait=*/false);
}

SIMGPU_API cudaError_t cudaMemset(void* address, int value, std::size_t bytes) {
  SIMGPU_CALL(call, cudaMemset_v3020, address, value, bytes);
  return set(call, address, value, bytes, simgpu::stream_of(nullptr), /*is_async=*/false);
}

SIMGPU_API cudaError_t cudaMemsetAsync(void* address, int value, std::size_t bytes,
                                       cudaStream_t stream) {
  SIMGPU_CALL(call, cudaMemsetAsync_v3020, address, value, bytes, stream);
  return set(call, address, value, bytes, simgpu::stream_of(stream), /*is_async=*/true);
}

SIMGPU_API cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes,
                                                const void* address) {
  SIMGPU_CALL(call, cudaPointerGetAttributes_v4000, attributes, address);
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
