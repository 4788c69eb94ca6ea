// cuBLASLt: matrix products that are described at length.
#include <cuda_runtime_api.h>

#include <new>
#include <optional>

#include "blas/blas.h"
#include "blas/lt_attributes.h"
#include "core/machine.h"

using simgpu::Attributes;
using simgpu::get;
using simgpu::kAlgorithm;
using simgpu::kLayout;
using simgpu::kMatmul;
using simgpu::kPreference;
using simgpu::number;
using simgpu::set;
using simgpu::set_initial;
using simgpu::set_number;

struct cublasLtContext {};  // NOLINT(readability-identifier-naming): CUDA's name

namespace {

// Its number; nothing else hangs on it.
constexpr int kOnlyAlgorithm = 66;

// What is made by the library is gone with its Destroy; what is initialised is the program's.
template <typename Opaque, typename Initialize>
cublasStatus_t create(Opaque** description, const Initialize& initialize) {
  if (description == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  *description = new (std::nothrow) Opaque{};
  return *description == nullptr ? CUBLAS_STATUS_ALLOC_FAILED
                                 : initialize(*description, sizeof(Opaque));
}

template <typename Opaque>
cublasStatus_t destroy(Opaque* description) {
  delete description;
  return CUBLAS_STATUS_SUCCESS;
}

template <typename Opaque>
cublasStatus_t initialize(Attributes attributes, Opaque* description, std::size_t bytes) {
  if (description == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  if (bytes < sizeof(Opaque)) return CUBLAS_STATUS_ALLOC_FAILED;
  *description = {};
  set_initial(attributes, description);
  return CUBLAS_STATUS_SUCCESS;
}

// ---- Products ----

struct Matrix {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  bool is_valid = false;
};

Matrix matrix(cublasLtMatrixLayout_t layout, cublasOperation_t operation = CUBLAS_OP_N) {
  const std::int64_t rows = number(kLayout, layout, CUBLASLT_MATRIX_LAYOUT_ROWS);
  const std::int64_t columns = number(kLayout, layout, CUBLASLT_MATRIX_LAYOUT_COLS);
  const std::int64_t ld = number(kLayout, layout, CUBLASLT_MATRIX_LAYOUT_LD);
  const std::int64_t order = number(kLayout, layout, CUBLASLT_MATRIX_LAYOUT_ORDER);
  const bool is_valid = rows >= 0 && columns >= 0 && simgpu::is_operation(operation) &&
                        (order != CUBLASLT_ORDER_COL || ld >= rows) &&
                        (order != CUBLASLT_ORDER_ROW || ld >= columns);
  if (operation == CUBLAS_OP_N) return {rows, columns, is_valid};
  return {columns, rows, is_valid};
}

cudaDataType_t type(cublasLtMatrixLayout_t layout) {
  return static_cast<cudaDataType_t>(number(kLayout, layout, CUBLASLT_MATRIX_LAYOUT_TYPE));
}

// What is done with the result, as kernels' names tell it.
std::string epilogue_name(std::int64_t epilogue) {
  struct Part {
    std::int64_t bit;
    const char* name;
  };
  // Those without a name of their own are part of several.
  constexpr Part kParts[] = {{CUBLASLT_EPILOGUE_BIAS, "_bias"},
                             {CUBLASLT_EPILOGUE_RELU, "_relu"},
                             {CUBLASLT_EPILOGUE_GELU, "_gelu"},
                             {8, "_drelu"},
                             {64, "_dgelu"},
                             {16, "_bgrad"},
                             {128, "_aux"},
                             {CUBLASLT_EPILOGUE_BGRADA, "_bgrada"},
                             {CUBLASLT_EPILOGUE_BGRADB, "_bgradb"}};
  std::string name;
  for (const Part& part : kParts) {
    if ((epilogue & part.bit) != 0) name += part.name;
  }
  return name;
}

// Nothing where the descriptions do not go together.
std::optional<simgpu::Product> product_of(cublasLtMatmulDesc_t matmul, cublasLtMatrixLayout_t a,
                                          cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t d) {
  if (matmul == nullptr || a == nullptr || b == nullptr || d == nullptr) return std::nullopt;
  const auto operation = [&](int id) {
    return static_cast<cublasOperation_t>(number(kMatmul, matmul, id));
  };
  const cublasOperation_t transa = operation(CUBLASLT_MATMUL_DESC_TRANSA);
  const cublasOperation_t transb = operation(CUBLASLT_MATMUL_DESC_TRANSB);
  const Matrix left = matrix(a, transa);
  const Matrix right = matrix(b, transb);
  const Matrix result = matrix(d);
  const std::int64_t batch = number(kLayout, d, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
  if (!left.is_valid || !right.is_valid || !result.is_valid || batch < 0 ||
      left.rows != result.rows || right.columns != result.columns || left.columns != right.rows)
    return std::nullopt;
  return simgpu::Product{
      .transa = transa,
      .transb = transb,
      .m = left.rows,
      .n = right.columns,
      .k = left.columns,
      .batch = batch,
      .a_type = type(a),
      .d_type = type(d),
      .compute = static_cast<cublasComputeType_t>(
          number(kMatmul, matmul, CUBLASLT_MATMUL_DESC_COMPUTE_TYPE)),
      .epilogue = epilogue_name(number(kMatmul, matmul, CUBLASLT_MATMUL_DESC_EPILOGUE))};
}

// How it would run: without a workspace.
void tell(const simgpu::Product& product, cublasLtMatmulHeuristicResult_t& result) {
  result.workspaceSize = 0;
  result.state = CUBLAS_STATUS_SUCCESS;
  result.wavesCount = static_cast<float>(simgpu::blocks(product) /
                                         simgpu::Machine::instance().profile().multiprocessors);
}

void set_algorithm(cublasLtMatmulAlgo_t& algorithm, int id) {
  algorithm = {};
  set_initial(kAlgorithm, &algorithm);
  set_number(kAlgorithm, &algorithm, CUBLASLT_ALGO_CONFIG_ID, id);
}

}  // namespace

// ---- The library ----

SIMGPU_API cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  if (handle == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess) return CUBLAS_STATUS_NOT_INITIALIZED;
  *handle = new cublasLtContext;
  return CUBLAS_STATUS_SUCCESS;
}

SIMGPU_API cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

SIMGPU_API std::size_t cublasLtGetVersion() { return CUBLAS_VERSION; }
SIMGPU_API std::size_t cublasLtGetCudartVersion() { return CUDART_VERSION; }
SIMGPU_API cublasStatus_t cublasLtGetProperty(libraryPropertyType type, int* value) {
  return simgpu::version_part(type, value);
}
SIMGPU_API const char* cublasLtGetStatusName(cublasStatus_t status) {
  return simgpu::status_name(status);
}
SIMGPU_API const char* cublasLtGetStatusString(cublasStatus_t status) {
  return simgpu::status_text(status);
}

// ---- Descriptions ----

SIMGPU_API cublasStatus_t cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t layout,
                                                            std::size_t bytes, cudaDataType type,
                                                            std::uint64_t rows,
                                                            std::uint64_t columns,
                                                            std::int64_t ld) {
  const cublasStatus_t status = initialize(kLayout, layout, bytes);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  set_number(kLayout, layout, CUBLASLT_MATRIX_LAYOUT_TYPE, type);
  set_number(kLayout, layout, CUBLASLT_MATRIX_LAYOUT_ROWS, static_cast<std::int64_t>(rows));
  set_number(kLayout, layout, CUBLASLT_MATRIX_LAYOUT_COLS, static_cast<std::int64_t>(columns));
  set_number(kLayout, layout, CUBLASLT_MATRIX_LAYOUT_LD, ld);
  return CUBLAS_STATUS_SUCCESS;
}
SIMGPU_API cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout,
                                                     cudaDataType type, std::uint64_t rows,
                                                     std::uint64_t columns, std::int64_t ld) {
  return create(layout, [&](cublasLtMatrixLayout_t made, std::size_t bytes) {
    return cublasLtMatrixLayoutInit_internal(made, bytes, type, rows, columns, ld);
  });
}
SIMGPU_API cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  return destroy(layout);
}
SIMGPU_API cublasStatus_t cublasLtMatrixLayoutSetAttribute(
    cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t attribute, const void* from,
    std::size_t bytes) {
  return set(kLayout, layout, attribute, from, bytes);
}
SIMGPU_API cublasStatus_t cublasLtMatrixLayoutGetAttribute(
    cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t attribute, void* to,
    std::size_t bytes, std::size_t* written) {
  return get(kLayout, layout, attribute, to, bytes, written);
}

