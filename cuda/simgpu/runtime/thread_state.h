// What the runtime keeps for each thread. The driver's and CUPTI's faces read it, too.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

// What other faces may use of the runtime's library.
#define SIMGPU_SHARED __attribute__((visibility("default")))

namespace simgpu {

struct ThreadState {
  int device = 0;
  cudaError_t last_error = cudaSuccess;
  cudaError_t result = cudaSuccess;  // of the call that runs
  cudaStreamCaptureMode capture_mode = cudaStreamCaptureModeGlobal;
  unsigned depth = 0;  // of calls: those that the runtime makes itself are not the program's
  std::uint32_t correlation = 0;
};
SIMGPU_SHARED ThreadState& this_thread() noexcept;

// The calling thread's own default stream on a device, made when it is first used.
struct Stream;
SIMGPU_SHARED Stream& own_stream(int device);

}  // namespace simgpu
