// What a device did while a step lasted, and who let it wait.
#include "attribute/device_idle.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace layertrace {
namespace {

constexpr LayerId kA{0};
constexpr LayerId kB{1};
constexpr std::uint32_t kMain = 100;
constexpr std::uint32_t kOther = 200;
using Lines = std::vector<std::string>;

struct Asked {
  std::uint64_t at = 0;
  std::uint32_t tid = kMain;
  LayerId layer = kNoLayer;
  Phase phase = Phase::kForward;
};

DeviceSpan ran(std::uint64_t start_ns, std::uint64_t end_ns, Asked asked,
               DeviceKind kind = DeviceKind::kKernel, std::uint32_t device = 0) {
  DeviceSpan span{.start_ns = start_ns,
                  .end_ns = end_ns,
                  .launch_ns = asked.at,
                  .launch_tid = asked.tid,
                  .phase = asked.phase,
                  .layer = asked.layer,
                  .what = {}};
  span.what.kind = kind;
  span.what.device = device;
  return span;
}

LaunchSpan called(std::uint64_t start_ns, std::uint64_t end_ns, CallKind kind,
                  std::uint32_t tid = kMain) {
  return {.start_ns = start_ns, .end_ns = end_ns, .tid = tid, .kind = kind};
}

std::string text(const DeviceStep& step) {
  return fmt::format("{}: busy {} idle {} copy {}", step.device, step.busy_ns, step.idle_ns,
                     step.exposed_copy_ns);
}

Lines texts(const std::vector<DeviceStep>& steps) {
  Lines lines;
  for (const DeviceStep& step : steps) lines.push_back(text(step));
  return lines;
}

// "a forward launch 20 in 2", where 20 ns fell into two gaps.
Lines places(const DeviceIdle& device, std::uint64_t steps = 1) {
  Lines lines;
  for (const Idle& idle : device.idle(steps)) {
    lines.push_back(fmt::format("{} {} {} {} in {}",
                                idle.layer < 0    ? "-"
                                : idle.layer == 0 ? "a"
                                                  : "b",
                                phase_name(idle.phase), idle_cause_name(idle.cause), idle.ns,
                                idle.gaps));
  }
  return lines;
}

class DeviceIdleTest : public ::testing::Test {
 protected:
  // One step of 100 ns.
  Lines fold(std::uint64_t end_ns = 100) {
    idle_.end_step(end_ns, kMain);
    return texts(idle_.fold_oldest(sums_));
  }

