// Routines on a matrix and a vector, and on matrices of a known form: symmetric, Hermitian,
// triangular, diagonal.
#include "blas/blas.h"

using simgpu::fits;
using simgpu::kTypeOf;
using simgpu::run;

namespace {

cublasStatus_t multiply_vector(cublasHandle_t handle, cudaDataType_t type, cublasOperation_t trans,
                               std::int64_t m, std::int64_t n, std::int64_t lda, std::int64_t incx,
                               std::int64_t incy, std::int64_t batch = 1) {
  return run(handle,
             {.name = trans == CUBLAS_OP_N ? "gemvNSP" : "gemv2T",
              .type = type,
              .m = m,
              .n = 1,
              .k = n,
              .batch = batch,
              .valid = simgpu::is_operation(trans) && fits(lda, m) && incx != 0 && incy != 0});
}

// A square matrix and a vector.
cublasStatus_t square_by_vector(cublasHandle_t handle, const char* name, cudaDataType_t type,
                                std::int64_t n, std::int64_t lda, bool has_steps) {
  return run(
      handle,
      {.name = name, .type = type, .m = n, .n = 1, .k = n, .valid = fits(lda, n) && has_steps});
}

// Columns by rows: a matrix of m × n.
cublasStatus_t outer(cublasHandle_t handle, const char* name, cudaDataType_t type, std::int64_t m,
                     std::int64_t n, std::int64_t lda, bool has_steps) {
  return run(
      handle,
      {.name = name, .type = type, .m = m, .n = n, .k = 1, .valid = fits(lda, m) && has_steps});
}

// A square matrix of n from what is n × k.
cublasStatus_t rank_k(cublasHandle_t handle, const char* name, cudaDataType_t type,
                      cublasOperation_t trans, std::int64_t n, std::int64_t k, std::int64_t lda,
                      std::int64_t ldb, std::int64_t ldc) {
  const std::int64_t rows = trans == CUBLAS_OP_N ? n : k;
  return run(handle, {.name = name,
                      .type = type,
                      .m = n,
                      .n = n,
                      .k = k,
                      .valid = simgpu::is_operation(trans) && fits(lda, rows) && fits(ldb, rows) &&
                               fits(ldc, n)});
}

// A square matrix at one side of one of m × n.
cublasStatus_t at_side(cublasHandle_t handle, const char* name, cudaDataType_t type,
                       cublasSideMode_t side, std::int64_t m, std::int64_t n, std::int64_t lda,
                       std::int64_t ldb, std::int64_t ldc, std::int64_t batch = 1) {
  const bool is_side = side == CUBLAS_SIDE_LEFT || side == CUBLAS_SIDE_RIGHT;
  const std::int64_t k = side == CUBLAS_SIDE_LEFT ? m : n;
  return run(handle, {.name = name,
                      .type = type,
                      .m = m,
                      .n = n,
                      .k = k,
                      .batch = batch,
                      .valid = is_side && fits(lda, k) && fits(ldb, m) && fits(ldc, m)});
}

const char* solve_name(cublasSideMode_t side) {
  return side == CUBLAS_SIDE_LEFT ? "trsm_left" : "trsm_right";
}

}  // namespace

// NOLINTBEGIN(bugprone-macro-parentheses): they declare names

// ---- A matrix and a vector ----

#define SIMGPU_GEMV(letter, T, Int, suffix)                                                      \
  SIMGPU_API cublasStatus_t cublas##letter##gemv##suffix(                                        \
      cublasHandle_t handle, cublasOperation_t trans, Int m, Int n, const T*, const T*, Int lda, \
      const T*, Int incx, const T*, T*, Int incy) {                                              \
    return multiply_vector(handle, kTypeOf<T>, trans, m, n, lda, incx, incy);                    \
  }
SIMGPU_ALL_TYPES(SIMGPU_GEMV, _v2)

