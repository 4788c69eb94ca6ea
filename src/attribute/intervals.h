// Which forward call made autograd node number n?
//
// Autograd numbers the nodes of a thread in the order in which they are made. A scope that read the
// counter on entry and exit knows the half-open interval of numbers made inside; the innermost
// interval that holds n is the owner's. A backward node that makes nodes itself (double backward,
// recomputation) opens an interval too.
//
// Intervals of one thread come in order of their begin, so finding is a binary search and a walk to
// the parents. The oldest are forgotten when `capacity` is reached: a graph is rarely kept for more
// than a step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "record/ids.h"

namespace layertrace {

class Intervals {
 public:
  static constexpr std::uint64_t kOpen = ~std::uint64_t{0};

  struct Interval {
    std::uint64_t begin = 0;
    std::uint64_t end = kOpen;
    std::uint64_t parent = 0;  // number of the enclosing interval + 1; 0 for none
    std::uint64_t value = 0;   // of a scope: its call; of a node: the record's value
    LayerId layer = kNoLayer;  // of a scope
    bool is_node = false;
    bool accumulates = false;
    bool inferred = false;  // no call: what was made between two calls
  };

  enum class Found : std::uint8_t { kYes, kOutside, kBefore, kForgotten };

  explicit Intervals(std::size_t capacity) : capacity_(capacity) {}
  void set_capacity(std::size_t capacity);

  // The thread's counter at its first record: what was made earlier is not ours to know.
  void start(std::uint64_t sequence) noexcept {
    if (!started_) first_sequence_ = sequence;
    started_ = true;
  }
  void open(Interval interval);
  void close(std::uint64_t end) noexcept;
  // Whatever is open will not be closed: it ends at this number.
  void close_all(std::uint64_t end) noexcept {
    while (!open_.empty()) close(end);
  }

  struct Result {
    Found found;
    const Interval* interval;  // set where found
  };
  Result find(std::uint64_t sequence) const noexcept;

  // The interval around this one, or nullptr.
  const Interval* parent(const Interval& interval) const noexcept { return at(interval.parent); }

  std::size_t size() const noexcept { return intervals_.size(); }

  // No more will come: gives back the memory that is not used, and later all of it.
  void shrink() { intervals_.shrink_to_fit(); }
  void forget_all() {
    forget(intervals_.size());
    shrink();
  }

 private:
  const Interval* at(std::uint64_t number_plus_one) const noexcept;
  std::size_t first_after(std::uint64_t sequence) const noexcept;
  void forget(std::size_t count);

  std::size_t capacity_;
  std::vector<Interval> intervals_;
  std::uint64_t forgotten_ = 0;      // how many were dropped from the front
  std::uint64_t forgotten_end_ = 0;  // how far those reach that have ended
  std::vector<std::uint64_t> open_;  // numbers + 1
  std::uint64_t first_sequence_ = 0;
  bool started_ = false;
  mutable std::size_t last_found_ = 0;  // where the last search ended; not what it found
};

}  // namespace layertrace
