// Batches of small systems: factored, solved, inverted. All succeed. What each leaves on the device
// stays as it was: fresh memory is zero, which reads as success there, too.
#include <initializer_list>

#include "blas/blas.h"

using simgpu::fits;
using simgpu::kTypeOf;

namespace {

// Some tell the host whether their arguments were right: 0, or which was not, counted from 1 with
// a minus sign.
struct Argument {
  int position;
  bool is_valid;
};

cublasStatus_t run(cublasHandle_t handle, simgpu::Routine routine, int* info,
                   std::initializer_list<Argument> arguments) {
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (info == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  *info = 0;
  for (const Argument& argument : arguments) {
    if (argument.is_valid) continue;
    *info = -argument.position;
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  return simgpu::run(handle, routine);
}

simgpu::Routine routine(const char* name, cudaDataType_t type, std::int64_t m, std::int64_t n,
                        std::int64_t k, std::int64_t batch, bool valid = true) {
  return {.name = name, .type = type, .m = m, .n = n, .k = k, .batch = batch, .valid = valid};
}

// A factorisation does a third of what a product does; it is not less than one column.
std::int64_t third(std::int64_t n) { return n <= 0 ? n : (n + 2) / 3; }

}  // namespace

// NOLINTBEGIN(bugprone-macro-parentheses): they declare names
#define SIMGPU_SOLVERS(letter, T)                                                                  \
  SIMGPU_API cublasStatus_t cublas##letter##getrfBatched(cublasHandle_t handle, int n, T* const*,  \
                                                         int lda, int*, int*, int batch) {         \
    return simgpu::run(handle,                                                                     \
                       routine("getrf_batched", kTypeOf<T>, n, n, third(n), batch, fits(lda, n))); \
  }                                                                                                \
  SIMGPU_API cublasStatus_t cublas##letter##getriBatched(cublasHandle_t handle, int n,             \
                                                         const T* const*, int lda, const int*,     \
                                                         T* const*, int ldc, int*, int batch) {    \
    return simgpu::run(handle, routine("getri_batched", kTypeOf<T>, n, n, n, batch,                \
                                       fits(lda, n) && fits(ldc, n)));                             \
  }                                                                                                \
  SIMGPU_API cublasStatus_t cublas##letter##matinvBatched(cublasHandle_t handle, int n,            \
                                                          const T* const*, int lda, T* const*,     \
                                                          int ldinv, int*, int batch) {            \
    return simgpu::run(handle, routine("matinv_batched", kTypeOf<T>, n, n, n, batch,               \
                                       fits(lda, n) && fits(ldinv, n)));                           \
  }                                                                                                \
  SIMGPU_API cublasStatus_t cublas##letter##getrsBatched(                                          \
      cublasHandle_t handle, cublasOperation_t trans, int n, int right_sides, const T* const*,     \
      int lda, const int*, T* const*, int ldb, int* info, int batch) {                             \
    return run(handle, routine("getrs_batched", kTypeOf<T>, n, right_sides, n, batch), info,       \
               {{1, simgpu::is_operation(trans)},                                                  \
                {2, n >= 0},                                                                       \
                {3, right_sides >= 0},                                                             \
                {5, fits(lda, n)},                                                                 \
                {8, fits(ldb, n)},                                                                 \
                {10, batch >= 0}});                                                                \
  }                                                                                                \
  SIMGPU_API cublasStatus_t cublas##letter##geqrfBatched(                                          \
      cublasHandle_t handle, int m, int n, T* const*, int lda, T* const*, int* info, int batch) {  \
    return run(handle, routine("geqrf_batched", kTypeOf<T>, m, n, n, batch), info,                 \
               {{1, m >= 0}, {2, n >= 0}, {4, fits(lda, m)}, {7, batch >= 0}});                    \
  }                                                                                                \
  SIMGPU_API cublasStatus_t cublas##letter##gelsBatched(                                           \
      cublasHandle_t handle, cublasOperation_t trans, int m, int n, int right_sides, T* const*,    \
      int lda, T* const*, int ldc, int* info, int*, int batch) {                                   \
    return run(handle, routine("gels_batched", kTypeOf<T>, m, n, n + right_sides, batch), info,    \
               {{1, simgpu::is_operation(trans)},                                                  \
                {2, m >= 0},                                                                       \
                {3, n >= 0},                                                                       \
                {4, right_sides >= 0},                                                             \
                {6, fits(lda, m)},                                                                 \
                {8, fits(ldc, m)},                                                                 \
                {11, batch >= 0}});                                                                \
  }
SIMGPU_SOLVERS(S, float)
SIMGPU_SOLVERS(D, double)
SIMGPU_SOLVERS(C, cuComplex)
SIMGPU_SOLVERS(Z, cuDoubleComplex)
// NOLINTEND(bugprone-macro-parentheses)
