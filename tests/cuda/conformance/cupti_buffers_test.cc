// How CUPTI's records come to the client.
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <numeric>
#include <thread>
#include <vector>

#include "cuda/conformance/recording.h"
#include "cuda/conformance/sizes.h"

namespace {

struct Buffers : ::testing::Test {
  Buffers() {
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    EXPECT_EQ(cudaMalloc(&device, kBytes), cudaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  }
  ~Buffers() override {
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(cudaFree(device), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  }
  void set(int times) {
    for (int i = 0; i < times; ++i)
      EXPECT_EQ(cudaMemsetAsync(device, i, kBytes, stream), cudaSuccess);
  }
  void finish() const {
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    Recording::flush();
  }

  cudaStream_t stream = nullptr;
  void* device = nullptr;
};

TEST_F(Buffers, ComeBackOnAnotherThread) {
  const Recording recording({CUPTI_ACTIVITY_KIND_MEMSET});
  set(10);
  finish();
  EXPECT_EQ(recording.sets().size(), 10u);
  EXPECT_FALSE(recording.threads().empty());
  EXPECT_FALSE(recording.threads().contains(std::this_thread::get_id()));
}

TEST_F(Buffers, ComeBackWithoutAFlushOnceThereIsMuch) {
  constexpr int kMany = 5000;
  const Recording recording({CUPTI_ACTIVITY_KIND_MEMSET}, {.bytes = 4096, .most_records = 0});
  set(kMany);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  for (int i = 0; i < 2000 && recording.count() == 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_NE(recording.count(), 0u);
  Recording::flush();
  EXPECT_EQ(recording.sets().size(), std::size_t{kMany});
  EXPECT_EQ(recording.take_dropped(), 0u);
}

// No larger than a record of the kind.
TEST_F(Buffers, HoldOneRecordIfTheyFitOne) {
  const Recording recording({CUPTI_ACTIVITY_KIND_MEMSET},
                            {.bytes = sizeof(CUpti_ActivityMemset4), .most_records = 0});
  set(7);
  finish();
  EXPECT_EQ(recording.sets().size(), 7u);
  for (const std::size_t count : recording.counts_by_buffer()) EXPECT_LE(count, 1u);
  EXPECT_EQ(recording.take_dropped(), 0u);
}

TEST_F(Buffers, HoldNoMoreThanTheClientWants) {
  const Recording recording({CUPTI_ACTIVITY_KIND_MEMSET}, {.bytes = 1 << 16, .most_records = 3});
  set(10);
  finish();
  const std::vector<std::size_t> counts = recording.counts_by_buffer();
  EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), std::size_t{0}), 10u);
  for (const std::size_t count : counts) EXPECT_LE(count, 3u);
}

TEST_F(Buffers, ThatAreDeclinedCostRecordsWhichAreCounted) {
  const Recording recording({CUPTI_ACTIVITY_KIND_MEMSET});
  recording.decline(true);
  set(10);
  finish();
  EXPECT_EQ(recording.count(), 0u);
  EXPECT_EQ(recording.take_dropped(), 10u);
  EXPECT_EQ(recording.take_dropped(), 0u);  // it counts from then on
  recording.decline(false);
  finish();
  set(5);  // the client is asked again
  finish();
  EXPECT_EQ(recording.sets().size() + recording.take_dropped(), 5u);
  EXPECT_GE(recording.sets().size(), 4u);
}

TEST_F(Buffers, HoldOnlyWhatIsDoneUnlessForced) {
  constexpr int kSize = 4096;
  constexpr std::size_t kMatrix = sizeof(float) * kSize * kSize;
  cublasHandle_t blas = nullptr;
  ASSERT_EQ(cublasCreate(&blas), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(cublasSetStream(blas, stream), CUBLAS_STATUS_SUCCESS);
  void* matrix = nullptr;
  ASSERT_EQ(cudaMalloc(&matrix, kMatrix), cudaSuccess);
  const auto multiply = [&] {
    const float one = 1;
    const float zero = 0;
    auto* data = static_cast<float*>(matrix);
    ASSERT_EQ(cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, kSize, kSize, kSize, &one, data, kSize,
                          data, kSize, &zero, data, kSize),
              CUBLAS_STATUS_SUCCESS);
  };
  multiply();  // the first may load code
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  {
    const Recording recording({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
    multiply();
    finish();
    const std::size_t each = recording.kernels().size();
    ASSERT_GE(each, 1u);
    for (int i = 0; i < 20; ++i) multiply();  // many milliseconds
    Recording::flush();
    for (const auto& kernel : recording.kernels()) EXPECT_GT(kernel.end, kernel.start);
    EXPECT_LT(recording.kernels().size(), 21 * each);
    finish();
    EXPECT_EQ(recording.kernels().size(), 21 * each);
    multiply();
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    Recording::flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    EXPECT_EQ(recording.kernels().size(), 22 * each);
  }
  EXPECT_EQ(cublasDestroy(blas), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(cudaFree(matrix), cudaSuccess);
}

// Only full ones are.
TEST_F(Buffers, ComeBackPeriodicallyIfAsked) {
  const Recording recording({CUPTI_ACTIVITY_KIND_MEMSET}, {.bytes = 1 << 16, .most_records = 4});
  ASSERT_EQ(cuptiActivityFlushPeriod(5), CUPTI_SUCCESS);
  set(10);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  for (int i = 0; i < 2000 && recording.count() < 8; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(recording.count(), 8u);
  ASSERT_EQ(cuptiActivityFlushPeriod(0), CUPTI_SUCCESS);
  Recording::flush();
  EXPECT_EQ(recording.count(), 10u);
}

// The next client, to whom they mean nothing, would get them. Only then: of work that still runs, a
// flush leaves the buffers where they are.
TEST_F(Buffers, AreAllBackAfterAFlushOnceTheWorkIsDone) {
  static std::atomic<int> out;
  out = 0;
  ASSERT_EQ(cuptiActivityRegisterCallbacks(
                [](std::uint8_t** buffer, std::size_t* bytes, std::size_t* most_records) {
                  *bytes = 4096;
                  *most_records = 0;
                  *buffer = static_cast<std::uint8_t*>(std::malloc(*bytes));
                  ++out;
                },
                [](CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t) {
                  std::free(buffer);
                  --out;
                }),
            CUPTI_SUCCESS);
  ASSERT_EQ(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMSET), CUPTI_SUCCESS);
  set(100);
  EXPECT_GT(out, 0);
  Recording::flush();  // most of them still run
  finish();
  EXPECT_EQ(out, 0);
  ASSERT_EQ(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_MEMSET), CUPTI_SUCCESS);
  finish();
  EXPECT_EQ(out, 0);
}

TEST_F(Buffers, AreAskedForWithBothFunctions) {
  EXPECT_EQ(cuptiActivityRegisterCallbacks(nullptr, nullptr), CUPTI_ERROR_INVALID_PARAMETER);
  EXPECT_EQ(cuptiActivityGetNumDroppedRecords(nullptr, 0, nullptr), CUPTI_ERROR_INVALID_PARAMETER);
}

TEST_F(Buffers, AreWalkedToTheirEnd) {
  CUpti_ActivityMemset4 records[2] = {};
  records[0].kind = records[1].kind = CUPTI_ACTIVITY_KIND_MEMSET;
  auto* buffer = reinterpret_cast<std::uint8_t*>(records);
  CUpti_Activity* record = nullptr;
  EXPECT_EQ(cuptiActivityGetNextRecord(buffer, sizeof records, &record), CUPTI_SUCCESS);
  EXPECT_EQ(record, reinterpret_cast<CUpti_Activity*>(&records[0]));
  EXPECT_EQ(cuptiActivityGetNextRecord(buffer, sizeof records, &record), CUPTI_SUCCESS);
  EXPECT_EQ(record, reinterpret_cast<CUpti_Activity*>(&records[1]));
  EXPECT_EQ(cuptiActivityGetNextRecord(buffer, sizeof records, &record),
            CUPTI_ERROR_MAX_LIMIT_REACHED);
  record = nullptr;
  EXPECT_EQ(cuptiActivityGetNextRecord(buffer, 0, &record), CUPTI_ERROR_MAX_LIMIT_REACHED);
  EXPECT_EQ(cuptiActivityGetNextRecord(nullptr, sizeof records, &record),
            CUPTI_ERROR_INVALID_PARAMETER);
}

TEST(Cupti, TellsItsVersionAndResults) {
  std::uint32_t version = 0;
  ASSERT_EQ(cuptiGetVersion(&version), CUPTI_SUCCESS);
  EXPECT_GE(version, CUPTI_API_VERSION);
  EXPECT_EQ(cuptiGetVersion(nullptr), CUPTI_ERROR_INVALID_PARAMETER);
  const char* text = nullptr;
  ASSERT_EQ(cuptiGetResultString(CUPTI_ERROR_MAX_LIMIT_REACHED, &text), CUPTI_SUCCESS);
  EXPECT_STREQ(text, "CUPTI_ERROR_MAX_LIMIT_REACHED");
  ASSERT_EQ(cuptiGetResultString(CUPTI_SUCCESS, &text), CUPTI_SUCCESS);
  EXPECT_STREQ(text, "CUPTI_SUCCESS");
  EXPECT_EQ(cuptiGetResultString(static_cast<CUptiResult>(123456), &text),
            CUPTI_ERROR_INVALID_PARAMETER);
  EXPECT_EQ(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_INVALID), CUPTI_ERROR_INVALID_KIND);
}

}  // namespace
