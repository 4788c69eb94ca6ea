// What every function of the runtime's face has in common: the thread's device and last error, and
// what a handle stands for.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "core/machine.h"

// The program's side: everything else in the library is hidden.
#define SIMGPU_API extern "C" __attribute__((visibility("default")))

namespace simgpu {

struct Event {
  int device = 0;
  unsigned flags = 0;
  std::atomic<std::uint64_t> time_ns{0};  // when it happens; 0: never recorded
};

struct ThreadState {
  int device = 0;
  cudaError_t last_error = cudaSuccess;
};
ThreadState& this_thread() noexcept;

inline Machine& machine() { return Machine::instance(); }

// Sets the thread's last error, as every function that fails does, and gives it back.
cudaError_t failed(cudaError_t error) noexcept;

// One call of the program into the runtime.
class Call {
 public:
  Call();
  // cudaSuccess, or why nothing works on this machine: no device, or it was lost.
  cudaError_t usable() const noexcept { return usable_; }
  std::uint32_t correlation() const noexcept { return correlation_; }

 private:
  std::uint32_t correlation_;
  cudaError_t usable_ = cudaSuccess;
};

inline Device& current_device() { return machine().device(this_thread().device); }
inline bool is_device(int number) { return number >= 0 && number < machine().device_count(); }

// The stream behind a handle: the two default streams are the current device's.
Stream& stream_of(cudaStream_t handle);
inline Event& event_of(cudaEvent_t handle) { return *reinterpret_cast<Event*>(handle); }

}  // namespace simgpu

// The beginning of most functions. NOLINTBEGIN(bugprone-macro-parentheses): it declares a name
#define SIMGPU_CALL(call)    \
  const ::simgpu::Call call; \
  if (call.usable() != cudaSuccess) return ::simgpu::failed(call.usable())
// NOLINTEND(bugprone-macro-parentheses)
