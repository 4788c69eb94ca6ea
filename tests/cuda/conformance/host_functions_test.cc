#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace {

struct Log {
  std::vector<int> order;
  std::thread::id thread;
};

void append(void* data) {
  auto* log = static_cast<Log*>(data);
  log->order.push_back(static_cast<int>(log->order.size()));
  log->thread = std::this_thread::get_id();
}

TEST(HostFunctions, AreCalledInOrderOnAnotherThread) {
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  Log log;
  for (int i = 0; i < 5; ++i) ASSERT_EQ(cudaLaunchHostFunc(stream, append, &log), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(log.order, (std::vector<int>{0, 1, 2, 3, 4}));
  EXPECT_NE(log.thread, std::this_thread::get_id());
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

TEST(HostFunctions, AreWaitedForByEvents) {
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
  std::atomic<bool> go = false;
  ASSERT_EQ(cudaLaunchHostFunc(
                stream,
                [](void* data) {
                  while (!static_cast<std::atomic<bool>*>(data)->load()) std::this_thread::yield();
                },
                &go),
            cudaSuccess);
  ASSERT_EQ(cudaEventRecord(event, stream), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(event), cudaErrorNotReady);
  EXPECT_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
  go = true;
  EXPECT_EQ(cudaEventSynchronize(event), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

void wait_for_flag(void* data) {
  while (!static_cast<std::atomic<bool>*>(data)->load()) std::this_thread::yield();
}

TEST(HostFunctions, HoldUpTheirOwnStreamOnly) {
  cudaStream_t held = nullptr;
  cudaStream_t free = nullptr;
  cudaStream_t follows = nullptr;
  cudaEvent_t event = nullptr;
  for (cudaStream_t* each : {&held, &free, &follows})
    ASSERT_EQ(cudaStreamCreateWithFlags(each, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
  void* device = nullptr;
  ASSERT_EQ(cudaMalloc(&device, 4096), cudaSuccess);

  std::atomic<bool> go = false;
  ASSERT_EQ(cudaLaunchHostFunc(held, wait_for_flag, &go), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(event, held), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(follows, event, 0), cudaSuccess);
  ASSERT_EQ(cudaMemsetAsync(device, 1, 4096, free), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(free), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(free), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(held), cudaErrorNotReady);
  EXPECT_EQ(cudaStreamQuery(follows), cudaErrorNotReady);
  go = true;
  EXPECT_EQ(cudaStreamSynchronize(follows), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(held), cudaSuccess);

  EXPECT_EQ(cudaFree(device), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
  for (cudaStream_t each : {held, free, follows}) EXPECT_EQ(cudaStreamDestroy(each), cudaSuccess);
}

TEST(HostFunctions, AreInOrderWithCopies) {
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  struct Memory {
    std::atomic<bool> go = false;
    int* host = nullptr;
    int seen = -1;
  } memory;
  int* device = nullptr;
  int* back = nullptr;
  ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&device), sizeof(int)), cudaSuccess);
  ASSERT_EQ(cudaMallocHost(reinterpret_cast<void**>(&memory.host), sizeof(int)), cudaSuccess);
  ASSERT_EQ(cudaMallocHost(reinterpret_cast<void**>(&back), sizeof(int)), cudaSuccess);
  *memory.host = 1;
  *back = 0;
  ASSERT_EQ(cudaMemcpyAsync(device, memory.host, sizeof(int), cudaMemcpyDefault, stream),
            cudaSuccess);
  const auto fill = [](void* data) {
    auto* of = static_cast<Memory*>(data);
    while (!of->go.load()) std::this_thread::yield();
    of->seen = *of->host;
    *of->host = 2;
  };
  ASSERT_EQ(cudaLaunchHostFunc(stream, fill, &memory), cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(device, memory.host, sizeof(int), cudaMemcpyDefault, stream),
            cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(back, device, sizeof(int), cudaMemcpyDefault, stream), cudaSuccess);
  ASSERT_EQ(cudaMemsetAsync(memory.host, 0, sizeof(int), stream), cudaSuccess);
  memory.go = true;
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(memory.seen, 1);  // what comes behind it had not happened yet
  EXPECT_EQ(*back, 2);        // what came before it had
  EXPECT_EQ(*memory.host, 0);
  EXPECT_EQ(cudaFreeHost(memory.host), cudaSuccess);
  EXPECT_EQ(cudaFreeHost(back), cudaSuccess);
  EXPECT_EQ(cudaFree(device), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

TEST(HostFunctions, MustNotCallCuda) {
  cudaError_t said = cudaSuccess;
  ASSERT_EQ(
      cudaLaunchHostFunc(
          nullptr, [](void* data) { *static_cast<cudaError_t*>(data) = cudaDeviceSynchronize(); },
          &said),
      cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(said, cudaErrorNotPermitted);
}

TEST(Callbacks, AreToldTheStreamAndThatAllIsWell) {
  struct Told {
    cudaStream_t stream = nullptr;
    cudaError_t status = cudaErrorUnknown;
  } told;
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  ASSERT_EQ(cudaStreamAddCallback(
                stream,
                [](cudaStream_t at, cudaError_t status, void* data) {
                  *static_cast<Told*>(data) = {at, status};
                },
                &told, 0),
            cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(told.stream, stream);
  EXPECT_EQ(told.status, cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

TEST(ErrorTexts, AreThere) {
  EXPECT_STREQ(cudaGetErrorName(cudaErrorMemoryAllocation), "cudaErrorMemoryAllocation");
  EXPECT_STREQ(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory");
  EXPECT_STREQ(cudaGetErrorString(cudaSuccess), "no error");
  EXPECT_STREQ(cudaGetErrorName(static_cast<cudaError_t>(9000)), "unrecognized error code");
  EXPECT_STRNE(cudaGetErrorString(cudaErrorInvalidSymbol), cudaGetErrorString(cudaErrorUnknown));
}

TEST(Pools, GiveMemoryInTheOrderOfAStream) {
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  cudaMemPool_t pool = nullptr;
  ASSERT_EQ(cudaDeviceGetDefaultMemPool(&pool, 0), cudaSuccess);
  std::uint64_t threshold = std::uint64_t{1} << 20;
  EXPECT_EQ(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold),
            cudaSuccess);
  threshold = 0;
  EXPECT_EQ(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold),
            cudaSuccess);
  EXPECT_EQ(threshold, std::uint64_t{1} << 20);
  void* device = nullptr;
  ASSERT_EQ(cudaMallocAsync(&device, 4096, stream), cudaSuccess);
  EXPECT_EQ(cudaMemsetAsync(device, 1, 4096, stream), cudaSuccess);
  EXPECT_EQ(cudaFreeAsync(device, stream), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(cudaMemPoolTrimTo(pool, 0), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

}  // namespace
