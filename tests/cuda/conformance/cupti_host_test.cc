// What CUPTI tells of the program's calls, and of what they make.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <thread>
#include <vector>

#include "cuda/conformance/recording.h"
#include "cuda/conformance/sizes.h"

namespace {

constexpr CUpti_ExternalCorrelationKind kOurs = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;
constexpr CUpti_ExternalCorrelationKind kOther = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1;

struct Host : ::testing::Test {
  Host() {
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    EXPECT_EQ(cudaMalloc(&device, kBytes), cudaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(cuCtxGetCurrent(&context), CUDA_SUCCESS);
    EXPECT_EQ(cuptiGetContextId(context, &context_id), CUPTI_SUCCESS);
    EXPECT_EQ(cuptiGetStreamIdEx(context, stream, 0, &stream_id), CUPTI_SUCCESS);
  }
  ~Host() override {
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(cudaFree(device), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  }
  void set() { EXPECT_EQ(cudaMemsetAsync(device, 0, kBytes, stream), cudaSuccess); }
  void finish() const {
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    Recording::flush();
  }
  static void push(CUpti_ExternalCorrelationKind kind, std::uint64_t id) {
    EXPECT_EQ(cuptiActivityPushExternalCorrelationId(kind, id), CUPTI_SUCCESS);
  }
  static std::uint64_t pop(CUpti_ExternalCorrelationKind kind) {
    std::uint64_t id = 0;
    EXPECT_EQ(cuptiActivityPopExternalCorrelationId(kind, &id), CUPTI_SUCCESS);
    return id;
  }

  cudaStream_t stream = nullptr;
  void* device = nullptr;
  CUcontext context = nullptr;
  std::uint32_t context_id = 0;
  std::uint32_t stream_id = 0;
};

TEST_F(Host, CallsAreToldWithTheirThreadAndResult) {
  ASSERT_EQ(cuptiSetThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM), CUPTI_SUCCESS);
  const Recording recording({CUPTI_ACTIVITY_KIND_RUNTIME});
  set();
  std::uint32_t other_thread = 0;
  std::thread([&] {
    other_thread = static_cast<std::uint32_t>(syscall(SYS_gettid));
    EXPECT_EQ(cudaSetDevice(1000), cudaErrorInvalidDevice);
  }).join();
  finish();
  const auto sets = recording.calls(CUPTI_RUNTIME_TRACE_CBID_cudaMemsetAsync_v3020);
  const auto failures = recording.calls(CUPTI_RUNTIME_TRACE_CBID_cudaSetDevice_v3020);
  ASSERT_EQ(sets.size(), 1u);
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_EQ(sets[0].processId, static_cast<std::uint32_t>(getpid()));
  EXPECT_NE(sets[0].threadId, failures[0].threadId);
  EXPECT_EQ(sets[0].returnValue, static_cast<std::uint32_t>(cudaSuccess));
  EXPECT_EQ(failures[0].returnValue, static_cast<std::uint32_t>(cudaErrorInvalidDevice));
  EXPECT_NE(sets[0].correlationId, failures[0].correlationId);
  EXPECT_EQ(sets[0].threadId, static_cast<std::uint32_t>(syscall(SYS_gettid)));
  EXPECT_EQ(failures[0].threadId, other_thread);
  EXPECT_EQ(cuptiSetThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT), CUPTI_SUCCESS);
}

// By default ids are POSIX's, as far as they fit.
TEST_F(Host, ThreadsAreToldApartByTheirOwnIdsUnlessTheSystemsAreWanted) {
  CUpti_ActivityThreadIdType type = CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM;
  ASSERT_EQ(cuptiGetThreadIdType(&type), CUPTI_SUCCESS);
  ASSERT_EQ(type, CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT);
  const Recording recording({CUPTI_ACTIVITY_KIND_RUNTIME});
  set();
  finish();
  const auto sets = recording.calls(CUPTI_RUNTIME_TRACE_CBID_cudaMemsetAsync_v3020);
  ASSERT_EQ(sets.size(), 1u);
  EXPECT_EQ(sets[0].threadId, static_cast<std::uint32_t>(pthread_self()));
}

TEST_F(Host, CallsOfTheDriverAreToldApart) {
  const Recording recording(
      {CUPTI_ACTIVITY_KIND_DRIVER, CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_MEMSET});
  ASSERT_EQ(cuMemsetD32Async(reinterpret_cast<CUdeviceptr>(device), 7, 16, stream), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  Recording::flush();
  const auto calls =
      recording.calls(CUPTI_ACTIVITY_KIND_DRIVER, CUPTI_DRIVER_TRACE_CBID_cuMemsetD32Async);
  const auto sets = recording.sets();
  ASSERT_EQ(calls.size(), 1u);
  ASSERT_EQ(sets.size(), 1u);
  EXPECT_EQ(sets[0].correlationId, calls[0].correlationId);
  EXPECT_EQ(sets[0].bytes, 64u);
  EXPECT_EQ(sets[0].value, 7u);
  EXPECT_EQ(
      recording.calls(CUPTI_ACTIVITY_KIND_DRIVER, CUPTI_DRIVER_TRACE_CBID_cuCtxSynchronize).size(),
      1u);
  EXPECT_TRUE(recording.of<CUpti_ActivityAPI>(CUPTI_ACTIVITY_KIND_RUNTIME).empty());
}

TEST_F(Host, SingleFunctionsAreLeftOut) {
  const Recording recording({CUPTI_ACTIVITY_KIND_RUNTIME});
  ASSERT_EQ(cuptiActivityEnableRuntimeApi(CUPTI_RUNTIME_TRACE_CBID_cudaMemsetAsync_v3020, 0),
            CUPTI_SUCCESS);
  set();
  finish();
  EXPECT_TRUE(recording.calls(CUPTI_RUNTIME_TRACE_CBID_cudaMemsetAsync_v3020).empty());
  EXPECT_EQ(recording.calls(CUPTI_RUNTIME_TRACE_CBID_cudaStreamSynchronize_v3020).size(), 1u);
  // The kind overrides what was chosen before it.
  ASSERT_EQ(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_RUNTIME), CUPTI_SUCCESS);
  set();
  finish();
  EXPECT_EQ(recording.calls(CUPTI_RUNTIME_TRACE_CBID_cudaMemsetAsync_v3020).size(), 1u);
}

TEST_F(Host, SingleFunctionsAreToldWithoutTheRest) {
  const Recording recording({});
  ASSERT_EQ(cuptiActivityEnableRuntimeApi(CUPTI_RUNTIME_TRACE_CBID_cudaMemsetAsync_v3020, 1),
            CUPTI_SUCCESS);
  set();
  finish();
  ASSERT_EQ(cuptiActivityEnableRuntimeApi(CUPTI_RUNTIME_TRACE_CBID_cudaMemsetAsync_v3020, 0),
            CUPTI_SUCCESS);
  EXPECT_EQ(recording.calls(CUPTI_RUNTIME_TRACE_CBID_cudaMemsetAsync_v3020).size(), 1u);
  EXPECT_EQ(recording.count(), 1u);
}

TEST_F(Host, CallsCarryTheInnermostIdOfEachKind) {
  const Recording recording(
      {CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION});
  set();  // without any
  push(kOurs, 1);
  push(kOurs, 2);
  push(kOther, 50);
  set();
  EXPECT_EQ(pop(kOther), 50u);
  EXPECT_EQ(pop(kOurs), 2u);
  set();
  EXPECT_EQ(pop(kOurs), 1u);
  finish();
  const auto calls = recording.calls(CUPTI_RUNTIME_TRACE_CBID_cudaMemsetAsync_v3020);
  ASSERT_EQ(calls.size(), 3u);
  std::map<std::uint32_t, std::map<int, std::uint64_t>> ids;  // by call and kind
  for (const auto& each :
       recording.of<CUpti_ActivityExternalCorrelation>(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION)) {
    const auto [at, fresh] = ids[each.correlationId].emplace(each.externalKind, each.externalId);
    EXPECT_TRUE(fresh);
  }
  EXPECT_EQ(ids.size(), 2u);
  EXPECT_EQ(ids[calls[1].correlationId], (std::map<int, std::uint64_t>{{kOurs, 2}, {kOther, 50}}));
  EXPECT_EQ(ids[calls[2].correlationId], (std::map<int, std::uint64_t>{{kOurs, 1}}));
}

TEST_F(Host, IdsAreAThreadsOwn) {
  const Recording recording(
      {CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION});
  push(kOurs, 1);
  std::thread([&] {
    EXPECT_EQ(cuptiActivityPopExternalCorrelationId(kOurs, nullptr), CUPTI_ERROR_QUEUE_EMPTY);
    set();
  }).join();
  EXPECT_EQ(cuptiActivityPopExternalCorrelationId(kOurs, nullptr), CUPTI_SUCCESS);
  EXPECT_EQ(cuptiActivityPopExternalCorrelationId(kOurs, nullptr), CUPTI_ERROR_QUEUE_EMPTY);
  EXPECT_EQ(cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_INVALID, 1),
            CUPTI_ERROR_INVALID_PARAMETER);
  finish();
  EXPECT_EQ(recording.calls(CUPTI_RUNTIME_TRACE_CBID_cudaMemsetAsync_v3020).size(), 1u);
  EXPECT_TRUE(
      recording.of<CUpti_ActivityExternalCorrelation>(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION)
          .empty());
}

