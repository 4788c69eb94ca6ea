// Ticks, nanoseconds, and what the host says of itself.
#include "base/clock.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <ctime>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "base/host_info.h"

namespace layertrace {
namespace {

TEST(TickScale, IsTheIdentityByDefault) {
  const TickScale scale;
  for (const std::uint64_t ticks : {std::uint64_t{0}, std::uint64_t{7}, std::uint64_t{1} << 62}) {
    EXPECT_EQ(scale.to_ns(ticks), ticks);
  }
  EXPECT_EQ(scale.ns_per_tick(), 1.0);
}

TEST(TickScale, ScalesFromItsBaseBothWays) {
  const TickScale scale(1000, 500, 0.25);
  EXPECT_EQ(scale.to_ns(1000), 500u);
  EXPECT_EQ(scale.to_ns(1004), 501u);
  EXPECT_EQ(scale.to_ns(1003), 500u);  // rounded down
  EXPECT_EQ(scale.to_ns(996), 499u);   // a record from before the measurement
  EXPECT_EQ(scale.to_ns(0), 250u);
  EXPECT_EQ(scale.ns_per_tick(), 0.25);
}

TEST(TickScale, DoesNotOverflowInALongRun) {
  const std::uint64_t year_ticks = std::uint64_t{3'000'000'000} * 86'400 * 365;
  const TickScale scale(0, 0, 1.0 / 3);
  const double expected_ns = static_cast<double>(year_ticks) / 3;
  EXPECT_NEAR(static_cast<double>(scale.to_ns(year_ticks)), expected_ns, expected_ns * 1e-9);
}

TEST(TickScale, NeverDecreases) {
  std::mt19937_64 random(1);
  for (const double rate : {0.1, 0.333333, 0.4166, 1.0, 2.5}) {
    const TickScale scale(1'000'000, 50'000, rate);
    std::uint64_t ticks = 1'000'000 - 5'000;
    std::uint64_t last_ns = scale.to_ns(ticks);
    for (int i = 0; i < 10'000; ++i) {
      ticks += random() % 4;
      const std::uint64_t ns = scale.to_ns(ticks);
      ASSERT_GE(ns, last_ns) << "at " << ticks << " with rate " << rate;
      last_ns = ns;
    }
  }
}

TEST(Clocks, AreReadAtOneMoment) {
  const auto read = [](clockid_t clock) {
    timespec time{};
    clock_gettime(clock, &time);
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000U +
           static_cast<std::uint64_t>(time.tv_nsec);
  };
  const clockid_t clocks[] = {CLOCK_BOOTTIME, CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW, CLOCK_REALTIME};
  std::uint64_t before[4], after[4];
  for (int i = 0; i < 4; ++i) before[i] = read(clocks[i]);
  const auto now = read_clocks();
  for (int i = 0; i < 4; ++i) after[i] = read(clocks[i]);
  ASSERT_TRUE(now);
  const std::uint64_t got[] = {now->boottime_ns, now->monotonic_ns, now->monotonic_raw_ns,
                               now->realtime_ns};
  for (int i = 0; i < 4; ++i) {
    EXPECT_GE(got[i], before[i]) << i;
    EXPECT_LE(got[i], after[i]) << i;
  }
}

TEST(TickScale, MeasuredTurnsTicksIntoBoottime) {
  const TickScale scale = TickScale::measure();
  const std::uint64_t before_ns = boottime_ns();
  const std::uint64_t ns = scale.to_ns(clock_ticks());
  const std::uint64_t after_ns = boottime_ns();
  // Generous: the point is the unit and the origin, not the precision.
  constexpr std::uint64_t kSlackNs = 100'000'000;
  EXPECT_GE(ns + kSlackNs, before_ns);
  EXPECT_LE(ns, after_ns + kSlackNs);
}

TEST(Clock, TicksGoForward) {
  std::uint64_t last = clock_ticks();
  for (int i = 0; i < 10'000; ++i) {
    const std::uint64_t now = clock_ticks();
    ASSERT_GE(now, last);
    last = now;
  }
}

TEST(Clock, HasTheNameOfWhatIsRead) {
  EXPECT_EQ(clock_name(), detail::counter_is_invariant ? "tsc" : "boottime");
}

TEST(HostInfo, FillsEveryField) {
  RunInfo run;
  describe_host(run);
  EXPECT_FALSE(run.host.empty());
  EXPECT_NE(run.os.find("Linux"), std::string::npos) << run.os;
  EXPECT_FALSE(run.cpu.empty());
  EXPECT_GE(run.cpu_count, 1u);
  EXPECT_GT(run.memory_bytes, std::uint64_t{1} << 20);
  EXPECT_EQ(run.pid, static_cast<std::uint64_t>(getpid()));
  EXPECT_EQ(run.program, "base_test");
  EXPECT_NE(run.command.find("base_test"), std::string::npos) << run.command;
  ASSERT_EQ(run.created.size(), std::string("2026-01-02T03:04:05Z").size()) << run.created;
  EXPECT_EQ(run.created[10], 'T');
  EXPECT_EQ(run.created.back(), 'Z');
}

}  // namespace
}  // namespace layertrace
