// Which steps are recorded.
#pragma once

#include <cstdint>

#include <layertrace/layertrace.h>

namespace layertrace {

enum class StepMode : std::uint8_t { kIdle, kWarmup, kRecord };

constexpr StepMode step_mode(const Schedule& schedule, std::uint64_t step) noexcept {
  const auto within = [&](std::uint64_t offset) {
    if (offset < schedule.skip) return StepMode::kIdle;
    return offset < schedule.skip + schedule.warmup ? StepMode::kWarmup : StepMode::kRecord;
  };
  if (schedule.record == 0) return within(step);
  const std::uint64_t cycle = schedule.skip + schedule.warmup + schedule.record;
  if (schedule.repeat != 0 && step / cycle >= schedule.repeat) return StepMode::kIdle;
  return within(step % cycle);
}

// No step from this one on is recorded.
constexpr bool is_over(const Schedule& schedule, std::uint64_t step) noexcept {
  const std::uint64_t cycle = schedule.skip + schedule.warmup + schedule.record;
  return schedule.record != 0 && schedule.repeat != 0 && step / cycle >= schedule.repeat;
}

}  // namespace layertrace
