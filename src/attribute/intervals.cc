#include "attribute/intervals.h"

#include <algorithm>

namespace layertrace {

void Intervals::set_capacity(std::size_t capacity) {
  capacity_ = capacity;
  if (intervals_.size() <= capacity) return;
  forget(intervals_.size() - capacity / 2);
  shrink();
}

void Intervals::open(Interval interval) {
  if (intervals_.size() >= capacity_) forget(intervals_.size() / 2);
  interval.parent = open_.empty() ? 0 : open_.back();
  intervals_.push_back(interval);
  open_.push_back(forgotten_ + intervals_.size());
}

void Intervals::close(std::uint64_t end) noexcept {
  if (open_.empty()) return;
  const std::uint64_t number = open_.back();
  open_.pop_back();
  if (number <= forgotten_) {
    forgotten_end_ = std::max(forgotten_end_, end);
    return;
  }
  Interval& interval = intervals_[number - forgotten_ - 1];
  interval.end = end;
  // One that made nothing can own nothing: most backward nodes, and all of inference.
  if (interval.begin == end && number == forgotten_ + intervals_.size()) intervals_.pop_back();
}

const Intervals::Interval* Intervals::at(std::uint64_t number_plus_one) const noexcept {
  if (number_plus_one <= forgotten_) return nullptr;
  return &intervals_[number_plus_one - forgotten_ - 1];
}

Intervals::Result Intervals::find(std::uint64_t sequence) const noexcept {
  if (!started_ || sequence < first_sequence_) return {Found::kBefore, nullptr};
  // The last one to begin at or before the number; where it does not hold the number, one of its
  // parents does or none.
  auto after =
      std::upper_bound(intervals_.begin(), intervals_.end(), sequence,
                       [](std::uint64_t value, const Interval& i) { return value < i.begin; });
  const Interval* candidate = after == intervals_.begin() ? nullptr : &*(after - 1);
  while (candidate != nullptr && candidate->end <= sequence) candidate = parent(*candidate);
  if (candidate != nullptr) return {Found::kYes, candidate};
  const bool forgotten_is_open = !open_.empty() && open_.front() <= forgotten_;
  return {sequence < forgotten_end_ || forgotten_is_open ? Found::kForgotten : Found::kOutside,
          nullptr};
}

// The oldest.
void Intervals::forget(std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    if (intervals_[i].end != kOpen) forgotten_end_ = std::max(forgotten_end_, intervals_[i].end);
  }
  intervals_.erase(intervals_.begin(), intervals_.begin() + static_cast<std::ptrdiff_t>(count));
  forgotten_ += count;
}

}  // namespace layertrace