#define SIMGPU_GEMV_BATCHED(letter, T, Int, suffix)                                              \
  SIMGPU_API cublasStatus_t cublas##letter##gemvStridedBatched##suffix(                          \
      cublasHandle_t handle, cublasOperation_t trans, Int m, Int n, const T*, const T*, Int lda, \
      long long, const T*, Int incx, long long, const T*, T*, Int incy, long long, Int batch) {  \
    return multiply_vector(handle, kTypeOf<T>, trans, m, n, lda, incx, incy, batch);             \
  }
SIMGPU_ALL_TYPES(SIMGPU_GEMV_BATCHED, )

#define SIMGPU_TRIANGULAR_BY_VECTOR(letter, T, Int, suffix)                                        \
  SIMGPU_API cublasStatus_t cublas##letter##trmv##suffix(cublasHandle_t handle, cublasFillMode_t,  \
                                                         cublasOperation_t, cublasDiagType_t,      \
                                                         Int n, const T*, Int lda, T*, Int incx) { \
    return square_by_vector(handle, "trmv", kTypeOf<T>, n, lda, incx != 0);                        \
  }                                                                                                \
  SIMGPU_API cublasStatus_t cublas##letter##trsv##suffix(cublasHandle_t handle, cublasFillMode_t,  \
                                                         cublasOperation_t, cublasDiagType_t,      \
                                                         Int n, const T*, Int lda, T*, Int incx) { \
    return square_by_vector(handle, "trsv", kTypeOf<T>, n, lda, incx != 0);                        \
  }
SIMGPU_ALL_TYPES(SIMGPU_TRIANGULAR_BY_VECTOR, _v2)

