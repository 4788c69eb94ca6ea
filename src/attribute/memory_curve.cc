#include "attribute/memory_curve.h"

#include <algorithm>

namespace layertrace {

void MemoryCurve::add(Point point) {
  point.ns = std::max(point.ns, last_.ns);
  last_ = point;
  if (pending_ == 0 || point.bytes > highest_.bytes) highest_ = point;
  if (++pending_ < stride_) return;
  pending_ = 0;
  points_.push_back(highest_);
  if (points_.size() + 2 >= kMost) halve();  // two more may follow at the end
}

void MemoryCurve::halve() {
  const std::size_t pairs = points_.size() / 2;
  for (std::size_t i = 0; i < pairs; ++i) {
    const Point& first = points_[2 * i];
    const Point& second = points_[2 * i + 1];
    points_[i] = second.bytes > first.bytes ? second : first;
  }
  points_.resize(pairs);
  stride_ *= 2;
}

std::vector<MemoryCurve::Point> MemoryCurve::points() const {
  std::vector<Point> all = points_;
  if (pending_ > 0) all.push_back(highest_);
  const bool has_last =
      !all.empty() && all.back().ns == last_.ns && all.back().bytes == last_.bytes;
  if (!all.empty() && !has_last) all.push_back(last_);
  return all;
}

}  // namespace layertrace
