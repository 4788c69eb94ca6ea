#include "activity/cupti_library.h"

#include <dlfcn.h>

#include <algorithm>
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

// Without a driver, CUPTI 13.2 looks for it, fails, and reports so by a function that looks for it:
// until the stack is full. Seen of cuptiGetVersion and cuptiGetResultString.
bool has_driver() { return dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL) != nullptr; }

}  // namespace

bool CuptiLibrary::bind_all(void* library) {
  const bool complete = bind(library, "cuptiGetVersion", get_version) &&
                        bind(library, "cuptiActivityRegisterCallbacks", register_callbacks) &&
                        bind(library, "cuptiActivityEnable", enable) &&
                        bind(library, "cuptiActivityDisable", disable) &&
                        bind(library, "cuptiActivityFlushAll", flush_all) &&
                        bind(library, "cuptiActivityGetNextRecord", next_record) &&
                        bind(library, "cuptiActivityGetNumDroppedRecords", dropped_records) &&
                        bind(library, "cuptiActivityPushExternalCorrelationId", push_id) &&
                        bind(library, "cuptiActivityPopExternalCorrelationId", pop_id) &&
                        bind(library, "cuptiSubscribe", subscribe) &&
                        bind(library, "cuptiUnsubscribe", unsubscribe) &&
                        bind(library, "cuptiGetTimestamp", get_timestamp) &&
                        bind(library, "cuptiEnableCallback", enable_callback) &&
                        bind(library, "cuptiGetCallbackName", callback_name) &&
                        bind(library, "cuptiGetGraphNodeId", graph_node_id);
  bind(library, "cuptiActivityRegisterTimestampCallback", register_timestamp_callback);
  bind(library, "cuptiActivityEnableRuntimeApi", enable_runtime_call);
  bind(library, "cuptiActivityEnableDriverApi", enable_driver_call);
  bind(library, "cuptiGetStreamIdEx", stream_id);
  bind(library, "cuptiSetThreadIdType", set_thread_id_type);
  bind(library, "cuptiGetThreadIdType", get_thread_id_type);
  path = path_of_library(library);
  return complete;
}

// "" if it serves.
std::string CuptiLibrary::unfit_because() {
  constexpr std::uint32_t kOldest = 19;  // of CUDA 12.0
  if (get_version(&version) != CUPTI_SUCCESS)
    return "the CUPTI in " + path + " does not tell its version";
  if (version >= kOldest) return "";
  return "the CUPTI in " + path + " is of version " + std::to_string(version) +
         ", from before CUDA 12";
}

std::string CuptiLibrary::path_beside(const std::string& torch_folder) {
  CuptiLibrary cupti;
  void* found = open_library(kCupti, loaded_libraries(), places(torch_folder), [&](void* library) {
    cupti = {};
    return cupti.bind_all(library);
  });
  return found != nullptr ? cupti.path : "";
}

Result<CuptiLibrary> CuptiLibrary::find(const std::string& torch_folder) {
  if (!has_driver())
    return cannot("there is no driver: libcuda.so.1 was not found", "Install NVIDIA's driver");
  auto found = find_among(loaded_libraries(), places(torch_folder));
  const char* own = environment_variable("LAYERTRACE_CUPTI");
  if (found || own == nullptr || dlopen(own, RTLD_LAZY | RTLD_LOCAL) != nullptr) return found;
  Error error = found.error();
  error.cause += std::string("; LAYERTRACE_CUPTI: ") + dlerror();
  return error;
}

Result<CuptiLibrary> CuptiLibrary::find_among(const std::vector<std::string>& loaded,
                                              const std::vector<std::string>& places) {
  CuptiLibrary cupti;
  std::vector<std::string> unfit;  // the same library may have several names
  const auto serves = [&](void* library) {
    cupti = {};
    const std::string why = cupti.bind_all(library)
                                ? cupti.unfit_because()
                                : "the CUPTI in " + cupti.path + " is not complete";
    if (!why.empty() && std::ranges::find(unfit, why) == unfit.end()) unfit.push_back(why);
    return why.empty();
  };
  if (open_library(kCupti, loaded, places, serves) != nullptr) return cupti;
  if (unfit.empty()) {
    return cannot(kNotFound,
                  "Install it (pip install nvidia-cuda-cupti, or the CUDA toolkit), or say where "
                  "it is by LAYERTRACE_CUPTI");
  }
  std::string cause;
  for (const std::string& why : unfit) cause += (cause.empty() ? "" : "; ") + why;
  return cannot(cause, "Install one of CUDA 12 or 13, and say where it is by LAYERTRACE_CUPTI");
}

const Result<CuptiLibrary>& CuptiLibrary::load() {
  static const auto* const kLoaded =
      new Result<CuptiLibrary>(find(torch_folder_of(loaded_libraries())));
  return *kLoaded;
}

}  // namespace layertrace::cuda
