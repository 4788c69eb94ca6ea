// Which devices are there, and what can they do?
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "runtime/api.h"
#include "runtime/capture.h"

using simgpu::Call;
using simgpu::failed;
using simgpu::is_device;
using simgpu::machine;

namespace {

constexpr int kVersion = CUDART_VERSION;
constexpr int kWarp = 32;
constexpr int kThreadsPerBlock = 1024;
constexpr int kRegisters = 65536;
constexpr int kSharedPerBlock = 48 << 10;
constexpr int kReservedShared = 1 << 10;
constexpr int kConstantBytes = 64 << 10;
constexpr int kLongestGrid = 2147483647;
constexpr int kGridSide = 65535;
constexpr int kBlockDepth = 64;
constexpr int kCopyEngines = 3;
constexpr int kPciBus = 1;

void describe(cudaDeviceProp& prop, int device) {
  const simgpu::DeviceProfile& profile = machine().profile();
  prop = {};
  const std::size_t length = std::min(profile.device_name.size(), sizeof(prop.name) - 1);
  std::memcpy(prop.name, profile.device_name.data(), length);
  constexpr char kUuid[] = "simulated-gpu-0";
  std::memcpy(prop.uuid.bytes, kUuid, sizeof(prop.uuid.bytes));
  prop.uuid.bytes[sizeof(prop.uuid.bytes) - 2] = static_cast<char>('0' + device);
  prop.totalGlobalMem = machine().memory().total_bytes();
  prop.sharedMemPerBlock = kSharedPerBlock;
  prop.regsPerBlock = kRegisters;
  prop.warpSize = kWarp;
  prop.memPitch = kLongestGrid;
  prop.maxThreadsPerBlock = kThreadsPerBlock;
  prop.maxThreadsDim[0] = prop.maxThreadsDim[1] = kThreadsPerBlock;
  prop.maxThreadsDim[2] = kBlockDepth;
  prop.maxGridSize[0] = kLongestGrid;
  prop.maxGridSize[1] = prop.maxGridSize[2] = kGridSide;
  prop.totalConstMem = kConstantBytes;
  prop.major = profile.major;
  prop.minor = profile.minor;
  prop.textureAlignment = 512;
  prop.texturePitchAlignment = 32;
  prop.multiProcessorCount = profile.multiprocessors;
  prop.canMapHostMemory = 1;
  prop.surfaceAlignment = 512;
  prop.concurrentKernels = 1;
  prop.pciBusID = kPciBus + device;
  prop.asyncEngineCount = kCopyEngines;
  prop.unifiedAddressing = 1;
  prop.memoryBusWidth = profile.memory_bus_bits;
  prop.l2CacheSize = static_cast<int>(profile.l2_bytes);
  prop.maxThreadsPerMultiProcessor = profile.threads_per_multiprocessor;
  prop.streamPrioritiesSupported = 1;
  prop.globalL1CacheSupported = 1;
  prop.localL1CacheSupported = 1;
  prop.sharedMemPerMultiprocessor =
      static_cast<std::size_t>(profile.shared_bytes_per_multiprocessor);
  prop.regsPerMultiprocessor = kRegisters;
  prop.managedMemory = 1;
  prop.multiGpuBoardGroupID = device;
  prop.concurrentManagedAccess = 1;
  prop.computePreemptionSupported = 1;
  prop.cooperativeLaunch = 1;
  prop.sharedMemPerBlockOptin = static_cast<std::size_t>(profile.shared_bytes_per_block_optin);
  prop.maxBlocksPerMultiProcessor = profile.blocks_per_multiprocessor;
  prop.reservedSharedMemPerBlock = kReservedShared;
  prop.hostRegisterSupported = 1;
  prop.memoryPoolsSupported = 1;
}

}  // namespace

SIMGPU_API cudaError_t cudaGetDeviceCount(int* count) {
  if (count == nullptr) return failed(cudaErrorInvalidValue);
  *count = machine().device_count();
  return *count == 0 ? failed(cudaErrorNoDevice) : cudaSuccess;
}

SIMGPU_API cudaError_t cudaGetDevice(int* device) {
  SIMGPU_CALL(call, cudaGetDevice_v3020, device);
  if (device == nullptr) return failed(cudaErrorInvalidValue);
  *device = simgpu::this_thread().device;
  return cudaSuccess;
}

SIMGPU_API cudaError_t cudaSetDevice(int device) {
  SIMGPU_CALL(call, cudaSetDevice_v3020, device);
  if (!is_device(device)) return failed(cudaErrorInvalidDevice);
  simgpu::this_thread().device = device;
  machine().enter_context(device);
  return cudaSuccess;
}

SIMGPU_API cudaError_t cudaDriverGetVersion(int* version) {
  if (version == nullptr) return failed(cudaErrorInvalidValue);
  *version = kVersion;
  return cudaSuccess;
}

SIMGPU_API cudaError_t cudaRuntimeGetVersion(int* version) {
  if (version == nullptr) return failed(cudaErrorInvalidValue);
  *version = kVersion;
  return cudaSuccess;
}

SIMGPU_API cudaError_t cudaGetDeviceProperties(cudaDeviceProp* prop, int device) {
  SIMGPU_CALL(call, cudaGetDeviceProperties_v12000, prop, device);
  if (prop == nullptr) return failed(cudaErrorInvalidValue);
  if (!is_device(device)) return failed(cudaErrorInvalidDevice);
  describe(*prop, device);
  return cudaSuccess;
}

