#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

namespace {

constexpr int kSide = 512;
constexpr std::size_t kMatrixBytes = sizeof(float) * kSide * kSide;
constexpr float kOne = 1;
constexpr float kZero = 0;

// A handle on a stream of its own, and three matrices of kSide × kSide.
struct Blas : ::testing::Test {
  Blas() {
    EXPECT_EQ(cublasCreate(&handle), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    EXPECT_EQ(cublasSetStream(handle, stream), CUBLAS_STATUS_SUCCESS);
    for (float** matrix : {&a, &b, &c}) {
      void* memory = nullptr;
      EXPECT_EQ(cudaMalloc(&memory, kMatrixBytes), cudaSuccess);
      EXPECT_EQ(cudaMemset(memory, 0, kMatrixBytes), cudaSuccess);
      *matrix = static_cast<float*>(memory);
    }
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  }
  ~Blas() override {
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    for (float* matrix : {a, b, c}) EXPECT_EQ(cudaFree(matrix), cudaSuccess);
    EXPECT_EQ(cublasDestroy(handle), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  }
  cublasStatus_t multiply(int m, int n, int k, int lda = kSide, int ldb = kSide, int ldc = kSide) {
    return cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &kOne, a, lda, b, ldb, &kZero, c,
                       ldc);
  }

  cublasHandle_t handle = nullptr;
  cudaStream_t stream = nullptr;
  float* a = nullptr;
  float* b = nullptr;
  float* c = nullptr;
};

TEST_F(Blas, KeepsWhatIsChosen) {
  cudaStream_t chosen = nullptr;
  EXPECT_EQ(cublasGetStream(handle, &chosen), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(chosen, stream);

  cublasMath_t math = CUBLAS_PEDANTIC_MATH;
  EXPECT_EQ(cublasGetMathMode(handle, &math), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(math, CUBLAS_DEFAULT_MATH);
  EXPECT_EQ(cublasSetMathMode(handle, CUBLAS_TF32_TENSOR_OP_MATH), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(cublasGetMathMode(handle, &math), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(math, CUBLAS_TF32_TENSOR_OP_MATH);

  cublasPointerMode_t pointers = CUBLAS_POINTER_MODE_DEVICE;
  EXPECT_EQ(cublasGetPointerMode(handle, &pointers), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(pointers, CUBLAS_POINTER_MODE_HOST);
  EXPECT_EQ(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_DEVICE), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(cublasGetPointerMode(handle, &pointers), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(pointers, CUBLAS_POINTER_MODE_DEVICE);
}

TEST_F(Blas, TellsItsVersion) {
  int version = 0;
  EXPECT_EQ(cublasGetVersion(handle, &version), CUBLAS_STATUS_SUCCESS);
  EXPECT_GE(version, 130000);
  int major = 0;
  EXPECT_EQ(cublasGetProperty(MAJOR_VERSION, &major), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(major, version / 10000);
  EXPECT_STREQ(cublasGetStatusName(CUBLAS_STATUS_INVALID_VALUE), "CUBLAS_STATUS_INVALID_VALUE");
}

TEST_F(Blas, TakesWorkspacesThatAreAligned) {
  EXPECT_EQ(cublasSetWorkspace(handle, a, kMatrixBytes), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(cublasSetWorkspace(handle, a + 1, sizeof(float) * kSide), CUBLAS_STATUS_INVALID_VALUE);
}

TEST_F(Blas, RunsInItsStream) {
  cudaEvent_t start = nullptr;
  cudaEvent_t end = nullptr;
  ASSERT_EQ(cudaEventCreate(&start), cudaSuccess);
  ASSERT_EQ(cudaEventCreate(&end), cudaSuccess);
  ASSERT_EQ(multiply(kSide, kSide, kSide), CUBLAS_STATUS_SUCCESS);  // the first may load code
  ASSERT_EQ(cudaEventRecord(start, stream), cudaSuccess);
  for (int i = 0; i < 10; ++i) ASSERT_EQ(multiply(kSide, kSide, kSide), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(cudaEventRecord(end, stream), cudaSuccess);
  ASSERT_EQ(cudaEventSynchronize(end), cudaSuccess);
  float milliseconds = 0;
  ASSERT_EQ(cudaEventElapsedTime(&milliseconds, start, end), cudaSuccess);
  EXPECT_GT(milliseconds, 0.005);  // ten kernels, on any device
  EXPECT_EQ(cudaEventDestroy(start), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(end), cudaSuccess);
}

TEST_F(Blas, MultipliesNothing) {
  EXPECT_EQ(multiply(0, kSide, kSide), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(multiply(kSide, 0, kSide), CUBLAS_STATUS_SUCCESS);
}

TEST_F(Blas, RefusesWhatCannotBe) {
  EXPECT_EQ(multiply(-1, kSide, kSide), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(multiply(kSide, -1, kSide), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(multiply(kSide, kSide, -1), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(multiply(kSide, kSide, kSide, kSide - 1), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(multiply(kSide, kSide, kSide, kSide, kSide - 1), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(multiply(kSide, kSide, kSide, kSide, kSide, kSide - 1), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(cublasSgemm(nullptr, CUBLAS_OP_N, CUBLAS_OP_N, kSide, kSide, kSide, &kOne, a, kSide, b,
                        kSide, &kZero, c, kSide),
            CUBLAS_STATUS_NOT_INITIALIZED);
}

// Transposed, the leading dimension is that of k rows.
TEST_F(Blas, MeasuresLeadingDimensionsByTheOperation) {
  const auto multiply_small = [&](cublasOperation_t transa, int lda) {
    return cublasSgemm(handle, transa, CUBLAS_OP_N, 64, 32, 16, &kOne, a, lda, b, 16, &kZero, c,
                       64);
  };
  EXPECT_EQ(multiply_small(CUBLAS_OP_N, 64), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(multiply_small(CUBLAS_OP_N, 16), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(multiply_small(CUBLAS_OP_T, 16), CUBLAS_STATUS_SUCCESS);
}

TEST_F(Blas, MultipliesBatchesOfOtherTypes) {
  constexpr int kSmall = 64;
  constexpr int kStride = kSmall * kSmall;
  EXPECT_EQ(cublasGemmStridedBatchedEx(handle, CUBLAS_OP_T, CUBLAS_OP_N, kSmall, kSmall, kSmall,
                                       &kOne, a, CUDA_R_16BF, kSmall, kStride, b, CUDA_R_16BF,
                                       kSmall, kStride, &kZero, c, CUDA_R_16BF, kSmall, kStride, 8,
                                       CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, kSmall, kSmall, kSmall, &kOne, a,
                         CUDA_R_16F, kSmall, b, CUDA_R_16F, kSmall, &kZero, c, CUDA_R_32F, kSmall,
                         CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
            CUBLAS_STATUS_SUCCESS);
}

// All matrices are zero.
TEST_F(Blas, GivesNumbersToTheHost) {
  float result = 1;
  EXPECT_EQ(cublasSdot(handle, kSide, a, 1, b, 1, &result), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(result, 0);
  result = 1;
  EXPECT_EQ(cublasSnrm2(handle, kSide, a, 1, &result), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(result, 0);
  int index = 0;
  EXPECT_EQ(cublasIsamax(handle, kSide, a, 1, &index), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(index, 1);
}

TEST_F(Blas, SolvesTriangularSystems) {
  EXPECT_EQ(cublasStrsm(handle, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N,
                        CUBLAS_DIAG_UNIT, 64, 32, &kOne, a, 64, b, 64),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(cublasStrsm(handle, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N,
                        CUBLAS_DIAG_UNIT, 64, 32, &kOne, a, 63, b, 64),
            CUBLAS_STATUS_INVALID_VALUE);
}

TEST_F(Blas, IsCapturedIntoGraphs) {
  ASSERT_EQ(multiply(kSide, kSide, kSide), CUBLAS_STATUS_SUCCESS);  // the first may load code
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  EXPECT_EQ(multiply(kSide, kSide, kSide), CUBLAS_STATUS_SUCCESS);
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  std::size_t nodes = 0;
  ASSERT_EQ(cudaGraphGetNodes(graph, nullptr, &nodes), cudaSuccess);
  EXPECT_GE(nodes, 1u);
  cudaGraphExec_t exec = nullptr;
  ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
  EXPECT_EQ(cudaGraphLaunch(exec, stream), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
}

TEST(BlasHandles, AreNeeded) {
  EXPECT_EQ(cublasDestroy(nullptr), CUBLAS_STATUS_NOT_INITIALIZED);
  EXPECT_EQ(cublasSetStream(nullptr, nullptr), CUBLAS_STATUS_NOT_INITIALIZED);
}

// A product of bfloat16 with a bias, described.
struct BlasLt : Blas {
  BlasLt() {
    EXPECT_EQ(cublasLtCreate(&light), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(cublasLtMatmulDescCreate(&matmul, CUBLAS_COMPUTE_32F, CUDA_R_32F),
              CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(cublasLtMatmulPreferenceCreate(&preference), CUBLAS_STATUS_SUCCESS);
    // A is stored k × m, and transposed.
    EXPECT_EQ(cublasLtMatrixLayoutCreate(&a_layout, CUDA_R_16BF, 128, 256, 128),
              CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(cublasLtMatrixLayoutCreate(&b_layout, CUDA_R_16BF, 128, 64, 128),
              CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(cublasLtMatrixLayoutCreate(&d_layout, CUDA_R_16BF, 256, 64, 256),
              CUBLAS_STATUS_SUCCESS);
    const std::int32_t transposed = CUBLAS_OP_T;
    EXPECT_EQ(cublasLtMatmulDescSetAttribute(matmul, CUBLASLT_MATMUL_DESC_TRANSA, &transposed,
                                             sizeof(transposed)),
              CUBLAS_STATUS_SUCCESS);
  }
  ~BlasLt() override {
    for (cublasLtMatrixLayout_t layout : {a_layout, b_layout, d_layout})
      EXPECT_EQ(cublasLtMatrixLayoutDestroy(layout), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(cublasLtMatmulPreferenceDestroy(preference), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(cublasLtMatmulDescDestroy(matmul), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(cublasLtDestroy(light), CUBLAS_STATUS_SUCCESS);
  }
  cublasStatus_t ask(cublasLtMatmulHeuristicResult_t* result, int* count) {
    return cublasLtMatmulAlgoGetHeuristic(light, matmul, a_layout, b_layout, d_layout, d_layout,
                                          preference, 1, result, count);
  }

  cublasLtHandle_t light = nullptr;
  cublasLtMatmulDesc_t matmul = nullptr;
  cublasLtMatmulPreference_t preference = nullptr;
  cublasLtMatrixLayout_t a_layout = nullptr;
  cublasLtMatrixLayout_t b_layout = nullptr;
  cublasLtMatrixLayout_t d_layout = nullptr;
};

TEST_F(BlasLt, MultipliesByTheAlgorithmThatItAdvises) {
  const std::uint64_t most = kMatrixBytes;
  ASSERT_EQ(cublasLtMatmulPreferenceSetAttribute(
                preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most, sizeof(most)),
            CUBLAS_STATUS_SUCCESS);
  cublasLtMatmulHeuristicResult_t result{};
  int count = 0;
  ASSERT_EQ(ask(&result, &count), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(count, 1);
  EXPECT_EQ(result.state, CUBLAS_STATUS_SUCCESS);
  EXPECT_LE(result.workspaceSize, most);
  void* workspace = nullptr;
  ASSERT_EQ(cudaMalloc(&workspace, most), cudaSuccess);
  EXPECT_EQ(cublasLtMatmul(light, matmul, &kOne, a, a_layout, b, b_layout, &kZero, c, d_layout, c,
                           d_layout, &result.algo, workspace, most, stream),
            CUBLAS_STATUS_SUCCESS);
  // Any handle of cuBLAS is one of cuBLASLt.
  EXPECT_EQ(cublasLtMatmul(reinterpret_cast<cublasLtHandle_t>(handle), matmul, &kOne, a, a_layout,
                           b, b_layout, &kZero, c, d_layout, c, d_layout, &result.algo, workspace,
                           most, stream),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(cudaFree(workspace), cudaSuccess);
}

TEST_F(BlasLt, RefusesMatricesThatDoNotGoTogether) {
  const std::uint64_t other = 100;
  ASSERT_EQ(cublasLtMatrixLayoutSetAttribute(b_layout, CUBLASLT_MATRIX_LAYOUT_ROWS, &other,
                                             sizeof(other)),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(cublasLtMatmul(light, matmul, &kOne, a, a_layout, b, b_layout, &kZero, c, d_layout, c,
                           d_layout, nullptr, nullptr, 0, stream),
            CUBLAS_STATUS_INVALID_VALUE);
}

TEST_F(BlasLt, KeepsAttributes) {
  const std::int32_t batch = 7;
  ASSERT_EQ(cublasLtMatrixLayoutSetAttribute(d_layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch,
                                             sizeof(batch)),
            CUBLAS_STATUS_SUCCESS);
  std::int32_t read = 0;
  std::size_t written = 0;
  EXPECT_EQ(cublasLtMatrixLayoutGetAttribute(d_layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &read,
                                             sizeof(read), &written),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(read, batch);
  EXPECT_EQ(written, sizeof(read));
  std::uint64_t rows = 0;
  EXPECT_EQ(cublasLtMatrixLayoutGetAttribute(d_layout, CUBLASLT_MATRIX_LAYOUT_ROWS, &rows,
                                             sizeof(rows), nullptr),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(rows, 256u);
  EXPECT_EQ(
      cublasLtMatrixLayoutGetAttribute(d_layout, CUBLASLT_MATRIX_LAYOUT_ROWS, nullptr, 0, &written),
      CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(written, sizeof(rows));
  std::uint32_t epilogue = 0;
  EXPECT_EQ(cublasLtMatmulDescGetAttribute(matmul, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue,
                                           sizeof(epilogue), nullptr),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(epilogue, static_cast<std::uint32_t>(CUBLASLT_EPILOGUE_DEFAULT));
  EXPECT_EQ(cublasLtMatmulDescSetAttribute(matmul, CUBLASLT_MATMUL_DESC_EPILOGUE, &batch, 1),
            CUBLAS_STATUS_INVALID_VALUE);
}

TEST_F(BlasLt, DescribesInTheProgramsOwnMemory) {
  cublasLtMatrixLayoutOpaque_t own;
  ASSERT_EQ(cublasLtMatrixLayoutInit(&own, CUDA_R_32F, 3, 5, 3), CUBLAS_STATUS_SUCCESS);
  const cublasLtMatrixLayoutOpaque_t copy = own;
  std::uint64_t columns = 0;
  EXPECT_EQ(cublasLtMatrixLayoutGetAttribute(const_cast<cublasLtMatrixLayoutOpaque_t*>(&copy),
                                             CUBLASLT_MATRIX_LAYOUT_COLS, &columns, sizeof(columns),
                                             nullptr),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(columns, 5u);
}

TEST_F(BlasLt, NeedsToBeAskedForSomething) {
  cublasLtMatmulHeuristicResult_t result{};
  int count = 0;
  EXPECT_EQ(cublasLtMatmulAlgoGetHeuristic(light, matmul, a_layout, b_layout, d_layout, d_layout,
                                           preference, 0, &result, &count),
            CUBLAS_STATUS_INVALID_VALUE);
}

}  // namespace
