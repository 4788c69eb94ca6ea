#include "blas/lt_attributes.h"

#include <algorithm>
#include <cstring>

namespace simgpu {
namespace {

constexpr std::size_t kPointer = sizeof(void*);

constexpr Attribute kLayoutTable[] = {
    {CUBLASLT_MATRIX_LAYOUT_TYPE, 4},
    {CUBLASLT_MATRIX_LAYOUT_ORDER, 4, CUBLASLT_ORDER_COL},
    {CUBLASLT_MATRIX_LAYOUT_ROWS, 8},
    {CUBLASLT_MATRIX_LAYOUT_COLS, 8},
    {CUBLASLT_MATRIX_LAYOUT_LD, 8},
    {CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, 4, 1},
    {CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, 8},
    {CUBLASLT_MATRIX_LAYOUT_PLANE_OFFSET, 8},
    {CUBLASLT_MATRIX_LAYOUT_BATCH_MODE, 4},
    {CUBLASLT_GROUPED_MATRIX_LAYOUT_ROWS_ARRAY, kPointer},
    {CUBLASLT_GROUPED_MATRIX_LAYOUT_COLS_ARRAY, kPointer},
    {CUBLASLT_GROUPED_MATRIX_LAYOUT_LD_ARRAY, kPointer},
    {CUBLASLT_GROUPED_MATRIX_LAYOUT_ROWS_COLS_ARRAY_INTEGER_WIDTH, 4},
    {CUBLASLT_GROUPED_MATRIX_LAYOUT_LD_ARRAY_INTEGER_WIDTH, 4},
};

constexpr Attribute kMatmulTable[] = {
    {CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, 4},
    {CUBLASLT_MATMUL_DESC_SCALE_TYPE, 4},
    {CUBLASLT_MATMUL_DESC_POINTER_MODE, 4, CUBLASLT_POINTER_MODE_HOST},
    {CUBLASLT_MATMUL_DESC_TRANSA, 4, CUBLAS_OP_N},
    {CUBLASLT_MATMUL_DESC_TRANSB, 4, CUBLAS_OP_N},
    {CUBLASLT_MATMUL_DESC_TRANSC, 4, CUBLAS_OP_N},
    {CUBLASLT_MATMUL_DESC_FILL_MODE, 4, CUBLAS_FILL_MODE_FULL},
    {CUBLASLT_MATMUL_DESC_EPILOGUE, 4, CUBLASLT_EPILOGUE_DEFAULT},
    {CUBLASLT_MATMUL_DESC_BIAS_POINTER, kPointer},
    {CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, 8},
    {CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, kPointer},
    {CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, 8},
    {CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, 8},
    {CUBLASLT_MATMUL_DESC_ALPHA_VECTOR_BATCH_STRIDE, 8},
    {CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, 4},
    {CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, kPointer},
    {CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, kPointer},
    {CUBLASLT_MATMUL_DESC_C_SCALE_POINTER, kPointer},
    {CUBLASLT_MATMUL_DESC_D_SCALE_POINTER, kPointer},
    {CUBLASLT_MATMUL_DESC_AMAX_D_POINTER, kPointer},
    {CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, 4, -1},
    {CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_SCALE_POINTER, kPointer},
    {CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_AMAX_POINTER, kPointer},
    {CUBLASLT_MATMUL_DESC_FAST_ACCUM, 1},
    {CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, 4, -1},
    {CUBLASLT_MATMUL_DESC_A_SCALE_MODE, 4},
    {CUBLASLT_MATMUL_DESC_B_SCALE_MODE, 4},
    {CUBLASLT_MATMUL_DESC_C_SCALE_MODE, 4},
    {CUBLASLT_MATMUL_DESC_D_SCALE_MODE, 4},
    {CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_SCALE_MODE, 4},
    {CUBLASLT_MATMUL_DESC_D_OUT_SCALE_POINTER, kPointer},
    {CUBLASLT_MATMUL_DESC_D_OUT_SCALE_MODE, 4},
    {CUBLASLT_MATMUL_DESC_EMULATION_DESCRIPTOR, kPointer},
    {CUBLASLT_MATMUL_DESC_ALPHA_BATCH_STRIDE, 8},
    {CUBLASLT_MATMUL_DESC_BETA_BATCH_STRIDE, 8},
};

constexpr Attribute kPreferenceTable[] = {
    {CUBLASLT_MATMUL_PREF_SEARCH_MODE, 4},
    {CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, 8},
    {CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, 4, CUBLASLT_REDUCTION_SCHEME_MASK},
    {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, 4, 256},
    {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, 4, 256},
    {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, 4, 256},
    {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, 4, 256},
    {CUBLASLT_MATMUL_PREF_MAX_WAVES_COUNT, 4},
    {CUBLASLT_MATMUL_PREF_IMPL_MASK, 8, -1},
    {CUBLASLT_MATMUL_PREF_GROUPED_AVERAGE_REDUCTION_DIM, 4},
    {CUBLASLT_MATMUL_PREF_GROUPED_DESC_D_AVERAGE_ROWS, 4},
    {CUBLASLT_MATMUL_PREF_GROUPED_DESC_D_AVERAGE_COLS, 4},
};

constexpr Attribute kAlgorithmTable[] = {
    {CUBLASLT_ALGO_CONFIG_ID, 4},
    {CUBLASLT_ALGO_CONFIG_TILE_ID, 4},
    {CUBLASLT_ALGO_CONFIG_SPLITK_NUM, 4, 1},
    {CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, 4},
    {CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, 4},
    {CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, 4},
    {CUBLASLT_ALGO_CONFIG_STAGES_ID, 4},
    {CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID, 2},
    {CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, 2},
};

constexpr std::size_t bytes_of(Attributes attributes) {
  std::size_t bytes = 0;
  for (const Attribute& attribute : attributes) bytes += attribute.bytes;
  return bytes;
}
static_assert(bytes_of(kLayoutTable) <= sizeof(cublasLtMatrixLayoutOpaque_t));
static_assert(bytes_of(kMatmulTable) <= sizeof(cublasLtMatmulDescOpaque_t));
static_assert(bytes_of(kPreferenceTable) <= sizeof(cublasLtMatmulPreferenceOpaque_t));
static_assert(bytes_of(kAlgorithmTable) <= sizeof(cublasLtMatmulAlgo_t));

// Where an attribute's value is in a description; empty for one that there is not.
std::span<char> value_of(Attributes attributes, const void* description, int id) {
  // The table is the same for who reads and who writes.
  auto* at = const_cast<char*>(static_cast<const char*>(description));
  for (const Attribute& attribute : attributes) {
    if (attribute.id == id) return {at, attribute.bytes};
    at += attribute.bytes;
  }
  return {};
}

}  // namespace

constinit const Attributes kLayout = kLayoutTable;
constinit const Attributes kMatmul = kMatmulTable;
constinit const Attributes kPreference = kPreferenceTable;
constinit const Attributes kAlgorithm = kAlgorithmTable;

cublasStatus_t set(Attributes attributes, void* description, int id, const void* from,
                   std::size_t bytes) {
  if (description == nullptr || from == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  const std::span<char> value = value_of(attributes, description, id);
  if (value.empty() || value.size() != bytes) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(value.data(), from, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t get(Attributes attributes, const void* description, int id, void* to,
                   std::size_t bytes, std::size_t* written) {
  if (description == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  const std::span<char> value = value_of(attributes, description, id);
  const bool asks_size = bytes == 0 && written != nullptr;
  const bool asks_value = to != nullptr && bytes == value.size();
  if (value.empty() || (!asks_size && !asks_value)) return CUBLAS_STATUS_INVALID_VALUE;
  if (asks_value) std::memcpy(to, value.data(), bytes);
  if (written != nullptr) *written = value.size();
  return CUBLAS_STATUS_SUCCESS;
}

std::int64_t number(Attributes attributes, const void* description, int id) {
  const std::span<char> value = value_of(attributes, description, id);
  std::int64_t wide = 0;
  std::int32_t narrow = 0;
  if (value.size() == sizeof(wide)) {
    std::memcpy(&wide, value.data(), sizeof(wide));
    return wide;
  }
  std::memcpy(&narrow, value.data(), std::min(value.size(), sizeof(narrow)));
  return narrow;
}

void set_number(Attributes attributes, void* description, int id, std::int64_t number) {
  const std::span<char> value = value_of(attributes, description, id);
  std::memcpy(value.data(), &number, value.size());  // little-endian: its lower bytes
}

void set_initial(Attributes attributes, void* description) {
  for (const Attribute& attribute : attributes)
    set_number(attributes, description, attribute.id, attribute.initial);
}

}  // namespace simgpu
