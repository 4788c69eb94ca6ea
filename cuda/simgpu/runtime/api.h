// What every function of the runtime's face has in common: the thread's device and last error, what
// a handle stands for, and that CUPTI is told of the call.
#pragma once

#include <cuda_runtime_api.h>

// CUPTI's numbers of the functions, and how it lays out their parameters.
#include <cupti_runtime_cbid.h>
#include <generated_cuda_runtime_api_meta.h>

#include <cstdint>

#include "core/face.h"
#include "core/machine.h"
#include "runtime/thread_state.h"

namespace simgpu {

inline Machine& machine() { return Machine::instance(); }

// Sets the thread's last error, as every function that fails does, and gives it back.
SIMGPU_SHARED cudaError_t failed(cudaError_t error) noexcept;
// For an answer that is none of the errors that are remembered.
cudaError_t answered(cudaError_t answer) noexcept;

// One call of the program into the runtime, or the driver.
class SIMGPU_SHARED Call {
 public:
  Call(Api api, std::uint32_t id, const char* function, const void* parameters,
       const char* kernel = nullptr);
  ~Call();
  Call(const Call&) = delete;  // it stands for a stretch of one thread's time
  Call& operator=(const Call&) = delete;

  // cudaSuccess, or why nothing works on this machine: no device, or it was lost.
  cudaError_t usable() const noexcept { return usable_; }
  std::uint32_t correlation() const noexcept { return this_thread().correlation; }

 private:
  ApiCall call_;
  Observer* observer_ = nullptr;
  cudaError_t usable_ = cudaSuccess;
};

inline Device& current_device() { return machine().device(this_thread().device); }
inline bool is_device(int number) { return number >= 0 && number < machine().device_count(); }

// The stream behind a handle: the two default streams are the current device's.
SIMGPU_SHARED Stream& stream_of(cudaStream_t handle);
inline Event& event_of(cudaEvent_t handle) { return *reinterpret_cast<Event*>(handle); }
inline Timeline& timeline_of(const Stream& stream) {
  return machine().device(stream.device).timeline;
}

// Tells what was waited for, by `wait`.
template <typename Wait>
void synchronize(const Call& call, Synchronization what, const Wait& wait) {
  what.start_ns = machine().clock().now();
  wait();
  if (Observer* observer = machine().observer()) {
    what.correlation = call.correlation();
    what.end_ns = machine().clock().now();
    observer->on_synchronization(what);
  }
}

}  // namespace simgpu

// The beginning of most functions: CUPTI's name of the function, and its parameters.
// NOLINTBEGIN(bugprone-macro-parentheses): they declare names
#define SIMGPU_LAUNCH(call, kernel, name, ...)                                            \
  const name##_params call##_parameters{__VA_ARGS__};                                     \
  const ::simgpu::Call call(::simgpu::Api::kRuntime, CUPTI_RUNTIME_TRACE_CBID_##name,     \
                            static_cast<const char*>(#name), &call##_parameters, kernel); \
  if (call.usable() != cudaSuccess) return ::simgpu::failed(call.usable())
#define SIMGPU_CALL(call, name, ...) SIMGPU_LAUNCH(call, nullptr, name, __VA_ARGS__)
// Of functions without any.
#define SIMGPU_PLAIN_CALL(call, name)                                                 \
  const ::simgpu::Call call(::simgpu::Api::kRuntime, CUPTI_RUNTIME_TRACE_CBID_##name, \
                            static_cast<const char*>(#name), nullptr);                \
  if (call.usable() != cudaSuccess) return ::simgpu::failed(call.usable())
// NOLINTEND(bugprone-macro-parentheses)