#define SIMGPU_SQUARE_BY_VECTOR(letter, T, Int, suffix, name)                                \
  SIMGPU_API cublasStatus_t cublas##letter##name##suffix(                                    \
      cublasHandle_t handle, cublasFillMode_t, Int n, const T*, const T*, Int lda, const T*, \
      Int incx, const T*, T*, Int incy) {                                                    \
    return square_by_vector(handle, #name, kTypeOf<T>, n, lda, incx != 0 && incy != 0);      \
  }
#define SIMGPU_SYMV(letter, T, Int, suffix) SIMGPU_SQUARE_BY_VECTOR(letter, T, Int, suffix, symv)
#define SIMGPU_HEMV(letter, T, Int, suffix) SIMGPU_SQUARE_BY_VECTOR(letter, T, Int, suffix, hemv)
SIMGPU_ALL_TYPES(SIMGPU_SYMV, _v2)
SIMGPU_COMPLEX_TYPES(SIMGPU_HEMV, _v2)

#define SIMGPU_OUTER(letter, T, Int, suffix, name)                                               \
  SIMGPU_API cublasStatus_t cublas##letter##name##suffix(cublasHandle_t handle, Int m, Int n,    \
                                                         const T*, const T*, Int incx, const T*, \
                                                         Int incy, T*, Int lda) {                \
    return outer(handle, #name, kTypeOf<T>, m, n, lda, incx != 0 && incy != 0);                  \
  }
#define SIMGPU_REAL_OUTER(letter, T, Int, suffix) SIMGPU_OUTER(letter, T, Int, suffix, ger)
#define SIMGPU_COMPLEX_OUTERS(letter, T, Int, suffix) \
  SIMGPU_OUTER(letter, T, Int, suffix, geru)          \
  SIMGPU_OUTER(letter, T, Int, suffix, gerc)
SIMGPU_REAL_TYPES(SIMGPU_REAL_OUTER, _v2)
SIMGPU_COMPLEX_TYPES(SIMGPU_COMPLEX_OUTERS, _v2)

#define SIMGPU_SYMMETRIC_OUTER(letter, T, Factor, Int, suffix, name)                               \
  SIMGPU_API cublasStatus_t cublas##letter##name##suffix(cublasHandle_t handle, cublasFillMode_t,  \
                                                         Int n, const Factor*, const T*, Int incx, \
                                                         T*, Int lda) {                            \
    return outer(handle, #name, kTypeOf<T>, n, n, lda, incx != 0);                                 \
  }
#define SIMGPU_SYR(letter, T, Int, suffix) SIMGPU_SYMMETRIC_OUTER(letter, T, T, Int, suffix, syr)
SIMGPU_ALL_TYPES(SIMGPU_SYR, _v2)
SIMGPU_SYMMETRIC_OUTER(C, cuComplex, float, int, _v2, her)
SIMGPU_SYMMETRIC_OUTER(C, cuComplex, float, int64_t, _v2_64, her)
SIMGPU_SYMMETRIC_OUTER(Z, cuDoubleComplex, double, int, _v2, her)
SIMGPU_SYMMETRIC_OUTER(Z, cuDoubleComplex, double, int64_t, _v2_64, her)

#define SIMGPU_SYMMETRIC_OUTER_2(letter, T, Int, suffix, name)                                    \
  SIMGPU_API cublasStatus_t cublas##letter##name##suffix(cublasHandle_t handle, cublasFillMode_t, \
                                                         Int n, const T*, const T*, Int incx,     \
                                                         const T*, Int incy, T*, Int lda) {       \
    return outer(handle, #name, kTypeOf<T>, n, n, lda, incx != 0 && incy != 0);                   \
  }
#define SIMGPU_SYR2(letter, T, Int, suffix) SIMGPU_SYMMETRIC_OUTER_2(letter, T, Int, suffix, syr2)
#define SIMGPU_HER2(letter, T, Int, suffix) SIMGPU_SYMMETRIC_OUTER_2(letter, T, Int, suffix, her2)
SIMGPU_ALL_TYPES(SIMGPU_SYR2, _v2)
SIMGPU_COMPLEX_TYPES(SIMGPU_HER2, _v2)

// ---- Matrices ----

#define SIMGPU_RANK_K(letter, T, Factor, Int, suffix, name)                           \
  SIMGPU_API cublasStatus_t cublas##letter##name##suffix(                             \
      cublasHandle_t handle, cublasFillMode_t, cublasOperation_t trans, Int n, Int k, \
      const Factor*, const T*, Int lda, const Factor*, T*, Int ldc) {                 \
    return rank_k(handle, #name, kTypeOf<T>, trans, n, k, lda, lda, ldc);             \
  }
#define SIMGPU_SYRK(letter, T, Int, suffix) SIMGPU_RANK_K(letter, T, T, Int, suffix, syrk)
SIMGPU_ALL_TYPES(SIMGPU_SYRK, _v2)
SIMGPU_RANK_K(C, cuComplex, float, int, _v2, herk)
SIMGPU_RANK_K(C, cuComplex, float, int64_t, _v2_64, herk)
SIMGPU_RANK_K(Z, cuDoubleComplex, double, int, _v2, herk)
SIMGPU_RANK_K(Z, cuDoubleComplex, double, int64_t, _v2_64, herk)

#define SIMGPU_RANK_2K(letter, T, Beta, Int, suffix, name)                                      \
  SIMGPU_API cublasStatus_t cublas##letter##name##suffix(                                       \
      cublasHandle_t handle, cublasFillMode_t, cublasOperation_t trans, Int n, Int k, const T*, \
      const T*, Int lda, const T*, Int ldb, const Beta*, T*, Int ldc) {                         \
    return rank_k(handle, #name, kTypeOf<T>, trans, n, k, lda, ldb, ldc);                       \
  }
#define SIMGPU_SYR2K(letter, T, Int, suffix) SIMGPU_RANK_2K(letter, T, T, Int, suffix, syr2k)
#define SIMGPU_SYRKX(letter, T, Int, suffix) SIMGPU_RANK_2K(letter, T, T, Int, suffix, syrkx)
SIMGPU_ALL_TYPES(SIMGPU_SYR2K, _v2)
SIMGPU_ALL_TYPES(SIMGPU_SYRKX, )
SIMGPU_RANK_2K(C, cuComplex, float, int, _v2, her2k)
SIMGPU_RANK_2K(C, cuComplex, float, int64_t, _v2_64, her2k)
SIMGPU_RANK_2K(Z, cuDoubleComplex, double, int, _v2, her2k)
SIMGPU_RANK_2K(Z, cuDoubleComplex, double, int64_t, _v2_64, her2k)

#define SIMGPU_AT_SIDE(letter, T, Int, suffix, name)                                          \
  SIMGPU_API cublasStatus_t cublas##letter##name##suffix(                                     \
      cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t, Int m, Int n, const T*, \
      const T*, Int lda, const T*, Int ldb, const T*, T*, Int ldc) {                          \
    return at_side(handle, #name, kTypeOf<T>, side, m, n, lda, ldb, ldc);                     \
  }
#define SIMGPU_SYMM(letter, T, Int, suffix) SIMGPU_AT_SIDE(letter, T, Int, suffix, symm)
#define SIMGPU_HEMM(letter, T, Int, suffix) SIMGPU_AT_SIDE(letter, T, Int, suffix, hemm)
SIMGPU_ALL_TYPES(SIMGPU_SYMM, _v2)
SIMGPU_COMPLEX_TYPES(SIMGPU_HEMM, _v2)

#define SIMGPU_TRIANGULAR(letter, T, Int, suffix)                                         \
  SIMGPU_API cublasStatus_t cublas##letter##trmm##suffix(                                 \
      cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t, cublasOperation_t,  \
      cublasDiagType_t, Int m, Int n, const T*, const T*, Int lda, const T*, Int ldb, T*, \
      Int ldc) {                                                                          \
    return at_side(handle, "trmm", kTypeOf<T>, side, m, n, lda, ldb, ldc);                \
  }                                                                                       \
  SIMGPU_API cublasStatus_t cublas##letter##trsm##suffix(                                 \
      cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t, cublasOperation_t,  \
      cublasDiagType_t, Int m, Int n, const T*, const T*, Int lda, T*, Int ldb) {         \
    return at_side(handle, solve_name(side), kTypeOf<T>, side, m, n, lda, ldb, ldb);      \
  }
