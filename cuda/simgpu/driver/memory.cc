// Addresses and memory apart from each other: a program reserves the one, creates the other, and
// maps them. PyTorch's expandable segments are made of it.
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>

#include "driver/api.h"
#include "runtime/capture.h"

using simgpu::machine;
using simgpu::MemoryKind;
using simgpu::driver::failed;
using simgpu::driver::result_of;

namespace {

constexpr std::size_t kGranularity = std::size_t{2} << 20;

struct Handle {
  int device;
  std::size_t bytes;
  std::atomic<int> references{1};
};
// CUDA has its handles and addresses as numbers. NOLINTBEGIN(performance-no-int-to-ptr)
Handle* handle_of(CUmemGenericAllocationHandle handle) { return reinterpret_cast<Handle*>(handle); }
void* pointer(CUdeviceptr address) { return reinterpret_cast<void*>(address); }
// NOLINTEND(performance-no-int-to-ptr)

void release(Handle* handle) {
  if (handle->references.fetch_sub(1) != 1) return;
  machine().memory().give(handle->device, handle->bytes);
  delete handle;
}

// What is mapped where, so that unmapping gives the memory back.
struct Mapping {
  std::size_t bytes;
  Handle* memory;
};
struct Mappings {
  std::mutex mutex;
  std::map<CUdeviceptr, Mapping> by_address;

  // Whether the range is all mapped, from the beginning of one mapping to the end of another.
  bool covers(CUdeviceptr address, std::size_t bytes) const {
    std::size_t covered = 0;
    for (auto each = by_address.find(address); covered < bytes; ++each) {
      if (each == by_address.end() || each->first != address + covered) return false;
      covered += each->second.bytes;
    }
    return bytes != 0 && covered == bytes;
  }
};
Mappings& mappings() {
  static auto* instance = new Mappings;  // used while the program exits
  return *instance;
}

}  // namespace