SIMGPU_API cublasStatus_t cublasLtMatmulDescInit_internal(cublasLtMatmulDesc_t matmul,
                                                          std::size_t bytes,
                                                          cublasComputeType_t compute,
                                                          cudaDataType_t scale) {
  const cublasStatus_t status = initialize(kMatmul, matmul, bytes);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  set_number(kMatmul, matmul, CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, compute);
  set_number(kMatmul, matmul, CUBLASLT_MATMUL_DESC_SCALE_TYPE, scale);
  return CUBLAS_STATUS_SUCCESS;
}
SIMGPU_API cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* matmul,
                                                   cublasComputeType_t compute,
                                                   cudaDataType_t scale) {
  return create(matmul, [&](cublasLtMatmulDesc_t made, std::size_t bytes) {
    return cublasLtMatmulDescInit_internal(made, bytes, compute, scale);
  });
}
SIMGPU_API cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t matmul) {
  return destroy(matmul);
}
SIMGPU_API cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t matmul,
                                                         cublasLtMatmulDescAttributes_t attribute,
                                                         const void* from, std::size_t bytes) {
  return set(kMatmul, matmul, attribute, from, bytes);
}
SIMGPU_API cublasStatus_t cublasLtMatmulDescGetAttribute(cublasLtMatmulDesc_t matmul,
                                                         cublasLtMatmulDescAttributes_t attribute,
                                                         void* to, std::size_t bytes,
                                                         std::size_t* written) {
  return get(kMatmul, matmul, attribute, to, bytes, written);
}

