#include "activity/cupti_refusal.h"

#include <algorithm>
#include <array>

namespace layertrace::cuda {
namespace {

// Not by cuptiGetResultString: without a driver that of 13.2 calls itself until the stack is full.
constexpr std::array kRefusals = {
    CuptiRefusal{CUPTI_ERROR_NOT_INITIALIZED, CuptiAnswer::kRefused,
                 "it cannot talk to the CUDA driver",
                 "See whether `nvidia-smi` works, and whether the driver serves CUPTI's CUDA"},
    CuptiRefusal{CUPTI_ERROR_DISABLED, CuptiAnswer::kRefused, "another profiler has disabled it",
                 "Another profiler is at work in this process: end it first"},
    CuptiRefusal{CUPTI_ERROR_NOT_SUPPORTED, CuptiAnswer::kRefused,
                 "it does not support this device or system",
                 "CUPTI's release notes list the devices and drivers that it supports"},
    CuptiRefusal{CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED, CuptiAnswer::kRefused,
                 "the device is virtualised, and cannot be profiled",
                 "Run where the device is passed through whole, or with timing=\"events\", which "
                 "needs no CUPTI"},
    CuptiRefusal{CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, CuptiAnswer::kNoPrivileges,
                 "this user may not profile", kLiftRestriction},
    CuptiRefusal{CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, CuptiAnswer::kSubscribed,
                 "it has a client already, and takes only one in a process",
                 "Another profiler is attached to this process, or cuda-gdb: end it first. What "
                 "puts itself into programs does so by CUDA_INJECTION64_PATH or LD_PRELOAD"},
    CuptiRefusal{CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES, CuptiAnswer::kNoPrivileges,
                 "the hypervisor does not let this virtual GPU be profiled",
                 "Ask the host's owner to set enable_profiling=1 for this vGPU, or run with "
                 "timing=\"events\", which needs no CUPTI"},
    CuptiRefusal{CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED, CuptiAnswer::kRefused,
                 "the device is in confidential computing mode, in which nothing may be traced",
                 "Run on a device that is not, or with timing=\"events\", which needs no CUPTI"},
    CuptiRefusal{CUPTI_ERROR_CMP_DEVICE_NOT_SUPPORTED, CuptiAnswer::kRefused,
                 "it does not support mining processors (CMP)",
                 "Run on another device, or with timing=\"events\", which needs no CUPTI"},
    CuptiRefusal{CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED, CuptiAnswer::kRefused,
                 "the device is a part of a multi-instance GPU (MIG), which cannot be profiled",
                 "Run on a whole device (`nvidia-smi -mig 0` makes it one again), or with "
                 "timing=\"events\", which needs no CUPTI"},
    CuptiRefusal{CUPTI_ERROR_SLI_DEVICE_NOT_SUPPORTED, CuptiAnswer::kRefused,
                 "the device is part of an SLI group, which cannot be profiled",
                 "Switch SLI off, or run with timing=\"events\", which needs no CUPTI"},
    CuptiRefusal{CUPTI_ERROR_WSL_DEVICE_NOT_SUPPORTED, CuptiAnswer::kRefused,
                 "the device is Windows's, under WSL, and cannot be profiled there",
                 "Run under Linux itself, or with timing=\"events\", which needs no CUPTI"},
};

}  // namespace

std::span<const CuptiRefusal> cupti_refusals() noexcept { return kRefusals; }

CuptiRefusal refusal_of(CUptiResult result) noexcept {
  const auto* known = std::ranges::find(kRefusals, result, &CuptiRefusal::result);
  if (known != kRefusals.end()) return *known;
  return {result, CuptiAnswer::kRefused, "an error that cupti_result.h has the name of",
          "CUPTI's release notes list the devices and drivers that it supports"};
}

std::string cause_of(const CuptiRefusal& refusal) {
  return std::string("CUPTI refuses: ") + refusal.reason + " (" +
         std::to_string(static_cast<int>(refusal.result)) + ")";
}

Error refused(CUptiResult result) {
  const CuptiRefusal refusal = refusal_of(result);
  return {"cannot record what the GPU does", cause_of(refusal), refusal.remedy};
}

}  // namespace layertrace::cuda
