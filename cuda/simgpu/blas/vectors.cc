// Routines on vectors, and copies between the host and the device.
#include <cuda_runtime_api.h>

#include <cstring>

#include "blas/blas.h"

using simgpu::kTypeOf;

namespace {

// Nothing to do is no error here, and neither is a size below.
std::int64_t length(std::int64_t n) { return std::max<std::int64_t>(n, 0); }

// Goes over n numbers and writes as many.
cublasStatus_t over(cublasHandle_t handle, const char* name, cudaDataType_t type, std::int64_t n) {
  return simgpu::run(handle, {.name = name, .type = type, .m = length(n), .n = 1, .k = 1});
}

// Makes one number of n. Where the host is to have it, the host waits for it.
template <typename Result>
cublasStatus_t reduce(cublasHandle_t handle, const char* name, cudaDataType_t type, std::int64_t n,
                      Result* result, Result value = {}) {
  const cublasStatus_t status = simgpu::run(
      handle,
      {.name = name, .type = type, .m = 1, .n = 1, .k = length(n), .valid = result != nullptr});
  if (status != CUBLAS_STATUS_SUCCESS || handle->pointer_mode == CUBLAS_POINTER_MODE_DEVICE)
    return status;
  if (n > 0 && cudaStreamSynchronize(handle->stream) != cudaSuccess)
    return CUBLAS_STATUS_EXECUTION_FAILED;
  *result = value;
  return CUBLAS_STATUS_SUCCESS;
}

// The first of equals: counted from 1, as cuBLAS does.
template <typename Int>
cublasStatus_t find(cublasHandle_t handle, const char* name, cudaDataType_t type, Int n,
                    Int* result) {
  return reduce(handle, name, type, n, result, static_cast<Int>(n > 0 ? 1 : 0));
}

// The host computes a rotation whose numbers it has: the one that turns nothing. Else a kernel
// does.
template <typename T, typename Cosine, typename Sine>
cublasStatus_t make_rotation(cublasHandle_t handle, const T* a, Cosine* cosine, Sine* sine) {
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (a == nullptr || cosine == nullptr || sine == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  if (handle->pointer_mode == CUBLAS_POINTER_MODE_DEVICE)
    return over(handle, "rotg", kTypeOf<T>, 1);
  *cosine = 1;
  *sine = {};
  return CUBLAS_STATUS_SUCCESS;
}

template <typename T>
cublasStatus_t make_modified_rotation(cublasHandle_t handle, T* parameters) {
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (parameters == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  if (handle->pointer_mode == CUBLAS_POINTER_MODE_DEVICE)
    return over(handle, "rotmg", kTypeOf<T>, 1);
  parameters[0] = -2;  // says that the matrix is the identity
  return CUBLAS_STATUS_SUCCESS;
}

// `rows` stretches of `bytes`, which lie `from_pitch` and `to_pitch` apart.
cublasStatus_t copy(void* to, std::int64_t to_pitch, const void* from, std::int64_t from_pitch,
                    std::int64_t bytes, std::int64_t rows, cudaMemcpyKind kind,
                    cudaStream_t stream) {
  if (bytes == 0 || rows == 0) return CUBLAS_STATUS_SUCCESS;
  const auto size = [](std::int64_t value) { return static_cast<std::size_t>(value); };
  return cudaMemcpy2DAsync(to, size(to_pitch), from, size(from_pitch), size(bytes), size(rows),
                           kind, stream) == cudaSuccess
             ? CUBLAS_STATUS_SUCCESS
             : CUBLAS_STATUS_MAPPING_ERROR;
}

cublasStatus_t copy_vector(std::int64_t n, std::int64_t element, const void* from,
                           std::int64_t from_step, void* to, std::int64_t to_step,
                           cudaMemcpyKind kind, cudaStream_t stream) {
  if (n < 0 || element <= 0 || from_step <= 0 || to_step <= 0) return CUBLAS_STATUS_INVALID_VALUE;
  if (from_step == 1 && to_step == 1)
    return copy(to, n * element, from, n * element, n * element, 1, kind, stream);
  return copy(to, to_step * element, from, from_step * element, element, n, kind, stream);
}

cublasStatus_t copy_matrix(std::int64_t rows, std::int64_t columns, std::int64_t element,
                           const void* from, std::int64_t lda, void* to, std::int64_t ldb,
                           cudaMemcpyKind kind, cudaStream_t stream) {
  if (rows < 0 || columns < 0 || element <= 0 || !simgpu::fits(lda, rows) ||
      !simgpu::fits(ldb, rows))
    return CUBLAS_STATUS_INVALID_VALUE;
  return copy(to, ldb * element, from, lda * element, rows * element, columns, kind, stream);
}

}  // namespace

// NOLINTBEGIN(bugprone-macro-parentheses): they declare names

// ---- Vectors to vectors ----

#define SIMGPU_AXPY(letter, T, Int, suffix)                                                      \
  SIMGPU_API cublasStatus_t cublas##letter##axpy##suffix(cublasHandle_t handle, Int n, const T*, \
                                                         const T*, Int, T*, Int) {               \
    return over(handle, "axpy", kTypeOf<T>, n);                                                  \
  }
SIMGPU_ALL_TYPES(SIMGPU_AXPY, _v2)

#define SIMGPU_COPY(letter, T, Int, suffix)                                                      \
  SIMGPU_API cublasStatus_t cublas##letter##copy##suffix(cublasHandle_t handle, Int n, const T*, \
                                                         Int, T*, Int) {                         \
    return over(handle, "copy", kTypeOf<T>, n);                                                  \
  }
