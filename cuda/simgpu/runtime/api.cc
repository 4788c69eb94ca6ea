#include "runtime/api.h"

#include <utility>

namespace simgpu {
namespace {

// What a call takes on the virtual clock.
constexpr std::uint64_t kCallNs = 500;

}  // namespace

ThreadState& this_thread() noexcept {
  static thread_local ThreadState state;
  return state;
}

cudaError_t failed(cudaError_t error) noexcept {
  if (error != cudaSuccess) this_thread().last_error = error;
  return error;
}

Call::Call() : correlation_(machine().new_correlation()) {
  machine().clock().charge(kCallNs);
  if (machine().device_count() == 0) usable_ = cudaErrorNoDevice;
  if (machine().lost()) usable_ = cudaErrorLaunchFailure;
}

Stream& stream_of(cudaStream_t handle) {
  if (handle == nullptr || handle == cudaStreamLegacy) return current_device().legacy_stream;
  if (handle == cudaStreamPerThread) return current_device().per_thread_stream;
  return *reinterpret_cast<Stream*>(handle);
}

}  // namespace simgpu

SIMGPU_API cudaError_t cudaGetLastError() {
  return std::exchange(simgpu::this_thread().last_error, cudaSuccess);
}

SIMGPU_API cudaError_t cudaPeekAtLastError() { return simgpu::this_thread().last_error; }
