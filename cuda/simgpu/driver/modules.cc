// Code that is loaded while the program runs, and its kernels.
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "driver/api.h"
#include "runtime/known_launch.h"

using simgpu::machine;
using simgpu::driver::failed;
using simgpu::driver::result_of;

namespace {

// The code is not read: a function is there if the program asks for it by its name.
struct Module {
  std::mutex mutex;
  std::map<std::string, char> functions;  // a function's handle is the address of its entry
};

CUresult load(CUmodule* module, const void* code) {
  if (module == nullptr || code == nullptr) return failed(CUDA_ERROR_INVALID_VALUE);
  *module = reinterpret_cast<CUmodule>(new Module);
  return CUDA_SUCCESS;
}

const char* name_of(CUfunction function) {
  const simgpu::Kernel* known = machine().find_kernel(function);
  return known != nullptr ? known->name : nullptr;
}

CUresult launch(CUfunction function, dim3 grid, dim3 block, unsigned shared_bytes,
                CUstream stream) {
  const char* name = name_of(function);
  if (name == nullptr) return failed(CUDA_ERROR_INVALID_HANDLE);
  return result_of(simgpu::launch({.name = name,
                                   .grid = grid,
                                   .block = block,
                                   .shared_bytes = shared_bytes,
                                   .stream = stream,
                                   .duration_ns = 0}));
}

}  // namespace

SIMGPU_API CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  SIMGPU_DRIVER_CALL(call, cuModuleLoadData, module, image);
  return load(module, image);
}

SIMGPU_API CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned count,
                                       CUjit_option* options, void** values) {
  SIMGPU_DRIVER_CALL(call, cuModuleLoadDataEx, module, image, count, options, values);
  return load(module, image);
}

SIMGPU_API CUresult cuModuleLoad(CUmodule* module, const char* file) {
  SIMGPU_DRIVER_CALL(call, cuModuleLoad, module, file);
  return load(module, file);
}

SIMGPU_API CUresult cuModuleUnload(CUmodule module) {
  SIMGPU_DRIVER_CALL(call, cuModuleUnload, module);
  if (module == nullptr) return failed(CUDA_ERROR_INVALID_HANDLE);
  delete reinterpret_cast<Module*>(module);
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  SIMGPU_DRIVER_CALL(call, cuModuleGetFunction, function, module, name);
  if (function == nullptr || module == nullptr || name == nullptr)
    return failed(CUDA_ERROR_INVALID_VALUE);
  auto* loaded = reinterpret_cast<Module*>(module);
  const std::lock_guard lock(loaded->mutex);
  char* handle = &loaded->functions[name];
  machine().add_kernel(handle, name);
  *function = reinterpret_cast<CUfunction>(handle);
  return CUDA_SUCCESS;
}

// ---- Linking: what comes out is loaded like any other code ----

SIMGPU_API CUresult cuLinkCreate_v2(unsigned count, CUjit_option* options, void** values,
                                    CUlinkState* state) {
  SIMGPU_DRIVER_CALL(call, cuLinkCreate_v2, count, options, values, state);
  if (state == nullptr) return failed(CUDA_ERROR_INVALID_VALUE);
  static char linked = 0;
  *state = reinterpret_cast<CUlinkState>(&linked);
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void* data,
                                     std::size_t size, const char* name, unsigned count,
                                     CUjit_option* options, void** values) {
  SIMGPU_DRIVER_CALL(call, cuLinkAddData_v2, state, type, data, size, name, count, options, values);
  return state != nullptr && data != nullptr ? CUDA_SUCCESS : failed(CUDA_ERROR_INVALID_VALUE);
}

SIMGPU_API CUresult cuLinkComplete(CUlinkState state, void** image, std::size_t* size) {
  SIMGPU_DRIVER_CALL(call, cuLinkComplete, state, image, size);
  if (state == nullptr || image == nullptr) return failed(CUDA_ERROR_INVALID_VALUE);
  *image = state;
  if (size != nullptr) *size = 1;
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult cuLinkDestroy(CUlinkState state) {
  SIMGPU_DRIVER_CALL(call, cuLinkDestroy, state);
  return CUDA_SUCCESS;
}

// ---- Functions ----

SIMGPU_API CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y,
                                   unsigned grid_z, unsigned block_x, unsigned block_y,
                                   unsigned block_z, unsigned shared_bytes, CUstream stream,
                                   void** parameters, void** extra) {
  SIMGPU_DRIVER_LAUNCH(call, name_of(function), cuLaunchKernel, function, grid_x, grid_y, grid_z,
                       block_x, block_y, block_z, shared_bytes, stream, parameters, extra);
  return launch(function, dim3(grid_x, grid_y, grid_z), dim3(block_x, block_y, block_z),
                shared_bytes, stream);
}

