#include "activity/cupti_library.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdlib>
#include <string_view>
#include <vector>

namespace layertrace::cuda {
namespace {

// The names under which it comes: of CUDA 13 and 12.
constexpr const char* kNames[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so"};

template <typename Function>
bool bind(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

// The folder of libtorch_cuda or, without it, of libtorch_cpu, "" where neither is loaded.
std::string torch_folder() {
  std::string folder;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t /*size*/, void* data) {
        const std::string_view name = info->dlpi_name != nullptr ? info->dlpi_name : "";
        const std::size_t slash = name.rfind('/');
        if (slash == std::string_view::npos || name.substr(slash) != "/libtorch_cpu.so") return 0;
        *static_cast<std::string*>(data) = name.substr(0, slash);
        return 1;
      },
      &folder);
  return folder;
}

std::vector<std::string> places() {
  std::vector<std::string> paths;
  for (const char* name : kNames) {
    if (const std::string folder = torch_folder(); !folder.empty()) {
      for (const char* wheel : {"cu13", "cuda_cupti"})
        paths.push_back(folder + "/../../nvidia/" + wheel + "/lib/" + name);
    }
    for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
      if (const char* home = std::getenv(variable))
        paths.push_back(std::string(home) + "/extras/CUPTI/lib64/" + name);
    }
    paths.push_back(std::string("/usr/local/cuda/extras/CUPTI/lib64/") + name);
    paths.emplace_back(name);
  }
  if (const char* own = std::getenv("LAYERTRACE_CUPTI")) paths.emplace_back(own);
  return paths;
}

void* open_library() {
  for (const char* name : kNames) {
    if (void* loaded = dlopen(name, RTLD_LAZY | RTLD_NOLOAD)) return loaded;
  }
  for (const std::string& path : places()) {
    if (void* library = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL)) return library;
  }
  return nullptr;
}

Error cannot(std::string cause, std::string remedy) {
  return {"cannot record what the GPU does", std::move(cause), std::move(remedy)};
}

Result<CuptiLibrary> load_library() {
  void* library = open_library();
  if (library == nullptr) {
    return cannot("CUPTI was not found",
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
  Dl_info info{};
  if (cupti.get_version != nullptr &&
      dladdr(reinterpret_cast<void*>(cupti.get_version), &info) != 0 && info.dli_fname != nullptr)
    cupti.path = info.dli_fname;
  if (!complete || cupti.get_version(&cupti.version) != CUPTI_SUCCESS) {
    return cannot("the CUPTI in " + cupti.path + " is not complete",
                  "Install one of CUDA 12 or 13, and say where it is by LAYERTRACE_CUPTI");
  }
  constexpr std::uint32_t kOldest = 18;  // of CUDA 12.0
  if (cupti.version < kOldest) {
    return cannot("the CUPTI in " + cupti.path + " is of version " + std::to_string(cupti.version) +
                      ", from before CUDA 12",
                  "Install one of CUDA 12 or 13, and say where it is by LAYERTRACE_CUPTI");
  }
  return cupti;
}

}  // namespace

const Result<CuptiLibrary>& CuptiLibrary::load() {
  static const auto* const kLoaded = new Result<CuptiLibrary>(load_library());
  return *kLoaded;
}

}  // namespace layertrace::cuda