SIMGPU_API CUresult cuMemGetAllocationGranularity(std::size_t* granularity,
                                                  const CUmemAllocationProp* properties,
                                                  CUmemAllocationGranularity_flags option) {
  SIMGPU_DRIVER_CALL(call, cuMemGetAllocationGranularity, granularity, properties, option);
  if (granularity == nullptr || properties == nullptr) return failed(CUDA_ERROR_INVALID_VALUE);
  *granularity = kGranularity;
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult cuMemAddressReserve(CUdeviceptr* address, std::size_t bytes,
                                        std::size_t alignment, CUdeviceptr wish,
                                        unsigned long long flags) {
  SIMGPU_DRIVER_CALL(call, cuMemAddressReserve, address, bytes, alignment, wish, flags);
  if (address == nullptr || bytes == 0 || bytes % kGranularity != 0)
    return failed(CUDA_ERROR_INVALID_VALUE);
  // More than asked for, of which what is not aligned is given back.
  const std::size_t aligned = std::max(alignment, kGranularity);
  void* base = mmap(nullptr, bytes + aligned, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return failed(CUDA_ERROR_OUT_OF_MEMORY);
  const auto begin = reinterpret_cast<CUdeviceptr>(base);
  *address = (begin + aligned - 1) / aligned * aligned;
  const std::size_t head = *address - begin;
  if (head != 0) munmap(base, head);
  munmap(pointer(*address + bytes), aligned - head);
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult cuMemAddressFree(CUdeviceptr address, std::size_t bytes) {
  SIMGPU_DRIVER_CALL(call, cuMemAddressFree, address, bytes);
  return munmap(pointer(address), bytes) == 0 ? CUDA_SUCCESS : failed(CUDA_ERROR_INVALID_VALUE);
}

SIMGPU_API CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, std::size_t bytes,
                                const CUmemAllocationProp* properties, unsigned long long flags) {
  SIMGPU_DRIVER_CALL(call, cuMemCreate, handle, bytes, properties, flags);
  if (handle == nullptr || properties == nullptr || bytes == 0 || bytes % kGranularity != 0)
    return failed(CUDA_ERROR_INVALID_VALUE);
  const int device = properties->location.id;
  if (!simgpu::is_device(device)) return failed(CUDA_ERROR_INVALID_DEVICE);
  if (!machine().count_allocation() || !machine().memory().take(device, bytes))
    return failed(CUDA_ERROR_OUT_OF_MEMORY);
  *handle = reinterpret_cast<CUmemGenericAllocationHandle>(new Handle{device, bytes});
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  SIMGPU_DRIVER_CALL(call, cuMemRelease, handle);
  if (handle == 0) return failed(CUDA_ERROR_INVALID_VALUE);
  release(handle_of(handle));
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult cuMemMap(CUdeviceptr address, std::size_t bytes, std::size_t offset,
                             CUmemGenericAllocationHandle handle, unsigned long long flags) {
  SIMGPU_DRIVER_CALL(call, cuMemMap, address, bytes, offset, handle, flags);
  if (handle == 0 || bytes == 0 || bytes % kGranularity != 0 || offset != 0 || flags != 0)
    return failed(CUDA_ERROR_INVALID_VALUE);
  Handle* memory = handle_of(handle);
  if (bytes > memory->bytes) return failed(CUDA_ERROR_INVALID_VALUE);
  if (!machine().memory().add_registered(pointer(address), bytes, memory->device,
                                         MemoryKind::kDevice))
    return failed(CUDA_ERROR_ALREADY_MAPPED);
  memory->references.fetch_add(1);
  const std::lock_guard lock(mappings().mutex);
  mappings().by_address[address] = {bytes, memory};
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult cuMemUnmap(CUdeviceptr address, std::size_t bytes) {
  SIMGPU_DRIVER_CALL(call, cuMemUnmap, address, bytes);
  const std::lock_guard lock(mappings().mutex);
  auto& all = mappings().by_address;
  if (!mappings().covers(address, bytes)) return failed(CUDA_ERROR_INVALID_VALUE);
  const auto first = all.find(address);
  const auto last = all.lower_bound(address + bytes);
  for (auto each = first; each != last; ++each) {
    machine().memory().remove_registered(pointer(each->first));
    release(each->second.memory);
  }
  all.erase(first, last);
  madvise(pointer(address), bytes, MADV_DONTNEED);  // what is mapped there next begins as zeros
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult cuMemSetAccess(CUdeviceptr address, std::size_t bytes,
                                   const CUmemAccessDesc* access, std::size_t count) {
  SIMGPU_DRIVER_CALL(call, cuMemSetAccess, address, bytes, access, count);
  const std::lock_guard lock(mappings().mutex);
  const bool known = access != nullptr && mappings().covers(address, bytes);
  return known ? CUDA_SUCCESS : failed(CUDA_ERROR_INVALID_VALUE);
}

SIMGPU_API CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle,
                                                void* address) {
  const std::lock_guard lock(mappings().mutex);
  const auto found = mappings().by_address.find(reinterpret_cast<CUdeviceptr>(address));
  if (handle == nullptr || found == mappings().by_address.end()) return CUDA_ERROR_INVALID_VALUE;
  found->second.memory->references.fetch_add(1);
  *handle = reinterpret_cast<CUmemGenericAllocationHandle>(found->second.memory);
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* properties,
                                                           CUmemGenericAllocationHandle handle) {
  if (properties == nullptr || handle == 0) return CUDA_ERROR_INVALID_VALUE;
  *properties = {};
  properties->type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties->location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties->location.id = handle_of(handle)->device;
  return CUDA_SUCCESS;
}

// ---- What an address is ----

SIMGPU_API CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, std::size_t* bytes,
                                            CUdeviceptr address) {
  SIMGPU_DRIVER_CALL(call, cuMemGetAddressRange_v2, base, bytes, address);
  const auto found = machine().memory().find(pointer(address));
  if (!found) return failed(CUDA_ERROR_NOT_FOUND);
  if (base != nullptr) *base = reinterpret_cast<CUdeviceptr>(found->base);
  if (bytes != nullptr) *bytes = found->bytes;
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult cuPointerGetAttribute(void* value, CUpointer_attribute attribute,
                                          CUdeviceptr address) {
  SIMGPU_DRIVER_CALL(call, cuPointerGetAttribute, value, attribute, address);
  if (value == nullptr) return failed(CUDA_ERROR_INVALID_VALUE);
  const auto found = machine().memory().find(pointer(address));
  if (!found) return failed(CUDA_ERROR_INVALID_VALUE);
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      *static_cast<CUcontext*>(value) = simgpu::driver::context_of(found->device);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      *static_cast<unsigned*>(value) =
          found->kind == MemoryKind::kHost ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      if (found->kind == MemoryKind::kDevice) return failed(CUDA_ERROR_INVALID_VALUE);
      [[fallthrough]];
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      *static_cast<CUdeviceptr*>(value) = address;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      *static_cast<int*>(value) = found->device;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      *static_cast<unsigned*>(value) = found->kind == MemoryKind::kManaged ? 1 : 0;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      *static_cast<CUdeviceptr*>(value) = reinterpret_cast<CUdeviceptr>(found->base);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      *static_cast<std::size_t*>(value) = found->bytes;
      return CUDA_SUCCESS;
    default:
      return failed(CUDA_ERROR_NOT_SUPPORTED);
  }
}

SIMGPU_API CUresult cuMemsetD32Async(CUdeviceptr address, unsigned value, std::size_t count,
                                     CUstream stream) {
  SIMGPU_DRIVER_CALL(call, cuMemsetD32Async, address, value, count, stream);
  const std::size_t bytes = count * sizeof value;
  const auto found = machine().memory().find(pointer(address));
  if (!found || found->base + found->bytes < static_cast<std::byte*>(pointer(address)) + bytes)
    return failed(CUDA_ERROR_INVALID_VALUE);
  std::uint64_t end_ns = 0;
  return result_of(simgpu::submit(
      call, simgpu::stream_of(stream), machine().fill(static_cast<int>(value), bytes),
      [=] { std::fill_n(static_cast<unsigned*>(pointer(address)), count, value); }, &end_ns));
}

SIMGPU_API CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value,
                                            unsigned flags) {
  SIMGPU_DRIVER_CALL(call, cuStreamWriteValue32_v2, stream, address, value, flags);
  if (address == 0) return failed(CUDA_ERROR_INVALID_VALUE);
  const simgpu::Stream& of = simgpu::stream_of(stream);
  if (is_capturing(of)) return failed(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  machine().apply(of, simgpu::timeline_of(of).idle_at(of.queue),
                  [=] { *static_cast<cuuint32_t*>(pointer(address)) = value; });
  return CUDA_SUCCESS;
}

// ---- Memory of other processes and of many devices at once: not simulated ----

SIMGPU_API CUresult cuMemExportToShareableHandle(void* /*shareable*/,
                                                 CUmemGenericAllocationHandle /*handle*/,
                                                 CUmemAllocationHandleType /*type*/,
                                                 unsigned long long /*flags*/) {
  return CUDA_ERROR_NOT_SUPPORTED;
}
SIMGPU_API CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* /*handle*/,
                                                   void* /*shareable*/,
                                                   CUmemAllocationHandleType /*type*/) {
  return CUDA_ERROR_NOT_SUPPORTED;
}
SIMGPU_API CUresult cuMulticastCreate(CUmemGenericAllocationHandle* /*handle*/,
                                      const CUmulticastObjectProp* /*properties*/) {
  return CUDA_ERROR_NOT_SUPPORTED;
}
SIMGPU_API CUresult cuMulticastAddDevice(CUmemGenericAllocationHandle /*handle*/,
                                         CUdevice /*device*/) {
  return CUDA_ERROR_NOT_SUPPORTED;
}
SIMGPU_API CUresult cuMulticastBindMem(CUmemGenericAllocationHandle /*multicast*/,
                                       std::size_t /*at*/, CUmemGenericAllocationHandle /*memory*/,
                                       std::size_t /*offset*/, std::size_t /*bytes*/,
                                       unsigned long long /*flags*/) {
  return CUDA_ERROR_NOT_SUPPORTED;
}
SIMGPU_API CUresult cuMulticastUnbind(CUmemGenericAllocationHandle /*multicast*/,
                                      CUdevice /*device*/, std::size_t /*offset*/,
                                      std::size_t /*bytes*/) {
  return CUDA_ERROR_NOT_SUPPORTED;
}
