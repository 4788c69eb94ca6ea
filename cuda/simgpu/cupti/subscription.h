// The one client that is called at entry and exit of functions, and when resources come and go.
#pragma once

#include <cupti.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>

#include "core/observer.h"

namespace simgpu::cupti {

class Subscription {
 public:
  static constexpr std::size_t kDomains = 7;
  static constexpr std::size_t kCallbacks = 1024;

  bool is_active() const noexcept { return callback_.load() != nullptr; }
  // False: there is one already.
  bool subscribe(CUpti_CallbackFunc callback, void* data);
  void unsubscribe();
  CUpti_SubscriberHandle handle() noexcept {
    return reinterpret_cast<CUpti_SubscriberHandle>(this);
  }

  void enable(CUpti_CallbackDomain domain, std::uint32_t id, bool on) {
    enabled_[domain][id].store(on, std::memory_order_relaxed);
  }
  bool enabled(CUpti_CallbackDomain domain, std::uint32_t id) const noexcept {
    return id < kCallbacks && enabled_[domain][id].load(std::memory_order_relaxed);
  }

  bool watches(Api api, std::uint32_t id) const noexcept { return enabled(domain_of(api), id); }
  void on_enter(ApiCall& call) { call_back(call, CUPTI_API_ENTER); }
  void on_leave(ApiCall& call) { call_back(call, CUPTI_API_EXIT); }
  void on_synchronization(const Synchronization& synchronization);
  void on_resource(const ResourceChange& change);

 private:
  static CUpti_CallbackDomain domain_of(Api api) noexcept {
    return api == Api::kRuntime ? CUPTI_CB_DOMAIN_RUNTIME_API : CUPTI_CB_DOMAIN_DRIVER_API;
  }
  void call_back(ApiCall& call, CUpti_ApiCallbackSite site);
  void call(CUpti_CallbackDomain domain, std::uint32_t id, const void* data) const;

  std::mutex mutex_;  // of those who want to be the one
  std::atomic<CUpti_CallbackFunc> callback_{nullptr};
  std::atomic<void*> data_{nullptr};
  std::array<std::array<std::atomic<bool>, kCallbacks>, kDomains> enabled_{};
};

}  // namespace simgpu::cupti
