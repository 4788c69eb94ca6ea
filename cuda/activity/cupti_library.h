// CUPTI, bound while the program runs: of this process, of the wheel beside torch, of the CUDA
// toolkit, or where LAYERTRACE_CUPTI says, in this order. One that is too old or not complete is
// passed over. One build serves machines with and without a GPU.
#pragma once

#include <cupti.h>

#include <cstdint>
#include <string>
#include <vector>

#include <layertrace/result.h>

namespace layertrace::cuda {

struct CuptiLibrary {
  std::string path;
  std::uint32_t version = 0;

  decltype(&cuptiGetVersion) get_version = nullptr;
  decltype(&cuptiActivityRegisterCallbacks) register_callbacks = nullptr;
  decltype(&cuptiActivityEnable) enable = nullptr;
  decltype(&cuptiActivityDisable) disable = nullptr;
  decltype(&cuptiActivityFlushAll) flush_all = nullptr;
  decltype(&cuptiActivityGetNextRecord) next_record = nullptr;
  decltype(&cuptiActivityGetNumDroppedRecords) dropped_records = nullptr;
  decltype(&cuptiActivityPushExternalCorrelationId) push_id = nullptr;
  decltype(&cuptiActivityPopExternalCorrelationId) pop_id = nullptr;
  decltype(&cuptiSubscribe) subscribe = nullptr;
  decltype(&cuptiUnsubscribe) unsubscribe = nullptr;
  decltype(&cuptiGetTimestamp) get_timestamp = nullptr;
  decltype(&cuptiEnableCallback) enable_callback = nullptr;
  decltype(&cuptiGetCallbackName) callback_name = nullptr;
  decltype(&cuptiGetGraphNodeId) graph_node_id = nullptr;
  // Not in every version.
  decltype(&cuptiActivityRegisterTimestampCallback) register_timestamp_callback = nullptr;
  decltype(&cuptiActivityEnableRuntimeApi) enable_runtime_call = nullptr;
  decltype(&cuptiActivityEnableDriverApi) enable_driver_call = nullptr;
  decltype(&cuptiGetStreamIdEx) stream_id = nullptr;
  decltype(&cuptiSetThreadIdType) set_thread_id_type = nullptr;
  decltype(&cuptiGetThreadIdType) get_thread_id_type = nullptr;

  // What NVIDIA's release notes say of a version, as far as it matters to a client.
  // Before 12.9 a client that has no buffer to give crashes the program.
  bool wants_buffer_always() const noexcept { return version < kCuda129; }
  // From 12.6 to 13.0 kernels may come without times where the client gives the clock.
  bool takes_clock() const noexcept {
    return register_timestamp_callback != nullptr && (version < kCuda126 || version >= kCuda131);
  }
  static constexpr std::uint32_t kCuda126 = 24;
  static constexpr std::uint32_t kCuda129 = 27;
  static constexpr std::uint32_t kCuda131 = 130100;

  // Looked for once, beside the torch that is loaded.
  static const Result<CuptiLibrary>& load();

  // Looked for anew, beside the torch whose lib/ this is; "" if there is none.
  static Result<CuptiLibrary> find(const std::string& torch_folder);
  // The first that serves, of those that are loaded and of those in `places`. If none does, the
  // error tells of each why not. Calls it, and so needs a driver.
  static Result<CuptiLibrary> find_among(const std::vector<std::string>& loaded,
                                         const std::vector<std::string>& places);
  static constexpr const char* kNotFound = "CUPTI was not found";  // the error's cause

  // Where the same would find it, "" for nowhere. Calls nothing of it, and so needs no driver.
  static std::string path_beside(const std::string& torch_folder);

 private:
  bool bind_all(void* library);  // false where it is not complete
  std::string unfit_because();
};

}  // namespace layertrace::cuda
