// For stand-ins of libraries that have kernels of their own: a launch whose name and cost they
// know. It is told as the cudaLaunchKernel that such a library would make.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace simgpu {

struct KnownLaunch {
  const char* name = "";  // copied
  dim3 grid;
  dim3 block;
  std::size_t shared_bytes = 0;
  cudaStream_t stream = nullptr;
  std::uint64_t duration_ns = 0;  // 0: as its grid, block and name tell
};
__attribute__((visibility("default"))) cudaError_t launch(const KnownLaunch& launch);

}  // namespace simgpu
