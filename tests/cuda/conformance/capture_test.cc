#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "cuda/conformance/sizes.h"

namespace {

struct Info {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  unsigned long long id = 0;
  cudaGraph_t graph = nullptr;
  std::vector<cudaGraphNode_t> dependencies;
};

Info info_of(cudaStream_t stream) {
  Info info;
  const cudaGraphNode_t* nodes = nullptr;
  std::size_t count = 0;
  EXPECT_EQ(cudaStreamGetCaptureInfo(stream, &info.status, &info.id, &info.graph, &nodes, nullptr,
                                     &count),
            cudaSuccess);
  if (info.status == cudaStreamCaptureStatusActive) info.dependencies.assign(nodes, nodes + count);
  return info;
}

cudaStreamCaptureStatus status_of(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  EXPECT_EQ(cudaStreamIsCapturing(stream, &status), cudaSuccess);
  return status;
}

std::vector<cudaGraphNode_t> dependencies_of(cudaGraphNode_t node) {
  std::size_t count = 0;
  EXPECT_EQ(cudaGraphNodeGetDependencies(node, nullptr, nullptr, &count), cudaSuccess);
  std::vector<cudaGraphNode_t> nodes(count);
  if (count != 0) {
    EXPECT_EQ(cudaGraphNodeGetDependencies(node, nodes.data(), nullptr, &count), cudaSuccess);
  }
  return nodes;
}

std::size_t node_count(cudaGraph_t graph) {
  std::size_t count = 0;
  EXPECT_EQ(cudaGraphGetNodes(graph, nullptr, &count), cudaSuccess);
  return count;
}

cudaGraphNodeType type_of(cudaGraphNode_t node) {
  cudaGraphNodeType type = cudaGraphNodeTypeCount;
  EXPECT_EQ(cudaGraphNodeGetType(node, &type), cudaSuccess);
  return type;
}

// Two streams that do not wait for the legacy one, and memory.
struct Capture : ::testing::Test {
  Capture() {
    EXPECT_EQ(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking), cudaSuccess);
    EXPECT_EQ(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking), cudaSuccess);
    EXPECT_EQ(cudaEventCreate(&event), cudaSuccess);
    EXPECT_EQ(cudaEventCreate(&joined), cudaSuccess);
    EXPECT_EQ(cudaMalloc(&device, kBytes), cudaSuccess);
    EXPECT_EQ(cudaMemset(device, 0, kBytes), cudaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  }
  ~Capture() override {
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(cudaFree(device), cudaSuccess);
    EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
    EXPECT_EQ(cudaEventDestroy(joined), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(a), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(b), cudaSuccess);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  }
  static void begin(cudaStream_t stream, cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal) {
    ASSERT_EQ(cudaStreamBeginCapture(stream, mode), cudaSuccess);
  }
  // Gives the graph, which the test destroys.
  static cudaGraph_t end(cudaStream_t stream) {
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    EXPECT_NE(graph, nullptr);
    return graph;
  }
  // Ends one that cannot become a graph.
  static void end_failing(cudaStream_t stream, cudaError_t error) {
    int something = 0;
    auto graph = reinterpret_cast<cudaGraph_t>(&something);
    EXPECT_EQ(cudaStreamEndCapture(stream, &graph), error);
    EXPECT_EQ(graph, nullptr);
    EXPECT_EQ(cudaGetLastError(), error);
    EXPECT_EQ(status_of(stream), cudaStreamCaptureStatusNone);
  }
  cudaError_t set(cudaStream_t stream, int value = 1) {
    return cudaMemsetAsync(device, value, kBytes, stream);
  }
  void wait_across(cudaStream_t from, cudaStream_t to, cudaEvent_t by) {
    ASSERT_EQ(cudaEventRecord(by, from), cudaSuccess);
    ASSERT_EQ(cudaStreamWaitEvent(to, by, 0), cudaSuccess);
  }
  unsigned char first_byte() const {
    unsigned char byte = 0xff;
    EXPECT_EQ(cudaMemcpy(&byte, device, 1, cudaMemcpyDeviceToHost), cudaSuccess);
    return byte;
  }

