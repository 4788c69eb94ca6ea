// Whether CUPTI would let a session record.
#include <cstdlib>

#include "activity/cuda_environment.h"
#include "activity/cupti_library.h"
#include "activity/cupti_refusal.h"

namespace layertrace::cuda {
namespace {

constexpr CUpti_ActivityKind kTriedKinds[] = {CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
                                              CUPTI_ACTIVITY_KIND_RUNTIME,
                                              CUPTI_ACTIVITY_KIND_DRIVER,
                                              CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                              CUPTI_ACTIVITY_KIND_MEMCPY,
                                              CUPTI_ACTIVITY_KIND_MEMSET};

// Nothing runs on a device while it is tried. Should CUPTI want a buffer all the same, it has one.
void CUPTIAPI lend(std::uint8_t** buffer, std::size_t* bytes, std::size_t* most_records) {
  constexpr std::size_t kAlignment = 8;
  constexpr std::size_t kBytes = std::size_t{1} << 16;
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(kAlignment, kBytes));
  *bytes = *buffer != nullptr ? kBytes : 0;
  *most_records = 0;
}
void CUPTIAPI take_back(CUcontext /*context*/, std::uint32_t /*stream*/, std::uint8_t* buffer,
                        std::size_t /*bytes*/, std::size_t /*valid_bytes*/) {
  std::free(buffer);
}
void CUPTIAPI ignore(void* /*user*/, CUpti_CallbackDomain /*domain*/, CUpti_CallbackId /*id*/,
                     const void* /*data*/) {}

// What CUPTI answers first that is no success. All is undone on the way out.
CUptiResult subscribe_and_enable(const CuptiLibrary& cupti) {
  CUpti_SubscriberHandle subscriber = nullptr;
  CUptiResult result = cupti.subscribe(&subscriber, &ignore, nullptr);
  if (result != CUPTI_SUCCESS) return result;
  result = cupti.register_callbacks(&lend, &take_back);
  for (const CUpti_ActivityKind kind : kTriedKinds) {
    if (result == CUPTI_SUCCESS) result = cupti.enable(kind);
  }
  for (const CUpti_ActivityKind kind : kTriedKinds) cupti.disable(kind);
  cupti.unsubscribe(subscriber);
  return result;
}

}  // namespace

CuptiTrial try_cupti(const std::string& torch_folder, bool has_device) {
  CuptiTrial trial;
  if (!has_device) {
    trial.path = CuptiLibrary::path_beside(torch_folder);
    if (trial.path.empty()) trial.answer = CuptiAnswer::kNotFound;
    return trial;
  }
  const auto cupti = CuptiLibrary::find(torch_folder);
  if (!cupti) {
    trial.answer = cupti.error().cause == CuptiLibrary::kNotFound ? CuptiAnswer::kNotFound
                                                                  : CuptiAnswer::kUnfit;
    trial.cause = cupti.error().cause;
    trial.remedy = cupti.error().remedy;
    return trial;
  }
  trial.path = cupti->path;
  trial.version = cupti->version;
  const CUptiResult result = subscribe_and_enable(*cupti);
  trial.answer = CuptiAnswer::kReady;
  if (result == CUPTI_SUCCESS) return trial;
  const CuptiRefusal refusal = refusal_of(result);
  trial.answer = refusal.answer;
  trial.cause = cause_of(refusal);
  trial.remedy = refusal.remedy;
  return trial;
}

}  // namespace layertrace::cuda