SIMGPU_API cublasStatus_t
cublasLtMatmulPreferenceInit_internal(cublasLtMatmulPreference_t preference, std::size_t bytes) {
  return initialize(kPreference, preference, bytes);
}
SIMGPU_API cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  return create(preference, cublasLtMatmulPreferenceInit_internal);
}
SIMGPU_API cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  return destroy(preference);
}
SIMGPU_API cublasStatus_t cublasLtMatmulPreferenceSetAttribute(
    cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute,
    const void* from, std::size_t bytes) {
  return set(kPreference, preference, attribute, from, bytes);
}
SIMGPU_API cublasStatus_t cublasLtMatmulPreferenceGetAttribute(
    cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute, void* to,
    std::size_t bytes, std::size_t* written) {
  return get(kPreference, preference, attribute, to, bytes, written);
}

// ---- Algorithms: there is one ----

SIMGPU_API cublasStatus_t cublasLtMatmulAlgoGetIds(cublasLtHandle_t handle, cublasComputeType_t,
                                                   cudaDataType_t, cudaDataType_t, cudaDataType_t,
                                                   cudaDataType_t, cudaDataType_t, int requested,
                                                   int* ids, int* count) {
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (requested <= 0 || ids == nullptr || count == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  ids[0] = kOnlyAlgorithm;
  *count = 1;
  return CUBLAS_STATUS_SUCCESS;
}

SIMGPU_API cublasStatus_t cublasLtMatmulAlgoInit(cublasLtHandle_t handle, cublasComputeType_t,
                                                 cudaDataType_t, cudaDataType_t, cudaDataType_t,
                                                 cudaDataType_t, cudaDataType_t, int id,
                                                 cublasLtMatmulAlgo_t* algorithm) {
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (algorithm == nullptr || id < 0) return CUBLAS_STATUS_INVALID_VALUE;
  set_algorithm(*algorithm, id);
  return CUBLAS_STATUS_SUCCESS;
}

SIMGPU_API cublasStatus_t cublasLtMatmulAlgoConfigSetAttribute(
    cublasLtMatmulAlgo_t* algorithm, cublasLtMatmulAlgoConfigAttributes_t attribute,
    const void* from, std::size_t bytes) {
  if (attribute == CUBLASLT_ALGO_CONFIG_ID) return CUBLAS_STATUS_INVALID_VALUE;  // read only
  return set(kAlgorithm, algorithm, attribute, from, bytes);
}
SIMGPU_API cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(
    const cublasLtMatmulAlgo_t* algorithm, cublasLtMatmulAlgoConfigAttributes_t attribute, void* to,
    std::size_t bytes, std::size_t* written) {
  return get(kAlgorithm, algorithm, attribute, to, bytes, written);
}

SIMGPU_API cublasStatus_t cublasLtMatmulAlgoCheck(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t matmul, cublasLtMatrixLayout_t a,
    cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t /*c*/, cublasLtMatrixLayout_t d,
    const cublasLtMatmulAlgo_t* algorithm, cublasLtMatmulHeuristicResult_t* result) {
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  const std::optional<simgpu::Product> product = product_of(matmul, a, b, d);
  if (!product || algorithm == nullptr || result == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  tell(*product, *result);
  return CUBLAS_STATUS_SUCCESS;
}

SIMGPU_API cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t matmul, cublasLtMatrixLayout_t a,
    cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t /*c*/, cublasLtMatrixLayout_t d,
    cublasLtMatmulPreference_t preference, int requested, cublasLtMatmulHeuristicResult_t* results,
    int* count) {
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  const std::optional<simgpu::Product> product = product_of(matmul, a, b, d);
  if (!product || preference == nullptr || requested <= 0 || results == nullptr || count == nullptr)
    return CUBLAS_STATUS_INVALID_VALUE;
  set_algorithm(results[0].algo, kOnlyAlgorithm);
  tell(*product, results[0]);
  *count = 1;
  return CUBLAS_STATUS_SUCCESS;
}

SIMGPU_API cublasStatus_t cublasLtMatmul(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t matmul, const void* alpha, const void* /*a*/,
    cublasLtMatrixLayout_t a_layout, const void* /*b*/, cublasLtMatrixLayout_t b_layout,
    const void* beta, const void* /*c*/, cublasLtMatrixLayout_t /*c_layout*/, void* /*d*/,
    cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* /*algorithm*/, void* /*workspace*/,
    std::size_t /*workspace_bytes*/, cudaStream_t stream) {
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  const std::optional<simgpu::Product> product = product_of(matmul, a_layout, b_layout, d_layout);
  if (!product || alpha == nullptr || beta == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  return simgpu::launch(*product, stream);
}
