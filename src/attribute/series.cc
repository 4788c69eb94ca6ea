#include "attribute/series.h"

#include <algorithm>
#include <cmath>

namespace layertrace {

void Series::add(double value, const SampleClock& clock) {
  min_ = count_ == 0 ? value : std::min(min_, value);
  max_ = count_ == 0 ? value : std::max(max_, value);
  ++count_;
  // Welford's way: sums of squares of nanoseconds would lose the digits that a deviation is made
  // of.
  if (const double from_mean = value - mean_; from_mean != 0) {
    mean_ += from_mean / static_cast<double>(count_);
    sum_of_squares_ += from_mean * (value - mean_);
  }
  sum_ += value;
  if (!clock.sampled()) return;
  if (samples_.empty()) {
    if (count_ == 1) same_ = value;
    if (clock.slot() == same_slots_ && value == same_) {
      ++same_slots_;
      return;
    }
    constexpr std::size_t kFirstSamples = 16;
    samples_.reserve(kFirstSamples);
    samples_.assign(same_slots_, same_);
  }
  samples_.resize(clock.slot(), 0.0);
  samples_.push_back(value);
}

void Series::halve() {
  same_slots_ = (same_slots_ + 1) / 2;
  for (std::size_t i = 0; 2 * i < samples_.size(); ++i) samples_[i] = samples_[2 * i];
  samples_.resize((samples_.size() + 1) / 2);
}

Stat Series::stat(std::uint64_t steps, std::size_t slots) const {
  if (steps == 0 || count_ == 0) return {};
  const bool has_zeros = count_ < steps;
  const auto n = static_cast<double>(steps);
  Stat stat;
  stat.mean = sum_ / n;
  stat.min = has_zeros ? std::min(min_, 0.0) : min_;
  stat.max = has_zeros ? std::max(max_, 0.0) : max_;
  if (steps > 1) {
    const auto count = static_cast<double>(count_);
    const double of_zeros =
        mean_ * mean_ * count * (n - count) / n;  // the steps in which it did not occur
    stat.stdev = std::sqrt((sum_of_squares_ + of_zeros) / (n - 1));
  }
  std::vector<double> sorted =
      samples_.empty() ? std::vector<double>(same_slots_, same_) : samples_;
  sorted.resize(std::max(slots, std::size_t{1}), 0.0);
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  stat.median = *middle;
  if (sorted.size() % 2 == 0)
    stat.median = (stat.median + *std::max_element(sorted.begin(), middle)) / 2;
  return stat;
}

}  // namespace layertrace