  cudaStream_t a = nullptr;
  cudaStream_t b = nullptr;
  cudaEvent_t event = nullptr;
  cudaEvent_t joined = nullptr;
  void* device = nullptr;
};

TEST_F(Capture, IsToldByTheStream) {
  EXPECT_EQ(status_of(a), cudaStreamCaptureStatusNone);
  begin(a);
  EXPECT_EQ(status_of(a), cudaStreamCaptureStatusActive);
  EXPECT_EQ(status_of(b), cudaStreamCaptureStatusNone);
  const Info first = info_of(a);
  EXPECT_EQ(first.status, cudaStreamCaptureStatusActive);
  EXPECT_NE(first.graph, nullptr);
  EXPECT_TRUE(first.dependencies.empty());
  EXPECT_EQ(info_of(a).id, first.id);
  cudaGraph_t graph = end(a);
  EXPECT_EQ(graph, first.graph);
  EXPECT_EQ(info_of(a).status, cudaStreamCaptureStatusNone);
  begin(a);
  EXPECT_NE(info_of(a).id, first.id);
  EXPECT_EQ(cudaGraphDestroy(end(a)), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
}

TEST_F(Capture, RunsNothing) {
  begin(a);
  ASSERT_EQ(set(a, 7), cudaSuccess);
  cudaGraph_t graph = end(a);
  ASSERT_EQ(cudaStreamSynchronize(a), cudaSuccess);
  EXPECT_EQ(first_byte(), 0);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
}

TEST_F(Capture, KeepsTheOrderOfTheStream) {
  std::vector<char> host(kBytes);
  begin(a);
  ASSERT_EQ(set(a), cudaSuccess);
  const std::vector<cudaGraphNode_t> first = info_of(a).dependencies;
  ASSERT_EQ(first.size(), 1u);
  ASSERT_EQ(cudaLaunchHostFunc(a, [](void*) {}, nullptr), cudaSuccess);
  const std::vector<cudaGraphNode_t> second = info_of(a).dependencies;
  ASSERT_EQ(second.size(), 1u);
  cudaGraph_t graph = end(a);
  EXPECT_EQ(node_count(graph), 2u);
  EXPECT_EQ(type_of(first[0]), cudaGraphNodeTypeMemset);
  EXPECT_EQ(type_of(second[0]), cudaGraphNodeTypeHost);
  EXPECT_TRUE(dependencies_of(first[0]).empty());
  EXPECT_EQ(dependencies_of(second[0]), first);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
}

TEST_F(Capture, SpreadsToStreamsThatWaitForIt) {
  begin(a);
  ASSERT_EQ(set(a), cudaSuccess);
  cudaGraphNode_t root = info_of(a).dependencies.at(0);
  wait_across(a, b, event);
  EXPECT_EQ(info_of(b).id, info_of(a).id);
  ASSERT_EQ(cudaLaunchHostFunc(b, [](void*) {}, nullptr), cudaSuccess);
  ASSERT_EQ(cudaLaunchHostFunc(a, [](void*) {}, nullptr), cudaSuccess);
  cudaGraphNode_t left = info_of(a).dependencies.at(0);
  cudaGraphNode_t right = info_of(b).dependencies.at(0);
  wait_across(b, a, joined);
  EXPECT_EQ(info_of(a).dependencies.size(), 2u);
  ASSERT_EQ(set(a), cudaSuccess);
  cudaGraphNode_t last = info_of(a).dependencies.at(0);
  cudaGraph_t graph = end(a);
  EXPECT_EQ(status_of(b), cudaStreamCaptureStatusNone);
  EXPECT_EQ(node_count(graph), 4u);
  EXPECT_EQ(dependencies_of(left), std::vector{root});
  EXPECT_EQ(dependencies_of(right), std::vector{root});
  std::vector<cudaGraphNode_t> both = dependencies_of(last);
  ASSERT_EQ(both.size(), 2u);
  EXPECT_TRUE((both == std::vector{left, right}) || (both == std::vector{right, left}));
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
}

TEST_F(Capture, FailsWhereAStreamIsNotJoined) {
  begin(a);
  wait_across(a, b, event);
  ASSERT_EQ(set(b), cudaSuccess);
  end_failing(a, cudaErrorStreamCaptureUnjoined);
  EXPECT_EQ(status_of(b), cudaStreamCaptureStatusNone);
}

TEST_F(Capture, EndsOnItsOwnThread) {
  begin(a);
  std::thread([&] {
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(a, &graph), cudaErrorStreamCaptureWrongThread);
    EXPECT_EQ(graph, nullptr);
  }).join();
  cudaGraph_t graph = nullptr;
  static_cast<void>(cudaStreamEndCapture(a, &graph));
  if (graph != nullptr) {
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  }
  static_cast<void>(cudaGetLastError());
}

