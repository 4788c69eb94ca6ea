#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "blas/blas.h"
#include "core/machine.h"

namespace simgpu {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

constexpr float kOne = 1;
constexpr float kZero = 0;

struct SeenCalls final : Observer {
  SeenCalls() {
    for (std::uint32_t id = 0; id < FunctionSet::kFunctions; ++id) {
      watched_.set(Api::kRuntime, id, true);
      watched_.set(Api::kDriver, id, true);
    }
  }
  void on_enter(ApiCall& /*call*/) override {}
  void on_leave(ApiCall& call) override { calls.emplace_back(call.function); }
  void on_activity(const Activity& activity) override { kernels.push_back(activity); }
  void on_synchronization(const Synchronization& /*synchronization*/) override {}
  void on_event(const EventMark& /*mark*/) override {}
  void on_graph_run(const GraphRun& /*run*/) override {}
  void on_resource(const ResourceChange& /*change*/) override {}
  std::vector<std::string> calls;
  std::vector<Activity> kernels;
};

struct SimulatedBlas : ::testing::Test {
  SimulatedBlas() {
    EXPECT_EQ(cublasCreate(&handle), CUBLAS_STATUS_SUCCESS);
    Machine::instance().set_observer(&seen);
  }
  ~SimulatedBlas() override {
    Machine::instance().set_observer(nullptr);
    EXPECT_EQ(cublasDestroy(handle), CUBLAS_STATUS_SUCCESS);
  }
  // No pointer is looked at.
  cublasStatus_t multiply(cudaDataType_t type, cublasOperation_t transa, cublasOperation_t transb,
                          int m, int n, int k, int batch = 1,
                          cublasComputeType_t compute = CUBLAS_COMPUTE_32F) {
    return cublasGemmStridedBatchedEx(handle, transa, transb, m, n, k, &kOne, nullptr, type,
                                      std::max({m, k, 1}), 0, nullptr, type, std::max({k, n, 1}), 0,
                                      &kZero, nullptr, type, std::max(m, 1), 0, batch, compute,
                                      CUBLAS_GEMM_DEFAULT);
  }
  std::uint64_t last_ns() const {
    const Slot& slot = seen.kernels.back().slot;
    return slot.end_ns - slot.start_ns;
  }
  static std::uint64_t product_ns(const MatrixProduct& product) {
    return simgpu::product_ns(Machine::instance().profile(), product);
  }

