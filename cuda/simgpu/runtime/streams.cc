// Streams and events.
#include <algorithm>

#include "runtime/api.h"
#include "runtime/capture.h"

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
  auto* stream = new Stream;
  stream->device = device.number;
  stream->queue = device.timeline.add_stream(/*blocking=*/flags == cudaStreamDefault);
  stream->id = machine().new_stream_id();
  stream->priority = std::min(kLeastPriority, std::max(kGreatestPriority, priority));
  stream->flags = flags;
  machine().tell({.kind = simgpu::ResourceChange::Kind::kStreamCreated,
                  .device = device.number,
                  .stream = stream});
  *handle = reinterpret_cast<cudaStream_t>(stream);
  return cudaSuccess;
}

bool is_default(cudaStream_t handle) {
  return handle == nullptr || handle == cudaStreamLegacy || handle == cudaStreamPerThread;
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
  event->id = machine().new_event_id();
  *handle = reinterpret_cast<cudaEvent_t>(event);
  return cudaSuccess;
}

cudaError_t record(const simgpu::Call& call, cudaEvent_t handle, cudaStream_t stream_handle,
                   bool external) {
  if (handle == nullptr) return failed(cudaErrorInvalidResourceHandle);
  Event& event = event_of(handle);
  Stream& stream = stream_of(stream_handle);
  if (event.device != stream.device) return failed(cudaErrorInvalidResourceHandle);
  if (is_capturing(stream)) return keep_record(stream, event, external);
  if (const cudaError_t error = simgpu::allowed_on(stream); error != cudaSuccess)
    return failed(error);
  event.capture_id = 0;
  event.record_id = call.correlation();
  const std::uint64_t time_ns = timeline_of(stream).mark(stream.queue, machine().clock().now());
  event.time_ns.store(time_ns);
  machine().set_dues(event, stream, time_ns);
  if (simgpu::Observer* observer = machine().observer())
    observer->on_event({stream.device, stream.id, event.id, call.correlation(), time_ns});
  return cudaSuccess;
}

}  // namespace

SIMGPU_API cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  SIMGPU_CALL(call, cudaDeviceGetStreamPriorityRange_v5050, least, greatest);
  if (least != nullptr) *least = kLeastPriority;
  if (greatest != nullptr) *greatest = kGreatestPriority;
  return cudaSuccess;
}

SIMGPU_API cudaError_t cudaStreamCreate(cudaStream_t* handle) {
  SIMGPU_CALL(call, cudaStreamCreate_v3020, handle);
  return create_stream(handle, cudaStreamDefault, kLeastPriority);
}

SIMGPU_API cudaError_t cudaStreamCreateWithFlags(cudaStream_t* handle, unsigned flags) {
  SIMGPU_CALL(call, cudaStreamCreateWithFlags_v5000, handle, flags);
  return create_stream(handle, flags, kLeastPriority);
}

SIMGPU_API cudaError_t cudaStreamCreateWithPriority(cudaStream_t* handle, unsigned flags,
                                                    int priority) {
  SIMGPU_CALL(call, cudaStreamCreateWithPriority_v5050, handle, flags, priority);
  return create_stream(handle, flags, priority);
}

// What is in it runs to its end.
SIMGPU_API cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  SIMGPU_CALL(call, cudaStreamDestroy_v5050, handle);
  if (is_default(handle)) return failed(cudaErrorInvalidResourceHandle);
  Stream& stream = stream_of(handle);
  if (is_capturing(stream)) return failed(cudaErrorStreamCaptureUnsupported);
  machine().tell({.kind = simgpu::ResourceChange::Kind::kStreamGoes,
                  .device = stream.device,
                  .stream = &stream});
  timeline_of(stream).remove_stream(stream.queue);
  delete &stream;
  return cudaSuccess;
}

SIMGPU_API cudaError_t cudaStreamGetPriority(cudaStream_t handle, int* priority) {
  SIMGPU_CALL(call, cudaStreamGetPriority_v5050, handle, priority);
  if (priority == nullptr) return failed(cudaErrorInvalidValue);
  *priority = stream_of(handle).priority;
  return cudaSuccess;
}

SIMGPU_API cudaError_t cudaStreamQuery(cudaStream_t handle) {
  SIMGPU_CALL(call, cudaStreamQuery_v3020, handle);
  const Stream& stream = stream_of(handle);
  if (const cudaError_t error = simgpu::allowed_on(stream); error != cudaSuccess)
    return failed(error);
  const std::uint64_t idle_ns = timeline_of(stream).idle_at(stream.queue);
  return machine().reached(idle_ns, machine().dues_of(stream, idle_ns))
             ? cudaSuccess
             : simgpu::answered(cudaErrorNotReady);
}

