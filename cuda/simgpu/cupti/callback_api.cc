// CUPTI's callback functions, and the names it has for things.
#include "core/face.h"
#include "cupti/names.h"
#include "cupti/tool.h"

using simgpu::Machine;
using simgpu::cupti::Subscription;
using simgpu::cupti::Tool;

namespace {

Subscription& subscription() { return Tool::instance().subscription(); }

bool is_domain(CUpti_CallbackDomain domain) {
  return domain > CUPTI_CB_DOMAIN_INVALID && domain <= CUPTI_CB_DOMAIN_STATE;
}

bool is_subscriber(CUpti_SubscriberHandle handle) {
  return handle == subscription().handle() && subscription().is_active();
}

void enable_domain(CUpti_CallbackDomain domain, bool on) {
  for (std::uint32_t id = 1; id < Subscription::kCallbacks; ++id)
    subscription().enable(domain, id, on);
  Tool::instance().update_watch();
}

CUpti_CallbackDomain domains[] = {CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_CB_DOMAIN_RUNTIME_API,
                                  CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CB_DOMAIN_SYNCHRONIZE};

}  // namespace

SIMGPU_API CUptiResult cuptiSupportedDomains(size_t* count, CUpti_DomainTable* table) {
  if (count == nullptr || table == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  *count = std::size(domains);
  *table = domains;
  return CUPTI_SUCCESS;
}

SIMGPU_API CUptiResult cuptiSubscribe(CUpti_SubscriberHandle* handle, CUpti_CallbackFunc callback,
                                      void* data) {
  if (handle == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  const auto& config = Machine::instance().config();
  if (config.fault(simgpu::FaultKind::kNoPrivileges)) return CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
  if (config.fault(simgpu::FaultKind::kSecondSubscriber))
    return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  // A client may subscribe without wanting to be called.
  const auto nothing = [](void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*) {};
  if (!subscription().subscribe(callback != nullptr ? callback : nothing, data))
    return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  *handle = subscription().handle();
  Tool::instance().update_watch();
  return CUPTI_SUCCESS;
}

SIMGPU_API CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle handle) {
  if (!is_subscriber(handle)) return CUPTI_ERROR_INVALID_PARAMETER;
  subscription().unsubscribe();
  Tool::instance().update_watch();
  return CUPTI_SUCCESS;
}

SIMGPU_API CUptiResult cuptiEnableCallback(uint32_t enable, CUpti_SubscriberHandle handle,
                                           CUpti_CallbackDomain domain, CUpti_CallbackId cbid) {
  if (!is_subscriber(handle) || !is_domain(domain) || cbid >= Subscription::kCallbacks)
    return CUPTI_ERROR_INVALID_PARAMETER;
  subscription().enable(domain, cbid, enable != 0);
  if (domain == CUPTI_CB_DOMAIN_RUNTIME_API)
    Tool::instance().update_watch(simgpu::Api::kRuntime, cbid);
  if (domain == CUPTI_CB_DOMAIN_DRIVER_API)
    Tool::instance().update_watch(simgpu::Api::kDriver, cbid);
  return CUPTI_SUCCESS;
}

SIMGPU_API CUptiResult cuptiEnableDomain(uint32_t enable, CUpti_SubscriberHandle handle,
                                         CUpti_CallbackDomain domain) {
  if (!is_subscriber(handle) || !is_domain(domain)) return CUPTI_ERROR_INVALID_PARAMETER;
  enable_domain(domain, enable != 0);
  return CUPTI_SUCCESS;
}

SIMGPU_API CUptiResult cuptiEnableAllDomains(uint32_t enable, CUpti_SubscriberHandle handle) {
  if (!is_subscriber(handle)) return CUPTI_ERROR_INVALID_PARAMETER;
  for (const CUpti_CallbackDomain domain : domains) enable_domain(domain, enable != 0);
  return CUPTI_SUCCESS;
}

SIMGPU_API CUptiResult cuptiGetCallbackState(uint32_t* enable, CUpti_SubscriberHandle handle,
                                             CUpti_CallbackDomain domain, CUpti_CallbackId cbid) {
  if (enable == nullptr || !is_subscriber(handle) || !is_domain(domain))
    return CUPTI_ERROR_INVALID_PARAMETER;
  *enable = subscription().enabled(domain, cbid) ? 1 : 0;
  return CUPTI_SUCCESS;
}

SIMGPU_API CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain domain, uint32_t cbid,
                                            const char** name) {
  if (name == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  *name = simgpu::cupti::callback_name(domain, cbid);
  return *name != nullptr ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}

SIMGPU_API CUptiResult cuptiGetResultString(CUptiResult result, const char** text) {
  if (text == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  *text = simgpu::cupti::result_name(result);
  return *text != nullptr ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}

SIMGPU_API CUptiResult cuptiGetErrorMessage(CUptiResult result, const char** text) {
  return cuptiGetResultString(result, text);
}
