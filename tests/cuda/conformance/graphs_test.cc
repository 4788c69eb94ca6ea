#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "cuda/conformance/sizes.h"

namespace {

cudaGraphNode_t add(cudaGraph_t graph, const std::vector<cudaGraphNode_t>& after,
                    cudaGraphNodeParams& parameters) {
  cudaGraphNode_t node = nullptr;
  EXPECT_EQ(cudaGraphAddNode(&node, graph, after.data(), nullptr, after.size(), &parameters),
            cudaSuccess);
  return node;
}

cudaGraphNodeParams setting(void* address, unsigned value) {
  cudaGraphNodeParams parameters{};
  parameters.type = cudaGraphNodeTypeMemset;
  parameters.memset.dst = address;
  parameters.memset.value = value;
  parameters.memset.elementSize = sizeof(unsigned);
  parameters.memset.width = kBytes / sizeof(unsigned);
  parameters.memset.height = 1;
  return parameters;
}

cudaGraphNodeParams calling(cudaHostFn_t function, void* data) {
  cudaGraphNodeParams parameters{};
  parameters.type = cudaGraphNodeTypeHost;
  parameters.host.fn = function;
  parameters.host.userData = data;
  return parameters;
}

struct Graphs : ::testing::Test {
  Graphs() {
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    EXPECT_EQ(cudaMalloc(&device, kBytes), cudaSuccess);
    EXPECT_EQ(cudaMallocHost(&pinned, kBytes), cudaSuccess);
    EXPECT_EQ(cudaMemset(device, 0, kBytes), cudaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  }
  ~Graphs() override {
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(cudaFree(device), cudaSuccess);
    EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  }
  template <typename Work>
  cudaGraph_t capture(const Work& work) {
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    work();
    EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    return graph;
  }
  cudaGraph_t captured_set(int value) {
    return capture([&] { EXPECT_EQ(cudaMemsetAsync(device, value, kBytes, stream), cudaSuccess); });
  }
  void launch(cudaGraphExec_t exec) const {
    ASSERT_EQ(cudaGraphLaunch(exec, stream), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  }
  void run_once(cudaGraph_t graph) const {
    cudaGraphExec_t exec = nullptr;
    ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
    launch(exec);
    EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
  }
  unsigned value() const {
    unsigned value = ~0U;
    EXPECT_EQ(cudaMemcpy(&value, device, sizeof value, cudaMemcpyDeviceToHost), cudaSuccess);
    return value;
  }

  cudaStream_t stream = nullptr;
  void* device = nullptr;
  void* pinned = nullptr;
};

TEST_F(Graphs, DoTheirWorkAgainAtEachLaunch) {
  std::vector<unsigned> seen;
  cudaGraph_t graph = capture([&] {
    EXPECT_EQ(cudaMemcpyAsync(device, pinned, kBytes, cudaMemcpyHostToDevice, stream), cudaSuccess);
    EXPECT_EQ(cudaMemsetAsync(static_cast<char*>(device) + 1, 1, 1, stream), cudaSuccess);
    EXPECT_EQ(cudaMemcpyAsync(static_cast<unsigned*>(pinned) + 1, device, sizeof(unsigned),
                              cudaMemcpyDeviceToHost, stream),
              cudaSuccess);
    EXPECT_EQ(
        cudaLaunchHostFunc(
            stream, [](void* data) { static_cast<std::vector<unsigned>*>(data)->push_back(1); },
            &seen),
        cudaSuccess);
  });
  cudaGraphExec_t exec = nullptr;
  ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);  // what is to be launched is a copy
  ASSERT_EQ(cudaGraphUpload(exec, stream), cudaSuccess);
  auto* numbers = static_cast<unsigned*>(pinned);
  for (const unsigned number : {3U, 5U, 9U}) {
    numbers[0] = number;
    numbers[1] = 0;
    launch(exec);
    EXPECT_EQ(numbers[1], number + 0x100);
  }
  EXPECT_EQ(seen.size(), 3u);
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
}

TEST_F(Graphs, AreOneThingInTheirStream) {
  cudaGraph_t graph = captured_set(1);
  cudaGraphExec_t exec = nullptr;
  ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
  ASSERT_EQ(cudaGraphLaunch(exec, stream), cudaSuccess);
  ASSERT_EQ(cudaMemsetAsync(device, 2, 1, stream), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(value(), 0x01010102U);
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
}

TEST_F(Graphs, RecordEventsOfTheProgramEachTime) {
  constexpr std::size_t kBig = std::size_t{4} << 20;
  cudaEvent_t start = nullptr;
  cudaEvent_t end = nullptr;
  void* big = nullptr;
  ASSERT_EQ(cudaEventCreate(&start), cudaSuccess);
  ASSERT_EQ(cudaEventCreate(&end), cudaSuccess);
  ASSERT_EQ(cudaMalloc(&big, kBig), cudaSuccess);
  cudaGraph_t graph = capture([&] {
    EXPECT_EQ(cudaEventRecordWithFlags(start, stream, cudaEventRecordExternal), cudaSuccess);
    EXPECT_EQ(cudaMemsetAsync(big, 1, kBig, stream), cudaSuccess);
    EXPECT_EQ(cudaEventRecordWithFlags(end, stream, cudaEventRecordExternal), cudaSuccess);
  });
  std::size_t count = 3;
  cudaGraphNode_t nodes[3] = {};
  ASSERT_EQ(cudaGraphGetNodes(graph, nodes, &count), cudaSuccess);
  EXPECT_EQ(count, 3u);
  cudaGraphExec_t exec = nullptr;
  ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
  cudaEvent_t before = nullptr;
  ASSERT_EQ(cudaEventCreate(&before), cudaSuccess);
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(cudaEventRecord(before, stream), cudaSuccess);
    launch(exec);
    EXPECT_EQ(cudaEventQuery(end), cudaSuccess);
    float milliseconds = -1;
    ASSERT_EQ(cudaEventElapsedTime(&milliseconds, start, end), cudaSuccess);
    EXPECT_GT(milliseconds, 0);
    ASSERT_EQ(cudaEventElapsedTime(&milliseconds, before, start), cudaSuccess);
    EXPECT_GE(milliseconds, 0);  // of this launch, not of the one before
  }
  for (cudaEvent_t each : {start, end, before}) EXPECT_EQ(cudaEventDestroy(each), cudaSuccess);
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  EXPECT_EQ(cudaFree(big), cudaSuccess);
}

TEST_F(Graphs, TakeNewParametersFromOneOfTheSameShape) {
  cudaGraph_t first = captured_set(1);
  cudaGraph_t second = captured_set(2);
  cudaGraphExec_t exec = nullptr;
  ASSERT_EQ(cudaGraphInstantiate(&exec, first, 0), cudaSuccess);
  launch(exec);
  EXPECT_EQ(value(), 0x01010101U);
  cudaGraphExecUpdateResultInfo info{};
  ASSERT_EQ(cudaGraphExecUpdate(exec, second, &info), cudaSuccess);
  EXPECT_EQ(info.result, cudaGraphExecUpdateSuccess);
  launch(exec);
  EXPECT_EQ(value(), 0x02020202U);
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(first), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(second), cudaSuccess);
}

TEST_F(Graphs, RefuseParametersFromOneOfAnotherShape) {
  cudaGraph_t one = captured_set(1);
  cudaGraph_t two = capture([&] {
    EXPECT_EQ(cudaMemsetAsync(device, 2, kBytes, stream), cudaSuccess);
    EXPECT_EQ(cudaMemsetAsync(device, 3, kBytes, stream), cudaSuccess);
  });
  cudaGraph_t other =
      capture([&] { EXPECT_EQ(cudaLaunchHostFunc(stream, [](void*) {}, nullptr), cudaSuccess); });
  cudaGraphNode_t other_node = nullptr;
  std::size_t count = 1;
  ASSERT_EQ(cudaGraphGetNodes(other, &other_node, &count), cudaSuccess);
  cudaGraphExec_t exec = nullptr;
  ASSERT_EQ(cudaGraphInstantiate(&exec, one, 0), cudaSuccess);
  cudaGraphExecUpdateResultInfo info{};
  EXPECT_EQ(cudaGraphExecUpdate(exec, two, &info), cudaErrorGraphExecUpdateFailure);
  EXPECT_EQ(info.result, cudaGraphExecUpdateErrorTopologyChanged);
  EXPECT_EQ(info.errorNode, nullptr);
  EXPECT_EQ(cudaGraphExecUpdate(exec, other, &info), cudaErrorGraphExecUpdateFailure);
  EXPECT_EQ(info.result, cudaGraphExecUpdateErrorNodeTypeChanged);
  EXPECT_EQ(info.errorNode, other_node);
  EXPECT_EQ(cudaGetLastError(), cudaErrorGraphExecUpdateFailure);
  launch(exec);
  EXPECT_EQ(value(), 0x01010101U);  // as it was
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
  for (cudaGraph_t each : {one, two, other}) EXPECT_EQ(cudaGraphDestroy(each), cudaSuccess);
}

TEST_F(Graphs, AreBuiltByHandInTheOrderOfTheirEdges) {
  struct Log {
    std::vector<int> order;
  } log;
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaGraphCreate(&graph, 0), cudaSuccess);
  auto last = calling([](void* data) { static_cast<Log*>(data)->order.push_back(2); }, &log);
  auto first = calling([](void* data) { static_cast<Log*>(data)->order.push_back(1); }, &log);
  cudaGraphNodeParams nothing{};
  nothing.type = cudaGraphNodeTypeEmpty;
  auto set = setting(device, 0xabcd);
  cudaGraphNode_t begins = add(graph, {}, first);
  cudaGraphNode_t sets = add(graph, {}, set);
  cudaGraphNode_t meets = add(graph, {begins, sets}, nothing);
  add(graph, {meets}, last);
  run_once(graph);
  EXPECT_EQ(log.order, (std::vector<int>{1, 2}));
  EXPECT_EQ(value(), 0xabcdU);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
}

