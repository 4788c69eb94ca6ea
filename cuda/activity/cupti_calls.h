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
    bool is_wanted = true;       // it asks a device for something, or waits for it
  };

  explicit CuptiCalls(const CuptiLibrary& cupti) : cupti_(cupti) {}

  const Call& of(CUpti_CallbackDomain domain, std::uint32_t id);
  // The ids of the functions by which no device is asked for anything, nor waited for.
  const std::vector<CUpti_CallbackId>& unwanted(CUpti_CallbackDomain domain);

 private:
  Call look_up(CUpti_CallbackDomain domain, std::uint32_t id) const;

  const CuptiLibrary& cupti_;
  std::vector<Call> runtime_;
  std::vector<Call> driver_;
  std::vector<CUpti_CallbackId> unwanted_runtime_;
  std::vector<CUpti_CallbackId> unwanted_driver_;
};

}  // namespace layertrace::cuda