TEST_F(Capture, EndsOnAnyThreadIfItIsRelaxed) {
  begin(a, cudaStreamCaptureModeRelaxed);
  std::thread([&] { EXPECT_EQ(cudaGraphDestroy(end(a)), cudaSuccess); }).join();
}

TEST_F(Capture, EndsOnTheStreamItBeganOn) {
  begin(a);
  wait_across(a, b, event);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(b, &graph), cudaErrorStreamCaptureUnmatched);
  EXPECT_EQ(graph, nullptr);
  static_cast<void>(cudaStreamEndCapture(a, &graph));
  if (graph != nullptr) {
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  }
  static_cast<void>(cudaGetLastError());
}

TEST_F(Capture, IsInvalidatedBySynchronisingItsStream) {
  begin(a);
  ASSERT_EQ(set(a), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(a), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(cudaGetLastError(), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(status_of(a), cudaStreamCaptureStatusInvalidated);
  EXPECT_EQ(set(a), cudaErrorStreamCaptureInvalidated);
  end_failing(a, cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(set(a, 3), cudaSuccess);  // the stream is itself again
  ASSERT_EQ(cudaStreamSynchronize(a), cudaSuccess);
  EXPECT_EQ(first_byte(), 3);
}

TEST_F(Capture, IsInvalidatedByAllocating) {
  void* more = nullptr;
  begin(a);
  EXPECT_EQ(cudaMalloc(&more, kBytes), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(cudaGetLastError(), cudaErrorStreamCaptureUnsupported);
  end_failing(a, cudaErrorStreamCaptureInvalidated);
}

TEST_F(Capture, AllowsAllocatingIfItIsRelaxed) {
  void* more = nullptr;
  begin(a, cudaStreamCaptureModeRelaxed);
  EXPECT_EQ(cudaMalloc(&more, kBytes), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(end(a)), cudaSuccess);
  EXPECT_EQ(cudaFree(more), cudaSuccess);
}

TEST_F(Capture, OfAThreadsOwnLeavesOtherThreadsAlone) {
  const auto allocate = [] {
    void* more = nullptr;
    const cudaError_t result = cudaMalloc(&more, kBytes);
    if (result == cudaSuccess) {
      EXPECT_EQ(cudaFree(more), cudaSuccess);
    }
    return result;
  };
  begin(a, cudaStreamCaptureModeThreadLocal);
  std::thread([&] { EXPECT_EQ(allocate(), cudaSuccess); }).join();
  EXPECT_EQ(cudaGraphDestroy(end(a)), cudaSuccess);
  begin(a, cudaStreamCaptureModeGlobal);
  std::thread([&] {
    cudaStreamCaptureMode mode = cudaStreamCaptureModeThreadLocal;
    ASSERT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
    EXPECT_EQ(mode, cudaStreamCaptureModeGlobal);  // the default
    EXPECT_EQ(allocate(), cudaSuccess);
    ASSERT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
    EXPECT_EQ(mode, cudaStreamCaptureModeThreadLocal);
    EXPECT_EQ(allocate(), cudaErrorStreamCaptureUnsupported);
  }).join();
  end_failing(a, cudaErrorStreamCaptureInvalidated);
}

TEST_F(Capture, OfABlockingStreamForbidsTheLegacyOne) {
  cudaStream_t blocking = nullptr;
  ASSERT_EQ(cudaStreamCreate(&blocking), cudaSuccess);
  begin(blocking);
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  EXPECT_EQ(cudaStreamIsCapturing(cudaStreamLegacy, &status), cudaErrorStreamCaptureImplicit);
  EXPECT_EQ(cudaStreamGetCaptureInfo(cudaStreamLegacy, &status, nullptr, nullptr, nullptr, nullptr,
                                     nullptr),
            cudaErrorStreamCaptureImplicit);
  EXPECT_EQ(status_of(blocking), cudaStreamCaptureStatusActive);  // asking does no harm
  EXPECT_EQ(set(cudaStreamLegacy), cudaErrorStreamCaptureImplicit);
  EXPECT_EQ(cudaEventRecord(event, cudaStreamLegacy), cudaErrorStreamCaptureImplicit);
  EXPECT_EQ(cudaGetLastError(), cudaErrorStreamCaptureImplicit);
  end_failing(blocking, cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(cudaStreamDestroy(blocking), cudaSuccess);
}

TEST_F(Capture, OfOtherStreamsLeavesTheLegacyOneAlone) {
  begin(a, cudaStreamCaptureModeRelaxed);
  EXPECT_EQ(status_of(cudaStreamLegacy), cudaStreamCaptureStatusNone);
  EXPECT_EQ(set(cudaStreamLegacy, 5), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(event, cudaStreamLegacy), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(end(a)), cudaSuccess);
}

TEST_F(Capture, KeepsItsEventsToItself) {
  begin(a);
  ASSERT_EQ(cudaEventRecord(event, a), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(event), cudaErrorCapturedEvent);
  EXPECT_EQ(cudaGetLastError(), cudaErrorCapturedEvent);
  end_failing(a, cudaErrorStreamCaptureInvalidated);
}

TEST_F(Capture, WaitsForNothingOutside) {
  ASSERT_EQ(set(b), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(event, b), cudaSuccess);
  begin(a);
  EXPECT_EQ(cudaStreamWaitEvent(a, event, 0), cudaErrorStreamCaptureIsolation);
  EXPECT_EQ(cudaGetLastError(), cudaErrorStreamCaptureIsolation);
  end_failing(a, cudaErrorStreamCaptureInvalidated);
}

TEST_F(Capture, IsNotMergedWithAnother) {
  begin(a);
  begin(b);
  ASSERT_EQ(cudaEventRecord(event, a), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(b, event, 0), cudaErrorStreamCaptureMerge);
  EXPECT_EQ(cudaGetLastError(), cudaErrorStreamCaptureMerge);
  for (cudaStream_t each : {a, b}) {
    cudaGraph_t graph = nullptr;
    static_cast<void>(cudaStreamEndCapture(each, &graph));
    if (graph != nullptr) {
      EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    }
  }
  static_cast<void>(cudaGetLastError());
}

TEST_F(Capture, NeedsAStreamThatCanBeCaptured) {
  EXPECT_EQ(cudaStreamBeginCapture(cudaStreamLegacy, cudaStreamCaptureModeGlobal),
            cudaErrorStreamCaptureUnsupported);
  begin(a);
  EXPECT_EQ(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal), cudaErrorIllegalState);
  EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalState);
  cudaGraph_t graph = nullptr;
  static_cast<void>(cudaStreamEndCapture(a, &graph));
  if (graph != nullptr) {
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  }
  EXPECT_EQ(cudaStreamEndCapture(a, &graph), cudaErrorIllegalState);
  static_cast<void>(cudaGetLastError());
}

TEST_F(Capture, GoesIntoAGraphThatIsThere) {
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaGraphCreate(&graph, 0), cudaSuccess);
  cudaGraphNode_t before = nullptr;
  cudaGraphNodeParams empty{};
  empty.type = cudaGraphNodeTypeEmpty;
  ASSERT_EQ(cudaGraphAddNode(&before, graph, nullptr, nullptr, 0, &empty), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCaptureToGraph(a, graph, &before, nullptr, 1,
                                          cudaStreamCaptureModeThreadLocal),
            cudaSuccess);
  ASSERT_EQ(set(a), cudaSuccess);
  cudaGraphNode_t added = info_of(a).dependencies.at(0);
  EXPECT_EQ(end(a), graph);
  EXPECT_EQ(node_count(graph), 2u);
  EXPECT_EQ(dependencies_of(added), std::vector{before});
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
}

}  // namespace