SIMGPU_ALL_TYPES(SIMGPU_COPY, _v2)

#define SIMGPU_SWAP(letter, T, Int, suffix)                                                     \
  SIMGPU_API cublasStatus_t cublas##letter##swap##suffix(cublasHandle_t handle, Int n, T*, Int, \
                                                         T*, Int) {                             \
    return over(handle, "swap", kTypeOf<T>, n);                                                 \
  }
SIMGPU_ALL_TYPES(SIMGPU_SWAP, _v2)

// These have the type of the factor in their names where it is another.
#define SIMGPU_SCAL(letters, T, Factor)                                                           \
  SIMGPU_API cublasStatus_t cublas##letters##scal_v2(cublasHandle_t handle, int n, const Factor*, \
                                                     T*, int) {                                   \
    return over(handle, "scal", kTypeOf<T>, n);                                                   \
  }                                                                                               \
  SIMGPU_API cublasStatus_t cublas##letters##scal_v2_64(cublasHandle_t handle, int64_t n,         \
                                                        const Factor*, T*, int64_t) {             \
    return over(handle, "scal", kTypeOf<T>, n);                                                   \
  }
SIMGPU_SCAL(S, float, float)
SIMGPU_SCAL(D, double, double)
SIMGPU_SCAL(C, cuComplex, cuComplex)
SIMGPU_SCAL(Cs, cuComplex, float)
SIMGPU_SCAL(Z, cuDoubleComplex, cuDoubleComplex)
SIMGPU_SCAL(Zd, cuDoubleComplex, double)

#define SIMGPU_ROT(letters, T, Cosine, Sine)                                                    \
  SIMGPU_API cublasStatus_t cublas##letters##rot_v2(cublasHandle_t handle, int n, T*, int, T*,  \
                                                    int, const Cosine*, const Sine*) {          \
    return over(handle, "rot", kTypeOf<T>, n);                                                  \
  }                                                                                             \
  SIMGPU_API cublasStatus_t cublas##letters##rot_v2_64(                                         \
      cublasHandle_t handle, int64_t n, T*, int64_t, T*, int64_t, const Cosine*, const Sine*) { \
    return over(handle, "rot", kTypeOf<T>, n);                                                  \
  }
SIMGPU_ROT(S, float, float, float)
SIMGPU_ROT(D, double, double, double)
SIMGPU_ROT(C, cuComplex, float, cuComplex)
SIMGPU_ROT(Cs, cuComplex, float, float)
SIMGPU_ROT(Z, cuDoubleComplex, double, cuDoubleComplex)
SIMGPU_ROT(Zd, cuDoubleComplex, double, double)

#define SIMGPU_ROTM(letter, T, Int, suffix)                                                     \
  SIMGPU_API cublasStatus_t cublas##letter##rotm##suffix(cublasHandle_t handle, Int n, T*, Int, \
                                                         T*, Int, const T*) {                   \
    return over(handle, "rotm", kTypeOf<T>, n);                                                 \
  }
SIMGPU_REAL_TYPES(SIMGPU_ROTM, _v2)

#define SIMGPU_ROTG(letter, T, Cosine)                                               \
  SIMGPU_API cublasStatus_t cublas##letter##rotg_v2(cublasHandle_t handle, T* a, T*, \
                                                    Cosine* cosine, T* sine) {       \
    return make_rotation(handle, a, cosine, sine);                                   \
  }
SIMGPU_ROTG(S, float, float)
SIMGPU_ROTG(D, double, double)
SIMGPU_ROTG(C, cuComplex, float)
SIMGPU_ROTG(Z, cuDoubleComplex, double)

#define SIMGPU_ROTMG(letter, T)                                                                   \
  SIMGPU_API cublasStatus_t cublas##letter##rotmg_v2(cublasHandle_t handle, T*, T*, T*, const T*, \
                                                     T* parameters) {                             \
    return make_modified_rotation(handle, parameters);                                            \
  }
SIMGPU_ROTMG(S, float)
SIMGPU_ROTMG(D, double)

// ---- Vectors to numbers ----

#define SIMGPU_DOT(letter, T, Int, suffix, name)                                                 \
  SIMGPU_API cublasStatus_t cublas##letter##name##suffix(cublasHandle_t handle, Int n, const T*, \
                                                         Int, const T*, Int, T* result) {        \
    return reduce(handle, "dot", kTypeOf<T>, n, result);                                         \
  }
