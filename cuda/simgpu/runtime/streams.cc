// Streams and events.
#include "runtime/api.h"

using simgpu::Event;
using simgpu::event_of;
using simgpu::failed;
using simgpu::machine;
using simgpu::Stream;
using simgpu::stream_of;

namespace {

// As CUDA: lower numbers go first, 0 is the default.
constexpr int kLeastPriority = 0;
constexpr int kGreatestPriority = -5;

cudaError_t create_stream(cudaStream_t* handle, unsigned flags, int priority) {
  if (handle == nullptr || (flags != cudaStreamDefault && flags != cudaStreamNonBlocking))
    return failed(cudaErrorInvalidValue);
  simgpu::Device& device = simgpu::current_device();
  auto* stream = new Stream{
      .device = device.number,
      .queue = device.timeline.add_stream(/*blocking=*/flags == cudaStreamDefault),
      .id = machine().new_stream_id(),
      .priority = std::min(kLeastPriority, std::max(kGreatestPriority, priority)),
      .flags = flags,
  };
  *handle = reinterpret_cast<cudaStream_t>(stream);
  return cudaSuccess;
}

bool is_default(cudaStream_t handle) {
  return handle == nullptr || handle == cudaStreamLegacy || handle == cudaStreamPerThread;
}

simgpu::Timeline& timeline_of(const Stream& stream) {
  return machine().device(stream.device).timeline;
}

cudaError_t create_event(cudaEvent_t* handle, unsigned flags) {
  constexpr unsigned kKnown =
      cudaEventBlockingSync | cudaEventDisableTiming | cudaEventInterprocess;
  const bool shares_without_timing =
      (flags & cudaEventInterprocess) == 0 || (flags & cudaEventDisableTiming) != 0;
  if (handle == nullptr || (flags & ~kKnown) != 0 || !shares_without_timing)
    return failed(cudaErrorInvalidValue);
  auto* event = new Event;
  event->device = simgpu::this_thread().device;
  event->flags = flags;
  *handle = reinterpret_cast<cudaEvent_t>(event);
  return cudaSuccess;
}

cudaError_t record(cudaEvent_t handle, cudaStream_t stream_handle) {
  if (handle == nullptr) return failed(cudaErrorInvalidResourceHandle);
  Event& event = event_of(handle);
  const Stream& stream = stream_of(stream_handle);
  if (event.device != stream.device) return failed(cudaErrorInvalidResourceHandle);
  event.time_ns.store(timeline_of(stream).mark(stream.queue, machine().clock().now()));
  return cudaSuccess;
}

}  // namespace

SIMGPU_API cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  SIMGPU_CALL(call);
  if (least != nullptr) *least = kLeastPriority;
  if (greatest != nullptr) *greatest = kGreatestPriority;
  return cudaSuccess;
}

SIMGPU_API cudaError_t cudaStreamCreate(cudaStream_t* handle) {
  SIMGPU_CALL(call);
  return create_stream(handle, cudaStreamDefault, kLeastPriority);
}

SIMGPU_API cudaError_t cudaStreamCreateWithFlags(cudaStream_t* handle, unsigned flags) {
  SIMGPU_CALL(call);
  return create_stream(handle, flags, kLeastPriority);
}

SIMGPU_API cudaError_t cudaStreamCreateWithPriority(cudaStream_t* handle, unsigned flags,
                                                    int priority) {
  SIMGPU_CALL(call);
  return create_stream(handle, flags, priority);
}

// What is in it runs to its end.
SIMGPU_API cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  SIMGPU_CALL(call);
  if (is_default(handle)) return failed(cudaErrorInvalidResourceHandle);
  Stream& stream = stream_of(handle);
  timeline_of(stream).remove_stream(stream.queue);
  delete &stream;
  return cudaSuccess;
}

SIMGPU_API cudaError_t cudaStreamGetPriority(cudaStream_t handle, int* priority) {
  SIMGPU_CALL(call);
  if (priority == nullptr) return failed(cudaErrorInvalidValue);
  *priority = stream_of(handle).priority;
  return cudaSuccess;
}

SIMGPU_API cudaError_t cudaStreamQuery(cudaStream_t handle) {
  SIMGPU_CALL(call);
  const Stream& stream = stream_of(handle);
  // As CUDA has it, this answer is none of the errors that are remembered.
  return machine().reached(timeline_of(stream).idle_at(stream.queue)) ? cudaSuccess
                                                                      : cudaErrorNotReady;
}

SIMGPU_API cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  SIMGPU_CALL(call);
  const Stream& stream = stream_of(handle);
  machine().wait_until(timeline_of(stream).idle_at(stream.queue));
  return cudaSuccess;
}

SIMGPU_API cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event,
                                           unsigned /*flags*/) {
  SIMGPU_CALL(call);
  if (event == nullptr) return failed(cudaErrorInvalidResourceHandle);
  const Stream& stream = stream_of(handle);
  timeline_of(stream).wait(stream.queue, event_of(event).time_ns.load());
  return cudaSuccess;
}

SIMGPU_API cudaError_t cudaEventCreate(cudaEvent_t* handle) {
  SIMGPU_CALL(call);
  return create_event(handle, cudaEventDefault);
}

SIMGPU_API cudaError_t cudaEventCreateWithFlags(cudaEvent_t* handle, unsigned flags) {
  SIMGPU_CALL(call);
  return create_event(handle, flags);
}

SIMGPU_API cudaError_t cudaEventDestroy(cudaEvent_t handle) {
  SIMGPU_CALL(call);
  if (handle == nullptr) return failed(cudaErrorInvalidResourceHandle);
  delete &event_of(handle);
  return cudaSuccess;
}

SIMGPU_API cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t stream) {
  SIMGPU_CALL(call);
  return record(handle, stream);
}

SIMGPU_API cudaError_t cudaEventRecordWithFlags(cudaEvent_t handle, cudaStream_t stream,
                                                unsigned /*flags*/) {
  SIMGPU_CALL(call);
  return record(handle, stream);
}

SIMGPU_API cudaError_t cudaEventQuery(cudaEvent_t handle) {
  SIMGPU_CALL(call);
  if (handle == nullptr) return failed(cudaErrorInvalidResourceHandle);
  return machine().reached(event_of(handle).time_ns.load()) ? cudaSuccess : cudaErrorNotReady;
}

SIMGPU_API cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  SIMGPU_CALL(call);
  if (handle == nullptr) return failed(cudaErrorInvalidResourceHandle);
  machine().wait_until(event_of(handle).time_ns.load());
  return cudaSuccess;
}

SIMGPU_API cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start,
                                            cudaEvent_t end) {
  SIMGPU_CALL(call);
  if (milliseconds == nullptr) return failed(cudaErrorInvalidValue);
  if (start == nullptr || end == nullptr) return failed(cudaErrorInvalidResourceHandle);
  const Event& first = event_of(start);
  const Event& last = event_of(end);
  const std::uint64_t from_ns = first.time_ns.load();
  const std::uint64_t to_ns = last.time_ns.load();
  const bool timed = ((first.flags | last.flags) & cudaEventDisableTiming) == 0;
  if (!timed || from_ns == 0 || to_ns == 0) return failed(cudaErrorInvalidResourceHandle);
  const std::uint64_t now_ns = machine().clock().now();
  if (from_ns > now_ns || to_ns > now_ns) return failed(cudaErrorNotReady);
  *milliseconds =
      static_cast<float>((static_cast<double>(to_ns) - static_cast<double>(from_ns)) * 1e-6);
  return cudaSuccess;
}
