// Steps that are folded later, many at a time, give what they would give one by one.
#include "attribute/figure_table.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace layertrace {
namespace {

constexpr std::size_t kMemory = std::size_t{8} << 20;

void expect_same(const Stat& got, const Stat& expected) {
  EXPECT_EQ(got.mean, expected.mean);
  EXPECT_EQ(got.min, expected.min);
  EXPECT_EQ(got.max, expected.max);
  EXPECT_EQ(got.median, expected.median);
  EXPECT_EQ(got.stdev, expected.stdev);
}

// A figure that differs from step to step, and is not there in each third.
std::uint64_t figure(std::uint64_t step) { return step % 3 == 2 ? 0 : 1 + step * 7919 % 1000; }

TEST(FigureTable, GivesWhatSeriesGiveStepByStep) {
  // Within the first batch, at its end, and past where samples are halved.
  for (const std::uint64_t steps : {1u, 5u, 32u, 33u, 255u, 256u, 257u, 290u, 1'100u}) {
    FigureTable table(kMemory);
    SampleClock clock;
    Series expected, wall;
    for (std::uint64_t i = 0; i < steps; ++i) {
      if (i != 0 && clock.advance()) {
        expected.halve();
        wall.halve();
      }
      wall.add(static_cast<double>(100 + i), clock);
      table.begin_step(100 + i);
      if (figure(i) != 0) {
        expected.add(static_cast<double>(figure(i)), clock);
        table.add(20, {0, figure(i)});
        table.add_outside(Phase::kData, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
      }
      table.end_step();
    }
    table.flush();
    EXPECT_EQ(table.steps(), steps);
    expect_same(table.step_ns(), wall.stat(steps, clock.slot() + 1));
    expect_same(table.stats(20).host_ns, expected.stat(steps, clock.slot() + 1));
    EXPECT_EQ(table.stats(20).calls.max, 0);
    EXPECT_EQ(table.outside(Phase::kData).idle_ns.max, 11);
    EXPECT_TRUE(table.has(20));
    EXPECT_FALSE(table.has(21));
    EXPECT_EQ(table.stats(21).host_ns.max, 0);
  }
}

// A result while the recording goes on is that of a copy.
TEST(FigureTable, MayBeCopiedBetweenSteps) {
  FigureTable table(kMemory);
  for (const std::uint64_t value : {10, 20}) {
    table.begin_step(1);
    table.add(0, {0, value});
    table.end_step();
  }
  FigureTable copy = table;
  copy.flush();
  EXPECT_EQ(copy.stats(0).host_ns.mean, 15);
  table.begin_step(1);
  table.add(0, {0, 60});
  table.end_step();
  table.flush();
  EXPECT_EQ(table.stats(0).host_ns.mean, 30);
}

// With little memory there are fewer samples, so that a median may be of a subset; the rest is
// exact.
TEST(FigureTable, KeepsFewerSamplesWithLittleMemory) {
  FigureTable table(16'384);
  constexpr std::uint64_t kSteps = 500;
  for (std::uint64_t i = 0; i < kSteps; ++i) {
    table.begin_step(1);
    for (std::size_t slot = 0; slot < 8; ++slot) table.add(slot, {0, 1 + i});
    table.end_step();
  }
  table.flush();
  const Stat stat = table.stats(7).host_ns;
  EXPECT_DOUBLE_EQ(stat.mean, (1.0 + kSteps) / 2);
  EXPECT_EQ(stat.max, kSteps);
  EXPECT_NEAR(stat.median, kSteps / 2.0, kSteps / 8.0);
}

}  // namespace
}  // namespace layertrace
