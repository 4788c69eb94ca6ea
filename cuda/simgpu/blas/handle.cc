// cuBLAS's handle: what a program chooses for its routines. Also what the library tells of itself.
#include <cuda_runtime_api.h>

#include "blas/blas.h"
#include "core/machine.h"

namespace {

template <typename T>
cublasStatus_t read(cublasHandle_t handle, T cublasContext::*choice, T* value) {
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (value == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  *value = handle->*choice;
  return CUBLAS_STATUS_SUCCESS;
}

template <typename T>
cublasStatus_t choose(cublasHandle_t handle, T cublasContext::*choice, T value,
                      bool is_valid = true) {
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!is_valid) return CUBLAS_STATUS_INVALID_VALUE;
  handle->*choice = value;
  return CUBLAS_STATUS_SUCCESS;
}

// One of the modes, with or without the flag that goes with any of them.
bool is_math_mode(cublasMath_t mode) {
  switch (static_cast<int>(mode) & ~CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION) {
    case CUBLAS_DEFAULT_MATH:
    case CUBLAS_TENSOR_OP_MATH:
    case CUBLAS_PEDANTIC_MATH:
    case CUBLAS_TF32_TENSOR_OP_MATH:
    case CUBLAS_FP32_EMULATED_BF16X9_MATH:
    case CUBLAS_FP64_EMULATED_FIXEDPOINT_MATH:
      return true;
    default:
      return false;
  }
}

// Nothing is ever logged; but who sets a callback may ask for it.
cublasLogCallback& log_callback() {
  static cublasLogCallback callback = nullptr;
  return callback;
}

}  // namespace

// ---- The handle ----

SIMGPU_API cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  if (handle == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess) return CUBLAS_STATUS_NOT_INITIALIZED;
  *handle = new cublasContext;
  return CUBLAS_STATUS_SUCCESS;
}

SIMGPU_API cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  cudaDeviceSynchronize();  // as it is documented
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

SIMGPU_API cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  return choose(handle, &cublasContext::stream, stream);
}
SIMGPU_API cublasStatus_t cublasGetStream_v2(cublasHandle_t handle, cudaStream_t* stream) {
  return read(handle, &cublasContext::stream, stream);
}

// No kernel needs any; only what is documented of the pointer is looked at.
SIMGPU_API cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void* workspace,
                                                std::size_t /*bytes*/) {
  constexpr std::uintptr_t kAlignment = 256;
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  return reinterpret_cast<std::uintptr_t>(workspace) % kAlignment == 0
             ? CUBLAS_STATUS_SUCCESS
             : CUBLAS_STATUS_INVALID_VALUE;
}

SIMGPU_API cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t mode) {
  return choose(handle, &cublasContext::pointer_mode, mode,
                mode == CUBLAS_POINTER_MODE_HOST || mode == CUBLAS_POINTER_MODE_DEVICE);
}
SIMGPU_API cublasStatus_t cublasGetPointerMode_v2(cublasHandle_t handle,
                                                  cublasPointerMode_t* mode) {
  return read(handle, &cublasContext::pointer_mode, mode);
}

SIMGPU_API cublasStatus_t cublasSetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t mode) {
  return choose(handle, &cublasContext::atomics_mode, mode,
                mode == CUBLAS_ATOMICS_NOT_ALLOWED || mode == CUBLAS_ATOMICS_ALLOWED);
}
SIMGPU_API cublasStatus_t cublasGetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t* mode) {
  return read(handle, &cublasContext::atomics_mode, mode);
}

SIMGPU_API cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
  return choose(handle, &cublasContext::math_mode, mode, is_math_mode(mode));
}
SIMGPU_API cublasStatus_t cublasGetMathMode(cublasHandle_t handle, cublasMath_t* mode) {
  return read(handle, &cublasContext::math_mode, mode);
}

SIMGPU_API cublasStatus_t cublasSetSmCountTarget(cublasHandle_t handle, int count) {
  const int most = simgpu::Machine::instance().profile().multiprocessors;
  return choose(handle, &cublasContext::multiprocessors, count, count >= 0 && count <= most);
}
SIMGPU_API cublasStatus_t cublasGetSmCountTarget(cublasHandle_t handle, int* count) {
  return read(handle, &cublasContext::multiprocessors, count);
}