TEST_F(Graphs, HoldCopiesOfTheirChildren) {
  cudaGraph_t child = captured_set(4);
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaGraphCreate(&graph, 0), cudaSuccess);
  cudaGraphNodeParams parameters{};
  parameters.type = cudaGraphNodeTypeGraph;
  parameters.graph.graph = child;
  cudaGraphNode_t node = add(graph, {}, parameters);
  cudaGraphNodeType type = cudaGraphNodeTypeCount;
  EXPECT_EQ(cudaGraphNodeGetType(node, &type), cudaSuccess);
  EXPECT_EQ(type, cudaGraphNodeTypeGraph);
  EXPECT_EQ(cudaGraphDestroy(child), cudaSuccess);
  run_once(graph);
  EXPECT_EQ(value(), 0x04040404U);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
}

TEST_F(Graphs, RunABodyIfItsConditionHolds) {
  for (const unsigned condition : {0U, 1U}) {
    ASSERT_EQ(cudaMemset(device, 0, kBytes), cudaSuccess);
    cudaGraph_t graph = nullptr;
    ASSERT_EQ(cudaGraphCreate(&graph, 0), cudaSuccess);
    cudaGraphNodeParams parameters{};
    parameters.type = cudaGraphNodeTypeConditional;
    ASSERT_EQ(cudaGraphConditionalHandleCreate(&parameters.conditional.handle, graph, condition,
                                               cudaGraphCondAssignDefault),
              cudaSuccess);
    parameters.conditional.type = cudaGraphCondTypeIf;
    parameters.conditional.size = 1;
    add(graph, {}, parameters);
    ASSERT_NE(parameters.conditional.phGraph_out, nullptr);
    auto set = setting(device, 6);
    add(parameters.conditional.phGraph_out[0], {}, set);
    run_once(graph);
    EXPECT_EQ(value(), condition == 0 ? 0U : 6U);
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  }
}

