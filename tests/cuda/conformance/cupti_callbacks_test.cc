#include <cupti.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "cuda/conformance/recording.h"
#include "cuda/conformance/sizes.h"

namespace {

constexpr CUpti_CallbackId kCopy = CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020;
constexpr CUpti_CallbackId kSet = CUPTI_RUNTIME_TRACE_CBID_cudaMemsetAsync_v3020;

// What the subscriber was called with.
struct Seen {
  struct Call {
    CUpti_CallbackDomain domain;
    CUpti_CallbackId id;
    CUpti_ApiCallbackSite site;
    std::string function;
    std::uint32_t correlation;
    std::uint64_t data;  // what was kept from the entry
    cudaError_t result;
    std::size_t bytes;  // of a copy
  };
  struct Resource {
    CUpti_CallbackId id;
    CUcontext context;
    CUstream stream;
    CUpti_GraphData graph;
    std::uint64_t node_id;
  };
  std::vector<Call> calls;
  std::vector<Resource> resources;

  std::vector<Resource> of(CUpti_CallbackId id) const {
    std::vector<Resource> found;
    std::copy_if(resources.begin(), resources.end(), std::back_inserter(found),
                 [&](const Resource& each) { return each.id == id; });
    return found;
  }
};

void see_call(Seen& seen, CUpti_CallbackDomain domain, CUpti_CallbackId id,
              const CUpti_CallbackData& data) {
  Seen::Call call{domain,
                  id,
                  data.callbackSite,
                  data.functionName,
                  data.correlationId,
                  *data.correlationData,
                  cudaErrorUnknown,
                  0};
  if (data.callbackSite == CUPTI_API_ENTER) *data.correlationData = 1000 + data.correlationId;
  if (data.callbackSite == CUPTI_API_EXIT)
    call.result = *static_cast<const cudaError_t*>(data.functionReturnValue);
  if (id == kCopy)
    call.bytes = static_cast<const cudaMemcpyAsync_v3020_params*>(data.functionParams)->count;
  seen.calls.push_back(std::move(call));
}

void see_resource(Seen& seen, CUpti_CallbackId id, const CUpti_ResourceData& data) {
  Seen::Resource resource{id, data.context, data.resourceHandle.stream, {}, 0};
  const bool of_graph =
      id >= CUPTI_CBID_RESOURCE_GRAPH_CREATED && id <= CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED;
  if (of_graph && data.resourceDescriptor != nullptr) {
    resource.graph = *static_cast<const CUpti_GraphData*>(data.resourceDescriptor);
    if (resource.graph.node != nullptr) {
      EXPECT_EQ(cuptiGetGraphNodeId(resource.graph.node, &resource.node_id), CUPTI_SUCCESS);
    }
  }
  seen.resources.push_back(resource);
}

void CUPTIAPI see(void* user, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* data) {
  auto& seen = *static_cast<Seen*>(user);
  if (domain == CUPTI_CB_DOMAIN_RESOURCE) {
    see_resource(seen, id, *static_cast<const CUpti_ResourceData*>(data));
  } else if (domain == CUPTI_CB_DOMAIN_RUNTIME_API || domain == CUPTI_CB_DOMAIN_DRIVER_API) {
    see_call(seen, domain, id, *static_cast<const CUpti_CallbackData*>(data));
  }
}

struct CuptiCallbacks : ::testing::Test {
  CuptiCallbacks() {
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    EXPECT_EQ(cudaMalloc(&device, kBytes), cudaSuccess);
    EXPECT_EQ(cudaMallocHost(&pinned, kBytes), cudaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(cuptiSubscribe(&subscriber, see, &seen), CUPTI_SUCCESS);
  }
  ~CuptiCallbacks() override {
    if (subscriber != nullptr) {
      EXPECT_EQ(cuptiUnsubscribe(subscriber), CUPTI_SUCCESS);
    }
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(cudaFree(device), cudaSuccess);
    EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  }
  void enable(CUpti_CallbackId id, bool on = true) {
    EXPECT_EQ(cuptiEnableCallback(on ? 1 : 0, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API, id),
              CUPTI_SUCCESS);
  }
  cudaError_t copy(std::size_t bytes = kBytes) {
    return cudaMemcpyAsync(device, pinned, bytes, cudaMemcpyHostToDevice, stream);
  }
  void set() { EXPECT_EQ(cudaMemsetAsync(device, 0, kBytes, stream), cudaSuccess); }

  cudaStream_t stream = nullptr;
  void* device = nullptr;
  void* pinned = nullptr;
  Seen seen;
  CUpti_SubscriberHandle subscriber = nullptr;
};

TEST_F(CuptiCallbacks, HaveOneSubscriber) {
  enable(kSet);
  CUpti_SubscriberHandle second = nullptr;
  Seen others;
  EXPECT_EQ(cuptiSubscribe(&second, see, &others), CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
  set();
  EXPECT_EQ(seen.calls.size(), 2u);  // the first goes on as before
  EXPECT_TRUE(others.calls.empty());
  EXPECT_EQ(cuptiUnsubscribe(subscriber), CUPTI_SUCCESS);
  EXPECT_EQ(cuptiSubscribe(&subscriber, see, &others), CUPTI_SUCCESS);
  EXPECT_EQ(cuptiSubscribe(nullptr, see, nullptr), CUPTI_ERROR_INVALID_PARAMETER);
}

TEST_F(CuptiCallbacks, AreNotMadeUntilTheyAreEnabled) {
  set();
  EXPECT_TRUE(seen.calls.empty());
  EXPECT_TRUE(seen.resources.empty());
}

TEST_F(CuptiCallbacks, SurroundTheCall) {
  enable(kCopy);
  ASSERT_EQ(copy(), cudaSuccess);
  EXPECT_EQ(cudaMemcpyAsync(nullptr, pinned, kBytes, cudaMemcpyHostToDevice, stream),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
  ASSERT_EQ(seen.calls.size(), 4u);
  for (std::size_t i = 0; i < 4; i += 2) {
    const Seen::Call& enter = seen.calls[i];
    const Seen::Call& exit = seen.calls[i + 1];
    EXPECT_EQ(enter.site, CUPTI_API_ENTER);
    EXPECT_EQ(exit.site, CUPTI_API_EXIT);
    EXPECT_EQ(enter.domain, CUPTI_CB_DOMAIN_RUNTIME_API);
    EXPECT_EQ(enter.id, kCopy);
    EXPECT_EQ(enter.function, "cudaMemcpyAsync");
    EXPECT_EQ(enter.bytes, kBytes);
    EXPECT_EQ(exit.bytes, kBytes);
    EXPECT_EQ(exit.correlation, enter.correlation);
    EXPECT_EQ(exit.data, 1000 + enter.correlation);
  }
  EXPECT_EQ(seen.calls[1].result, cudaSuccess);
  EXPECT_EQ(seen.calls[3].result, cudaErrorInvalidValue);
  EXPECT_NE(seen.calls[0].correlation, seen.calls[2].correlation);
}

TEST_F(CuptiCallbacks, HaveTheCorrelationOfTheRecords) {
  const Recording recording({CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_RUNTIME});
  enable(kCopy);
  ASSERT_EQ(copy(), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  Recording::flush();
  ASSERT_EQ(seen.calls.size(), 2u);
  const auto copies = recording.copies();
  const auto calls = recording.calls(kCopy);
  ASSERT_EQ(copies.size(), 1u);
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(copies[0].correlationId, seen.calls[0].correlation);
  EXPECT_EQ(calls[0].correlationId, seen.calls[0].correlation);
}

TEST_F(CuptiCallbacks, AreEnabledOneByOneOrByDomain) {
  enable(kCopy);
  std::uint32_t on = 0;
  EXPECT_EQ(cuptiGetCallbackState(&on, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API, kCopy),
            CUPTI_SUCCESS);
  EXPECT_NE(on, 0u);
  EXPECT_EQ(cuptiGetCallbackState(&on, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API, kSet),
            CUPTI_SUCCESS);
  EXPECT_EQ(on, 0u);
  set();
  ASSERT_EQ(copy(), cudaSuccess);
  EXPECT_EQ(seen.calls.size(), 2u);
  ASSERT_EQ(cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API), CUPTI_SUCCESS);
  seen.calls.clear();
  set();
  ASSERT_EQ(copy(), cudaSuccess);
  EXPECT_EQ(seen.calls.size(), 4u);
  enable(kCopy, false);
  seen.calls.clear();
  ASSERT_EQ(copy(), cudaSuccess);
  EXPECT_TRUE(seen.calls.empty());
  ASSERT_EQ(cuptiEnableDomain(0, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API), CUPTI_SUCCESS);
  set();
  EXPECT_TRUE(seen.calls.empty());
  EXPECT_EQ(cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_INVALID),
            CUPTI_ERROR_INVALID_PARAMETER);
}

TEST_F(CuptiCallbacks, EndWithTheSubscription) {
  ASSERT_EQ(cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API), CUPTI_SUCCESS);
  ASSERT_EQ(cuptiUnsubscribe(subscriber), CUPTI_SUCCESS);
  subscriber = nullptr;
  seen.calls.clear();
  set();
  EXPECT_TRUE(seen.calls.empty());
  ASSERT_EQ(cuptiSubscribe(&subscriber, see, &seen), CUPTI_SUCCESS);
  set();
  EXPECT_TRUE(seen.calls.empty());  // a new subscriber begins with none
  EXPECT_EQ(cuptiUnsubscribe(nullptr), CUPTI_ERROR_INVALID_PARAMETER);
}

TEST_F(CuptiCallbacks, TellOfStreams) {
  ASSERT_EQ(cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE), CUPTI_SUCCESS);
  cudaStream_t made = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking), cudaSuccess);
  CUcontext context = nullptr;
  ASSERT_EQ(cuCtxGetCurrent(&context), CUDA_SUCCESS);
  const auto created = seen.of(CUPTI_CBID_RESOURCE_STREAM_CREATED);
  ASSERT_EQ(created.size(), 1u);
  EXPECT_EQ(created[0].stream, made);
  EXPECT_EQ(created[0].context, context);
  EXPECT_TRUE(seen.of(CUPTI_CBID_RESOURCE_STREAM_DESTROY_STARTING).empty());
  ASSERT_EQ(cudaStreamDestroy(made), cudaSuccess);
  const auto gone = seen.of(CUPTI_CBID_RESOURCE_STREAM_DESTROY_STARTING);
  ASSERT_EQ(gone.size(), 1u);
  EXPECT_EQ(gone[0].stream, made);
}

