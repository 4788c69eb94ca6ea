#include "activity/cuda_runtime.h"

#include <dlfcn.h>

#include <initializer_list>

namespace layertrace::cuda {
namespace {

template <typename Function>
bool bind(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

// Whatever the program calls: what stands before the library in the lookup order (simgpu does),
// else the library that PyTorch has loaded.
void* find_library() {
  if (dlsym(RTLD_DEFAULT, "cudaEventRecord") != nullptr) return RTLD_DEFAULT;
  for (const char* name : {"libcudart.so.13", "libcudart.so.12", "libcudart.so"}) {
    if (void* library = dlopen(name, RTLD_LAZY | RTLD_NOLOAD)) return library;
  }
  return nullptr;
}

const CudaRuntime* load_runtime() {
  void* library = find_library();
  if (library == nullptr && dlsym(RTLD_DEFAULT, "cudaEventRecord") == nullptr) return nullptr;
  auto* runtime = new CudaRuntime;  // never destroyed: needed while the program exits
  const bool complete =
      bind(library, "cudaGetDeviceCount", runtime->get_device_count) &&
      bind(library, "cudaGetDevice", runtime->get_device) &&
      bind(library, "cudaSetDevice", runtime->set_device) &&
      bind(library, "cudaDeviceSynchronize", runtime->synchronize) &&
      bind(library, "cudaGetLastError", runtime->get_last_error) &&
      bind(library, "cudaEventCreateWithFlags", runtime->create_event) &&
      bind(library, "cudaEventDestroy", runtime->destroy_event) &&
      bind(library, "cudaEventRecord", runtime->record_event) &&
      bind(library, "cudaEventQuery", runtime->query_event) &&
      bind(library, "cudaEventElapsedTime", runtime->elapsed_ms) &&
      bind(library, "cudaStreamIsCapturing", runtime->is_capturing) &&
      bind(library, "cudaThreadExchangeStreamCaptureMode", runtime->exchange_capture_mode);
  return complete ? runtime : nullptr;
}

}  // namespace

const CudaRuntime* CudaRuntime::load() {
  static const CudaRuntime* const kLoaded = load_runtime();
  return kLoaded;
}

}  // namespace layertrace::cuda