  cublasHandle_t handle = nullptr;
  SeenCalls seen;
};

std::string name_on(const char* device, const Product& product) {
  return kernel_name(product, *find_profile(device));
}

Product product_of(cudaDataType_t type, cublasOperation_t transa, cublasOperation_t transb) {
  return {.transa = transa, .transb = transb, .a_type = type, .d_type = type};
}

TEST(BlasKernels, AreNamedByTypeAndTransposes) {
  const Product bfloat = product_of(CUDA_R_16BF, CUBLAS_OP_T, CUBLAS_OP_N);
  EXPECT_EQ(name_on("h100", bfloat),
            "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_"
            "execute_segment_k_off_kernel__5x_cublas");
  EXPECT_EQ(name_on("laptop", bfloat),
            "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn");

  Product half = product_of(CUDA_R_16F, CUBLAS_OP_N, CUBLAS_OP_T);
  EXPECT_THAT(name_on("h100", half), StartsWith("sm90_xmma_gemm_f16f16_f16f32_f32_nt_n_"));
  half.d_type = CUDA_R_32F;
  EXPECT_THAT(name_on("h100", half), StartsWith("sm90_xmma_gemm_f16f32_f16f32_f32_nt_n_"));
  EXPECT_EQ(name_on("laptop", half), "ampere_fp16_s16816gemm_fp32_128x128_ldg8_f2f_stages_32x5_nt");

  Product byte = product_of(CUDA_R_8F_E4M3, CUBLAS_OP_T, CUBLAS_OP_N);
  byte.d_type = CUDA_R_16BF;
  EXPECT_THAT(name_on("h100", byte),
              StartsWith("sm90_xmma_gemm_e4m3bf16_e4m3f32_f32_tn_n_tilesize128x128x128_"));
  EXPECT_THAT(name_on("laptop", byte), StartsWith("sm89_xmma_gemm_e4m3bf16_e4m3f32_f32_tn_n_"));
}

TEST(BlasKernels, AreSimpleWithoutTensorCores) {
  for (const char* device : {"h100", "laptop"}) {
    EXPECT_EQ(name_on(device, product_of(CUDA_R_32F, CUBLAS_OP_N, CUBLAS_OP_N)),
              "ampere_sgemm_128x128_nn");
    EXPECT_EQ(name_on(device, product_of(CUDA_R_64F, CUBLAS_OP_C, CUBLAS_OP_N)),
              "ampere_dgemm_128x128_tn");
    EXPECT_EQ(name_on(device, product_of(CUDA_C_32F, CUBLAS_OP_C, CUBLAS_OP_N)),
              "ampere_cgemm_128x128_cn");
  }
}

TEST(BlasKernels, TellTf32) {
  Product product = product_of(CUDA_R_32F, CUBLAS_OP_T, CUBLAS_OP_N);
  product.compute = CUBLAS_COMPUTE_32F_FAST_TF32;
  EXPECT_THAT(name_on("h100", product),
              StartsWith("sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x32_"));
  EXPECT_EQ(name_on("laptop", product), "cutlass_80_tensorop_s1688gemm_128x128_16x5_tn_align4");
}

TEST_F(SimulatedBlas, UsesTf32WhereItIsAllowed) {
  ASSERT_EQ(cublasSetMathMode(handle, CUBLAS_TF32_TENSOR_OP_MATH), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(cublasSgemm(handle, CUBLAS_OP_T, CUBLAS_OP_N, 2048, 2048, 2048, &kOne, nullptr, 2048,
                        nullptr, 2048, &kZero, nullptr, 2048),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(last_ns(), product_ns({2048, 2048, 2048, 1, NumberType::kTf32}));

  ASSERT_EQ(cublasSetMathMode(handle, CUBLAS_DEFAULT_MATH), CUBLAS_STATUS_SUCCESS);
  multiply(CUDA_R_32F, CUBLAS_OP_N, CUBLAS_OP_N, 2048, 2048, 2048);
  EXPECT_EQ(last_ns(), product_ns({2048, 2048, 2048, 1, NumberType::kFp32}));
  multiply(CUDA_R_32F, CUBLAS_OP_N, CUBLAS_OP_N, 2048, 2048, 2048, 1, CUBLAS_COMPUTE_32F_FAST_TF32);
  EXPECT_EQ(last_ns(), product_ns({2048, 2048, 2048, 1, NumberType::kTf32}));
}

TEST_F(SimulatedBlas, TakesTheTimeOfTheProduct) {
  multiply(CUDA_R_16BF, CUBLAS_OP_T, CUBLAS_OP_N, 1000, 300, 4096, 12);
  EXPECT_EQ(last_ns(), product_ns({1000, 300, 4096, 12, NumberType::kHalf}));
  const Activity& kernel = seen.kernels.back();
  EXPECT_EQ(kernel.grid[0], 8u * 3u);
  EXPECT_EQ(kernel.grid[2], 12u);
  EXPECT_EQ(kernel.block[0], 256u);
  EXPECT_EQ(seen.calls, std::vector<std::string>{"cudaLaunchKernel_v7000"});
  // Four real products in one.
  multiply(CUDA_C_64F, CUBLAS_OP_N, CUBLAS_OP_N, 1024, 1024, 1024);
  EXPECT_EQ(last_ns(), product_ns({2048, 1024, 2048, 1, NumberType::kFp64}));
}

TEST_F(SimulatedBlas, LaunchesNothingForNothing) {
  EXPECT_EQ(multiply(CUDA_R_32F, CUBLAS_OP_N, CUBLAS_OP_N, 0, 5, 5), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(multiply(CUDA_R_32F, CUBLAS_OP_N, CUBLAS_OP_N, 5, 0, 5), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(multiply(CUDA_R_32F, CUBLAS_OP_N, CUBLAS_OP_N, 5, 5, 0), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(multiply(CUDA_R_32F, CUBLAS_OP_N, CUBLAS_OP_N, 5, 5, 5, 0), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(cublasSaxpy(handle, 0, &kOne, nullptr, 1, nullptr, 1), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(cublasSaxpy(handle, -3, &kOne, nullptr, 1, nullptr, 1), CUBLAS_STATUS_SUCCESS);
  EXPECT_TRUE(seen.kernels.empty());
}

TEST_F(SimulatedBlas, HasBatchesDeeperThanAGrid) {
  EXPECT_EQ(multiply(CUDA_R_32F, CUBLAS_OP_N, CUBLAS_OP_N, 16, 16, 16, 100'000),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(seen.kernels.size(), 1u);
}

TEST_F(SimulatedBlas, NamesOtherRoutinesAfterThem) {
  EXPECT_EQ(cublasDaxpy(handle, 1 << 20, nullptr, nullptr, 1, nullptr, 1), CUBLAS_STATUS_SUCCESS);
  EXPECT_STREQ(seen.kernels.back().name, "axpy_kernel<double>");
  EXPECT_EQ(seen.kernels.back().grid[0], 1u << 10);
  EXPECT_EQ(cublasSgemv(handle, CUBLAS_OP_T, 4096, 512, &kOne, nullptr, 4096, nullptr, 1, &kZero,
                        nullptr, 1),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_STREQ(seen.kernels.back().name, "gemv2T_kernel<float>");
  EXPECT_EQ(last_ns(), product_ns({4096, 1, 512, 1, NumberType::kFp32}));
  int info = -1;
  EXPECT_EQ(cublasCgeqrfBatched(handle, 8, 4, nullptr, 8, nullptr, &info, 3),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(info, 0);
  EXPECT_STREQ(seen.kernels.back().name, "geqrf_batched_kernel<float2>");
  EXPECT_EQ(cublasCgeqrfBatched(handle, 8, 4, nullptr, 7, nullptr, &info, 3),
            CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_LT(info, 0);
}

TEST_F(SimulatedBlas, TellsEpiloguesInNames) {
  cublasLtMatmulDescOpaque_t matmul;
  cublasLtMatrixLayoutOpaque_t a;
  cublasLtMatrixLayoutOpaque_t b;
  cublasLtMatrixLayoutOpaque_t d;
  ASSERT_EQ(cublasLtMatmulDescInit(&matmul, CUBLAS_COMPUTE_32F, CUDA_R_32F), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(cublasLtMatrixLayoutInit(&a, CUDA_R_16BF, 300, 40, 300), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(cublasLtMatrixLayoutInit(&b, CUDA_R_16BF, 40, 200, 40), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(cublasLtMatrixLayoutInit(&d, CUDA_R_32F, 300, 200, 300), CUBLAS_STATUS_SUCCESS);
  const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_GELU_BIAS;
  ASSERT_EQ(cublasLtMatmulDescSetAttribute(&matmul, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue,
                                           sizeof(epilogue)),
            CUBLAS_STATUS_SUCCESS);
  const std::int32_t batch = 5;
  for (cublasLtMatrixLayout_t layout : {&a, &b, &d}) {
    ASSERT_EQ(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch,
                                               sizeof(batch)),
              CUBLAS_STATUS_SUCCESS);
  }
  ASSERT_EQ(
      cublasLtMatmul(reinterpret_cast<cublasLtHandle_t>(handle), &matmul, &kOne, nullptr, &a,
                     nullptr, &b, &kZero, nullptr, &d, nullptr, &d, nullptr, nullptr, 0, nullptr),
      CUBLAS_STATUS_SUCCESS);
  EXPECT_THAT(seen.kernels.back().name,
              AllOf(HasSubstr("bf16"), HasSubstr("_bias_gelu"), HasSubstr("_nn")));
  EXPECT_EQ(last_ns(), product_ns({300, 200, 40, 5, NumberType::kHalf}));
}

}  // namespace
}  // namespace simgpu