// What a client needs to find who captured a kernel that a graph runs later.
TEST_F(CuptiCallbacks, TellOfGraphNodesAndTheirCopies) {
  const Recording recording({CUPTI_ACTIVITY_KIND_MEMSET, CUPTI_ACTIVITY_KIND_MEMCPY});
  ASSERT_EQ(cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE), CUPTI_SUCCESS);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), cudaSuccess);
  set();
  ASSERT_EQ(copy(), cudaSuccess);
  ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  const auto created = seen.of(CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED);
  ASSERT_EQ(created.size(), 2u);
  EXPECT_EQ(created[0].graph.nodeType, CU_GRAPH_NODE_TYPE_MEMSET);
  EXPECT_EQ(created[1].graph.nodeType, CU_GRAPH_NODE_TYPE_MEMCPY);
  for (const auto& each : created) EXPECT_EQ(each.graph.graph, graph);
  EXPECT_EQ(seen.of(CUPTI_CBID_RESOURCE_GRAPH_CREATED).size(), 1u);
  const auto edges = seen.of(CUPTI_CBID_RESOURCE_GRAPHNODE_DEPENDENCY_CREATED);
  ASSERT_EQ(edges.size(), 1u);
  EXPECT_EQ(edges[0].graph.node, created[1].graph.node);
  EXPECT_EQ(edges[0].graph.dependency, created[0].graph.node);

  ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
  std::map<CUgraphNode, std::uint64_t> copies;  // of each node
  for (const auto& each : seen.of(CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED))
    copies[each.graph.originalNode] = each.node_id;
  ASSERT_EQ(copies.size(), 2u);
  const auto execs = seen.of(CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED);
  ASSERT_EQ(execs.size(), 1u);
  EXPECT_EQ(execs[0].graph.graphExec, exec);

  for (int i = 0; i < 2; ++i) ASSERT_EQ(cudaGraphLaunch(exec, stream), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  Recording::flush();
  ASSERT_EQ(recording.sets().size(), 2u);
  ASSERT_EQ(recording.copies().size(), 2u);
  for (const auto& each : recording.sets())
    EXPECT_EQ(each.graphNodeId, copies[created[0].graph.node]);
  for (const auto& each : recording.copies())
    EXPECT_EQ(each.graphNodeId, copies[created[1].graph.node]);

  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
  EXPECT_EQ(seen.of(CUPTI_CBID_RESOURCE_GRAPHEXEC_DESTROY_STARTING).size(), 1u);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  EXPECT_GE(seen.of(CUPTI_CBID_RESOURCE_GRAPH_DESTROY_STARTING).size(), 1u);
}

TEST(CallbackNames, AreThoseOfTheFunctions) {
  const char* name = nullptr;
  ASSERT_EQ(cuptiGetCallbackName(CUPTI_CB_DOMAIN_RUNTIME_API, kCopy, &name), CUPTI_SUCCESS);
  EXPECT_STREQ(name, "cudaMemcpyAsync_v3020");
  ASSERT_EQ(cuptiGetCallbackName(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel,
                                 &name),
            CUPTI_SUCCESS);
  EXPECT_STREQ(name, "cuLaunchKernel");
  EXPECT_EQ(cuptiGetCallbackName(CUPTI_CB_DOMAIN_RUNTIME_API, 999999, &name),
            CUPTI_ERROR_INVALID_PARAMETER);
}

}  // namespace
