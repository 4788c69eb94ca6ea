#include "core/config.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace simgpu {
namespace {

constexpr int kMostDevices = 16;

constexpr std::array kFaultNames = {
    FaultName{FaultKind::kNoPrivileges, "no_privileges",
              "CUPTI refuses with CUPTI_ERROR_INSUFFICIENT_PRIVILEGES", 0},
    FaultName{FaultKind::kSecondSubscriber, "second_subscriber", "CUPTI has a subscriber already",
              0},
    FaultName{FaultKind::kNoCupti, "no_cupti", "dlopen() finds no CUPTI", 0},
    FaultName{FaultKind::kOldCupti, "old_cupti",
              "the version of CUDA 12.8, with its shorter records", 0},
    FaultName{FaultKind::kAncientCupti, "ancient_cupti",
              "the version of CUDA 11.8, and dlopen() finds no other", 0},
    FaultName{FaultKind::kLateRefusal, "late_refusal",
              "from the N-th time on CUPTI refuses to record kernels, with CUPTI_ERROR_DISABLED",
              2},
    FaultName{FaultKind::kNoTimestampCallback, "no_timestamp_callback",
              "CUPTI does not take its client's clock", 0},
    FaultName{FaultKind::kNoSingleFunctions, "no_single_functions",
              "single functions of an API are recorded only while its kind is", 0},
    FaultName{FaultKind::kClockSet, "clock_set",
              "after N launches the clock that CUPTI reads is set back by a minute", 100},
    FaultName{FaultKind::kDropRecords, "drop_records", "every N-th record is dropped", 10},
    FaultName{FaultKind::kZeroTimestamps, "zero_timestamps",
              "every N-th device record has no times", 10},
    FaultName{FaultKind::kReversedTimestamps, "reversed_timestamps",
              "every N-th device record ends before it starts", 10},
    FaultName{FaultKind::kEarly, "early",
              "every N-th device record starts before the call that asked for it", 10},
    FaultName{FaultKind::kLateBuffer, "late_buffer",
              "the last buffer comes N ms after the flush has returned", 50},
    FaultName{FaultKind::kNullBuffer, "null_buffer",
              "before every N-th buffer comes one without memory", 2},
    FaultName{FaultKind::kDuplicateCorrelation, "duplicate_correlation",
              "every N-th device record has the correlation id of the one before", 10},
    FaultName{FaultKind::kOverlap, "overlap",
              "every N-th device record starts before the last of its stream has ended", 10},
    FaultName{FaultKind::kDeviceLost, "device_lost", "the device is lost after N launches", 100},
    FaultName{FaultKind::kAllocationFails, "allocation_fails", "the N-th allocation fails", 10},
};

template <typename List>
std::string names_of(const List& list) {
  std::string names;
  for (const auto& each : list) names += (names.empty() ? "" : ", ") + std::string(each.name);
  return names;
}

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<std::uint64_t> bytes(std::string_view text) {
  std::uint64_t unit = 1;
  if (!text.empty() && (text.back() == 'M' || text.back() == 'G')) {
    unit = text.back() == 'M' ? std::uint64_t{1} << 20 : std::uint64_t{1} << 30;
    text.remove_suffix(1);
  }
  const auto count = number(text);
  if (!count || *count > ~std::uint64_t{0} / unit) return std::nullopt;
  return *count * unit;
}

// "drop_records=5": one entry of SIMGPU_FAULTS. The text is what is wrong with it.
std::variant<Config::Fault, std::string> read_fault(std::string_view entry) {
  const std::string_view name = entry.substr(0, entry.find('='));
  const auto* found = std::find_if(kFaultNames.begin(), kFaultNames.end(),
                                   [&](const FaultName& f) { return f.name == name; });
  if (found == kFaultNames.end()) {
    return "SIMGPU_FAULTS: there is no fault '" + std::string(name) + "'; there are " +
           names_of(kFaultNames);
  }
  if (name.size() == entry.size()) return Config::Fault{found->kind, found->usual};
  const auto n = number(entry.substr(name.size() + 1));
  if (found->usual == 0 || !n || *n == 0) {
    return "SIMGPU_FAULTS: '" + std::string(entry) + "': " + std::string(name) +
           (found->usual == 0 ? " takes no number" : " takes a number from 1 on");
  }
  return Config::Fault{found->kind, *n};
}

}  // namespace

std::span<const FaultName> fault_names() noexcept { return kFaultNames; }

std::optional<std::uint64_t> Config::find_fault(FaultKind kind) const noexcept {
  const auto found =
      std::find_if(faults.begin(), faults.end(), [&](const Fault& f) { return f.kind == kind; });
  if (found == faults.end()) return std::nullopt;
  return found->n;
}

std::variant<Config, std::string> read_config(const Environment& environment) {
  const auto variable = [&](const char* name) -> std::string_view {
    const char* value = environment(name);
    return value == nullptr ? "" : value;
  };
  Config config;
  const std::string_view profile = variable("SIMGPU_PROFILE");
  config.profile = find_profile(profile.empty() ? "h100" : profile);
  if (config.profile == nullptr) {
    return "SIMGPU_PROFILE: there is no device '" + std::string(profile) + "'; there are " +
           names_of(device_profiles());
  }

  if (const std::string_view devices = variable("SIMGPU_DEVICES"); !devices.empty()) {
    const auto count = number(devices);
    if (!count || *count > kMostDevices) {
      return "SIMGPU_DEVICES: '" + std::string(devices) + "' is no number from 0 to " +
             std::to_string(kMostDevices);
    }
    config.devices = static_cast<int>(*count);
  }

  config.memory_bytes = config.profile->memory_bytes;
  if (const std::string_view memory = variable("SIMGPU_MEMORY"); !memory.empty()) {
    const auto size = bytes(memory);
    if (!size || *size == 0) {
      return "SIMGPU_MEMORY: '" + std::string(memory) +
             "' is no size: give bytes, or a number with M or G";
    }
    config.memory_bytes = *size;
  }

  const std::string_view clock = variable("SIMGPU_CLOCK");
  if (!clock.empty() && clock != "real" && clock != "virtual")
    return "SIMGPU_CLOCK: there is no clock '" + std::string(clock) + "'; there are real, virtual";
  config.virtual_clock = clock == "virtual";

  std::string_view faults = variable("SIMGPU_FAULTS");
  while (!faults.empty()) {
    const std::string_view entry = faults.substr(0, faults.find(','));
    faults.remove_prefix(std::min(faults.size(), entry.size() + 1));
    if (entry.empty()) continue;
    auto fault = read_fault(entry);
    if (auto* error = std::get_if<std::string>(&fault)) return std::move(*error);
    config.faults.push_back(std::get<Config::Fault>(fault));
  }
  return config;
}

}  // namespace simgpu
