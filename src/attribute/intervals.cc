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
  const std::size_t after = first_after(sequence);
  const Interval* candidate = after == 0 ? nullptr : &intervals_[after - 1];
  while (candidate != nullptr && candidate->end <= sequence) candidate = parent(*candidate);
  if (candidate != nullptr) return {Found::kYes, candidate};
  const bool forgotten_is_open = !open_.empty() && open_.front() <= forgotten_;
  return {sequence < forgotten_end_ || forgotten_is_open ? Found::kForgotten : Found::kOutside,
          nullptr};
}

// How many begin at or before the number. A backward comes to them from the last to the first: the
// search begins where it last ended, and its steps double.
std::size_t Intervals::first_after(std::uint64_t sequence) const noexcept {
  const auto is_after = [&](std::size_t i) { return intervals_[i].begin > sequence; };
  std::size_t low = 0;                   // all before it are not after the number
  std::size_t high = intervals_.size();  // it and all that follow are
  std::size_t at = std::min(last_found_, high);
  for (std::size_t stride = 1; at > low; stride *= 2) {
    if (!is_after(at - 1)) {
      low = at;
      break;
    }
    high = at - 1;
    at = high > stride ? high - stride : 0;
  }
  for (std::size_t stride = 1; low < high; stride *= 2) {
    const std::size_t next = std::min(high, low + stride) - 1;
    if (is_after(next)) {
      high = next;
      break;
    }
    low = next + 1;
  }
  const auto found =
      std::upper_bound(intervals_.begin() + static_cast<std::ptrdiff_t>(low),
                       intervals_.begin() + static_cast<std::ptrdiff_t>(high), sequence,
                       [](std::uint64_t value, const Interval& i) { return value < i.begin; });
  last_found_ = static_cast<std::size_t>(found - intervals_.begin());
  return last_found_;
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
