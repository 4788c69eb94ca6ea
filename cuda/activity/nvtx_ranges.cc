#include "activity/nvtx_ranges.h"

#include <mutex>
#include <string>
#include <unordered_map>

namespace layertrace::cuda {
namespace {

constexpr std::uint32_t category(Phase phase) { return static_cast<std::uint32_t>(phase) + 1; }

// The domain lives as long as the process, as do the strings that tools know.
nvtxDomainHandle_t make_domain() {
  nvtxDomainHandle_t domain = nvtxDomainCreateA("layertrace");
  if (domain == nullptr) return nullptr;
  for (std::size_t i = 0; i < kPhaseCount; ++i) {
    const auto phase = static_cast<Phase>(i);
    nvtxDomainNameCategoryA(domain, category(phase), std::string(phase_name(phase)).c_str());
  }
  return domain;
}

// A path is registered once, whatever number of sessions shows it.
nvtxStringHandle_t registered(nvtxDomainHandle_t domain, const std::string& text) {
  static auto* const kMutex = new std::mutex;
  static auto* const kKnown = new std::unordered_map<std::string, nvtxStringHandle_t>;
  const std::lock_guard lock(*kMutex);
  const auto [known, fresh] = kKnown->try_emplace(text, nullptr);
  if (fresh) known->second = nvtxDomainRegisterStringA(domain, known->first.c_str());
  return known->second;
}

}  // namespace

std::shared_ptr<NvtxRanges> NvtxRanges::make(const Definitions& definitions) {
  static nvtxDomainRegistration* const kDomain = make_domain();
  if (kDomain == nullptr) return nullptr;
  return std::make_shared<NvtxRanges>(kDomain, definitions);
}

void NvtxRanges::begin_layer(LayerId layer, Phase phase, std::uint64_t /*frame*/) noexcept {
  nvtxStringHandle_t message = nullptr;
  try {
    message = layers_.get(index(layer),
                          [&] { return registered(domain_, definitions_.path_or_type(layer)); });
  } catch (...) {  // no memory: a range without a name, so that they stay balanced
  }
  push(message, phase);
}

void NvtxRanges::begin_region(NameId name, Phase phase) noexcept {
  nvtxStringHandle_t message = nullptr;
  try {
    message = names_.get(index(name),
                         [&] { return registered(domain_, NameTable::instance().text(name)); });
  } catch (...) {
  }
  push(message, phase);
}

void NvtxRanges::push(nvtxStringHandle_t message, Phase phase) noexcept {
  nvtxEventAttributes_t attributes{};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.category = category(phase);
  attributes.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  attributes.message.registered = message;
  nvtxDomainRangePushEx(domain_, &attributes);
}

void NvtxRanges::end() noexcept { nvtxDomainRangePop(domain_); }

}  // namespace layertrace::cuda
