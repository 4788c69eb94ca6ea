// Devices and contexts, and what the driver says of itself.
#include <cstring>
#include <string>
#include <vector>

#include "driver/api.h"

using simgpu::machine;
using simgpu::driver::context_of;
using simgpu::driver::failed;
using simgpu::driver::result_of;

namespace {

bool is_device(CUdevice device) { return simgpu::is_device(device); }

// The devices that were current before a context was pushed.
std::vector<int>& pushed() {
  static thread_local std::vector<int> devices;
  return devices;
}

int device_of(CUcontext context) { return reinterpret_cast<simgpu::Device*>(context)->number; }

const char* name_of(CUresult error) {
  switch (error) {
#define SIMGPU_ERROR(name) \
  case name:               \
    return #name;
#include "cuda_driver_errors.inc"
#undef SIMGPU_ERROR
    default:
      return nullptr;
  }
}

}  // namespace

SIMGPU_API CUresult cuInit(unsigned /*flags*/) {
  return machine().device_count() != 0 ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

SIMGPU_API CUresult cuDriverGetVersion(int* version) {
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *version = CUDA_VERSION;
  return CUDA_SUCCESS;
}

// ---- Devices ----

SIMGPU_API CUresult cuDeviceGetCount(int* count) {
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *count = machine().device_count();
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  SIMGPU_DRIVER_CALL(call, cuDeviceGet, device, ordinal);
  if (device == nullptr) return failed(CUDA_ERROR_INVALID_VALUE);
  if (!is_device(ordinal)) return failed(CUDA_ERROR_INVALID_DEVICE);
  *device = ordinal;
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult cuDeviceGetName(char* name, int length, CUdevice device) {
  SIMGPU_DRIVER_CALL(call, cuDeviceGetName, name, length, device);
  if (name == nullptr || length <= 0) return failed(CUDA_ERROR_INVALID_VALUE);
  if (!is_device(device)) return failed(CUDA_ERROR_INVALID_DEVICE);
  const std::string_view whole = machine().profile().device_name;
  const std::size_t copied = whole.copy(name, static_cast<std::size_t>(length) - 1);
  name[copied] = '\0';
  return CUDA_SUCCESS;
}

// The driver numbers a device's attributes as the runtime does.
SIMGPU_API CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute,
                                         CUdevice device) {
  SIMGPU_DRIVER_CALL(call, cuDeviceGetAttribute, value, attribute, device);
  const auto as_runtime = static_cast<cudaDeviceAttr>(attribute);
  return result_of(cudaDeviceGetAttribute(value, as_runtime, device));
}

SIMGPU_API CUresult cuDeviceTotalMem_v2(std::size_t* bytes, CUdevice device) {
  SIMGPU_DRIVER_CALL(call, cuDeviceTotalMem_v2, bytes, device);
  if (bytes == nullptr) return failed(CUDA_ERROR_INVALID_VALUE);
  if (!is_device(device)) return failed(CUDA_ERROR_INVALID_DEVICE);
  *bytes = machine().memory().total_bytes();
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
  SIMGPU_DRIVER_CALL(call, cuDeviceGetUuid, uuid, device);
  if (!is_device(device)) return failed(CUDA_ERROR_INVALID_DEVICE);
  cudaDeviceProp properties;
  const cudaError_t result = cudaGetDeviceProperties(&properties, device);
  if (result == cudaSuccess && uuid != nullptr) std::memcpy(uuid, &properties.uuid, sizeof *uuid);
  return result_of(result);
}
SIMGPU_API CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  return cuDeviceGetUuid(uuid, device);
}

// ---- Contexts ----

SIMGPU_API CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  SIMGPU_DRIVER_CALL(call, cuDevicePrimaryCtxRetain, context, device);
  if (context == nullptr) return failed(CUDA_ERROR_INVALID_VALUE);
  if (!is_device(device)) return failed(CUDA_ERROR_INVALID_DEVICE);
  machine().enter_context(device);
  *context = context_of(device);
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  SIMGPU_DRIVER_CALL(call, cuDevicePrimaryCtxRelease_v2, device);
  return is_device(device) ? CUDA_SUCCESS : failed(CUDA_ERROR_INVALID_DEVICE);
}