SIMGPU_API CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned grid_x, unsigned grid_y,
                                              unsigned grid_z, unsigned block_x, unsigned block_y,
                                              unsigned block_z, unsigned shared_bytes,
                                              CUstream stream, void** parameters) {
  SIMGPU_DRIVER_LAUNCH(call, name_of(function), cuLaunchCooperativeKernel, function, grid_x, grid_y,
                       grid_z, block_x, block_y, block_z, shared_bytes, stream, parameters);
  return launch(function, dim3(grid_x, grid_y, grid_z), dim3(block_x, block_y, block_z),
                shared_bytes, stream);
}

SIMGPU_API CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function,
                                     void** parameters, void** extra) {
  SIMGPU_DRIVER_LAUNCH(call, name_of(function), cuLaunchKernelEx, config, function, parameters,
                       extra);
  if (config == nullptr) return failed(CUDA_ERROR_INVALID_VALUE);
  return cuLaunchKernel(function, config->gridDimX, config->gridDimY, config->gridDimZ,
                        config->blockDimX, config->blockDimY, config->blockDimZ,
                        config->sharedMemBytes, config->hStream, parameters, extra);
}

SIMGPU_API CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute,
                                       CUfunction function) {
  SIMGPU_DRIVER_CALL(call, cuFuncGetAttribute, value, attribute, function);
  cudaFuncAttributes attributes{};
  if (value == nullptr) return failed(CUDA_ERROR_INVALID_VALUE);
  if (const cudaError_t error = cudaFuncGetAttributes(&attributes, function); error != cudaSuccess)
    return result_of(error);
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = attributes.maxThreadsPerBlock;
      break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      *value = attributes.numRegs;
      break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      *value = attributes.binaryVersion;
      break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *value = attributes.maxDynamicSharedSizeBytes;
      break;
    default:
      *value = 0;
  }
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute,
                                       int value) {
  SIMGPU_DRIVER_CALL(call, cuFuncSetAttribute, function, attribute, value);
  if (name_of(function) == nullptr) return failed(CUDA_ERROR_INVALID_HANDLE);
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult cuFuncSetCacheConfig(CUfunction function, CUfunc_cache config) {
  SIMGPU_DRIVER_CALL(call, cuFuncSetCacheConfig, function, config);
  return name_of(function) != nullptr ? CUDA_SUCCESS : failed(CUDA_ERROR_INVALID_HANDLE);
}

SIMGPU_API CUresult cuKernelGetAttribute(int* value, CUfunction_attribute attribute,
                                         CUkernel kernel, CUdevice /*device*/) {
  return cuFuncGetAttribute(value, attribute, reinterpret_cast<CUfunction>(kernel));
}

SIMGPU_API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction function,
                                                                int threads,
                                                                std::size_t shared_bytes) {
  SIMGPU_DRIVER_CALL(call, cuOccupancyMaxActiveBlocksPerMultiprocessor, blocks, function, threads,
                     shared_bytes);
  return result_of(
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, threads, shared_bytes));
}

// A description that only device code reads.
SIMGPU_API CUresult cuTensorMapEncodeTiled(
    CUtensorMap* map, CUtensorMapDataType /*type*/, cuuint32_t rank, void* /*address*/,
    const cuuint64_t* dimensions, const cuuint64_t* /*strides*/, const cuuint32_t* box,
    const cuuint32_t* /*element_strides*/, CUtensorMapInterleave /*interleave*/,
    CUtensorMapSwizzle /*swizzle*/, CUtensorMapL2promotion /*promotion*/,
    CUtensorMapFloatOOBfill /*fill*/) {
  constexpr cuuint32_t kMostDimensions = 5;
  if (map == nullptr || dimensions == nullptr || box == nullptr || rank == 0 ||
      rank > kMostDimensions)
    return CUDA_ERROR_INVALID_VALUE;
  std::memset(map, 0, sizeof *map);
  return CUDA_SUCCESS;
}
