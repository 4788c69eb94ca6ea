// Functions of the program in a stream.
#include "runtime/api.h"

using simgpu::failed;
using simgpu::machine;
using simgpu::Stream;
using simgpu::stream_of;

namespace {

// What the stream takes for handing over to the host and back.
constexpr std::uint64_t kHandOverNs = 5'000;

simgpu::Slot place(const Stream& stream) {
  return machine()
      .device(stream.device)
      .timeline.enqueue(stream.queue, machine().clock().now(), kHandOverNs);
}

}  // namespace

SIMGPU_API cudaError_t cudaLaunchHostFunc(cudaStream_t handle, cudaHostFn_t function, void* data) {
  SIMGPU_CALL(call);
  if (function == nullptr) return failed(cudaErrorInvalidValue);
  machine().host_functions().add(place(stream_of(handle)).start_ns,
                                 [function, data] { function(data); });
  return cudaSuccess;
}

SIMGPU_API cudaError_t cudaStreamAddCallback(cudaStream_t handle, cudaStreamCallback_t callback,
                                             void* data, unsigned flags) {
  SIMGPU_CALL(call);
  if (callback == nullptr || flags != 0) return failed(cudaErrorInvalidValue);
  machine().host_functions().add(place(stream_of(handle)).start_ns, [handle, callback, data] {
    callback(handle, machine().lost() ? cudaErrorLaunchFailure : cudaSuccess, data);
  });
  return cudaSuccess;
}
