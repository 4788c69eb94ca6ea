// The CUDA runtime of this process, bound while the program runs.
#pragma once

#include <cuda_runtime_api.h>

namespace layertrace::cuda {

struct CudaRuntime {
  decltype(&cudaGetDeviceCount) get_device_count = nullptr;
  decltype(&cudaGetDevice) get_device = nullptr;
  decltype(&cudaSetDevice) set_device = nullptr;
  decltype(&cudaDeviceSynchronize) synchronize = nullptr;
  decltype(&cudaGetLastError) get_last_error = nullptr;
  cudaError_t (*create_event)(cudaEvent_t*, unsigned) = nullptr;
  decltype(&cudaEventDestroy) destroy_event = nullptr;
  cudaError_t (*record_event)(cudaEvent_t, cudaStream_t) = nullptr;
  decltype(&cudaEventQuery) query_event = nullptr;
  decltype(&cudaEventElapsedTime) elapsed_ms = nullptr;
  decltype(&cudaStreamIsCapturing) is_capturing = nullptr;
  decltype(&cudaThreadExchangeStreamCaptureMode) exchange_capture_mode = nullptr;

  // nullptr where the program has no CUDA runtime, or one from before CUDA 12.
  static const CudaRuntime* load();

  // The calling thread is one of ours: what it asks does not disturb a capture on another.
  void stay_out_of_captures() const noexcept {
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    exchange_capture_mode(&mode);
  }
};

}  // namespace layertrace::cuda
