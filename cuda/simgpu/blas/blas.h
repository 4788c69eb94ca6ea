// What the stand-ins of cuBLAS and cuBLASLt have in common: how a routine becomes a kernel. Nothing
// is computed. A routine is known by its types and sizes; from these come its kernel's name and
// the time that it takes.
#pragma once

#include <cublas_api.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "core/cost_model.h"
#include "core/device_profile.h"
#include "core/face.h"

// What a program's handle points to; cuBLAS leaves it to the library.
struct cublasContext {  // NOLINT(readability-identifier-naming)
  cudaStream_t stream = nullptr;
  cublasPointerMode_t pointer_mode = CUBLAS_POINTER_MODE_HOST;
  cublasAtomicsMode_t atomics_mode = CUBLAS_ATOMICS_NOT_ALLOWED;
  cublasMath_t math_mode = CUBLAS_DEFAULT_MATH;
  int multiprocessors = 0;  // that it may use; 0: all
  cublasEmulationStrategy_t emulation = CUBLAS_EMULATION_STRATEGY_DEFAULT;
  cudaEmulationSpecialValuesSupport special_values = CUDA_EMULATION_SPECIAL_VALUES_SUPPORT_DEFAULT;
  cudaEmulationMantissaControl mantissa_control = CUDA_EMULATION_MANTISSA_CONTROL_DYNAMIC;
  int most_mantissa_bits = 0;
  int mantissa_bit_offset = 0;
};

namespace simgpu {

// A batch of products D = op(A)·op(B), where op(A) is m × k and op(B) is k × n.
struct Product {
  cublasOperation_t transa = CUBLAS_OP_N;
  cublasOperation_t transb = CUBLAS_OP_N;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::int64_t batch = 1;
  cudaDataType_t a_type = CUDA_R_32F;
  cudaDataType_t d_type = CUDA_R_32F;
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  std::string epilogue = {};  // what the kernel's name tells of it: "_bias_relu"
};

// The kernel's name, in the manner of the vendor's.
std::string kernel_name(const Product& product, const DeviceProfile& device);
// What it costs.
MatrixProduct cost(const Product& product);
// How many blocks of threads it takes: one for each tile of the results.
double blocks(const Product& product);

// Puts the product's kernel into the stream; none where there is nothing to do.
cublasStatus_t launch(const Product& product, cudaStream_t stream);

// Any other routine, by the product that does as much: a dot product is one of 1 × n and n × 1.
struct Routine {
  const char* name = "";
  cudaDataType_t type = CUDA_R_32F;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::int64_t batch = 1;
  bool valid = true;  // the arguments that are no sizes
};
cublasStatus_t run(cublasHandle_t handle, const Routine& routine);

inline bool is_operation(cublasOperation_t operation) {
  return operation == CUBLAS_OP_N || operation == CUBLAS_OP_T || operation == CUBLAS_OP_C;
}
// Whether a leading dimension is enough for so many rows.
inline bool fits(std::int64_t leading, std::int64_t rows) {
  return leading >= std::max<std::int64_t>(1, rows);
}

bool is_complex(cudaDataType_t type);
std::size_t size_of(cudaDataType_t type);
const char* status_name(cublasStatus_t status);
const char* status_text(cublasStatus_t status);
cublasStatus_t version_part(libraryPropertyType part, int* value);

template <typename T>
inline constexpr cudaDataType_t kTypeOf = CUDA_R_32F;
template <>
inline constexpr cudaDataType_t kTypeOf<double> = CUDA_R_64F;
template <>
inline constexpr cudaDataType_t kTypeOf<cuComplex> = CUDA_C_32F;
template <>
inline constexpr cudaDataType_t kTypeOf<cuDoubleComplex> = CUDA_C_64F;
template <>
inline constexpr cudaDataType_t kTypeOf<__half> = CUDA_R_16F;

}  // namespace simgpu

// Most routines come in four types, and with sizes of 32 and of 64 bits: F(letter, T, Int, suffix).
// `v2` is _v2 or nothing, as the routine is called.
#define SIMGPU_REAL_TYPES(F, v2) \
  F(S, float, int, v2)           \
  F(S, float, int64_t, v2##_64)  \
  F(D, double, int, v2)          \
  F(D, double, int64_t, v2##_64)
#define SIMGPU_COMPLEX_TYPES(F, v2) \
  F(C, cuComplex, int, v2)          \
  F(C, cuComplex, int64_t, v2##_64) \
  F(Z, cuDoubleComplex, int, v2)    \
  F(Z, cuDoubleComplex, int64_t, v2##_64)
#define SIMGPU_ALL_TYPES(F, v2) SIMGPU_REAL_TYPES(F, v2) SIMGPU_COMPLEX_TYPES(F, v2)
