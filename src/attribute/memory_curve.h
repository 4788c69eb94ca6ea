// How much memory was in use, over a step.
//
// A step may take and give back millions of blocks; a picture of it is some hundred pixels wide.
// Kept are at most kMost points: while there are few, each change; when there are more, the highest
// level of every two, four, eight… changes, so that no peak is lost.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <layertrace/profile.h>

#include "attribute/span.h"

namespace layertrace {

class MemoryCurve {
 public:
  static constexpr std::size_t kMost = 2000;

  struct Point {
    std::uint64_t ns = 0;
    std::int64_t bytes = 0;
    LayerId layer = kNoLayer;
    Phase phase = Phase::kOther;
  };

  // Threads tell a little out of order: a point is never before the one that was told last.
  void add(Point point);

  // In the order of time; the last is where it ended.
  std::vector<Point> points() const;

 private:
  void halve();

  std::vector<Point> points_;
  std::uint64_t stride_ = 1;   // changes that a point stands for
  std::uint64_t pending_ = 0;  // changes since the last point
  Point highest_;              // of these
  Point last_;
};

}  // namespace layertrace
