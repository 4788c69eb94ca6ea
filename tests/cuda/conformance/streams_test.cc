#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t kBig = std::size_t{16} << 20;

struct Streams : ::testing::Test {
  Streams() {
    EXPECT_EQ(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking), cudaSuccess);
    EXPECT_EQ(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking), cudaSuccess);
    EXPECT_EQ(cudaEventCreate(&start), cudaSuccess);
    EXPECT_EQ(cudaEventCreate(&end), cudaSuccess);
    EXPECT_EQ(cudaMalloc(&device, kBig), cudaSuccess);
    EXPECT_EQ(cudaMallocHost(&pinned, kBig), cudaSuccess);
  }
  ~Streams() override {
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
    EXPECT_EQ(cudaFree(device), cudaSuccess);
    EXPECT_EQ(cudaEventDestroy(start), cudaSuccess);
    EXPECT_EQ(cudaEventDestroy(end), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(a), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(b), cudaSuccess);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  }
  void copy_on(cudaStream_t stream) {
    EXPECT_EQ(cudaMemcpyAsync(device, pinned, kBig, cudaMemcpyHostToDevice, stream), cudaSuccess);
  }
  static float milliseconds(cudaEvent_t from, cudaEvent_t to) {
    float result = -1;
    EXPECT_EQ(cudaEventElapsedTime(&result, from, to), cudaSuccess);
    return result;
  }

  cudaStream_t a = nullptr;
  cudaStream_t b = nullptr;
  cudaEvent_t start = nullptr;
  cudaEvent_t end = nullptr;
  void* device = nullptr;
  void* pinned = nullptr;
};

TEST_F(Streams, AreIdleOnceSynchronised) {
  for (int i = 0; i < 20; ++i) copy_on(a);
  EXPECT_EQ(cudaStreamQuery(a), cudaErrorNotReady);
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);  // that was an answer, not an error
  EXPECT_EQ(cudaStreamSynchronize(a), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(a), cudaSuccess);
}

TEST_F(Streams, AreTimedByEvents) {
  EXPECT_EQ(cudaEventRecord(start, a), cudaSuccess);
  for (int i = 0; i < 10; ++i) copy_on(a);
  EXPECT_EQ(cudaEventRecord(end, a), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(end), cudaErrorNotReady);
  EXPECT_EQ(cudaEventSynchronize(end), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(end), cudaSuccess);
  const float ten = milliseconds(start, end);
  EXPECT_GT(ten, 0);
  EXPECT_FLOAT_EQ(milliseconds(end, start), -ten);
}

TEST_F(Streams, WaitForEventsOfOthers) {
  EXPECT_EQ(cudaEventRecord(start, b), cudaSuccess);
  for (int i = 0; i < 10; ++i) copy_on(a);
  cudaEvent_t done = nullptr;
  ASSERT_EQ(cudaEventCreate(&done), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(done, a), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(b, done, 0), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(end, b), cudaSuccess);
  EXPECT_EQ(cudaEventSynchronize(end), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(done), cudaSuccess);  // b could not be done before
  EXPECT_GE(milliseconds(done, end), 0);
  EXPECT_EQ(cudaEventDestroy(done), cudaSuccess);
}

TEST_F(Streams, AllEndWithTheDevice) {
  copy_on(a);
  copy_on(b);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(a), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(b), cudaSuccess);
}

TEST_F(Streams, OfAThreadsOwnHoldUpNoOtherThreads) {
  std::atomic<bool> go = false;
  ASSERT_EQ(cudaLaunchHostFunc(
                cudaStreamPerThread,
                [](void* data) {
                  while (!static_cast<std::atomic<bool>*>(data)->load()) std::this_thread::yield();
                },
                &go),
            cudaSuccess);
  std::thread([&] {
    EXPECT_EQ(cudaMemsetAsync(device, 1, kBig, cudaStreamPerThread), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(cudaStreamPerThread), cudaSuccess);
    EXPECT_EQ(cudaStreamQuery(cudaStreamPerThread), cudaSuccess);
  }).join();
  EXPECT_EQ(cudaStreamQuery(cudaStreamPerThread), cudaErrorNotReady);
  go = true;
  EXPECT_EQ(cudaStreamSynchronize(cudaStreamPerThread), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(cudaStreamPerThread), cudaSuccess);
}

TEST_F(Streams, HavePrioritiesWithinARange) {
  int least = 1;
  int greatest = 1;
  ASSERT_EQ(cudaDeviceGetStreamPriorityRange(&least, &greatest), cudaSuccess);
  EXPECT_LE(greatest, least);
  for (const int wish : {least, greatest, greatest - 100}) {
    cudaStream_t stream = nullptr;
    ASSERT_EQ(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, wish), cudaSuccess);
    int priority = 1;
    EXPECT_EQ(cudaStreamGetPriority(stream, &priority), cudaSuccess);
    EXPECT_EQ(priority, std::max(wish, greatest));
    EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  }
}

TEST_F(Streams, AreNotTimedByEventsWithoutTiming) {
  cudaEvent_t untimed = nullptr;
  ASSERT_EQ(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(untimed, a), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(end, a), cudaSuccess);
  EXPECT_EQ(cudaEventSynchronize(end), cudaSuccess);
  float result = 0;
  EXPECT_EQ(cudaEventElapsedTime(&result, untimed, end), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventElapsedTime(&result, start, end),
            cudaErrorInvalidResourceHandle);  // no record
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventDestroy(untimed), cudaSuccess);
}

}  // namespace