#define SIMGPU_REAL_DOT(letter, T, Int, suffix) SIMGPU_DOT(letter, T, Int, suffix, dot)
#define SIMGPU_COMPLEX_DOTS(letter, T, Int, suffix) \
  SIMGPU_DOT(letter, T, Int, suffix, dotu)          \
  SIMGPU_DOT(letter, T, Int, suffix, dotc)
SIMGPU_REAL_TYPES(SIMGPU_REAL_DOT, _v2)
SIMGPU_COMPLEX_TYPES(SIMGPU_COMPLEX_DOTS, _v2)

#define SIMGPU_NORMS(letters, T, Result, Int, suffix)                                             \
  SIMGPU_API cublasStatus_t cublas##letters##nrm2##suffix(cublasHandle_t handle, Int n, const T*, \
                                                          Int, Result* result) {                  \
    return reduce(handle, "nrm2", kTypeOf<T>, n, result);                                         \
  }                                                                                               \
  SIMGPU_API cublasStatus_t cublas##letters##asum##suffix(cublasHandle_t handle, Int n, const T*, \
                                                          Int, Result* result) {                  \
    return reduce(handle, "asum", kTypeOf<T>, n, result);                                         \
  }
SIMGPU_NORMS(S, float, float, int, _v2)
SIMGPU_NORMS(S, float, float, int64_t, _v2_64)
SIMGPU_NORMS(D, double, double, int, _v2)
SIMGPU_NORMS(D, double, double, int64_t, _v2_64)
SIMGPU_NORMS(Sc, cuComplex, float, int, _v2)
SIMGPU_NORMS(Sc, cuComplex, float, int64_t, _v2_64)
SIMGPU_NORMS(Dz, cuDoubleComplex, double, int, _v2)
SIMGPU_NORMS(Dz, cuDoubleComplex, double, int64_t, _v2_64)

#define SIMGPU_EXTREMES(letter, T, Int, suffix)                                                   \
  SIMGPU_API cublasStatus_t cublasI##letter##amax##suffix(cublasHandle_t handle, Int n, const T*, \
                                                          Int, Int* result) {                     \
    return find(handle, "iamax", kTypeOf<T>, n, result);                                          \
  }                                                                                               \
  SIMGPU_API cublasStatus_t cublasI##letter##amin##suffix(cublasHandle_t handle, Int n, const T*, \
                                                          Int, Int* result) {                     \
    return find(handle, "iamin", kTypeOf<T>, n, result);                                          \
  }
SIMGPU_EXTREMES(s, float, int, _v2)
SIMGPU_EXTREMES(s, float, int64_t, _v2_64)
SIMGPU_EXTREMES(d, double, int, _v2)
SIMGPU_EXTREMES(d, double, int64_t, _v2_64)
SIMGPU_EXTREMES(c, cuComplex, int, _v2)
SIMGPU_EXTREMES(c, cuComplex, int64_t, _v2_64)
SIMGPU_EXTREMES(z, cuDoubleComplex, int, _v2)
SIMGPU_EXTREMES(z, cuDoubleComplex, int64_t, _v2_64)

// NOLINTEND(bugprone-macro-parentheses)

SIMGPU_API cublasStatus_t cublasDotEx(cublasHandle_t handle, int n, const void* /*x*/,
                                      cudaDataType x_type, int /*incx*/, const void* /*y*/,
                                      cudaDataType /*y_type*/, int /*incy*/, void* result,
                                      cudaDataType result_type, cudaDataType /*execution_type*/) {
  const cublasStatus_t status =
      reduce(handle, "dot", x_type, n, static_cast<unsigned char*>(result));
  if (status == CUBLAS_STATUS_SUCCESS && handle->pointer_mode == CUBLAS_POINTER_MODE_HOST)
    std::memset(result, 0, simgpu::size_of(result_type));
  return status;
}

// ---- Between the host and the device ----

SIMGPU_API cublasStatus_t cublasSetVectorAsync(int n, int element, const void* host, int incx,
                                               void* device, int incy, cudaStream_t stream) {
  return copy_vector(n, element, host, incx, device, incy, cudaMemcpyHostToDevice, stream);
}
SIMGPU_API cublasStatus_t cublasGetVectorAsync(int n, int element, const void* device, int incx,
                                               void* host, int incy, cudaStream_t stream) {
  return copy_vector(n, element, device, incx, host, incy, cudaMemcpyDeviceToHost, stream);
}
SIMGPU_API cublasStatus_t cublasSetMatrixAsync(int rows, int columns, int element, const void* host,
                                               int lda, void* device, int ldb,
                                               cudaStream_t stream) {
  return copy_matrix(rows, columns, element, host, lda, device, ldb, cudaMemcpyHostToDevice,
                     stream);
}
SIMGPU_API cublasStatus_t cublasGetMatrixAsync(int rows, int columns, int element,
                                               const void* device, int lda, void* host, int ldb,
                                               cudaStream_t stream) {
  return copy_matrix(rows, columns, element, device, lda, host, ldb, cudaMemcpyDeviceToHost,
                     stream);
}
