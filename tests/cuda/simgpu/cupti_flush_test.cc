// A flush while work still runs: real CUPTI keeps a buffer with a record that is not complete, the
// simulated one gives back all that it holds.
#include <cuda_runtime_api.h>
#include <cupti.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>

#include "cuda/conformance/recording.h"

namespace {

TEST(CuptiFlush, LeavesNoBufferBehind) {
  constexpr std::size_t kBytes = 1 << 20;
  static std::atomic<int> out;
  out = 0;
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  void* device = nullptr;
  ASSERT_EQ(cudaMalloc(&device, kBytes), cudaSuccess);
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
  for (int i = 0; i < 100; ++i) EXPECT_EQ(cudaMemsetAsync(device, i, kBytes, stream), cudaSuccess);
  EXPECT_GT(out, 0);
  Recording::flush();  // most of them still run
  EXPECT_EQ(out, 0);
  ASSERT_EQ(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_MEMSET), CUPTI_SUCCESS);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  Recording::flush();
  EXPECT_EQ(out, 0);
  EXPECT_EQ(cudaFree(device), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

}  // namespace
