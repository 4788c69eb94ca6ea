// Levels of memory over a step: few are kept as they are, many as the highest of several.
#include "attribute/memory_curve.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace layertrace {
namespace {

using Point = MemoryCurve::Point;

TEST(MemoryCurve, KeepsEachChangeOfFew) {
  MemoryCurve curve;
  EXPECT_TRUE(curve.points().empty());
  curve.add({.ns = 5, .bytes = 10});
  curve.add({.ns = 7, .bytes = 4});
  const std::vector<Point> points = curve.points();
  ASSERT_EQ(points.size(), 2);
  EXPECT_EQ(points[0].ns, 5);
  EXPECT_EQ(points[0].bytes, 10);
  EXPECT_EQ(points[1].bytes, 4);
}

TEST(MemoryCurve, OfManyKeepsTheHighestAndWhereItEnded) {
  MemoryCurve curve;
  constexpr std::uint64_t kChanges = 100'003;
  for (std::uint64_t i = 0; i < kChanges; ++i) {
    auto bytes = static_cast<std::int64_t>(i % 2);
    if (i == 54'321) bytes = 1'000'000;  // one change long
    if (i + 1 == kChanges) bytes = -3;
    curve.add({.ns = i, .bytes = bytes});
  }
  const std::vector<Point> points = curve.points();
  EXPECT_LE(points.size(), MemoryCurve::kMost);
  EXPECT_GE(points.size(), MemoryCurve::kMost / 4);
  const auto highest = std::ranges::max_element(points, {}, &Point::bytes);
  EXPECT_EQ(highest->bytes, 1'000'000);
  EXPECT_EQ(highest->ns, 54'321);
  EXPECT_EQ(points.back().ns, kChanges - 1);
  EXPECT_EQ(points.back().bytes, -3);
  EXPECT_TRUE(std::ranges::is_sorted(points, {}, &Point::ns));
}

TEST(MemoryCurve, GoesForwardInTimeWhateverThreadsTell) {
  MemoryCurve curve;
  curve.add({.ns = 9, .bytes = 1});
  curve.add({.ns = 8, .bytes = 2});
  const std::vector<Point> points = curve.points();
  ASSERT_EQ(points.size(), 2);
  EXPECT_EQ(points[1].ns, 9);
  EXPECT_EQ(points[1].bytes, 2);
}

}  // namespace
}  // namespace layertrace
