#include "activity/device_clock.h"

#include <gtest/gtest.h>

namespace layertrace::cuda {
namespace {

TEST(DeviceClock, LeavesOurOwnTicksAlone) {
  DeviceClock clock;
  EXPECT_TRUE(clock.is_ours());
  clock.add_reading(100, 5'000);
  EXPECT_EQ(clock.to_ticks(0), 0u);
  EXPECT_EQ(clock.to_ticks(123'456), 123'456u);
}

TEST(DeviceClock, AddsTheOffset) {
  DeviceClock clock(1.0);
  EXPECT_FALSE(clock.is_ours());
  clock.add_reading(1'000, 51'000);
  EXPECT_EQ(clock.to_ticks(1'000), 51'000u);
  EXPECT_EQ(clock.to_ticks(1'250), 51'250u);
}

TEST(DeviceClock, UsesOurRateBeforeTheFirstReadingAndAfterTheLast) {
  DeviceClock clock(0.5);  // two ticks in a nanosecond
  clock.add_reading(1'000, 50'000);
  clock.add_reading(2'000, 53'000);  // three, by the readings
  EXPECT_EQ(clock.to_ticks(900), 49'800u);
  EXPECT_EQ(clock.to_ticks(2'100), 53'200u);
}

// The clocks drift apart: between two readings time is on the line between them.
TEST(DeviceClock, FollowsTheDrift) {
  DeviceClock clock(1.0);
  clock.add_reading(1'000, 1'000);
  clock.add_reading(2'000, 2'100);
  clock.add_reading(3'000, 3'000);
  EXPECT_EQ(clock.to_ticks(1'000), 1'000u);
  EXPECT_EQ(clock.to_ticks(1'500), 1'550u);
  EXPECT_EQ(clock.to_ticks(2'000), 2'100u);
  EXPECT_EQ(clock.to_ticks(2'500), 2'550u);
  EXPECT_EQ(clock.to_ticks(3'000), 3'000u);
}

TEST(DeviceClock, NeverRunsBackwards) {
  DeviceClock clock(1.0);
  for (std::uint64_t i = 0; i < 100; ++i) clock.add_reading(1'000 * i, 7'000 + 1'003 * i);
  std::uint64_t last = 0;
  for (std::uint64_t ns = 0; ns < 110'000; ns += 37) {
    const std::uint64_t ticks = clock.to_ticks(ns);
    ASSERT_GE(ticks, last);
    last = ticks;
  }
}

TEST(DeviceClock, PassesOverAReadingThatIsNotLater) {
  DeviceClock clock(1.0);
  clock.add_reading(1'000, 5'000);
  clock.add_reading(1'000, 9'000);
  clock.add_reading(900, 9'000);
  EXPECT_EQ(clock.to_ticks(1'100), 5'100u);
}

// In nanoseconds; a second each reading.
constexpr std::uint64_t kS = 1'000'000'000;
constexpr std::uint64_t kMs = kS / 1'000;

TEST(DeviceClock, BearsAClockThatIsSetBack) {
  DeviceClock clock(1.0);
  EXPECT_FALSE(clock.add_reading(100 * kS, 1 * kS));
  EXPECT_FALSE(clock.add_reading(101 * kS, 2 * kS));
  EXPECT_EQ(clock.to_ticks(100 * kS + 500 * kMs), 1 * kS + 500 * kMs);
  EXPECT_TRUE(clock.add_reading(52 * kS, 3 * kS));  // by fifty seconds
  EXPECT_FALSE(clock.add_reading(53 * kS, 4 * kS));
  EXPECT_EQ(clock.to_ticks(52 * kS + 500 * kMs), 3 * kS + 500 * kMs);
  EXPECT_EQ(clock.to_ticks(51 * kS + 900 * kMs), 2 * kS + 900 * kMs);  // just after it was set
  EXPECT_EQ(clock.to_ticks(100 * kS + 500 * kMs), 1 * kS + 500 * kMs);
  EXPECT_EQ(clock.to_ticks(101 * kS + 100 * kMs), 2 * kS + 100 * kMs);  // just before
}

TEST(DeviceClock, BearsAClockThatIsSetForward) {
  DeviceClock clock(1.0);
  clock.add_reading(100 * kS, 1 * kS);
  EXPECT_TRUE(clock.add_reading(151 * kS, 2 * kS));
  EXPECT_TRUE(clock.add_reading(252 * kS, 3 * kS));
  EXPECT_EQ(clock.to_ticks(100 * kS + 200 * kMs), 1 * kS + 200 * kMs);
  EXPECT_EQ(clock.to_ticks(151 * kS), 2 * kS);
  EXPECT_EQ(clock.to_ticks(151 * kS + 300 * kMs), 2 * kS + 300 * kMs);
  EXPECT_EQ(clock.to_ticks(252 * kS - 100 * kMs), 3 * kS - 100 * kMs);
}

// A time that the clock has told twice was, most likely, the second.
TEST(DeviceClock, TakesATimeToldTwiceForTheLaterUnlessThatIsNotYet) {
  DeviceClock clock(1.0);
  clock.add_reading(100 * kS, 100 * kS);
  clock.add_reading(101 * kS, 101 * kS);
  EXPECT_TRUE(clock.add_reading(101 * kS, 102 * kS));  // by a second
  EXPECT_EQ(clock.to_ticks(101 * kS), 102 * kS);
  EXPECT_EQ(clock.to_ticks(101 * kS + 500 * kMs), 101 * kS + 500 * kMs);  // else half a second on
}

TEST(DeviceClock, TakesNoSlewForAStep) {
  DeviceClock clock(1.0);
  for (std::uint64_t i = 1; i < 100; ++i)
    EXPECT_FALSE(clock.add_reading(1'000'500 * i, 1'000'000 * i));
}

TEST(DeviceClock, ForgetsTheOldestReadings) {
  DeviceClock clock(1.0);
  constexpr std::uint64_t kReadings = 10'000;
  for (std::uint64_t i = 0; i < kReadings; ++i) clock.add_reading(1'000 * i, 2'000 * i);
  EXPECT_EQ(clock.to_ticks(1'000 * (kReadings - 2) + 500), 2'000 * (kReadings - 2) + 1'000);
  // Where none is left the line goes back from the first that is, at our own rate.
  EXPECT_GT(clock.to_ticks(0), 0u);
}

}  // namespace
}  // namespace layertrace::cuda
