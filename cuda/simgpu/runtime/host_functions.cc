// Functions of the program in a stream.
#include <functional>
#include <memory>
#include <utility>

#include "runtime/api.h"
#include "runtime/capture.h"

using simgpu::failed;
using simgpu::machine;
using simgpu::Stream;
using simgpu::stream_of;

namespace {

// What the stream takes for handing over to the host and back.
constexpr std::uint64_t kHandOverNs = 5'000;

cudaError_t add(Stream& stream, std::function<void()> function) {
  if (is_capturing(stream)) {
    auto node = std::make_unique<simgpu::Node>();
    node->kind = simgpu::Node::Kind::kHost;
    node->task.duration_ns = kHandOverNs;
    node->effect = std::move(function);
    return simgpu::keep(stream, std::move(node));
  }
  if (const cudaError_t error = simgpu::allowed_on(stream); error != cudaSuccess)
    return failed(error);
  const simgpu::Slot slot =
      simgpu::timeline_of(stream).enqueue(stream.queue, machine().clock().now(), kHandOverNs);
  machine().call_later(stream, slot.start_ns, std::move(function));
  return cudaSuccess;
}

}  // namespace

SIMGPU_API cudaError_t cudaLaunchHostFunc(cudaStream_t handle, cudaHostFn_t function, void* data) {
  SIMGPU_CALL(call, cudaLaunchHostFunc_v10000, handle, function, data);
  if (function == nullptr) return failed(cudaErrorInvalidValue);
  return add(stream_of(handle), [function, data] { function(data); });
}

SIMGPU_API cudaError_t cudaStreamAddCallback(cudaStream_t handle, cudaStreamCallback_t callback,
                                             void* data, unsigned flags) {
  SIMGPU_CALL(call, cudaStreamAddCallback_v5000, handle, callback, data, flags);
  if (callback == nullptr || flags != 0) return failed(cudaErrorInvalidValue);
  return add(stream_of(handle), [handle, callback, data] {
    callback(handle, machine().lost() ? cudaErrorLaunchFailure : cudaSuccess, data);
  });
}
