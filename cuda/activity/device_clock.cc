#include "activity/device_clock.h"

#include <algorithm>

namespace layertrace::cuda {

void DeviceClock::add_reading(std::uint64_t device_ns, std::uint64_t ticks) {
  if (!readings_.empty() && device_ns <= readings_.back().device_ns) return;
  readings_.push_back({device_ns, ticks});
  if (readings_.size() > kMostReadings) readings_.pop_front();
}

std::uint64_t DeviceClock::to_ticks(std::uint64_t timestamp) const noexcept {
  if (is_ours_ || readings_.empty()) return timestamp;
  const auto after = std::upper_bound(
      readings_.begin(), readings_.end(), timestamp,
      [](std::uint64_t ns, const Reading& reading) { return ns < reading.device_ns; });
  // Before the first reading and after the last our own clock's rate has to do.
  const Reading& from = after == readings_.begin() ? *after : *(after - 1);
  double rate = ticks_per_ns_;
  if (after != readings_.begin() && after != readings_.end()) {
    rate = static_cast<double>(after->ticks - from.ticks) /
           static_cast<double>(after->device_ns - from.device_ns);
  }
  const auto since = static_cast<double>(static_cast<std::int64_t>(timestamp - from.device_ns));
  return from.ticks + static_cast<std::uint64_t>(static_cast<std::int64_t>(since * rate));
}

}  // namespace layertrace::cuda
