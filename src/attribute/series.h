// One figure, step after step, folded into mean, min, max, median and standard deviation in bounded
// memory.
#pragma once

#include <cstdint>
#include <vector>

#include <layertrace/profile.h>

namespace layertrace {

// Which steps keep their value for the median: all up to so many, then every second, every fourth…
class SampleClock {
 public:
  explicit SampleClock(std::size_t samples = 256) : samples_(samples) {}

  // Goes on to the next step; true when the series must halve() first.
  bool advance() noexcept {
    ++step_;
    if (step_ / stride_ < samples_) return false;
    stride_ *= 2;
    return true;
  }
  // From now on half as many are kept; true when the series must halve() now.
  bool keep_fewer() noexcept {
    samples_ /= 2;
    if (step_ / stride_ < samples_) return false;
    stride_ *= 2;
    return true;
  }
  std::size_t samples() const noexcept { return samples_; }
  bool sampled() const noexcept { return step_ % stride_ == 0; }
  std::size_t slot() const noexcept { return step_ / stride_; }

 private:
  std::size_t samples_;
  std::uint64_t step_ = 0;
  std::uint64_t stride_ = 1;
};

class Series {
 public:
  // The value of the clock's step. Steps without a value count as 0.
  void add(double value, const SampleClock& clock);
  // Keeps every second sample.
  void halve();
  // `steps` were folded in all, `slots` of them sampled.
  Stat stat(std::uint64_t steps, std::size_t slots) const;

 private:
  double sum_ = 0;
  double mean_ = 0;
  double sum_of_squares_ = 0;  // of the distances from the mean
  double min_ = 0;
  double max_ = 0;
  std::uint64_t count_ = 0;
  // Most figures are the same in each step (calls, or 0 for what is not recorded). As long as one
  // is, no list is made of it.
  double same_ = 0;
  std::size_t same_slots_ = 0;
  std::vector<double> samples_;
};

}  // namespace layertrace