TEST_F(Graphs, AreClonedForGood) {
  cudaGraph_t original = captured_set(1);
  cudaGraph_t clone = nullptr;
  ASSERT_EQ(cudaGraphClone(&clone, original), cudaSuccess);
  cudaGraphNode_t node = nullptr;
  std::size_t count = 1;
  ASSERT_EQ(cudaGraphGetNodes(original, &node, &count), cudaSuccess);
  auto more = setting(device, 8);
  add(original, {node}, more);
  EXPECT_EQ(cudaGraphGetNodes(clone, nullptr, &count), cudaSuccess);
  EXPECT_EQ(count, 1u);
  EXPECT_EQ(cudaGraphDestroy(original), cudaSuccess);
  run_once(clone);
  EXPECT_EQ(value(), 0x01010101U);
  EXPECT_EQ(cudaGraphDestroy(clone), cudaSuccess);
}

// CUDA frees on a thread of its own, some time later.
TEST_F(Graphs, KeepObjectsUntilTheLastOfThemGoes) {
  std::atomic<int> freed = 0;
  cudaUserObject_t object = nullptr;
  ASSERT_EQ(
      cudaUserObjectCreate(
          &object, &freed, [](void* data) { static_cast<std::atomic<int>*>(data)->fetch_add(1); },
          1, cudaUserObjectNoDestructorSync),
      cudaSuccess);
  cudaGraph_t graph = captured_set(1);
  ASSERT_EQ(cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove), cudaSuccess);
  cudaGraphExec_t exec = nullptr;
  ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  launch(exec);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(freed, 0);
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
  for (int i = 0; i < 1000 && freed == 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(freed, 1);
}

TEST_F(Graphs, BecomeNodesOfTheGraphTheyAreLaunchedInto) {
  cudaGraph_t inner = captured_set(9);
  cudaGraphExec_t exec = nullptr;
  ASSERT_EQ(cudaGraphInstantiate(&exec, inner, 0), cudaSuccess);
  cudaGraph_t outer = capture([&] { EXPECT_EQ(cudaGraphLaunch(exec, stream), cudaSuccess); });
  run_once(outer);
  EXPECT_EQ(value(), 0x09090909U);
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(inner), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(outer), cudaSuccess);
}

}  // namespace
