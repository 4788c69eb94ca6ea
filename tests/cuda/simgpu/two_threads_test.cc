// Many threads at once: what one program does from two, with a tool that watches.
#include <cuda_runtime_api.h>
#include <cupti.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "runtime/known_launch.h"

namespace {

constexpr int kLaunchesEach = 2000;
constexpr int kEach = 50;  // launches between two meetings of the threads
constexpr std::size_t kBufferBytes = 8192;

struct Span {
  std::uint64_t start;
  std::uint64_t end;
  std::uint32_t correlation;
};

// What the client knows, filled in on the thread that delivers.
struct Client {
  std::mutex mutex;
  std::map<std::string, std::vector<Span>> kernels;  // by name, which is the thread's
  std::map<std::uint32_t, int> calls;                // by correlation
  std::size_t others = 0;
};
Client& client() {
  static Client instance;
  return instance;
}

void CUPTIAPI request(std::uint8_t** buffer, std::size_t* size, std::size_t* most) {
  *size = kBufferBytes;
  *most = 0;
  *buffer = static_cast<std::uint8_t*>(std::malloc(kBufferBytes));
}

void CUPTIAPI complete(CUcontext /*context*/, std::uint32_t /*stream*/, std::uint8_t* buffer,
                       std::size_t /*size*/, std::size_t valid) {
  const std::lock_guard lock(client().mutex);
  CUpti_Activity* record = nullptr;
  while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
    if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
      const auto& kernel = *reinterpret_cast<const CUpti_ActivityKernel11*>(record);
      client().kernels[kernel.name].push_back({kernel.start, kernel.end, kernel.correlationId});
    } else if (record->kind == CUPTI_ACTIVITY_KIND_RUNTIME) {
      const auto& call = *reinterpret_cast<const CUpti_ActivityAPI*>(record);
      if (call.cbid == CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000)
        ++client().calls[call.correlationId];
    } else {
      ++client().others;
    }
  }
  std::free(buffer);
}

// Launches, and now and then waits for what the other thread has put into its stream so far.
void work(const char* name, cudaEvent_t own, cudaEvent_t others) {
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  for (int i = 0; i < kLaunchesEach; ++i) {
    ASSERT_EQ(cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, 1),
              CUPTI_SUCCESS);
    ASSERT_EQ(simgpu::launch({.name = name,
                              .grid = dim3(1),
                              .block = dim3(32),
                              .shared_bytes = 0,
                              .stream = stream,
                              .duration_ns = 1000}),
              cudaSuccess);
    ASSERT_EQ(
        cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, nullptr),
        CUPTI_SUCCESS);
    if (i % kEach != 0) continue;
    void* memory = nullptr;
    ASSERT_EQ(cudaMalloc(&memory, 4096), cudaSuccess);
    ASSERT_EQ(cudaMemsetAsync(memory, 1, 4096, stream), cudaSuccess);
    ASSERT_EQ(cudaEventRecord(own, stream), cudaSuccess);
    ASSERT_EQ(cudaStreamWaitEvent(stream, others, 0), cudaSuccess);
    ASSERT_EQ(cudaFree(memory), cudaSuccess);
  }
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  ASSERT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

TEST(TwoThreads, HaveEachLaunchToldOnceAndInOrder) {
  constexpr std::array kKinds = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                 CUPTI_ACTIVITY_KIND_RUNTIME,
                                 CUPTI_ACTIVITY_KIND_MEMSET,
                                 CUPTI_ACTIVITY_KIND_SYNCHRONIZATION,
                                 CUPTI_ACTIVITY_KIND_CUDA_EVENT,
                                 CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
                                 CUPTI_ACTIVITY_KIND_STREAM,
                                 CUPTI_ACTIVITY_KIND_OVERHEAD};
  cudaEvent_t events[2] = {};
  for (cudaEvent_t& event : events) ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
  ASSERT_EQ(cuptiActivityRegisterCallbacks(request, complete), CUPTI_SUCCESS);
  for (const CUpti_ActivityKind kind : kKinds) ASSERT_EQ(cuptiActivityEnable(kind), CUPTI_SUCCESS);

  std::atomic<bool> done = false;
  std::thread flusher([&] {
    while (!done) {
      EXPECT_EQ(cuptiActivityFlushAll(0), CUPTI_SUCCESS);
      std::this_thread::yield();
    }
  });
  std::thread first([&] { work("first", events[0], events[1]); });
  std::thread second([&] { work("second", events[1], events[0]); });
  first.join();
  second.join();
  done = true;
  flusher.join();
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  for (const CUpti_ActivityKind kind : kKinds) ASSERT_EQ(cuptiActivityDisable(kind), CUPTI_SUCCESS);
  ASSERT_EQ(cuptiActivityFlushAll(0), CUPTI_SUCCESS);
  std::size_t dropped = 1;
  ASSERT_EQ(cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped), CUPTI_SUCCESS);
  EXPECT_EQ(dropped, 0u);

  const std::lock_guard lock(client().mutex);
  EXPECT_EQ(client().calls.size(), std::size_t{2} * kLaunchesEach);
  EXPECT_GT(client().others, 0u);
  std::map<std::uint32_t, int> told;
  ASSERT_EQ(client().kernels.size(), 2u);
  for (const auto& [name, kernels] : client().kernels) {
    ASSERT_EQ(kernels.size(), std::size_t{kLaunchesEach}) << name;
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      EXPECT_EQ(client().calls[kernels[i].correlation], 1);
      EXPECT_EQ(++told[kernels[i].correlation], 1);
      if (i == 0) continue;
      ASSERT_GE(kernels[i].start, kernels[i - 1].end) << name << ' ' << i;
      ASSERT_GT(kernels[i].correlation, kernels[i - 1].correlation) << name << ' ' << i;
    }
  }
  for (cudaEvent_t event : events) EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
}

}  // namespace
