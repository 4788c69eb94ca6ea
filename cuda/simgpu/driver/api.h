// What every function of the driver's face has in common. It is a second door to the same machine:
// handles, errors and the thread's device are the runtime's.
#pragma once

// Functions by their own names, versions and all, and the types of the old ones: CUPTI's headers
// have both.
#define __CUDA_API_VERSION_INTERNAL  // NOLINT: the header's own word
#include <cuda.h>

#include <cupti_driver_cbid.h>
#include <generated_cuda_meta.h>

#include "runtime/api.h"

namespace simgpu::driver {

// Both number their errors alike.
inline CUresult result_of(cudaError_t error) { return static_cast<CUresult>(error); }
inline CUresult failed(CUresult error) {
  this_thread().result = static_cast<cudaError_t>(error);
  return error;
}

// A context is its device.
inline CUcontext context_of(int device) {
  return reinterpret_cast<CUcontext>(&machine().device(device));
}

}  // namespace simgpu::driver

// NOLINTBEGIN(bugprone-macro-parentheses): they declare names
#define SIMGPU_DRIVER_LAUNCH(call, kernel, name, ...)                                     \
  const name##_params call##_parameters{__VA_ARGS__};                                     \
  const ::simgpu::Call call(::simgpu::Api::kDriver, CUPTI_DRIVER_TRACE_CBID_##name,       \
                            static_cast<const char*>(#name), &call##_parameters, kernel); \
  if (call.usable() != cudaSuccess)                                                       \
  return ::simgpu::driver::failed(::simgpu::driver::result_of(call.usable()))
#define SIMGPU_DRIVER_CALL(call, name, ...) SIMGPU_DRIVER_LAUNCH(call, nullptr, name, __VA_ARGS__)
// NOLINTEND(bugprone-macro-parentheses)
