// Kernels: how the compiler's code makes them known, and how they are launched. None computes
// anything; each takes its time.
#include <utility>
#include <vector>

#include "runtime/api.h"
#include "runtime/capture.h"
#include "runtime/known_launch.h"

using simgpu::failed;
using simgpu::machine;
using simgpu::stream_of;

namespace {

using simgpu::Kernel;

const char* name_of(const Kernel* kernel) { return kernel != nullptr ? kernel->name : nullptr; }

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

cudaError_t launch(const simgpu::Call& call, const Kernel* known, const dim3& grid,
                   const dim3& block, std::size_t shared_bytes, cudaStream_t stream,
                   std::uint64_t duration_ns = 0) {
  if (known == nullptr) return failed(cudaErrorInvalidDeviceFunction);
  if (!is_launchable(grid, block, shared_bytes)) return failed(cudaErrorInvalidConfiguration);
  if (!machine().count_launch()) return failed(cudaErrorLaunchFailure);
  const simgpu::KernelShape shape{.blocks = std::uint64_t{grid.x} * grid.y * grid.z,
                                  .threads = std::uint64_t{block.x} * block.y * block.z};
  simgpu::Task task = machine().kernel(*known, shape);
  if (duration_ns != 0) task.duration_ns = duration_ns;
  simgpu::Activity& kernel = task.activity;
  kernel.grid[0] = grid.x;
  kernel.grid[1] = grid.y;
  kernel.grid[2] = grid.z;
  kernel.block[0] = block.x;
  kernel.block[1] = block.y;
  kernel.block[2] = block.z;
  kernel.shared_bytes = static_cast<std::uint32_t>(shared_bytes);
  std::uint64_t end_ns = 0;
  return simgpu::submit(call, stream_of(stream), task, [] {}, &end_ns);
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
                                        void** arguments, std::size_t shared_bytes,
                                        cudaStream_t stream) {
  const Kernel* known = machine().find_kernel(function);
  SIMGPU_LAUNCH(call, name_of(known), cudaLaunchKernel_v7000, function, grid, block, arguments,
                shared_bytes, stream);
  return launch(call, known, grid, block, shared_bytes, stream);
}

SIMGPU_API cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block,
                                          void** arguments, std::size_t shared_bytes,
                                          cudaStream_t stream) {
  const Kernel* known = machine().find_kernel(kernel);
  SIMGPU_LAUNCH(call, name_of(known), cudaLaunchKernel_v7000, kernel, grid, block, arguments,
                shared_bytes, stream);
  return launch(call, known, grid, block, shared_bytes, stream);
}

SIMGPU_API cudaError_t cudaLaunchCooperativeKernel(const void* function, dim3 grid, dim3 block,
                                                   void** arguments, std::size_t shared_bytes,
                                                   cudaStream_t stream) {
  const Kernel* known = machine().find_kernel(function);
  SIMGPU_LAUNCH(call, name_of(known), cudaLaunchCooperativeKernel_v9000, function, grid, block,
                arguments, shared_bytes, stream);
  return launch(call, known, grid, block, shared_bytes, stream);
}

SIMGPU_API cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function,
                                           void** arguments) {
  const Kernel* known = machine().find_kernel(function);
  SIMGPU_LAUNCH(call, name_of(known), cudaLaunchKernelExC_v11060, config, function, arguments);
  if (config == nullptr) return failed(cudaErrorInvalidValue);
  return launch(call, known, config->gridDim, config->blockDim, config->dynamicSmemBytes,
                config->stream);
}

cudaError_t simgpu::launch(const KnownLaunch& known) {
  const Kernel& kernel = machine().kernel_named(known.name);
  void** arguments = nullptr;
  SIMGPU_LAUNCH(call, kernel.name, cudaLaunchKernel_v7000, kernel.name, known.grid, known.block,
                arguments, known.shared_bytes, known.stream);
  return ::launch(call, &kernel, known.grid, known.block, known.shared_bytes, known.stream,
                  known.duration_ns);
}

// ---- What a kernel is ----

SIMGPU_API cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* function) {
  SIMGPU_CALL(call, cudaFuncGetAttributes_v3020, attributes, function);
  if (attributes == nullptr) return failed(cudaErrorInvalidValue);
  if (machine().find_kernel(function) == nullptr) return failed(cudaErrorInvalidDeviceFunction);
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
  SIMGPU_CALL(call, cudaFuncSetAttribute_v9000, function, attribute, value);
  if (machine().find_kernel(function) == nullptr) return failed(cudaErrorInvalidDeviceFunction);
  if (attribute == cudaFuncAttributeMaxDynamicSharedMemorySize &&
      (value < 0 || value > machine().profile().shared_bytes_per_block_optin))
    return failed(cudaErrorInvalidValue);
  return cudaSuccess;
}

SIMGPU_API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int* blocks, const void* function, int threads, std::size_t shared_bytes, unsigned flags) {
  SIMGPU_CALL(call, cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags_v7000, blocks, function,
              threads, shared_bytes, flags);
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
