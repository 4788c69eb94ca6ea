// Matrix products: gemm in all its forms.
#include "blas/blas.h"

using simgpu::Product;

namespace {

// The arguments of a product that only its check needs.
struct Operands {
  const void* alpha = nullptr;
  std::int64_t lda = 0;
  std::int64_t ldb = 0;
  const void* beta = nullptr;
  std::int64_t ldc = 0;
};

bool is_valid(const Product& product, const Operands& operands) {
  const std::int64_t a_rows = product.transa == CUBLAS_OP_N ? product.m : product.k;
  const std::int64_t b_rows = product.transb == CUBLAS_OP_N ? product.k : product.n;
  return simgpu::is_operation(product.transa) && simgpu::is_operation(product.transb) &&
         std::min({product.m, product.n, product.k, product.batch}) >= 0 &&
         simgpu::fits(operands.lda, a_rows) && simgpu::fits(operands.ldb, b_rows) &&
         simgpu::fits(operands.ldc, product.m) && operands.alpha != nullptr &&
         operands.beta != nullptr;
}

bool allows_tf32(cublasMath_t mode) {
  const int without_flag =
      static_cast<int>(mode) & ~CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION;
  return without_flag == CUBLAS_TF32_TENSOR_OP_MATH || without_flag == CUBLAS_TENSOR_OP_MATH;
}

cublasStatus_t multiply(cublasHandle_t handle, Product product, const Operands& operands) {
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!is_valid(product, operands)) return CUBLAS_STATUS_INVALID_VALUE;
  if (product.compute == CUBLAS_COMPUTE_32F && allows_tf32(handle->math_mode))
    product.compute = CUBLAS_COMPUTE_32F_FAST_TF32;
  return simgpu::launch(product, handle->stream);
}

// What a routine for one type computes in.
cublasComputeType_t compute_of(cudaDataType_t type) {
  if (type == CUDA_R_16F) return CUBLAS_COMPUTE_16F;
  return type == CUDA_R_64F || type == CUDA_C_64F ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F;
}

template <typename T>
Product product_of(cublasOperation_t transa, cublasOperation_t transb, std::int64_t m,
                   std::int64_t n, std::int64_t k, std::int64_t batch = 1) {
  constexpr cudaDataType_t kType = simgpu::kTypeOf<T>;
  return {.transa = transa,
          .transb = transb,
          .m = m,
          .n = n,
          .k = k,
          .batch = batch,
          .a_type = kType,
          .d_type = kType,
          .compute = compute_of(kType)};
}

// Groups of products, each with sizes of its own: the arrays are the host's.
struct Groups {
  const cublasOperation_t* transa;
  const cublasOperation_t* transb;
  const int* m;
  const int* n;
  const int* k;
  const int* lda;
  const int* ldb;
  const int* ldc;
  int count;
  const int* size;
};

cublasStatus_t multiply(cublasHandle_t handle, const Groups& groups, const void* alpha,
                        const void* beta, cudaDataType_t a_type, cudaDataType_t d_type,
                        cublasComputeType_t compute) {
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (groups.count < 0) return CUBLAS_STATUS_INVALID_VALUE;
  for (int i = 0; i < groups.count; ++i) {
    const Product product{.transa = groups.transa[i],
                          .transb = groups.transb[i],
                          .m = groups.m[i],
                          .n = groups.n[i],
                          .k = groups.k[i],
                          .batch = groups.size[i],
                          .a_type = a_type,
                          .d_type = d_type,
                          .compute = compute};
    const cublasStatus_t status =
        multiply(handle, product, {alpha, groups.lda[i], groups.ldb[i], beta, groups.ldc[i]});
    if (status != CUBLAS_STATUS_SUCCESS) return status;
  }
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

// NOLINTBEGIN(bugprone-macro-parentheses): they declare names

// ---- All of one type ----

#define SIMGPU_GEMM(letter, T, Int, suffix)                                                        \
  SIMGPU_API cublasStatus_t cublas##letter##gemm##suffix(                                          \
      cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, Int m, Int n,     \
      Int k, const T* alpha, const T*, Int lda, const T*, Int ldb, const T* beta, T*, Int ldc) {   \
    return multiply(handle, product_of<T>(transa, transb, m, n, k), {alpha, lda, ldb, beta, ldc}); \
  }
SIMGPU_ALL_TYPES(SIMGPU_GEMM, _v2)
SIMGPU_GEMM(H, __half, int, )
SIMGPU_GEMM(H, __half, int64_t, _64)

#define SIMGPU_GEMM_BATCHED(letter, T, Int, suffix)                                             \
  SIMGPU_API cublasStatus_t cublas##letter##gemmBatched##suffix(                                \
      cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, Int m, Int n,  \
      Int k, const T* alpha, const T* const*, Int lda, const T* const*, Int ldb, const T* beta, \
      T* const*, Int ldc, Int batch) {                                                          \
    return multiply(handle, product_of<T>(transa, transb, m, n, k, batch),                      \
                    {alpha, lda, ldb, beta, ldc});                                              \
  }
SIMGPU_ALL_TYPES(SIMGPU_GEMM_BATCHED, )
SIMGPU_GEMM_BATCHED(H, __half, int, )
SIMGPU_GEMM_BATCHED(H, __half, int64_t, _64)

