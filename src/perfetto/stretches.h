// The stretches of time in which a track has slices. A track's slices must not overlap, and those
// of a device come in no particular order: mostly one after the other, but some late.
#pragma once

#include <cstdint>
#include <vector>

namespace layertrace {

class Stretches {
 public:
  // Takes this stretch, if nothing is in its way. It may begin where an earlier one ends; but what
  // comes late must end before the next one begins: where times are the same, the order of their
  // packets is the order on the track.
  bool take(std::uint64_t start_ns, std::uint64_t end_ns) {
    if (start_ns < last_end_ns_) return take_between(start_ns, end_ns);
    append(start_ns, end_ns);
    return true;
  }

 private:
  // More than a stream does in the time that something may come late. Of what was before them, it
  // is forgotten when nothing was there: all of it counts as taken.
  static constexpr std::size_t kMost = std::size_t{1} << 15;

  struct Stretch {
    std::uint64_t start_ns;
    std::uint64_t end_ns;
  };

  void append(std::uint64_t start_ns, std::uint64_t end_ns) {
    if (!stretches_.empty() && start_ns == last_end_ns_) {
      stretches_.back().end_ns = end_ns;
    } else {
      if (stretches_.size() == kMost) forget_oldest();
      stretches_.push_back({start_ns, end_ns});
    }
    last_end_ns_ = end_ns;
  }
  bool take_between(std::uint64_t start_ns, std::uint64_t end_ns);
  void forget_oldest();

  std::vector<Stretch> stretches_;  // in order, with time between any two
  std::uint64_t last_end_ns_ = 0;
  std::uint64_t forgotten_ns_ = 0;  // up to here
};

}  // namespace layertrace
