#include "activity/cupti_calls.h"

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

}  // namespace

const CuptiCalls::Call& CuptiCalls::of(CUpti_CallbackDomain domain, std::uint32_t id) {
  constexpr std::uint32_t kMost = 1 << 14;  // some hundreds exist
  std::vector<Call>& calls = domain == CUPTI_CB_DOMAIN_RUNTIME_API ? runtime_ : driver_;
  id = id < kMost ? id : 0;
  if (id >= calls.size()) calls.resize(id + 1);
  if (calls[id].name == kNoName) calls[id] = look_up(domain, id);
  return calls[id];
}

CuptiCalls::Call CuptiCalls::look_up(CUpti_CallbackDomain domain, std::uint32_t id) const {
  const char* text = nullptr;
  if (cupti_.callback_name == nullptr || cupti_.callback_name(domain, id, &text) != CUPTI_SUCCESS ||
      text == nullptr)
    return {NameTable::instance().intern("CUDA call"), CallKind::kAsk};
  const std::string_view name = without_version(text);
  return {NameTable::instance().intern(name), kind_of(name)};
}

}  // namespace layertrace::cuda