SIMGPU_API cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  SIMGPU_CALL(call, cudaStreamSynchronize_v3020, handle);
  const Stream& stream = stream_of(handle);
  if (const cudaError_t error = simgpu::allowed_on(stream); error != cudaSuccess)
    return failed(error);
  simgpu::synchronize(call,
                      {.kind = simgpu::Synchronization::Kind::kStream,
                       .device = stream.device,
                       .stream_id = stream.id},
                      [&] {
                        const std::uint64_t idle_ns = timeline_of(stream).idle_at(stream.queue);
                        machine().wait_until(idle_ns, machine().dues_of(stream, idle_ns));
                      });
  return cudaSuccess;
}

SIMGPU_API cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned flags) {
  SIMGPU_CALL(call, cudaStreamWaitEvent_v3020, handle, event, flags);
  if (event == nullptr) return failed(cudaErrorInvalidResourceHandle);
  Stream& stream = stream_of(handle);
  Event& awaited = event_of(event);
  if (is_capturing(stream) || awaited.capture_id != 0)
    return keep_wait(stream, awaited, (flags & cudaEventWaitExternal) != 0);
  if (const cudaError_t error = simgpu::allowed_on(stream); error != cudaSuccess)
    return failed(error);
  timeline_of(stream).wait(stream.queue, awaited.time_ns.load());
  machine().add_dues(stream, awaited);
  if (simgpu::Observer* observer = machine().observer()) {
    const std::uint64_t now_ns = machine().clock().now();
    observer->on_synchronization({.kind = simgpu::Synchronization::Kind::kStreamWait,
                                  .device = stream.device,
                                  .stream_id = stream.id,
                                  .event_id = awaited.id,
                                  .event_record_id = awaited.record_id,
                                  .correlation = call.correlation(),
                                  .start_ns = now_ns,
                                  .end_ns = now_ns});
  }
  return cudaSuccess;
}

SIMGPU_API cudaError_t cudaEventCreate(cudaEvent_t* handle) {
  SIMGPU_CALL(call, cudaEventCreate_v3020, handle);
  return create_event(handle, cudaEventDefault);
}

SIMGPU_API cudaError_t cudaEventCreateWithFlags(cudaEvent_t* handle, unsigned flags) {
  SIMGPU_CALL(call, cudaEventCreateWithFlags_v3020, handle, flags);
  return create_event(handle, flags);
}

SIMGPU_API cudaError_t cudaEventDestroy(cudaEvent_t handle) {
  SIMGPU_CALL(call, cudaEventDestroy_v3020, handle);
  if (handle == nullptr) return failed(cudaErrorInvalidResourceHandle);
  delete &event_of(handle);
  return cudaSuccess;
}

SIMGPU_API cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t stream) {
  SIMGPU_CALL(call, cudaEventRecord_v3020, handle, stream);
  return record(call, handle, stream, /*external=*/false);
}

SIMGPU_API cudaError_t cudaEventRecordWithFlags(cudaEvent_t handle, cudaStream_t stream,
                                                unsigned flags) {
  SIMGPU_CALL(call, cudaEventRecordWithFlags_v11010, handle, stream, flags);
  return record(call, handle, stream, (flags & cudaEventRecordExternal) != 0);
}

SIMGPU_API cudaError_t cudaEventQuery(cudaEvent_t handle) {
  SIMGPU_CALL(call, cudaEventQuery_v3020, handle);
  if (handle == nullptr) return failed(cudaErrorInvalidResourceHandle);
  if (const cudaError_t error = simgpu::allowed_on(event_of(handle)); error != cudaSuccess)
    return failed(error);
  const Event& event = event_of(handle);
  return machine().reached(event.time_ns.load(), machine().dues_of(event))
             ? cudaSuccess
             : simgpu::answered(cudaErrorNotReady);
}

SIMGPU_API cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  SIMGPU_CALL(call, cudaEventSynchronize_v3020, handle);
  if (handle == nullptr) return failed(cudaErrorInvalidResourceHandle);
  const Event& event = event_of(handle);
  if (const cudaError_t error = simgpu::allowed_on(event); error != cudaSuccess)
    return failed(error);
  simgpu::synchronize(
      call,
      {.kind = simgpu::Synchronization::Kind::kEvent,
       .device = event.device,
       .event_id = event.id,
       .event_record_id = event.record_id},
      [&] { machine().wait_until(event.time_ns.load(), machine().dues_of(event)); });
  return cudaSuccess;
}

SIMGPU_API cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start,
                                            cudaEvent_t end) {
  SIMGPU_CALL(call, cudaEventElapsedTime_v12080, milliseconds, start, end);
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
