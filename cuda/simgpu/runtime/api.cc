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
  ThreadState& thread = this_thread();
  thread.result = error;
  if (error != cudaSuccess) thread.last_error = error;
  return error;
}

cudaError_t answered(cudaError_t answer) noexcept { return this_thread().result = answer; }

Call::Call(Api api, std::uint32_t id, const char* function, const void* parameters,
           const char* kernel) {
  ThreadState& thread = this_thread();
  thread.result = cudaSuccess;
  if (machine().device_count() == 0) usable_ = cudaErrorNoDevice;
  if (machine().lost()) usable_ = cudaErrorLaunchFailure;
  if (thread.depth++ != 0) return;
  if (usable_ == cudaSuccess) machine().enter_context(thread.device);
  thread.correlation = machine().new_correlation();
  machine().clock().charge(kCallNs);
  observer_ = machine().observer();
  if (observer_ == nullptr) return;
  call_.api = api;
  call_.id = id;
  call_.function = function;
  call_.parameters = parameters;
  call_.kernel = kernel;
  call_.correlation = thread.correlation;
  call_.device = thread.device;
  call_.entered_ns = machine().clock().now();
  thread.call = &call_;
  observer_->on_enter(call_);
}

Call::~Call() {
  ThreadState& thread = this_thread();
  --thread.depth;
  if (observer_ == nullptr) return;
  thread.call = nullptr;
  call_.result = thread.result;
  observer_->on_leave(call_);
}

Stream& stream_of(cudaStream_t handle) {
  if (handle == nullptr || handle == cudaStreamLegacy) return current_device().legacy_stream;
  if (handle == cudaStreamPerThread) return current_device().per_thread_stream;
  return *reinterpret_cast<Stream*>(handle);
}

void synchronize(const Call& call, Synchronization what, std::uint64_t until_ns) {
  what.start_ns = machine().clock().now();
  machine().wait_until(until_ns);
  if (Observer* observer = machine().observer()) {
    what.correlation = call.correlation();
    what.end_ns = machine().clock().now();
    observer->on_synchronization(what);
  }
}

}  // namespace simgpu

// An error that leaves the device unusable stays.
SIMGPU_API cudaError_t cudaGetLastError() {
  if (simgpu::machine().lost()) return simgpu::this_thread().last_error;
  return std::exchange(simgpu::this_thread().last_error, cudaSuccess);
}

SIMGPU_API cudaError_t cudaPeekAtLastError() { return simgpu::this_thread().last_error; }
