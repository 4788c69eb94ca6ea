#include "activity/device_clock.h"

#include <algorithm>
#include <cmath>

namespace layertrace::cuda {
namespace {

double difference(std::uint64_t later, std::uint64_t earlier) noexcept {
  return static_cast<double>(static_cast<std::int64_t>(later - earlier));
}

}  // namespace

// Clocks that are only kept in step go faster or slower by half a part in a thousand at most.
bool DeviceClock::is_set(const Reading& last, const Reading& next) const noexcept {
  constexpr double kSlew = 1e-3;
  constexpr double kLeastNs = 1e6;  // between the two readings of one moment, too, time passes
  const double passed_ns = difference(next.ticks, last.ticks) / ticks_per_ns_;
  const double told_ns = difference(next.device_ns, last.device_ns);
  return std::abs(told_ns - passed_ns) > kLeastNs + kSlew * passed_ns;
}

bool DeviceClock::add_reading(std::uint64_t device_ns, std::uint64_t ticks) {
  const Reading reading{device_ns, ticks};
  const bool was_set = !lines_.empty() && is_set(lines_.back().back(), reading);
  if (lines_.empty() || was_set) lines_.emplace_back();
  Line& line = lines_.back();
  if (!line.empty() && device_ns <= line.back().device_ns) return false;  // as fine as it tells
  line.push_back(reading);
  if (++count_ > kMostReadings) {
    --count_;
    lines_.front().pop_front();
    if (lines_.front().empty()) lines_.pop_front();
  }
  return was_set;
}

std::uint64_t DeviceClock::on_line(const Line& line, std::uint64_t timestamp) const noexcept {
  const auto after = std::upper_bound(
      line.begin(), line.end(), timestamp,
      [](std::uint64_t ns, const Reading& reading) { return ns < reading.device_ns; });
  // Before the first reading and after the last our own clock's rate has to do.
  const Reading& from = after == line.begin() ? *after : *(after - 1);
  double rate = ticks_per_ns_;
  if (after != line.begin() && after != line.end())
    rate = difference(after->ticks, from.ticks) / difference(after->device_ns, from.device_ns);
  const double since = difference(timestamp, from.device_ns);
  return from.ticks + static_cast<std::uint64_t>(static_cast<std::int64_t>(since * rate));
}

std::uint64_t DeviceClock::to_ticks(std::uint64_t timestamp) const noexcept {
  if (is_ours_ || lines_.empty()) return timestamp;
  // What is read now has happened at the last reading, or a little later.
  constexpr double kLaterNs = 1e8;
  auto latest = lines_.back().back().ticks + static_cast<std::uint64_t>(kLaterNs * ticks_per_ns_);
  for (std::size_t i = lines_.size(); i-- != 0;) {
    const std::uint64_t ticks = on_line(lines_[i], timestamp);
    // The clock was set after the last reading on the line before.
    const std::uint64_t earliest = i != 0 ? lines_[i - 1].back().ticks : 0;
    if (ticks >= earliest && ticks <= latest) return ticks;
    latest = lines_[i].front().ticks;
  }
  return on_line(lines_.back(), timestamp);
}

}  // namespace layertrace::cuda