  DeviceIdle idle_;
  StepSums sums_;
};

TEST_F(DeviceIdleTest, IsWhatNoActivityCovers) {
  idle_.begin_step(0);
  idle_.activity(ran(40, 60, {10}));
  idle_.activity(ran(10, 30, {10}));
  idle_.activity(ran(20, 35, {10}));  // on another stream
  idle_.activity(ran(90, 250, {10}));
  EXPECT_EQ(fold(), Lines{"0: busy 55 idle 45 copy 0"});
}

TEST_F(DeviceIdleTest, ShowsCopiesWhileNoKernelRuns) {
  idle_.begin_step(0);
  idle_.activity(ran(10, 40, {10}));
  idle_.activity(ran(30, 50, {10}, DeviceKind::kCopy));
  idle_.activity(ran(45, 60, {10}, DeviceKind::kSet));
  idle_.activity(ran(55, 70, {10}));
  EXPECT_EQ(fold(), Lines{"0: busy 60 idle 40 copy 15"});
}

TEST_F(DeviceIdleTest, TellsDevicesApart) {
  idle_.begin_step(0);
  idle_.activity(ran(0, 50, {1}, DeviceKind::kKernel, 1));
  idle_.activity(ran(0, 30, {1}, DeviceKind::kKernel, 0));
  EXPECT_EQ(fold(), (Lines{"0: busy 30 idle 70 copy 0", "1: busy 50 idle 50 copy 0"}));
  idle_.begin_step(100);
  idle_.activity(ran(110, 150, {1}, DeviceKind::kKernel, 1));
  EXPECT_EQ(fold(200), (Lines{"0: busy 0 idle 100 copy 0", "1: busy 40 idle 60 copy 0"}));
}

TEST_F(DeviceIdleTest, IsNobodysWithoutADevice) {
  idle_.begin_step(0);
  idle_.move(kMain, 10, kA, Phase::kForward);
  EXPECT_EQ(fold(), Lines{});
  EXPECT_EQ(places(idle_), Lines{});
}

TEST_F(DeviceIdleTest, IsChargedToWhereTheAskingThreadWas) {
  idle_.begin_step(0);
  idle_.move(kMain, 5, kA, Phase::kForward);
  idle_.move(kMain, 20, kB, Phase::kForward);
  idle_.move(kMain, 50, kNoLayer, Phase::kLoss);
  idle_.move(kOther, 10, kA, Phase::kBackward);
  idle_.move(kOther, 98, kNoLayer, Phase::kOther);
  idle_.activity(ran(30, 60, {26, kMain, kB}));                      // asked for late in b
  idle_.activity(ran(80, 100, {70, kOther, kA, Phase::kBackward}));  // by the other thread
  EXPECT_EQ(fold(), Lines{"0: busy 50 idle 50 copy 0"});
  EXPECT_EQ(places(idle_), (Lines{"a backward launch 20 in 1", "a forward launch 15 in 1",
                                  "b forward launch 10 in 1", "- other launch 5 in 1"}));
  EXPECT_EQ(sums_.cell(kA, Phase::kBackward).idle_ns, 20u);
  EXPECT_EQ(sums_.cell(kA, Phase::kForward).idle_ns, 15u);
  EXPECT_EQ(sums_.cell(kB, Phase::kForward).idle_ns, 10u);
  EXPECT_EQ(sums_.outside(Phase::kOther).idle_ns, 5u);
}

// The host may have gone on: no layer waits longer than it lasts there.
TEST_F(DeviceIdleTest, BetweenAskingAndStartingIsWhereTheHostIs) {
  idle_.begin_step(0);
  idle_.move(kMain, 0, kA, Phase::kForward);
  idle_.move(kMain, 30, kB, Phase::kForward);
  idle_.call(called(35, 60, CallKind::kWait));  // for what was asked for, which is on its way
  idle_.activity(ran(50, 100, {10, kMain, kA, Phase::kForward}));
  fold();
  EXPECT_EQ(places(idle_), (Lines{"a forward launch 30 in 1", "b forward launch 20 in 1"}));
}

TEST_F(DeviceIdleTest, BetweenAskingAndStartingIsOfTheActivitysLayerWhereTheHostIsNotKnown) {
  idle_.begin_step(0);
  idle_.move(kMain, 0, kA, Phase::kForward);
  idle_.activity(ran(50, 100, {10, kOther, kB, Phase::kBackward}));
  fold();
  EXPECT_EQ(places(idle_), (Lines{"b backward launch 40 in 1", "- other launch 10 in 1"}));
}

// A loader's batch is copied when it is there: until then it is the loader that is waited for.
TEST_F(DeviceIdleTest, BeforeACopyIsDataWhileDataIsLoaded) {
  idle_.begin_step(0);
  idle_.move(kMain, 0, kNoLayer, Phase::kData);
  idle_.call(called(40, 45, CallKind::kCopy));
  idle_.activity(ran(50, 100, {40, kMain, kNoLayer, Phase::kData}, DeviceKind::kCopy));
  fold();
  EXPECT_EQ(places(idle_), (Lines{"- data data 40 in 1", "- data copy 10 in 1"}));
}

TEST_F(DeviceIdleTest, HasACause) {
  idle_.begin_step(0);
  idle_.move(kMain, 0, kA, Phase::kForward);
  idle_.call(called(10, 25, CallKind::kWait));
  idle_.call(called(25, 30, CallKind::kCopy));
  idle_.call(called(12, 20, CallKind::kWait, kOther));  // somebody else
  idle_.call(called(31, 32, CallKind::kAsk));
  idle_.activity(ran(40, 50, {40, kMain, kA}));
  idle_.activity(ran(57, 60, {56, kMain, kA}, DeviceKind::kCopy));
  idle_.move(kMain, 60, kNoLayer, Phase::kData);
  idle_.activity(ran(80, 100, {80, kMain, kA}));
  EXPECT_EQ(fold(), Lines{"0: busy 33 idle 67 copy 3"});
  EXPECT_EQ(places(idle_), (Lines{"- data data 20 in 1", "a forward launch 20 in 1",
                                  "a forward synchronisation 15 in 1", "a forward copy 12 in 2"}));
}

TEST_F(DeviceIdleTest, AtTheEndOfAStepIsOfTheThreadThatEndsIt) {
  idle_.begin_step(0);
  idle_.move(kMain, 0, kNoLayer, Phase::kOptimizer);
  idle_.activity(ran(0, 40, {1, kOther, kA}));
  idle_.call(called(35, 50, CallKind::kWait));
  idle_.activity(ran(120, 130, {60, kOther, kA}));  // in no step
  fold();
  EXPECT_EQ(places(idle_),
            (Lines{"- optimizer launch 50 in 1", "- optimizer synchronisation 10 in 1"}));
}

TEST_F(DeviceIdleTest, OfAnActivityThatNobodyAskedForIsOfThatThreadToo) {
  idle_.begin_step(0);
  idle_.move(kMain, 0, kNoLayer, Phase::kLoss);
  idle_.activity(ran(30, 100, {0, 0}));
  fold();
  EXPECT_EQ(places(idle_), Lines{"- loss launch 30 in 1"});
}

TEST_F(DeviceIdleTest, CountsActivitiesInEachStepInWhichTheyRan) {
  idle_.begin_step(0);
  idle_.end_step(100, kMain);
  idle_.begin_step(100);
  idle_.activity(ran(250, 260, {50}));  // came before its step began
  idle_.activity(ran(90, 230, {50}));
  idle_.call(called(240, 245, CallKind::kWait));
  idle_.end_step(200, kMain);
  idle_.begin_step(200);
  idle_.end_step(300, kMain);
  EXPECT_EQ(texts(idle_.fold_oldest(sums_)), Lines{"0: busy 10 idle 90 copy 0"});
  EXPECT_EQ(texts(idle_.fold_oldest(sums_)), Lines{"0: busy 100 idle 0 copy 0"});
  EXPECT_EQ(texts(idle_.fold_oldest(sums_)), Lines{"0: busy 40 idle 60 copy 0"});
  EXPECT_EQ(places(idle_, 2), (Lines{"- other launch 45 in 1", "- forward launch 30 in 1"}));
}

TEST_F(DeviceIdleTest, IsTheSameInWhateverOrderItComes) {
  std::vector<DeviceSpan> spans;
  std::vector<LaunchSpan> calls;
  for (std::uint64_t i = 0; i < 40; ++i) {
    const std::uint64_t start = 7 * i + i % 3;
    spans.push_back(ran(start, start + 2 + i % 5,
                        {start - std::min<std::uint64_t>(start, i % 6), i % 4 == 0 ? kOther : kMain,
                         i % 2 == 0 ? kA : kB},
                        i % 7 == 0 ? DeviceKind::kCopy : DeviceKind::kKernel,
                        static_cast<std::uint32_t>(i % 9 == 0)));
    calls.push_back(called(start, start + 3, i % 2 == 0 ? CallKind::kWait : CallKind::kCopy));
  }
  const auto run = [&](bool late) {
    DeviceIdle idle;
    StepSums sums;
    Lines lines;
    const auto tell = [&] {
      for (const DeviceSpan& span : spans) idle.activity(span);
      for (const LaunchSpan& call : calls) idle.call(call);
    };
    idle.move(kMain, 0, kA, Phase::kForward);
    for (std::uint64_t step = 0; step < 3; ++step) {
      idle.begin_step(100 * step);
      if (step == 0 && !late) tell();
      idle.move(kMain, 100 * step + 30, kB, Phase::kBackward);
      idle.end_step(100 * step + 100, kMain);
    }
    if (late) tell();
    for (int step = 0; step < 3; ++step) {
      for (const std::string& line : texts(idle.fold_oldest(sums))) lines.push_back(line);
    }
    for (const std::string& line : places(idle, 3)) lines.push_back(line);
    return lines;
  };
  const Lines expected = run(false);
  EXPECT_EQ(run(true), expected);
  std::reverse(spans.begin(), spans.end());
  std::reverse(calls.begin(), calls.end());
  EXPECT_EQ(run(false), expected);
  EXPECT_EQ(run(true), expected);
}

TEST(DeviceIdleOfAStepWithoutEnd, IsSettledOnTheWay) {
  const auto run = [](std::size_t most_activities) {
    DeviceIdle idle(most_activities);
    StepSums sums;
    idle.begin_step(0);
    idle.move(kMain, 0, kA, Phase::kForward);
    for (std::uint64_t i = 0; i < 10'000; ++i) {
      // Each second one overlaps the one before it, and some are copies.
      idle.activity(ran(10 * i, 10 * i + 4 + 8 * (i % 2), {10 * i - std::min<std::uint64_t>(i, 3)},
                        i % 3 == 0 ? DeviceKind::kCopy : DeviceKind::kKernel));
    }
    idle.end_step(100'500, kMain);
    Lines lines = texts(idle.fold_oldest(sums));
    for (const std::string& line : places(idle)) lines.push_back(line);
    return lines;
  };
  EXPECT_EQ(run(16), run(1 << 20));
  EXPECT_EQ(run(101), run(1 << 20));
}

TEST_F(DeviceIdleTest, ForgetsAStepThatWasNone) {
  idle_.begin_step(0);
  idle_.end_step(100, kMain);
  idle_.begin_step(100);
  idle_.activity(ran(110, 120, {105}));
  idle_.drop_last_step();
  EXPECT_EQ(texts(idle_.fold_oldest(sums_)), Lines{});
  EXPECT_EQ(places(idle_), Lines{});
}

}  // namespace
}  // namespace layertrace
