#include "cupti/names.h"

#include <cupti_driver_cbid.h>
#include <cupti_runtime_cbid.h>

#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

namespace simgpu::cupti {
namespace {

const std::unordered_map<std::uint32_t, const char*>& runtime_names() {
  static const auto* names = new std::unordered_map<std::uint32_t, const char*>{
#define SIMGPU_CALLBACK(name) {CUPTI_RUNTIME_TRACE_CBID_##name, #name},
#include "cupti_runtime_names.inc"
#undef SIMGPU_CALLBACK
  };
  return *names;
}

const std::unordered_map<std::uint32_t, const char*>& driver_names() {
  static const auto* names = new std::unordered_map<std::uint32_t, const char*>{
#define SIMGPU_CALLBACK(name) {CUPTI_DRIVER_TRACE_CBID_##name, #name},
#include "cupti_driver_names.inc"
#undef SIMGPU_CALLBACK
  };
  return *names;
}

const std::unordered_map<std::uint32_t, const char*>& resource_names() {
  static const auto* names = new std::unordered_map<std::uint32_t, const char*>{
#define SIMGPU_CALLBACK(name) {CUPTI_CBID_RESOURCE_##name, #name},
#include "cupti_resource_names.inc"
#undef SIMGPU_CALLBACK
  };
  return *names;
}

const char* find(const std::unordered_map<std::uint32_t, const char*>& names, std::uint32_t id) {
  const auto found = names.find(id);
  return found == names.end() ? nullptr : found->second;
}

}  // namespace

const char* function_name(const char* versioned) {
  static auto* mutex = new std::mutex;
  static auto* names = new std::unordered_map<const char*, std::string>;
  const std::lock_guard lock(*mutex);
  const auto [found, fresh] = names->try_emplace(versioned);
  if (fresh) {
    const std::string_view whole(versioned);
    found->second = whole.substr(0, whole.rfind("_v"));
  }
  return found->second.c_str();
}

const char* callback_name(CUpti_CallbackDomain domain, std::uint32_t id) {
  switch (domain) {
    case CUPTI_CB_DOMAIN_RUNTIME_API:
      return find(runtime_names(), id);
    case CUPTI_CB_DOMAIN_DRIVER_API:
      return find(driver_names(), id);
    case CUPTI_CB_DOMAIN_RESOURCE:
      return find(resource_names(), id);
    case CUPTI_CB_DOMAIN_SYNCHRONIZE:
      if (id == CUPTI_CBID_SYNCHRONIZE_STREAM_SYNCHRONIZED) return "STREAM_SYNCHRONIZED";
      if (id == CUPTI_CBID_SYNCHRONIZE_CONTEXT_SYNCHRONIZED) return "CONTEXT_SYNCHRONIZED";
      return nullptr;
    default:
      return nullptr;
  }
}

const char* result_name(CUptiResult result) {
  static const auto* names = new std::map<int, const char*>{
#define SIMGPU_RESULT(name) {name, #name},
#include "cupti_results.inc"
#undef SIMGPU_RESULT
  };
  const auto found = names->find(result);
  return found == names->end() ? nullptr : found->second;
}

}  // namespace simgpu::cupti
