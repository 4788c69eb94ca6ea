// Reads CUPTI's records, whose layouts differ between versions, into our own.
#pragma once

#include <cupti.h>

#include <cstdint>
#include <string>
#include <unordered_map>

#include "activity/cupti_calls.h"
#include "activity/device_clock.h"
#include "activity/occupancy.h"
#include "capture/device.h"

namespace layertrace::cuda {

// By which CUPTI tells our ids from others': Kineto takes CUSTOM0 and CUSTOM1.
inline constexpr auto kTagKind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2;

class RecordReader {
 public:
  // What cannot be used is counted in `health`.
  RecordReader(const CuptiLibrary& cupti, const DeviceClock& clock, GpuHealth& health)
      : version_(cupti.version), clock_(clock), health_(health), calls_(cupti) {}

  void read(const CUpti_Activity& record, DeviceConsumer& consumer);
  CuptiCalls& calls() noexcept { return calls_; }
  // What this thread calls is layertrace's own affair.
  void leave_out(std::uint32_t thread) noexcept { left_out_ = thread; }

 private:
  void read_call(const CUpti_ActivityAPI& call, CUpti_CallbackDomain domain,
                 DeviceConsumer& consumer);
  template <typename T>
  void read_kernel(const T& record, DeviceConsumer& consumer);
  template <typename T>
  void read_copy(const T& record, const char* name, DeviceKind kind, DeviceConsumer& consumer);
  bool take_times(std::uint64_t start, std::uint64_t end, DeviceActivity& activity);
  NameId kernel_name(const char* mangled);

  struct KnownName {
    std::string mangled;
    NameId name = kNoName;
  };

  const std::uint32_t version_;
  const DeviceClock& clock_;
  GpuHealth& health_;
  CuptiCalls calls_;
  std::uint32_t left_out_ = 0;
  Occupancies occupancies_;
  std::unordered_map<const char*, KnownName> kernel_names_;
};

}  // namespace layertrace::cuda
