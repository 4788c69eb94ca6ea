// How the simulated machine is set up: from the environment, once, when the first library is
// loaded. A word that is not known is an error that lists those that are: a test that asks for a
// fault and silently gets none would prove nothing.
//
//   SIMGPU_PROFILE=h100|laptop      the kind of device (h100)
//   SIMGPU_DEVICES=N                how many (1)
//   SIMGPU_MEMORY=BYTES|…M|…G       each one's memory (the profile's)
//   SIMGPU_CLOCK=real|virtual       virtual: exactly repeatable, and nothing waits (real)
//   SIMGPU_FAULTS=NAME[=N],…        what shall go wrong
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/device_profile.h"

namespace simgpu {

enum class FaultKind : std::uint8_t {
  kNoPrivileges,          // CUPTI_ERROR_INSUFFICIENT_PRIVILEGES
  kSecondSubscriber,      // another tool has subscribed before
  kNoCupti,               // the library cannot be loaded
  kOldCupti,              // an older version, with shorter records
  kAncientCupti,          // one from before CUDA 12, and no other
  kLateRefusal,           // from the N-th time on that kernels' records are asked for
  kNoTimestampCallback,   // the client's clock is not taken
  kNoSingleFunctions,     // of an API are told unless its kind is on
  kClockSet,              // CUPTI's own clock is set back after N launches
  kDropRecords,           // every N-th record is dropped and counted
  kZeroTimestamps,        // every N-th record has none
  kReversedTimestamps,    // every N-th record ends before it starts
  kEarly,                 // every N-th record starts before it was asked for
  kLateBuffer,            // the last buffer comes N ms after the flush
  kNullBuffer,            // every N-th buffer comes without memory
  kDuplicateCorrelation,  // every N-th correlation id is that of the launch before
  kOverlap,               // every N-th kernel starts before its stream's last has ended
  kDeviceLost,            // after N launches
  kAllocationFails,       // the N-th allocation
};
inline constexpr std::size_t kFaultKinds = 19;

struct FaultName {
  FaultKind kind;
  std::string_view name;
  std::string_view meaning;
  std::uint64_t usual;  // N where none is given; 0 for those that take none
};
std::span<const FaultName> fault_names() noexcept;

struct Config {
  const DeviceProfile* profile = nullptr;
  int devices = 1;
  std::uint64_t memory_bytes = 0;  // of each device
  bool virtual_clock = false;
  struct Fault {
    FaultKind kind;
    std::uint64_t n;
  };
  std::vector<Fault> faults;

  // The fault's N, if it was asked for. Mostly none was.
  std::optional<std::uint64_t> fault(FaultKind kind) const noexcept {
    return faults.empty() ? std::nullopt : find_fault(kind);
  }
  // Whether the fault comes with this one of many, which are counted from 1.
  bool fault_at(FaultKind kind, std::uint64_t count) const noexcept {
    const std::uint64_t n = fault(kind).value_or(0);
    return n != 0 && count % n == 0;
  }

 private:
  std::optional<std::uint64_t> find_fault(FaultKind kind) const noexcept;
};

// Looks up an environment variable; nullptr for one that is not set.
using Environment = std::function<const char*(const char*)>;

// The set-up, or what is wrong with it and what there is instead.
std::variant<Config, std::string> read_config(const Environment& environment);

}  // namespace simgpu
