// Code that is loaded while the program runs, and what other libraries give: kernels by name, the
// driver's functions, memory of other processes.
#include <dlfcn.h>

#include <map>
#include <mutex>
#include <string>

#include "runtime/api.h"

using simgpu::failed;
using simgpu::machine;

namespace {

// Code as it was loaded. It is not read: a kernel is there if the program asks for it by its name.
struct Library {
  std::mutex mutex;
  std::map<std::string, char> kernels;  // a kernel's handle is the address of its entry
};

Library* library_of(cudaLibrary_t handle) { return reinterpret_cast<Library*>(handle); }

cudaError_t load(cudaLibrary_t* library, const void* code) {
  if (library == nullptr || code == nullptr) return failed(cudaErrorInvalidValue);
  *library = reinterpret_cast<cudaLibrary_t>(new Library);
  return cudaSuccess;
}

void* driver_function(const char* name) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (driver == nullptr) driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == nullptr) return nullptr;
  // The newest of its versions first, as CUDA chooses for a program of today.
  for (const char* version : {"_v3", "_v2", ""}) {
    if (void* found = dlsym(driver, (std::string(name) + version).c_str())) return found;
  }
  return nullptr;
}

}  // namespace

SIMGPU_API cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function,
                                                        unsigned version, unsigned long long flags,
                                                        cudaDriverEntryPointQueryResult* status) {
  SIMGPU_CALL(call, cudaGetDriverEntryPointByVersion_v12050, symbol, function, version, flags,
              status);
  if (symbol == nullptr || function == nullptr || version > CUDART_VERSION)
    return failed(cudaErrorInvalidValue);
  *function = driver_function(symbol);
  const bool found = *function != nullptr;
  if (status != nullptr)
    *status = found ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}

// ---- Code that is loaded ----

SIMGPU_API cudaError_t cudaLibraryLoadData(cudaLibrary_t* library, const void* code,
                                           cudaJitOption* jitOptions, void** jitValues,
                                           unsigned jitCount, cudaLibraryOption* options,
                                           void** values, unsigned count) {
  SIMGPU_CALL(call, cudaLibraryLoadData_v12060, library, code, jitOptions, jitValues, jitCount,
              options, values, count);
  return load(library, code);
}

SIMGPU_API cudaError_t cudaLibraryLoadFromFile(cudaLibrary_t* library, const char* file,
                                               cudaJitOption* jitOptions, void** jitValues,
                                               unsigned jitCount, cudaLibraryOption* options,
                                               void** values, unsigned count) {
  SIMGPU_CALL(call, cudaLibraryLoadFromFile_v12060, library, file, jitOptions, jitValues, jitCount,
              options, values, count);
  return load(library, file);
}

SIMGPU_API cudaError_t cudaLibraryUnload(cudaLibrary_t library) {
  SIMGPU_CALL(call, cudaLibraryUnload_v12060, library);
  if (library == nullptr) return failed(cudaErrorInvalidResourceHandle);
  delete library_of(library);
  return cudaSuccess;
}

SIMGPU_API cudaError_t cudaLibraryGetKernel(cudaKernel_t* kernel, cudaLibrary_t library,
                                            const char* name) {
  SIMGPU_CALL(call, cudaLibraryGetKernel_v12060, kernel, library, name);
  if (kernel == nullptr || library == nullptr || name == nullptr)
    return failed(cudaErrorInvalidValue);
  const std::lock_guard lock(library_of(library)->mutex);
  char* handle = &library_of(library)->kernels[name];
  machine().add_kernel(handle, name);
  *kernel = reinterpret_cast<cudaKernel_t>(handle);
  return cudaSuccess;
}

SIMGPU_API cudaError_t cudaLibraryGetKernelCount(unsigned* count, cudaLibrary_t library) {
  SIMGPU_CALL(call, cudaLibraryGetKernelCount_v12060, count, library);
  if (count == nullptr || library == nullptr) return failed(cudaErrorInvalidValue);
  return failed(cudaErrorNotSupported);
}

SIMGPU_API cudaError_t cudaLibraryGetGlobal(void** address, std::size_t* bytes,
                                            cudaLibrary_t library, const char* name) {
  SIMGPU_CALL(call, cudaLibraryGetGlobal_v12060, address, bytes, library, name);
  return failed(cudaErrorSymbolNotFound);
}

SIMGPU_API cudaError_t cudaLibraryGetManaged(void** address, std::size_t* bytes,
                                             cudaLibrary_t library, const char* name) {
  SIMGPU_CALL(call, cudaLibraryGetManaged_v12060, address, bytes, library, name);
  return failed(cudaErrorSymbolNotFound);
}

SIMGPU_API cudaError_t cudaLibraryGetUnifiedFunction(void** function, cudaLibrary_t library,
                                                     const char* symbol) {
  SIMGPU_CALL(call, cudaLibraryGetUnifiedFunction_v12060, function, library, symbol);
  return failed(cudaErrorSymbolNotFound);
}

SIMGPU_API cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel,
                                                       cudaFuncAttribute attribute, int value,
                                                       int device) {
  SIMGPU_CALL(call, cudaKernelSetAttributeForDevice_v12060, kernel, attribute, value, device);
  if (!simgpu::is_device(device)) return failed(cudaErrorInvalidDevice);
  return machine().find_kernel(kernel) != nullptr ? cudaSuccess
                                                  : failed(cudaErrorInvalidDeviceFunction);
}

// ---- Other processes: each has a machine of its own, so there is nothing to share ----

SIMGPU_API cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* address) {
  SIMGPU_CALL(call, cudaIpcGetMemHandle_v4010, handle, address);
  return failed(cudaErrorNotSupported);
}

SIMGPU_API cudaError_t cudaIpcOpenMemHandle(void** address, cudaIpcMemHandle_t handle,
                                            unsigned flags) {
  SIMGPU_CALL(call, cudaIpcOpenMemHandle_v4010, address, handle, flags);
  return failed(cudaErrorNotSupported);
}

SIMGPU_API cudaError_t cudaIpcCloseMemHandle(void* address) {
  SIMGPU_CALL(call, cudaIpcCloseMemHandle_v4010, address);
  return failed(cudaErrorNotSupported);
}

SIMGPU_API cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t* handle, cudaEvent_t event) {
  SIMGPU_CALL(call, cudaIpcGetEventHandle_v4010, handle, event);
  return failed(cudaErrorNotSupported);
}

SIMGPU_API cudaError_t cudaIpcOpenEventHandle(cudaEvent_t* event, cudaIpcEventHandle_t handle) {
  SIMGPU_CALL(call, cudaIpcOpenEventHandle_v4010, event, handle);
  return failed(cudaErrorNotSupported);
}

// ---- Profilers are told where the program wants them ----

SIMGPU_API cudaError_t cudaProfilerStart() {
  SIMGPU_PLAIN_CALL(call, cudaProfilerStart_v4000);
  return cudaSuccess;
}

SIMGPU_API cudaError_t cudaProfilerStop() {
  SIMGPU_PLAIN_CALL(call, cudaProfilerStop_v4000);
  return cudaSuccess;
}
