// When are operators counted? Counting costs more than recording, so calls that are like others are
// counted once: those whose key (a hash of the model's input shapes) is the same. A step in which a
// new key is met is counted from there to its end; what runs before the first call of a model has
// the key 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_set>

#include <layertrace/layertrace.h>

namespace layertrace {

class CountingPlan {
 public:
  explicit CountingPlan(Counting mode = Counting::kOff) noexcept : mode_(mode) {}

  Counting mode() const noexcept { return mode_; }
  bool is_on() const noexcept { return is_on_; }

  // A recorded step begins. Returns whether it is counted from its beginning.
  bool begin_step() {
    end_step();
    is_in_step_ = true;
    is_on_ = mode_ == Counting::kAlways || (mode_ == Counting::kFirst && !known_.contains(0));
    met_.insert(0);
    return is_on_;
  }

  // It is over, and what was counted in it is known. Until the next one nothing is counted.
  void end_step() {
    if (is_on_) known_.insert(met_.begin(), met_.end());
    abandon_step();
  }

  // A model is called. Returns whether what follows is counted.
  bool meet(std::uint64_t key) {
    if (mode_ == Counting::kFirst && is_in_step_ && !is_on_)
      is_on_ = !known_.contains(key) && known_.size() < kMostKeys;
    if (is_on_ && met_.size() < kMostKeys) met_.insert(key);
    return is_on_;
  }

  // Recording pauses in the middle of a step: it has not been counted to its end.
  void abandon_step() noexcept {
    is_on_ = false;
    is_in_step_ = false;
    met_.clear();
  }

 private:
  static constexpr std::size_t kMostKeys = 128;

  Counting mode_;
  bool is_on_ = false;
  bool is_in_step_ = false;
  std::unordered_set<std::uint64_t> met_;  // in this step, while it is counted
  std::unordered_set<std::uint64_t> known_;
};

}  // namespace layertrace