#define SIMGPU_GEMM_STRIDED(letter, T, Int, suffix)                                            \
  SIMGPU_API cublasStatus_t cublas##letter##gemmStridedBatched##suffix(                        \
      cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, Int m, Int n, \
      Int k, const T* alpha, const T*, Int lda, long long, const T*, Int ldb, long long,       \
      const T* beta, T*, Int ldc, long long, Int batch) {                                      \
    return multiply(handle, product_of<T>(transa, transb, m, n, k, batch),                     \
                    {alpha, lda, ldb, beta, ldc});                                             \
  }
SIMGPU_ALL_TYPES(SIMGPU_GEMM_STRIDED, )
SIMGPU_GEMM_STRIDED(H, __half, int, )
SIMGPU_GEMM_STRIDED(H, __half, int64_t, _64)

#define SIMGPU_GEMM_GROUPED(letter, T)                                                           \
  SIMGPU_API cublasStatus_t cublas##letter##gemmGroupedBatched(                                  \
      cublasHandle_t handle, const cublasOperation_t* transa, const cublasOperation_t* transb,   \
      const int* m, const int* n, const int* k, const T* alpha, const T* const*, const int* lda, \
      const T* const*, const int* ldb, const T* beta, T* const*, const int* ldc, int count,      \
      const int* size) {                                                                         \
    constexpr cudaDataType_t kType = simgpu::kTypeOf<T>;                                         \
    return multiply(handle, {transa, transb, m, n, k, lda, ldb, ldc, count, size}, alpha, beta,  \
                    kType, kType, compute_of(kType));                                            \
  }
SIMGPU_GEMM_GROUPED(S, float)
SIMGPU_GEMM_GROUPED(D, double)

// ---- Types as they are asked for ----

#define SIMGPU_GEMM_EX(Int, suffix)                                                                \
  SIMGPU_API cublasStatus_t cublasGemmEx##suffix(                                                  \
      cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, Int m, Int n,     \
      Int k, const void* alpha, const void*, cudaDataType a_type, Int lda, const void*,            \
      cudaDataType, Int ldb, const void* beta, void*, cudaDataType c_type, Int ldc,                \
      cublasComputeType_t compute, cublasGemmAlgo_t) {                                             \
    return multiply(handle, {transa, transb, m, n, k, 1, a_type, c_type, compute, {}},             \
                    {alpha, lda, ldb, beta, ldc});                                                 \
  }                                                                                                \
  SIMGPU_API cublasStatus_t cublasGemmBatchedEx##suffix(                                           \
      cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, Int m, Int n,     \
      Int k, const void* alpha, const void* const*, cudaDataType a_type, Int lda,                  \
      const void* const*, cudaDataType, Int ldb, const void* beta, void* const*,                   \
      cudaDataType c_type, Int ldc, Int batch, cublasComputeType_t compute, cublasGemmAlgo_t) {    \
    return multiply(handle, {transa, transb, m, n, k, batch, a_type, c_type, compute, {}},         \
                    {alpha, lda, ldb, beta, ldc});                                                 \
  }                                                                                                \
  SIMGPU_API cublasStatus_t cublasGemmStridedBatchedEx##suffix(                                    \
      cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, Int m, Int n,     \
      Int k, const void* alpha, const void*, cudaDataType a_type, Int lda, long long, const void*, \
      cudaDataType, Int ldb, long long, const void* beta, void*, cudaDataType c_type, Int ldc,     \
      long long, Int batch, cublasComputeType_t compute, cublasGemmAlgo_t) {                       \
    return multiply(handle, {transa, transb, m, n, k, batch, a_type, c_type, compute, {}},         \
                    {alpha, lda, ldb, beta, ldc});                                                 \
  }
SIMGPU_GEMM_EX(int, )
SIMGPU_GEMM_EX(int64_t, _64)

#define SIMGPU_TYPED_GEMM_EX(letter, T, Int, suffix)                                               \
  SIMGPU_API cublasStatus_t cublas##letter##gemmEx##suffix(                                        \
      cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, Int m, Int n,     \
      Int k, const T* alpha, const void*, cudaDataType a_type, Int lda, const void*, cudaDataType, \
      Int ldb, const T* beta, void*, cudaDataType c_type, Int ldc) {                               \
    return multiply(handle, {transa, transb, m, n, k, 1, a_type, c_type, CUBLAS_COMPUTE_32F, {}},  \
                    {alpha, lda, ldb, beta, ldc});                                                 \
  }
SIMGPU_TYPED_GEMM_EX(S, float, int, )
SIMGPU_TYPED_GEMM_EX(S, float, int64_t, _64)
SIMGPU_TYPED_GEMM_EX(C, cuComplex, int, )
SIMGPU_TYPED_GEMM_EX(C, cuComplex, int64_t, _64)

// NOLINTEND(bugprone-macro-parentheses)

SIMGPU_API cublasStatus_t cublasGemmGroupedBatchedEx(
    cublasHandle_t handle, const cublasOperation_t* transa, const cublasOperation_t* transb,
    const int* m, const int* n, const int* k, const void* alpha, const void* const* /*a*/,
    cudaDataType_t a_type, const int* lda, const void* const* /*b*/, cudaDataType_t /*b_type*/,
    const int* ldb, const void* beta, void* const* /*c*/, cudaDataType_t c_type, const int* ldc,
    int count, const int* size, cublasComputeType_t compute) {
  return multiply(handle, {transa, transb, m, n, k, lda, ldb, ldc, count, size}, alpha, beta,
                  a_type, c_type, compute);
}