TEST_F(Host, WaitsAreTold) {
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
  const Recording recording({CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, CUPTI_ACTIVITY_KIND_CUDA_EVENT,
                             CUPTI_ACTIVITY_KIND_RUNTIME});
  set();
  ASSERT_EQ(cudaEventRecord(event, stream), cudaSuccess);
  ASSERT_EQ(cudaEventSynchronize(event), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  finish();
  const auto events = recording.of<CUpti_ActivityCudaEvent2>(CUPTI_ACTIVITY_KIND_CUDA_EVENT);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].streamId, stream_id);
  EXPECT_EQ(events[0].contextId, context_id);
  EXPECT_EQ(events[0].deviceTimestamp, 0u);  // only for who asks
  EXPECT_EQ(events[0].correlationId,
            recording.calls(CUPTI_RUNTIME_TRACE_CBID_cudaEventRecord_v3020).at(0).correlationId);
  std::map<int, CUpti_ActivitySynchronization2> waits;
  for (const auto& each :
       recording.of<CUpti_ActivitySynchronization2>(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION)) {
    waits.emplace(each.type, each);
    EXPECT_GE(each.end, each.start);
    EXPECT_EQ(each.contextId, context_id);
  }
  ASSERT_TRUE(waits.contains(CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE));
  ASSERT_TRUE(waits.contains(CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE));
  ASSERT_TRUE(waits.contains(CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE));
  const auto& of_event = waits[CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE];
  EXPECT_EQ(of_event.cudaEventId, events[0].eventId);
  EXPECT_EQ(of_event.cudaEventSyncId, events[0].cudaEventSyncId);
  EXPECT_EQ(of_event.streamId, CUPTI_SYNCHRONIZATION_INVALID_VALUE);
  const auto call = recording.calls(CUPTI_RUNTIME_TRACE_CBID_cudaEventSynchronize_v3020).at(0);
  EXPECT_EQ(of_event.correlationId, call.correlationId);
  EXPECT_GE(of_event.start, call.start);
  EXPECT_LE(of_event.end, call.end);
  const auto& of_stream = waits[CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE];
  EXPECT_EQ(of_stream.streamId, stream_id);
  EXPECT_EQ(of_stream.cudaEventId, CUPTI_SYNCHRONIZATION_INVALID_VALUE);
  EXPECT_EQ(waits[CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE].streamId,
            CUPTI_SYNCHRONIZATION_INVALID_VALUE);
  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
}