SIMGPU_ALL_TYPES(SIMGPU_TRIANGULAR, _v2)

#define SIMGPU_TRSM_BATCHED(letter, T, Int, suffix)                                           \
  SIMGPU_API cublasStatus_t cublas##letter##trsmBatched##suffix(                              \
      cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t, cublasOperation_t,      \
      cublasDiagType_t, Int m, Int n, const T*, const T* const*, Int lda, T* const*, Int ldb, \
      Int batch) {                                                                            \
    return at_side(handle, solve_name(side), kTypeOf<T>, side, m, n, lda, ldb, ldb, batch);   \
  }
SIMGPU_ALL_TYPES(SIMGPU_TRSM_BATCHED, )

#define SIMGPU_GEAM(letter, T, Int, suffix)                                                    \
  SIMGPU_API cublasStatus_t cublas##letter##geam##suffix(                                      \
      cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, Int m, Int n, \
      const T*, const T*, Int lda, const T*, const T*, Int ldb, T*, Int ldc) {                 \
    const bool fit =                                                                           \
        fits(lda, transa == CUBLAS_OP_N ? m : n) && fits(ldb, transb == CUBLAS_OP_N ? m : n);  \
    return outer(handle, "geam", kTypeOf<T>, m, n, ldc, fit);                                  \
  }
SIMGPU_ALL_TYPES(SIMGPU_GEAM, )

#define SIMGPU_DGMM(letter, T, Int, suffix)                                                       \
  SIMGPU_API cublasStatus_t cublas##letter##dgmm##suffix(cublasHandle_t handle, cublasSideMode_t, \
                                                         Int m, Int n, const T*, Int lda,         \
                                                         const T*, Int, T*, Int ldc) {            \
    return outer(handle, "dgmm", kTypeOf<T>, m, n, ldc, fits(lda, m));                            \
  }
SIMGPU_ALL_TYPES(SIMGPU_DGMM, )

// NOLINTEND(bugprone-macro-parentheses)
