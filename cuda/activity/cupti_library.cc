#include "activity/cupti_library.h"

#include <dlfcn.h>

#include <utility>
#include <vector>

#include "activity/library_places.h"

namespace layertrace::cuda {
namespace {

template <typename Function>
bool bind(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

std::vector<std::string> places(const std::string& torch_folder) {
  std::vector<std::string> paths = library_places(kCupti, torch_folder, environment_variable);
  if (const char* own = environment_variable("LAYERTRACE_CUPTI")) paths.emplace_back(own);
  return paths;
}

Error cannot(std::string cause, std::string remedy) {
  return {"cannot record what the GPU does", std::move(cause), std::move(remedy)};
}

void* open_cupti(const std::string& torch_folder) {
  return open_library(kCupti, loaded_libraries(), places(torch_folder));
}

std::string path_of(void* function) {
  Dl_info info{};
  const bool known = function != nullptr && dladdr(function, &info) != 0;
  return known && info.dli_fname != nullptr ? info.dli_fname : "";
}

// Without a driver, CUPTI 13.2 looks for it, fails, and reports so by a function that looks for it:
// until the stack is full. Seen of cuptiGetVersion and cuptiGetResultString.
bool has_driver() { return dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL) != nullptr; }

}  // namespace

std::string CuptiLibrary::path_beside(const std::string& torch_folder) {
  void* library = open_cupti(torch_folder);
  return library != nullptr ? path_of(dlsym(library, "cuptiGetVersion")) : "";
}

Result<CuptiLibrary> CuptiLibrary::find(const std::string& torch_folder) {
  if (!has_driver())
    return cannot("there is no driver: libcuda.so.1 was not found", "Install NVIDIA's driver");
  void* library = open_cupti(torch_folder);
  if (library == nullptr) {
    return cannot(kNotFound,
                  "Install it (pip install nvidia-cuda-cupti, or the CUDA toolkit), or say where "
                  "it is by LAYERTRACE_CUPTI");
  }
  CuptiLibrary cupti;
  const bool complete = bind(library, "cuptiGetVersion", cupti.get_version) &&
                        bind(library, "cuptiActivityRegisterCallbacks", cupti.register_callbacks) &&
                        bind(library, "cuptiActivityEnable", cupti.enable) &&
                        bind(library, "cuptiActivityDisable", cupti.disable) &&
                        bind(library, "cuptiActivityFlushAll", cupti.flush_all) &&
                        bind(library, "cuptiActivityGetNextRecord", cupti.next_record) &&
                        bind(library, "cuptiActivityGetNumDroppedRecords", cupti.dropped_records) &&
                        bind(library, "cuptiActivityPushExternalCorrelationId", cupti.push_id) &&
                        bind(library, "cuptiActivityPopExternalCorrelationId", cupti.pop_id) &&
                        bind(library, "cuptiSubscribe", cupti.subscribe) &&
                        bind(library, "cuptiUnsubscribe", cupti.unsubscribe) &&
                        bind(library, "cuptiGetTimestamp", cupti.get_timestamp) &&
                        bind(library, "cuptiEnableCallback", cupti.enable_callback) &&
                        bind(library, "cuptiGetCallbackName", cupti.callback_name) &&
                        bind(library, "cuptiGetGraphNodeId", cupti.graph_node_id);
  bind(library, "cuptiActivityRegisterTimestampCallback", cupti.register_timestamp_callback);
  bind(library, "cuptiActivityEnableRuntimeApi", cupti.enable_runtime_call);
  bind(library, "cuptiActivityEnableDriverApi", cupti.enable_driver_call);
  bind(library, "cuptiGetStreamIdEx", cupti.stream_id);
  cupti.path = path_of(reinterpret_cast<void*>(cupti.get_version));
  if (!complete || cupti.get_version(&cupti.version) != CUPTI_SUCCESS) {
    return cannot("the CUPTI in " + cupti.path + " is not complete",
                  "Install one of CUDA 12 or 13, and say where it is by LAYERTRACE_CUPTI");
  }
  constexpr std::uint32_t kOldest = 19;  // of CUDA 12.0
  if (cupti.version < kOldest) {
    return cannot("the CUPTI in " + cupti.path + " is of version " + std::to_string(cupti.version) +
                      ", from before CUDA 12",
                  "Install one of CUDA 12 or 13, and say where it is by LAYERTRACE_CUPTI");
  }
  return cupti;
}

const Result<CuptiLibrary>& CuptiLibrary::load() {
  static const auto* const kLoaded =
      new Result<CuptiLibrary>(find(torch_folder_of(loaded_libraries())));
  return *kLoaded;
}

}  // namespace layertrace::cuda