TEST_F(Host, EveryRecordOfAnEventIsToldApart) {
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
  const Recording recording({CUPTI_ACTIVITY_KIND_CUDA_EVENT});
  for (int i = 0; i < 2; ++i) ASSERT_EQ(cudaEventRecord(event, stream), cudaSuccess);
  finish();
  const auto events = recording.of<CUpti_ActivityCudaEvent2>(CUPTI_ACTIVITY_KIND_CUDA_EVENT);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].eventId, events[1].eventId);
  EXPECT_NE(events[0].cudaEventSyncId, events[1].cudaEventSyncId);
  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
}

TEST_F(Host, EventsAreTimedForWhoAsks) {
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
  const Recording recording({CUPTI_ACTIVITY_KIND_CUDA_EVENT, CUPTI_ACTIVITY_KIND_MEMSET});
  ASSERT_EQ(cuptiActivityEnableCudaEventDeviceTimestamps(1), CUPTI_SUCCESS);
  set();
  ASSERT_EQ(cudaEventRecord(event, stream), cudaSuccess);
  finish();
  ASSERT_EQ(cuptiActivityEnableCudaEventDeviceTimestamps(0), CUPTI_SUCCESS);
  const auto events = recording.of<CUpti_ActivityCudaEvent2>(CUPTI_ACTIVITY_KIND_CUDA_EVENT);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_NE(events[0].deviceTimestamp, 0u);
  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
}

