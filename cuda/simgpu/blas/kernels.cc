// From a routine to its kernel, and what the libraries tell of themselves: part of both.
#include <cmath>
#include <initializer_list>
#include <string_view>

#include "blas/blas.h"
#include "core/machine.h"
#include "runtime/known_launch.h"

namespace simgpu {
namespace {

constexpr std::int64_t kTile = 128;  // of a product's result, on each side
constexpr unsigned kThreads = 256;
constexpr double kNumbersPerBlock = 4.0 * kThreads;  // of other routines

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

std::string joined(std::initializer_list<std::string_view> parts) {
  std::string text;
  for (const std::string_view part : parts) text += part;
  return text;
}

bool allows_tf32(cublasComputeType_t compute) {
  return compute == CUBLAS_COMPUTE_32F_FAST_TF32 || compute == CUBLAS_COMPUTE_32F_FAST_16F ||
         compute == CUBLAS_COMPUTE_32F_FAST_16BF || compute == CUBLAS_COMPUTE_32F_EMULATED_16BFX9;
}

bool is_half_compute(cublasComputeType_t compute) {
  return compute == CUBLAS_COMPUTE_16F || compute == CUBLAS_COMPUTE_16F_PEDANTIC;
}

NumberType number_type(const Product& product) {
  switch (product.a_type) {
    case CUDA_R_64F:
    case CUDA_C_64F:
      return NumberType::kFp64;
    case CUDA_R_32F:
    case CUDA_C_32F:
      return allows_tf32(product.compute) ? NumberType::kTf32 : NumberType::kFp32;
    case CUDA_R_16F:
    case CUDA_C_16F:
    case CUDA_R_16BF:
    case CUDA_C_16BF:
      return NumberType::kHalf;
    default:
      return NumberType::kByte;
  }
}

// As kernels' names call a type.
std::string_view short_name(cudaDataType_t type) {
  switch (type) {
    case CUDA_R_64F:
    case CUDA_C_64F:
      return "f64";
    case CUDA_R_16F:
    case CUDA_C_16F:
      return "f16";
    case CUDA_R_16BF:
    case CUDA_C_16BF:
      return "bf16";
    case CUDA_R_8I:
      return "i8";
    case CUDA_R_32I:
      return "i32";
    case CUDA_R_8F_E4M3:
      return "e4m3";
    case CUDA_R_8F_E5M2:
      return "e5m2";
    case CUDA_R_4F_E2M1:
      return "e2m1";
    default:
      return "f32";
  }
}

// As the older families of kernels do.
std::string_view long_name(cudaDataType_t type) {
  if (type == CUDA_R_16F || type == CUDA_C_16F) return "fp16";
  return type == CUDA_R_16BF || type == CUDA_C_16BF ? "bf16" : "fp32";
}

std::string_view type_in_code(cudaDataType_t type) {
  switch (type) {
    case CUDA_R_64F:
      return "double";
    case CUDA_C_32F:
      return "float2";
    case CUDA_C_64F:
      return "double2";
    case CUDA_R_16F:
      return "__half";
    case CUDA_R_16BF:
      return "__nv_bfloat16";
    default:
      return "float";
  }
}

char letter(cublasOperation_t operation, cudaDataType_t type) {
  if (operation == CUBLAS_OP_N) return 'n';
  return operation == CUBLAS_OP_C && is_complex(type) ? 'c' : 't';
}

// "tn": how the operands lie.
std::string layout(const Product& product) {
  return {letter(product.transa, product.a_type), letter(product.transb, product.a_type)};
}

// Arithmetic without tensor cores.
std::string simple_name(const Product& product) {
  const bool is_double = number_type(product) == NumberType::kFp64;
  const char* const type = is_complex(product.a_type) ? (is_double ? "z" : "c")
                           : is_double                ? "d"
                                                      : "s";
  return joined({"ampere_", type, "gemm_128x128", product.epilogue, "_", layout(product)});
}

std::string ampere_half_name(const Product& product) {
  if (is_half_compute(product.compute)) {
    return joined(
        {"ampere_h16816gemm_128x128_ldg8", product.epilogue, "_stages_32x5_", layout(product)});
  }
  return joined({"ampere_", long_name(product.a_type), "_s16816gemm_", long_name(product.d_type),
                 "_128x128_ldg8", product.epilogue, "_f2f_stages_32x5_", layout(product)});
}

std::string ampere_tf32_name(const Product& product) {
  return joined({"cutlass_80_tensorop_", is_complex(product.a_type) ? "c" : "s",
                 "1688gemm_128x128_16x5", product.epilogue, "_", layout(product), "_align4"});
}

// The types of the operands and the result, of what is multiplied and summed, and of the factors.
std::string xmma_name(const Product& product, const DeviceProfile& device) {
  const NumberType type = number_type(product);
  const bool is_half = is_half_compute(product.compute);
  const bool is_integer = product.a_type == CUDA_R_8I;
  const std::string_view operand = short_name(product.a_type);
  const std::string_view multiplied = type == NumberType::kTf32 ? "tf32" : operand;
  const std::string_view summed = is_half ? "f16" : is_integer ? "i32" : "f32";
  const std::string depth = std::to_string(kTile / static_cast<std::int64_t>(bytes_of(type)));
  const bool has_warp_groups = device.major >= 9;
  return joined({"sm", std::to_string(10 * device.major + device.minor), "_xmma_gemm_", operand,
                 short_name(product.d_type), "_", multiplied, summed, "_", is_half ? "f16" : "f32",
                 "_", layout(product), "_n_tilesize128x128x", depth,
                 has_warp_groups ? "_warpgroupsize1x1x1" : "_stage3_warpsize2x2x1_tensor16x8x32",
                 product.epilogue,
                 has_warp_groups ? "_execute_segment_k_off_kernel__5x_cublas"
                                 : "_execute_kernel__5x_cublas"});
}

cublasStatus_t launch_as(const std::string& name, const Product& product, double block_count,
                         cudaStream_t stream) {
  // The batch is the grid's depth, as far as that goes; sizes beyond a grid's are cut.
  constexpr std::int64_t kDeepest = 65535;
  constexpr double kLongest = 0x7fffffff;
  const std::int64_t depth = std::min(product.batch, kDeepest);
  KnownLaunch kernel;
  kernel.name = name.c_str();
  kernel.grid = dim3(static_cast<unsigned>(
                         std::min(kLongest, std::ceil(block_count / static_cast<double>(depth)))),
                     1, static_cast<unsigned>(depth));
  kernel.block = dim3(kThreads);
  kernel.stream = stream;
  kernel.duration_ns = product_ns(Machine::instance().profile(), cost(product));
  return launch(kernel) == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

bool is_empty(const Product& product) {
  return product.m == 0 || product.n == 0 || product.k == 0 || product.batch == 0;
}

}  // namespace

bool is_complex(cudaDataType_t type) {
  return type == CUDA_C_32F || type == CUDA_C_64F || type == CUDA_C_16F || type == CUDA_C_16BF;
}

std::size_t size_of(cudaDataType_t type) {
  const std::size_t part = bytes_of(number_type({.a_type = type}));
  return is_complex(type) ? 2 * part : part;
}

std::string kernel_name(const Product& product, const DeviceProfile& device) {
  const NumberType type = number_type(product);
  if (type == NumberType::kFp32 || type == NumberType::kFp64) return simple_name(product);
  const bool has_xmma = device.major >= 9 || type == NumberType::kByte;
  if (has_xmma && !is_complex(product.a_type)) return xmma_name(product, device);
  return type == NumberType::kTf32 ? ampere_tf32_name(product) : ampere_half_name(product);
}

MatrixProduct cost(const Product& product) {
  // A complex product is a real one of twice the height and depth.
  const std::uint64_t parts = is_complex(product.a_type) ? 2 : 1;
  return {.m = parts * static_cast<std::uint64_t>(product.m),
          .n = static_cast<std::uint64_t>(product.n),
          .k = parts * static_cast<std::uint64_t>(product.k),
          .batch = static_cast<std::uint64_t>(product.batch),
          .type = number_type(product)};
}

double blocks(const Product& product) {
  return static_cast<double>(ceil_div(product.m, kTile)) *
         static_cast<double>(ceil_div(product.n, kTile)) * static_cast<double>(product.batch);
}

cublasStatus_t launch(const Product& product, cudaStream_t stream) {
  if (is_empty(product)) return CUBLAS_STATUS_SUCCESS;
  return launch_as(kernel_name(product, Machine::instance().profile()), product, blocks(product),
                   stream);
}

cublasStatus_t run(cublasHandle_t handle, const Routine& routine) {
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!routine.valid || std::min({routine.m, routine.n, routine.k, routine.batch}) < 0)
    return CUBLAS_STATUS_INVALID_VALUE;
  const Product product{.m = routine.m,
                        .n = routine.n,
                        .k = routine.k,
                        .batch = routine.batch,
                        .a_type = routine.type,
                        .d_type = routine.type};
  if (is_empty(product)) return CUBLAS_STATUS_SUCCESS;
  const auto m = static_cast<double>(product.m);
  const auto n = static_cast<double>(product.n);
  const auto k = static_cast<double>(product.k);
  const double each = std::ceil(std::max({m * n, m * k, k * n}) / kNumbersPerBlock);
  return launch_as(joined({routine.name, "_kernel<", type_in_code(routine.type), ">"}), product,
                   each * static_cast<double>(product.batch), handle->stream);
}

const char* status_name(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED:
      return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_ALLOC_FAILED:
      return "CUBLAS_STATUS_ALLOC_FAILED";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_ARCH_MISMATCH:
      return "CUBLAS_STATUS_ARCH_MISMATCH";
    case CUBLAS_STATUS_MAPPING_ERROR:
      return "CUBLAS_STATUS_MAPPING_ERROR";
    case CUBLAS_STATUS_EXECUTION_FAILED:
      return "CUBLAS_STATUS_EXECUTION_FAILED";
    case CUBLAS_STATUS_INTERNAL_ERROR:
      return "CUBLAS_STATUS_INTERNAL_ERROR";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
    case CUBLAS_STATUS_LICENSE_ERROR:
      return "CUBLAS_STATUS_LICENSE_ERROR";
  }
  return "CUBLAS_STATUS_UNKNOWN";
}

const char* status_text(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return "success";
    case CUBLAS_STATUS_NOT_INITIALIZED:
      return "the library was not initialized";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "an unsupported value or parameter was passed to the function";
    case CUBLAS_STATUS_EXECUTION_FAILED:
      return "the GPU program failed to execute";
    default:
      return status_name(status);
  }
}

cublasStatus_t version_part(libraryPropertyType part, int* value) {
  if (value == nullptr || part < MAJOR_VERSION || part > PATCH_LEVEL)
    return CUBLAS_STATUS_INVALID_VALUE;
  constexpr int kVersion[] = {CUBLAS_VER_MAJOR, CUBLAS_VER_MINOR, CUBLAS_VER_PATCH};
  *value = kVersion[part];
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace simgpu