SIMGPU_API cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  SIMGPU_CALL(call, cudaDeviceGetAttribute_v5000, value, attribute, device);
  if (value == nullptr) return failed(cudaErrorInvalidValue);
  if (!is_device(device)) return failed(cudaErrorInvalidDevice);
  const simgpu::DeviceProfile& profile = machine().profile();
  cudaDeviceProp prop;
  describe(prop, device);
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock:
      *value = prop.maxThreadsPerBlock;
      break;
    case cudaDevAttrMaxBlockDimX:
    case cudaDevAttrMaxBlockDimY:
      *value = kThreadsPerBlock;
      break;
    case cudaDevAttrMaxBlockDimZ:
      *value = kBlockDepth;
      break;
    case cudaDevAttrMaxGridDimX:
      *value = kLongestGrid;
      break;
    case cudaDevAttrMaxGridDimY:
    case cudaDevAttrMaxGridDimZ:
      *value = kGridSide;
      break;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      *value = kSharedPerBlock;
      break;
    case cudaDevAttrTotalConstantMemory:
      *value = kConstantBytes;
      break;
    case cudaDevAttrWarpSize:
      *value = kWarp;
      break;
    case cudaDevAttrMaxPitch:
      *value = kLongestGrid;
      break;
    case cudaDevAttrMaxRegistersPerBlock:
    case cudaDevAttrMaxRegistersPerMultiprocessor:
      *value = kRegisters;
      break;
    case cudaDevAttrClockRate:
      *value = profile.clock_khz;
      break;
    case cudaDevAttrMemoryClockRate:
      *value = profile.memory_clock_khz;
      break;
    case cudaDevAttrGlobalMemoryBusWidth:
      *value = profile.memory_bus_bits;
      break;
    case cudaDevAttrMultiProcessorCount:
      *value = profile.multiprocessors;
      break;
    case cudaDevAttrL2CacheSize:
      *value = prop.l2CacheSize;
      break;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      *value = profile.threads_per_multiprocessor;
      break;
    case cudaDevAttrMaxBlocksPerMultiprocessor:
      *value = profile.blocks_per_multiprocessor;
      break;
    case cudaDevAttrAsyncEngineCount:
      *value = kCopyEngines;
      break;
    case cudaDevAttrComputeCapabilityMajor:
      *value = profile.major;
      break;
    case cudaDevAttrComputeCapabilityMinor:
      *value = profile.minor;
      break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
      *value = profile.shared_bytes_per_multiprocessor;
      break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = profile.shared_bytes_per_block_optin;
      break;
    case cudaDevAttrReservedSharedMemoryPerBlock:
      *value = kReservedShared;
      break;
    case cudaDevAttrPciBusId:
      *value = prop.pciBusID;
      break;
    case cudaDevAttrMultiGpuBoardGroupID:
      *value = device;
      break;
    case cudaDevAttrConcurrentKernels:
    case cudaDevAttrUnifiedAddressing:
    case cudaDevAttrStreamPrioritiesSupported:
    case cudaDevAttrManagedMemory:
    case cudaDevAttrConcurrentManagedAccess:
    case cudaDevAttrCanMapHostMemory:
    case cudaDevAttrCooperativeLaunch:
    case cudaDevAttrComputePreemptionSupported:
    case cudaDevAttrHostRegisterSupported:
    case cudaDevAttrMemoryPoolsSupported:
    case cudaDevAttrGpuOverlap:
      *value = 1;
      break;
    default:
      *value = 0;  // what this device has not
      break;
  }
  return cudaSuccess;
}

SIMGPU_API cudaError_t cudaDeviceGetPCIBusId(char* id, int length, int device) {
  SIMGPU_CALL(call, cudaDeviceGetPCIBusId_v4010, id, length, device);
  if (id == nullptr || length <= 0) return failed(cudaErrorInvalidValue);
  if (!is_device(device)) return failed(cudaErrorInvalidDevice);
  std::snprintf(id, static_cast<std::size_t>(length), "0000:%02x:00.0", kPciBus + device);
  return cudaSuccess;
}

SIMGPU_API cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  SIMGPU_CALL(call, cudaDeviceCanAccessPeer_v4000, can, device, peer);
  if (can == nullptr) return failed(cudaErrorInvalidValue);
  if (!is_device(device) || !is_device(peer)) return failed(cudaErrorInvalidDevice);
  *can = device != peer ? 1 : 0;
  return cudaSuccess;
}

SIMGPU_API cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  SIMGPU_CALL(call, cudaDeviceEnablePeerAccess_v4000, peer, flags);
  if (flags != 0) return failed(cudaErrorInvalidValue);
  if (!is_device(peer) || peer == simgpu::this_thread().device)
    return failed(cudaErrorInvalidDevice);
  static std::atomic<std::uint64_t> enabled[64];
  const std::uint64_t bit = std::uint64_t{1} << peer;
  const auto device = static_cast<std::size_t>(simgpu::this_thread().device);
  const bool before = (enabled[device].fetch_or(bit) & bit) != 0;
  return before ? failed(cudaErrorPeerAccessAlreadyEnabled) : cudaSuccess;
}

SIMGPU_API cudaError_t cudaDeviceSynchronize() {
  SIMGPU_PLAIN_CALL(call, cudaDeviceSynchronize_v3020);
  if (const cudaError_t error = simgpu::allowed_now(); error != cudaSuccess) return failed(error);
  const simgpu::Device& device = simgpu::current_device();
  simgpu::synchronize(call,
                      {.kind = simgpu::Synchronization::Kind::kDevice, .device = device.number},
                      [&] { machine().wait_until(device.timeline.idle_at()); });
  return cudaSuccess;
}