SIMGPU_API CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {
  // No context comes of asking whether there is one.
  if (flags == nullptr || active == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  *flags = 0;
  *active = machine().device(device).has_context ? 1 : 0;
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult cuCtxGetCurrent(CUcontext* context) {
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (machine().device_count() == 0) return CUDA_ERROR_NO_DEVICE;
  const int device = simgpu::this_thread().device;
  *context = machine().device(device).has_context ? context_of(device) : nullptr;
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult cuCtxSetCurrent(CUcontext context) {
  SIMGPU_DRIVER_CALL(call, cuCtxSetCurrent, context);
  if (context != nullptr) simgpu::this_thread().device = device_of(context);
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult cuCtxPushCurrent_v2(CUcontext context) {
  SIMGPU_DRIVER_CALL(call, cuCtxPushCurrent_v2, context);
  if (context == nullptr) return failed(CUDA_ERROR_INVALID_CONTEXT);
  pushed().push_back(simgpu::this_thread().device);
  simgpu::this_thread().device = device_of(context);
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult cuCtxPopCurrent_v2(CUcontext* context) {
  SIMGPU_DRIVER_CALL(call, cuCtxPopCurrent_v2, context);
  if (context != nullptr) *context = context_of(simgpu::this_thread().device);
  if (!pushed().empty()) {
    simgpu::this_thread().device = pushed().back();
    pushed().pop_back();
  }
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult cuCtxGetDevice(CUdevice* device) {
  SIMGPU_DRIVER_CALL(call, cuCtxGetDevice, device);
  if (device == nullptr) return failed(CUDA_ERROR_INVALID_VALUE);
  *device = simgpu::this_thread().device;
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult cuCtxSynchronize() {
  const simgpu::Call call(simgpu::Api::kDriver, CUPTI_DRIVER_TRACE_CBID_cuCtxSynchronize,
                          "cuCtxSynchronize", nullptr);
  return result_of(cudaDeviceSynchronize());
}

SIMGPU_API CUresult cuStreamGetCtx(CUstream stream, CUcontext* context) {
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (machine().device_count() == 0) return CUDA_ERROR_NO_DEVICE;
  *context = context_of(simgpu::stream_of(stream).device);
  return CUDA_SUCCESS;
}

// ---- Parts of a device: not simulated ----

SIMGPU_API CUresult cuDeviceGetDevResource(CUdevice /*device*/, CUdevResource* /*resource*/,
                                           CUdevResourceType /*type*/) {
  return CUDA_ERROR_NOT_SUPPORTED;
}
SIMGPU_API CUresult cuDevResourceGenerateDesc(CUdevResourceDesc* /*description*/,
                                              CUdevResource* /*resources*/, unsigned /*count*/) {
  return CUDA_ERROR_NOT_SUPPORTED;
}
SIMGPU_API CUresult cuDevSmResourceSplitByCount(CUdevResource* /*result*/, unsigned* /*groups*/,
                                                const CUdevResource* /*input*/,
                                                CUdevResource* /*remaining*/, unsigned /*flags*/,
                                                unsigned /*least*/) {
  return CUDA_ERROR_NOT_SUPPORTED;
}
SIMGPU_API CUresult cuGreenCtxCreate(CUgreenCtx* /*context*/, CUdevResourceDesc /*description*/,
                                     CUdevice /*device*/, unsigned /*flags*/) {
  return CUDA_ERROR_NOT_SUPPORTED;
}
SIMGPU_API CUresult cuGreenCtxDestroy(CUgreenCtx /*context*/) { return CUDA_ERROR_NOT_SUPPORTED; }
SIMGPU_API CUresult cuCtxFromGreenCtx(CUcontext* /*context*/, CUgreenCtx /*green*/) {
  return CUDA_ERROR_NOT_SUPPORTED;
}
SIMGPU_API CUresult cuGreenCtxStreamCreate(CUstream* /*stream*/, CUgreenCtx /*context*/,
                                           unsigned /*flags*/, int /*priority*/) {
  return CUDA_ERROR_NOT_SUPPORTED;
}

// The driver has nothing to log.
SIMGPU_API CUresult cuLogsRegisterCallback(CUlogsCallback /*callback*/, void* /*data*/,
                                           CUlogsCallbackHandle* /*handle*/) {
  return CUDA_ERROR_NOT_SUPPORTED;
}
SIMGPU_API CUresult cuLogsUnregisterCallback(CUlogsCallbackHandle /*handle*/) {
  return CUDA_ERROR_NOT_SUPPORTED;
}

// ---- The driver's own functions ----

SIMGPU_API CUresult cuGetErrorString(CUresult error, const char** text) {
  if (text == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *text = nullptr;
  if (name_of(error) == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *text = cudaGetErrorString(static_cast<cudaError_t>(error));
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult cuGetErrorName(CUresult error, const char** text) {
  if (text == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *text = name_of(error);
  return *text != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

SIMGPU_API CUresult cuGetProcAddress_v2(const char* symbol, void** function, int version,
                                        cuuint64_t flags, CUdriverProcAddressQueryResult* status) {
  if (symbol == nullptr || function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  cudaDriverEntryPointQueryResult result{};
  const cudaError_t error = cudaGetDriverEntryPointByVersion(
      symbol, function, static_cast<unsigned>(version), flags, &result);
  if (status != nullptr) *status = static_cast<CUdriverProcAddressQueryResult>(result);
  return result_of(error);  // a function that is not there is no error: it is null
}
