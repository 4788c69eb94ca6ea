#include "core/device_clock.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace simgpu {
namespace {

TEST(VirtualClock, StandsStillUntilSomethingHappens) {
  DeviceClock clock(true);
  const std::uint64_t start = clock.now();
  EXPECT_GT(start, 0u);
  EXPECT_EQ(clock.now(), start);
  clock.charge(250);
  EXPECT_EQ(clock.now(), start + 250);
}

TEST(VirtualClock, JumpsToWhatIsWaitedForAndNeverBack) {
  DeviceClock clock(true);
  const std::uint64_t start = clock.now();
  clock.wait_until(start + 3'600'000'000'000);
  EXPECT_EQ(clock.now(), start + 3'600'000'000'000);
  clock.wait_until(start);
  EXPECT_EQ(clock.now(), start + 3'600'000'000'000);
}

TEST(VirtualClock, TakesNoticeOfEveryThread) {
  DeviceClock clock(true);
  const std::uint64_t start = clock.now();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int call = 0; call < 1000; ++call) clock.charge(3);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(clock.now(), start + 12'000);
}

TEST(RealClock, WaitsUntilItIsTime) {
  DeviceClock clock(false);
  clock.charge(1'000'000'000'000);  // not for this one
  const std::uint64_t start = clock.now();
  for (const std::uint64_t wait : {5'000u, 300'000u}) {  // awake, and asleep
    const std::uint64_t until = clock.now() + wait;
    clock.wait_until(until);
    EXPECT_GE(clock.now(), until);
  }
  EXPECT_LT(clock.now() - start, 60'000'000'000u);
}

}  // namespace
}  // namespace simgpu
