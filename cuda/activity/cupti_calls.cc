#include "activity/cupti_calls.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "record/definitions.h"

namespace layertrace::cuda {
namespace {

// "cudaLaunchKernel_v7000": the version is CUPTI's, not the function's.
std::string_view without_version(std::string_view name) {
  const std::size_t mark = name.rfind("_v");
  if (mark == std::string_view::npos || mark + 2 == name.size()) return name;
  const bool is_version = name.find_first_not_of("0123456789", mark + 2) == std::string_view::npos;
  return is_version ? name.substr(0, mark) : name;
}

CallKind kind_of(std::string_view name) {
  const auto has = [name](std::string_view word) {
    return name.find(word) != std::string_view::npos;
  };
  if (has("Synchronize")) return CallKind::kWait;
  return has("Memcpy") || has("Memset") ? CallKind::kCopy : CallKind::kAsk;
}

// One call, one activity, but for these. Of some no activity is told at all.
bool asks_for_many(std::string_view name) {
  constexpr std::string_view kWords[] = {"Graph", "Batch", "MultiDevice", "HostFunc",
                                         "MemPrefetch"};
  return std::any_of(std::begin(kWords), std::end(kWords), [name](std::string_view word) {
    return name.find(word) != std::string_view::npos;
  });
}

// Whatever a device's activity may come from: launches, copies, sets, graphs, and waiting. A
// stream's own waiting for an event is none of the host's.
bool is_wanted(std::string_view name) {
  constexpr std::string_view kWords[] = {"Launch", "Memcpy",      "Memset",     "memcpy",
                                         "memset", "Synchronize", "MemPrefetch"};
  return std::any_of(std::begin(kWords), std::end(kWords), [name](std::string_view word) {
    return name.find(word) != std::string_view::npos;
  });
}

}  // namespace

const CuptiCalls::Call& CuptiCalls::of(CUpti_CallbackDomain domain, std::uint32_t id) {
  constexpr std::uint32_t kMost = 1 << 14;  // some hundreds exist
  std::vector<Call>& calls = domain == CUPTI_CB_DOMAIN_RUNTIME_API ? runtime_ : driver_;
  id = id < kMost ? id : 0;
  if (id >= calls.size()) calls.resize(id + 1);
  if (calls[id].name == kNoName) calls[id] = look_up(domain, id);
  return calls[id];
}

const std::vector<CUpti_CallbackId>& CuptiCalls::unwanted(CUpti_CallbackDomain domain) {
  const bool runtime = domain == CUPTI_CB_DOMAIN_RUNTIME_API;
  std::vector<CUpti_CallbackId>& ids = runtime ? unwanted_runtime_ : unwanted_driver_;
  if (!ids.empty()) return ids;
  // Ids are dense, and newer versions have more than this one's headers know.
  constexpr CUpti_CallbackId kBeyond = 200;
  const auto last = (runtime ? CUpti_CallbackId{CUPTI_RUNTIME_TRACE_CBID_SIZE}
                             : CUpti_CallbackId{CUPTI_DRIVER_TRACE_CBID_SIZE}) +
                    kBeyond;
  for (CUpti_CallbackId id = 1; id < last; ++id) {
    const char* name = nullptr;
    if (cupti_.callback_name(domain, id, &name) == CUPTI_SUCCESS && name != nullptr &&
        !is_wanted(name))
      ids.push_back(id);
  }
  return ids;
}

CuptiCalls::Call CuptiCalls::look_up(CUpti_CallbackDomain domain, std::uint32_t id) const {
  const char* text = nullptr;
  if (cupti_.callback_name == nullptr || cupti_.callback_name(domain, id, &text) != CUPTI_SUCCESS ||
      text == nullptr)
    return {NameTable::instance().intern("CUDA call"), CallKind::kAsk, /*asks_for_many=*/true};
  const std::string_view name = without_version(text);
  return {NameTable::instance().intern(name), kind_of(name), asks_for_many(name), is_wanted(name)};
}

}  // namespace layertrace::cuda
