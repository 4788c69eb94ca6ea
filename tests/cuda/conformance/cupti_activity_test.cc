// What CUPTI tells of the device's work.
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <vector>

#include "cuda/conformance/recording.h"

namespace {

constexpr std::size_t kMebibyte = std::size_t{1} << 20;
constexpr int kRows = 256;

std::uint64_t now() {
  std::uint64_t time = 0;
  EXPECT_EQ(cuptiGetTimestamp(&time), CUPTI_SUCCESS);
  return time;
}

std::uint64_t wall_ns() {
  timespec time{};
  clock_gettime(CLOCK_REALTIME, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000U +
         static_cast<std::uint64_t>(time.tv_nsec);
}

struct Activities : ::testing::Test {
  Activities() {
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    EXPECT_EQ(cublasCreate(&blas), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(cublasSetStream(blas, stream), CUBLAS_STATUS_SUCCESS);
    void* memory = nullptr;
    EXPECT_EQ(cudaMalloc(&memory, kMebibyte), cudaSuccess);
    EXPECT_EQ(cudaMallocHost(&pinned, kMebibyte), cudaSuccess);
    EXPECT_EQ(cudaMemset(memory, 0, kMebibyte), cudaSuccess);
    device = static_cast<float*>(memory);
    multiply();  // the first may load code
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(cuCtxGetCurrent(&context), CUDA_SUCCESS);
    EXPECT_EQ(cuptiGetContextId(context, &context_id), CUPTI_SUCCESS);
    EXPECT_EQ(cuptiGetStreamIdEx(context, stream, 0, &stream_id), CUPTI_SUCCESS);
  }
  ~Activities() override {
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(cublasDestroy(blas), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(cudaFree(device), cudaSuccess);
    EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  }
  void multiply() {
    const float one = 1;
    const float zero = 0;
    EXPECT_EQ(cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, kRows, kRows, kRows, &one, device, kRows,
                          device, kRows, &zero, device + std::ptrdiff_t{kRows} * kRows, kRows),
              CUBLAS_STATUS_SUCCESS);
  }
  void copy(std::size_t bytes = kMebibyte) {
    EXPECT_EQ(cudaMemcpyAsync(device, pinned, bytes, cudaMemcpyHostToDevice, stream), cudaSuccess);
  }
  void set(std::size_t bytes = kMebibyte) {
    EXPECT_EQ(cudaMemsetAsync(device, 0x2a, bytes, stream), cudaSuccess);
  }
  void finish() const {
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    Recording::flush();
  }

  cudaStream_t stream = nullptr;
  cublasHandle_t blas = nullptr;
  float* device = nullptr;
  void* pinned = nullptr;
  CUcontext context = nullptr;
  std::uint32_t context_id = 0;
  std::uint32_t stream_id = 0;
};

TEST_F(Activities, TellOfCopies) {
  const Recording recording({CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_RUNTIME});
  const std::uint64_t before = now();
  copy(4096);
  ASSERT_EQ(cudaMemcpyAsync(pinned, device, 512, cudaMemcpyDeviceToHost, stream), cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(device + 1024, device, 256, cudaMemcpyDeviceToDevice, stream),
            cudaSuccess);
  finish();
  const std::uint64_t after = now();

  const auto copies = recording.copies();
  const auto calls = recording.calls(CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020);
  ASSERT_EQ(copies.size(), 3u);
  ASSERT_EQ(calls.size(), 3u);
  const std::uint8_t kinds[] = {CUPTI_ACTIVITY_MEMCPY_KIND_HTOD, CUPTI_ACTIVITY_MEMCPY_KIND_DTOH,
                                CUPTI_ACTIVITY_MEMCPY_KIND_DTOD};
  const std::uint64_t bytes[] = {4096, 512, 256};
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(copies[i].copyKind, kinds[i]);
    EXPECT_EQ(copies[i].bytes, bytes[i]);
    EXPECT_EQ(copies[i].flags, CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC);
    EXPECT_EQ(copies[i].deviceId, 0u);
    EXPECT_EQ(copies[i].contextId, context_id);
    EXPECT_EQ(copies[i].streamId, stream_id);
    EXPECT_EQ(copies[i].graphNodeId, 0u);
    EXPECT_EQ(copies[i].correlationId, calls[i].correlationId);
    EXPECT_EQ(calls[i].returnValue, static_cast<std::uint32_t>(cudaSuccess));
    EXPECT_GE(calls[i].start, before);
    EXPECT_GE(calls[i].end, calls[i].start);
    EXPECT_GE(copies[i].start, calls[i].start);
    EXPECT_GE(copies[i].end, copies[i].start);
    EXPECT_LE(copies[i].end, after);
  }
  EXPECT_EQ(copies[0].srcKind, CUPTI_ACTIVITY_MEMORY_KIND_PINNED);
  EXPECT_EQ(copies[0].dstKind, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE);
  EXPECT_EQ(copies[1].srcKind, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE);
  EXPECT_EQ(copies[1].dstKind, CUPTI_ACTIVITY_MEMORY_KIND_PINNED);
}

TEST_F(Activities, TellOfPageableMemory) {
  const Recording recording({CUPTI_ACTIVITY_KIND_MEMCPY});
  std::vector<char> own(4096);
  ASSERT_EQ(cudaMemcpy(device, own.data(), own.size(), cudaMemcpyHostToDevice), cudaSuccess);
  finish();
  const auto copies = recording.copies();
  ASSERT_EQ(copies.size(), 1u);
  EXPECT_EQ(copies[0].srcKind, CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE);
  EXPECT_EQ(copies[0].flags, 0);
}

TEST_F(Activities, TellOfSets) {
  const Recording recording({CUPTI_ACTIVITY_KIND_MEMSET, CUPTI_ACTIVITY_KIND_RUNTIME});
  set(4096);
  ASSERT_EQ(cudaMemset(device, 1, 512), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  finish();
  auto sets = recording.sets();
  ASSERT_EQ(sets.size(), 2u);
  std::sort(sets.begin(), sets.end(),
            [](const auto& a, const auto& b) { return a.correlationId < b.correlationId; });
  EXPECT_EQ(sets[0].bytes, 4096u);
  EXPECT_EQ(sets[0].value, 0x2au);
  EXPECT_EQ(sets[0].streamId, stream_id);
  EXPECT_EQ(sets[0].contextId, context_id);
  EXPECT_EQ(sets[0].memoryKind, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE);
  EXPECT_EQ(sets[0].flags, CUPTI_ACTIVITY_FLAG_MEMSET_ASYNC);
  const auto calls = recording.calls(CUPTI_RUNTIME_TRACE_CBID_cudaMemsetAsync_v3020);
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(sets[0].correlationId, calls[0].correlationId);
  std::uint32_t legacy = 0;
  ASSERT_EQ(cuptiGetStreamIdEx(context, nullptr, 0, &legacy), CUPTI_SUCCESS);
  EXPECT_EQ(sets[1].streamId, legacy);
  EXPECT_EQ(sets[1].flags, 0);
}

TEST_F(Activities, TellOfKernels) {
  const Recording recording({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_RUNTIME,
                             CUPTI_ACTIVITY_KIND_DRIVER});
  multiply();
  finish();
  const auto kernels = recording.kernels();
  ASSERT_FALSE(kernels.empty());
  auto calls = recording.of<CUpti_ActivityAPI>(CUPTI_ACTIVITY_KIND_RUNTIME);
  const auto driver = recording.of<CUpti_ActivityAPI>(CUPTI_ACTIVITY_KIND_DRIVER);
  calls.insert(calls.end(), driver.begin(), driver.end());
  for (const CUpti_ActivityKernel11& kernel : kernels) {
    EXPECT_STRNE(kernel.name, "");
    EXPECT_GE(kernel.gridX, 1);
    EXPECT_GE(kernel.blockX, 1);
    EXPECT_EQ(kernel.streamId, stream_id);
    EXPECT_EQ(kernel.contextId, context_id);
    EXPECT_EQ(kernel.graphNodeId, 0u);
    EXPECT_EQ(kernel.queued, CUPTI_TIMESTAMP_UNKNOWN);  // collected only for who asks
    EXPECT_GT(kernel.end, kernel.start);
    const auto call = std::find_if(calls.begin(), calls.end(), [&](const auto& each) {
      return each.correlationId == kernel.correlationId;
    });
    ASSERT_NE(call, calls.end());
    EXPECT_GE(kernel.start, call->start);
  }
}

TEST_F(Activities, AreInOrderWithinAStream) {
  const Recording recording({CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET,
                             CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  const std::uint64_t before = now();
  for (int i = 0; i < 50; ++i) {
    copy();
    multiply();
    set();
  }
  finish();
  const std::uint64_t after = now();
  struct Span {
    std::uint64_t start;
    std::uint64_t end;
    std::uint32_t correlation;
  };
  std::vector<Span> spans;
  for (const auto& each : recording.copies())
    spans.push_back({each.start, each.end, each.correlationId});
  for (const auto& each : recording.sets())
    spans.push_back({each.start, each.end, each.correlationId});
  for (const auto& each : recording.kernels())
    spans.push_back({each.start, each.end, each.correlationId});
  ASSERT_GE(spans.size(), 150u);
  std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) {
    return a.correlation != b.correlation ? a.correlation < b.correlation : a.start < b.start;
  });
  EXPECT_GE(spans.front().start, before);
  EXPECT_LE(spans.back().end, after);
  for (std::size_t i = 1; i < spans.size(); ++i) ASSERT_GE(spans[i].start, spans[i - 1].end) << i;
}

TEST_F(Activities, AreNotToldOfKindsThatAreOff) {
  const Recording recording({CUPTI_ACTIVITY_KIND_MEMSET});
  copy();
  set();
  finish();
  ASSERT_EQ(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_MEMSET), CUPTI_SUCCESS);
  set();
  finish();
  EXPECT_EQ(recording.sets().size(), 1u);
  EXPECT_EQ(recording.count(), 1u);
}

// Three of its units in a nanosecond, and not from the wall clock's beginning.
std::uint64_t thirds() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return 3 * (static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000U +
              static_cast<std::uint64_t>(time.tv_nsec));
}

TEST_F(Activities, AreTimedByTheClientsClock) {
  EXPECT_EQ(cuptiActivityRegisterTimestampCallback(nullptr), CUPTI_ERROR_INVALID_PARAMETER);
  ASSERT_EQ(cuptiActivityRegisterTimestampCallback(thirds), CUPTI_SUCCESS);
  {
    const Recording recording({CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_RUNTIME});
    const std::uint64_t before = thirds();
    copy();
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    const std::uint64_t after = thirds();
    Recording::flush();
    const auto copies = recording.copies();
    const auto calls = recording.calls(CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020);
    ASSERT_EQ(copies.size(), 1u);
    ASSERT_EQ(calls.size(), 1u);
    EXPECT_GE(calls[0].start, before);
    EXPECT_GE(copies[0].start, calls[0].start);
    EXPECT_GT(copies[0].end, copies[0].start);
    EXPECT_LE(copies[0].end, after + (after - before) / 20);  // the unit is measured
  }
  ASSERT_EQ(cuptiActivityRegisterTimestampCallback(wall_ns), CUPTI_SUCCESS);
}

TEST_F(Activities, TellWholeGraphsAsOne) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  const Recording recording(
      {CUPTI_ACTIVITY_KIND_GRAPH_TRACE, CUPTI_ACTIVITY_KIND_MEMSET, CUPTI_ACTIVITY_KIND_RUNTIME});
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), cudaSuccess);
  set();
  set();
  ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(cudaGraphLaunch(exec, stream), cudaSuccess);
  finish();
  const auto runs = recording.of<CUpti_ActivityGraphTrace2>(CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
  const auto calls = recording.calls(CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_v10000);
  ASSERT_EQ(runs.size(), 3u);
  ASSERT_EQ(calls.size(), 3u);
  EXPECT_TRUE(recording.sets().empty());
  std::uint32_t id = 0;
  ASSERT_EQ(cuptiGetGraphExecId(exec, &id), CUPTI_SUCCESS);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(runs[i].correlationId, calls[i].correlationId);
    EXPECT_EQ(runs[i].graphId, id);
    EXPECT_EQ(runs[i].streamId, stream_id);
    EXPECT_EQ(runs[i].contextId, context_id);
    EXPECT_GT(runs[i].end, runs[i].start);
    if (i != 0) {
      EXPECT_GE(runs[i].start, runs[i - 1].end);
    }
  }
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
}

TEST_F(Activities, TellGraphsNodeByNodeOtherwise) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  const Recording recording(
      {CUPTI_ACTIVITY_KIND_MEMSET, CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_RUNTIME});
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), cudaSuccess);
  set();
  copy();
  ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
  for (int i = 0; i < 2; ++i) ASSERT_EQ(cudaGraphLaunch(exec, stream), cudaSuccess);
  finish();
  const auto sets = recording.sets();
  const auto copies = recording.copies();
  const auto calls = recording.calls(CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_v10000);
  ASSERT_EQ(sets.size(), 2u);
  ASSERT_EQ(copies.size(), 2u);
  ASSERT_EQ(calls.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(sets[i].correlationId, calls[i].correlationId);
    EXPECT_EQ(copies[i].correlationId, calls[i].correlationId);
    EXPECT_NE(sets[i].graphNodeId, 0u);
    EXPECT_NE(sets[i].graphNodeId, copies[i].graphNodeId);
    EXPECT_EQ(sets[i].graphNodeId, sets[0].graphNodeId);  // the same at each launch
    EXPECT_EQ(copies[i].graphId, sets[i].graphId);
    EXPECT_GE(copies[i].start, sets[i].end);
  }
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
}

}  // namespace
