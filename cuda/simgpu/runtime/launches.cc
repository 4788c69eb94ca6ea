// Kernels: how the compiler's code makes them known, and how they are launched. None computes
// anything; each takes its time.
#include <utility>
#include <vector>

#include "runtime/api.h"

using simgpu::failed;
using simgpu::machine;
using simgpu::stream_of;

namespace {

struct Configuration {
  dim3 grid;
  dim3 block;
  std::size_t shared_bytes = 0;
  cudaStream_t stream = nullptr;
};

std::vector<Configuration>& configurations() {
  static thread_local std::vector<Configuration> stack;
  return stack;
}

bool is_launchable(const dim3& grid, const dim3& block, std::size_t shared_bytes) {
  constexpr std::uint64_t kMostThreads = 1024;
  constexpr std::uint64_t kMostDeep = 64;
  constexpr unsigned kLongestSide = 65535;
  const std::uint64_t threads = std::uint64_t{block.x} * block.y * block.z;
  const bool empty = threads == 0 || grid.x == 0 || grid.y == 0 || grid.z == 0;
  return !empty && threads <= kMostThreads && block.z <= kMostDeep && grid.y <= kLongestSide &&
         grid.z <= kLongestSide &&
         std::cmp_less_equal(shared_bytes, machine().profile().shared_bytes_per_block_optin);
}

cudaError_t launch(const simgpu::Call& call, const void* function, const dim3& grid,
                   const dim3& block, std::size_t shared_bytes, cudaStream_t stream) {
  const char* name = machine().kernel_name(function);
  if (name == nullptr) return failed(cudaErrorInvalidDeviceFunction);
  if (!is_launchable(grid, block, shared_bytes)) return failed(cudaErrorInvalidConfiguration);
  if (!machine().count_launch()) return failed(cudaErrorLaunchFailure);
  simgpu::Activity kernel;
  kernel.name = name;
  kernel.correlation = call.correlation();
  kernel.grid[0] = grid.x;
  kernel.grid[1] = grid.y;
  kernel.grid[2] = grid.z;
  kernel.block[0] = block.x;
  kernel.block[1] = block.y;
  kernel.block[2] = block.z;
  kernel.shared_bytes = static_cast<std::uint32_t>(shared_bytes);
  const simgpu::KernelShape shape{.blocks = std::uint64_t{grid.x} * grid.y * grid.z,
                                  .threads = std::uint64_t{block.x} * block.y * block.z};
  machine().run_kernel(stream_of(stream), kernel,
                       simgpu::kernel_ns(machine().profile(), name, shape));
  return cudaSuccess;
}

}  // namespace

// ---- What the compiler's code calls while a program is loaded ----

SIMGPU_API void** __cudaRegisterFatBinary(void* /*binary*/) {
  static void* handle = nullptr;
  return &handle;
}
SIMGPU_API void __cudaRegisterFatBinaryEnd(void** /*handle*/) {}
SIMGPU_API void __cudaUnregisterFatBinary(void** /*handle*/) {}

SIMGPU_API void __cudaRegisterFunction(void** /*handle*/, const char* function, char* /*device*/,
                                       const char* name, int /*thread_limit*/, uint3* /*tid*/,
                                       uint3* /*bid*/, dim3* /*block*/, dim3* /*grid*/,
                                       int* /*warp*/) {
  machine().add_kernel(function, name);
}

SIMGPU_API unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared_bytes,
                                                cudaStream_t stream) {
  configurations().push_back({grid, block, shared_bytes, stream});
  return 0;
}

SIMGPU_API cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block,
                                                  std::size_t* shared_bytes, void* stream) {
  if (configurations().empty()) return failed(cudaErrorMissingConfiguration);
  const Configuration top = configurations().back();
  configurations().pop_back();
  *grid = top.grid;
  *block = top.block;
  *shared_bytes = top.shared_bytes;
  *static_cast<cudaStream_t*>(stream) = top.stream;
  return cudaSuccess;
}

SIMGPU_API cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  *kernel = static_cast<cudaKernel_t>(const_cast<void*>(function));
  return cudaSuccess;
}

// ---- What the program calls ----

SIMGPU_API cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block,
                                        void** /*arguments*/, std::size_t shared_bytes,
                                        cudaStream_t stream) {
  SIMGPU_CALL(call);
  return launch(call, function, grid, block, shared_bytes, stream);
}

SIMGPU_API cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block,
                                          void** /*arguments*/, std::size_t shared_bytes,
                                          cudaStream_t stream) {
  SIMGPU_CALL(call);
  return launch(call, kernel, grid, block, shared_bytes, stream);
}

SIMGPU_API cudaError_t cudaLaunchCooperativeKernel(const void* function, dim3 grid, dim3 block,
                                                   void** /*arguments*/, std::size_t shared_bytes,
                                                   cudaStream_t stream) {
  SIMGPU_CALL(call);
  return launch(call, function, grid, block, shared_bytes, stream);
}

SIMGPU_API cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function,
                                           void** /*arguments*/) {
  SIMGPU_CALL(call);
  if (config == nullptr) return failed(cudaErrorInvalidValue);
  return launch(call, function, config->gridDim, config->blockDim, config->dynamicSmemBytes,
                config->stream);
}

// ---- What a kernel is ----

SIMGPU_API cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* function) {
  SIMGPU_CALL(call);
  if (attributes == nullptr) return failed(cudaErrorInvalidValue);
  if (machine().kernel_name(function) == nullptr) return failed(cudaErrorInvalidDeviceFunction);
  const simgpu::DeviceProfile& profile = machine().profile();
  constexpr int kThreadsPerBlock = 1024;
  constexpr int kRegisters = 32;
  constexpr int kDefaultShared = 48 << 10;
  *attributes = {};
  attributes->maxThreadsPerBlock = kThreadsPerBlock;
  attributes->numRegs = kRegisters;
  attributes->binaryVersion = attributes->ptxVersion = 10 * profile.major + profile.minor;
  attributes->maxDynamicSharedSizeBytes = kDefaultShared;
  attributes->preferredShmemCarveout = -1;
  return cudaSuccess;
}

SIMGPU_API cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute attribute,
                                            int value) {
  SIMGPU_CALL(call);
  if (machine().kernel_name(function) == nullptr) return failed(cudaErrorInvalidDeviceFunction);
  if (attribute == cudaFuncAttributeMaxDynamicSharedMemorySize &&
      (value < 0 || value > machine().profile().shared_bytes_per_block_optin))
    return failed(cudaErrorInvalidValue);
  return cudaSuccess;
}

SIMGPU_API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int* blocks, const void* /*function*/, int threads, std::size_t shared_bytes,
    unsigned /*flags*/) {
  SIMGPU_CALL(call);
  if (blocks == nullptr || threads <= 0) return failed(cudaErrorInvalidValue);
  const simgpu::DeviceProfile& profile = machine().profile();
  int most =
      std::min(profile.blocks_per_multiprocessor, profile.threads_per_multiprocessor / threads);
  constexpr std::size_t kReserved = 1 << 10;
  const auto shared = static_cast<std::size_t>(profile.shared_bytes_per_multiprocessor);
  most = std::min(most, static_cast<int>(shared / (shared_bytes + kReserved)));
  *blocks = most;
  return cudaSuccess;
}

SIMGPU_API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks,
                                                                     const void* function,
                                                                     int threads,
                                                                     std::size_t shared_bytes) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, threads,
                                                                shared_bytes, 0);
}