// ---- Emulation of wide numbers by narrow ones: kept, and without effect ----

SIMGPU_API cublasStatus_t cublasSetEmulationStrategy(cublasHandle_t handle,
                                                     cublasEmulationStrategy_t strategy) {
  return choose(handle, &cublasContext::emulation, strategy);
}
SIMGPU_API cublasStatus_t cublasGetEmulationStrategy(cublasHandle_t handle,
                                                     cublasEmulationStrategy_t* strategy) {
  return read(handle, &cublasContext::emulation, strategy);
}

SIMGPU_API cublasStatus_t cublasSetEmulationSpecialValuesSupport(
    cublasHandle_t handle, cudaEmulationSpecialValuesSupport mask) {
  return choose(handle, &cublasContext::special_values, mask);
}
SIMGPU_API cublasStatus_t cublasGetEmulationSpecialValuesSupport(
    cublasHandle_t handle, cudaEmulationSpecialValuesSupport* mask) {
  return read(handle, &cublasContext::special_values, mask);
}

SIMGPU_API cublasStatus_t cublasSetFixedPointEmulationMantissaControl(
    cublasHandle_t handle, cudaEmulationMantissaControl control) {
  return choose(handle, &cublasContext::mantissa_control, control);
}
SIMGPU_API cublasStatus_t cublasGetFixedPointEmulationMantissaControl(
    cublasHandle_t handle, cudaEmulationMantissaControl* control) {
  return read(handle, &cublasContext::mantissa_control, control);
}

SIMGPU_API cublasStatus_t cublasSetFixedPointEmulationMaxMantissaBitCount(cublasHandle_t handle,
                                                                          int count) {
  return choose(handle, &cublasContext::most_mantissa_bits, count);
}
SIMGPU_API cublasStatus_t cublasGetFixedPointEmulationMaxMantissaBitCount(cublasHandle_t handle,
                                                                          int* count) {
  return read(handle, &cublasContext::most_mantissa_bits, count);
}

SIMGPU_API cublasStatus_t cublasSetFixedPointEmulationMantissaBitOffset(cublasHandle_t handle,
                                                                        int offset) {
  return choose(handle, &cublasContext::mantissa_bit_offset, offset);
}
SIMGPU_API cublasStatus_t cublasGetFixedPointEmulationMantissaBitOffset(cublasHandle_t handle,
                                                                        int* offset) {
  return read(handle, &cublasContext::mantissa_bit_offset, offset);
}

// In no header; libcusolver calls it (seen with the one of CUDA 13.2).
// NOLINTNEXTLINE(readability-identifier-naming)
SIMGPU_API cublasStatus_t cublasSetEnvironmentMode(cublasHandle_t handle, int /*mode*/) {
  return handle == nullptr ? CUBLAS_STATUS_NOT_INITIALIZED : CUBLAS_STATUS_SUCCESS;
}

// ---- The library ----

SIMGPU_API cublasStatus_t cublasGetVersion_v2(cublasHandle_t /*handle*/, int* version) {
  if (version == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  *version = CUBLAS_VERSION;
  return CUBLAS_STATUS_SUCCESS;
}

SIMGPU_API cublasStatus_t cublasGetProperty(libraryPropertyType type, int* value) {
  return simgpu::version_part(type, value);
}

SIMGPU_API std::size_t cublasGetCudartVersion() { return CUDART_VERSION; }

SIMGPU_API const char* cublasGetStatusName(cublasStatus_t status) {
  return simgpu::status_name(status);
}
SIMGPU_API const char* cublasGetStatusString(cublasStatus_t status) {
  return simgpu::status_text(status);
}

SIMGPU_API cublasStatus_t cublasLoggerConfigure(int /*is_on*/, int /*to_stdout*/, int /*to_stderr*/,
                                                const char* /*file*/) {
  return CUBLAS_STATUS_SUCCESS;
}
SIMGPU_API cublasStatus_t cublasSetLoggerCallback(cublasLogCallback callback) {
  log_callback() = callback;
  return CUBLAS_STATUS_SUCCESS;
}
SIMGPU_API cublasStatus_t cublasGetLoggerCallback(cublasLogCallback* callback) {
  if (callback == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  *callback = log_callback();
  return CUBLAS_STATUS_SUCCESS;
}