TEST_F(Host, StreamsAreTold) {
  const Recording recording({CUPTI_ACTIVITY_KIND_STREAM, CUPTI_ACTIVITY_KIND_RUNTIME});
  cudaStream_t blocking = nullptr;
  cudaStream_t other = nullptr;
  ASSERT_EQ(cudaStreamCreate(&blocking), cudaSuccess);
  ASSERT_EQ(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking), cudaSuccess);
  Recording::flush();
  const auto streams = recording.of<CUpti_ActivityStream>(CUPTI_ACTIVITY_KIND_STREAM);
  const auto find = [&](cudaStream_t handle) {
    std::uint32_t id = 0;
    EXPECT_EQ(cuptiGetStreamIdEx(context, handle, 0, &id), CUPTI_SUCCESS);
    const auto found = std::find_if(streams.begin(), streams.end(),
                                    [&](const auto& each) { return each.streamId == id; });
    return found == streams.end() ? CUpti_ActivityStream{} : *found;
  };
  const CUpti_ActivityStream first = find(blocking);
  EXPECT_EQ(first.flag, CUPTI_ACTIVITY_STREAM_CREATE_FLAG_DEFAULT);
  EXPECT_EQ(first.contextId, context_id);
  EXPECT_EQ(first.correlationId,
            recording.calls(CUPTI_RUNTIME_TRACE_CBID_cudaStreamCreate_v3020).at(0).correlationId);
  EXPECT_EQ(find(other).flag, CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NON_BLOCKING);
  EXPECT_EQ(cudaStreamDestroy(blocking), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(other), cudaSuccess);
}

TEST_F(Host, TheDeviceAndItsContextAreTold) {
  const Recording recording({CUPTI_ACTIVITY_KIND_DEVICE, CUPTI_ACTIVITY_KIND_CONTEXT});
  finish();
  const auto devices = recording.of<CUpti_ActivityDevice6>(CUPTI_ACTIVITY_KIND_DEVICE);
  ASSERT_FALSE(devices.empty());
  cudaDeviceProp properties{};
  ASSERT_EQ(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
  EXPECT_STREQ(devices[0].name, properties.name);
  EXPECT_EQ(devices[0].numMultiprocessors,
            static_cast<std::uint32_t>(properties.multiProcessorCount));
  EXPECT_EQ(devices[0].computeCapabilityMajor, static_cast<std::uint32_t>(properties.major));
  const auto contexts = recording.of<CUpti_ActivityContext4>(CUPTI_ACTIVITY_KIND_CONTEXT);
  const auto ours = std::find_if(contexts.begin(), contexts.end(),
                                 [&](const auto& each) { return each.contextId == context_id; });
  ASSERT_NE(ours, contexts.end());
  EXPECT_EQ(ours->deviceId, 0u);
  std::uint32_t legacy = 0;
  ASSERT_EQ(cuptiGetStreamIdEx(context, nullptr, 0, &legacy), CUPTI_SUCCESS);
  EXPECT_EQ(ours->nullStreamId, legacy);
}

TEST_F(Host, WhatCuptiItselfTakesIsTold) {
  const Recording recording({CUPTI_ACTIVITY_KIND_OVERHEAD, CUPTI_ACTIVITY_KIND_MEMSET});
  for (int i = 0; i < 10; ++i) {
    set();
    finish();
  }
  const auto overheads = recording.of<CUpti_ActivityOverhead3>(CUPTI_ACTIVITY_KIND_OVERHEAD);
  ASSERT_FALSE(overheads.empty());
  for (const auto& each : overheads) EXPECT_GE(each.end, each.start);
}

}  // namespace
