// What the ids of CUDA's functions in CUPTI's records stand for.
#pragma once

#include <cupti.h>

#include <cstdint>
#include <vector>

#include "activity/cupti_library.h"
#include "record/device_record.h"

namespace layertrace::cuda {

class CuptiCalls {
 public:
  struct Call {
    NameId name = kNoName;  // without the version that CUPTI adds: "cudaLaunchKernel"
    CallKind kind = CallKind::kAsk;
    bool asks_for_many = false;  // things at once, or for none that is told
  };

  explicit CuptiCalls(const CuptiLibrary& cupti) : cupti_(cupti) {}

  const Call& of(CUpti_CallbackDomain domain, std::uint32_t id);
  // The ids of the functions by which a device is asked for something, or waited for.
  const std::vector<CUpti_CallbackId>& wanted(CUpti_CallbackDomain domain);

 private:
  Call look_up(CUpti_CallbackDomain domain, std::uint32_t id) const;

  const CuptiLibrary& cupti_;
  std::vector<Call> runtime_;
  std::vector<Call> driver_;
  std::vector<CUpti_CallbackId> wanted_runtime_;
  std::vector<CUpti_CallbackId> wanted_driver_;
};

}  // namespace layertrace::cuda
