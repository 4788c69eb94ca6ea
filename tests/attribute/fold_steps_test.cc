// Steps: where they begin and end, what belongs to which, and figures over many of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "attribute/fold.h"
#include "attribute/folding.h"
#include "attribute/series.h"

namespace layertrace {
namespace {

using test::fold;
using test::outside;
using test::phase_ns;
using test::Script;
using test::stats_of;
using test::ThreadScript;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::uint64_t> indices(const Profile& profile) {
  std::vector<std::uint64_t> result;
  for (const Step& step : profile.steps) result.push_back(step.index);
  return result;
}

TEST(Steps, EndWhereTheyAreMarked) {
  Script script({"", "a"});
  script.thread().on(100).enter(110, "a").leave(120).step(200, 0).enter(210, "a").leave(240).step(
      300, 1);
  const Profile profile = fold(script, 300);
  ASSERT_THAT(indices(profile), ElementsAre(0, 1));
  EXPECT_EQ(profile.steps[0].start_ns, 100u);
  EXPECT_EQ(profile.steps[0].wall_ns, 100u);
  EXPECT_EQ(profile.steps[1].start_ns, 200u);
  EXPECT_EQ(profile.steps[1].wall_ns, 100u);
  const Stat host = stats_of(profile, "a").host_ns;
  EXPECT_EQ(host.mean, 20);
  EXPECT_EQ(host.min, 10);
  EXPECT_EQ(host.max, 30);
  EXPECT_EQ(host.median, 20);
  EXPECT_DOUBLE_EQ(host.stdev, std::sqrt(200.0));
  EXPECT_TRUE(profile.health.notes.empty());
}

TEST(Steps, CountAStepInWhichNothingHappenedAsZero) {
  Script script({"", "a"});
  script.thread().on(0).enter(1, "a").leave(31).step(100, 0).step(200, 1).step(300, 2);
  const Stat host = stats_of(fold(script, 300), "a").host_ns;
  EXPECT_EQ(host.mean, 10);
  EXPECT_EQ(host.min, 0);
  EXPECT_EQ(host.max, 30);
  EXPECT_EQ(host.median, 0);
  EXPECT_DOUBLE_EQ(host.stdev, std::sqrt(300.0));
}

TEST(Steps, LeaveOutWhatComesAfterTheLast) {
  Script script({"", "a"});
  script.thread()
      .on(0)
      .enter(1, "a")
      .leave(2)
      .step(10, 0)
      .enter(11, "a")
      .op(12, 13, "mm")
      .leave(99);
  const Profile profile = fold(script, 100);
  ASSERT_THAT(indices(profile), ElementsAre(0));
  EXPECT_EQ(stats_of(profile, "a").host_ns.mean, 1);
  ASSERT_EQ(profile.health.notes.size(), 1u);
  EXPECT_THAT(profile.health.notes[0], HasSubstr("1 activity after the last step()"));
}

TEST(Steps, AreOneWhereNobodyCountsThem) {
  Script script({"", "a"});
  script.thread().on(10).enter(20, "a").op(21, 23, "mm").leave(30);
  const Profile profile = fold(script, 60);
  ASSERT_THAT(indices(profile), ElementsAre(0));
  EXPECT_EQ(profile.steps[0].wall_ns, 50u);
  EXPECT_EQ(phase_ns(profile.steps[0], Phase::kForward), 10u);
  EXPECT_EQ(stats_of(profile, "a").host_ns.mean, 10);
  EXPECT_EQ(stats_of(profile, "a").host_ns.stdev, 0);
}

TEST(Steps, AreOneThatHoldsWhatCameAfterTheStop) {
  Script script({"", "a"});
  script.thread().on(10).enter(20, "a").leave(80);
  const Profile profile = fold(script, 60);  // stop() read the clock before the scope ended
  EXPECT_EQ(profile.steps.at(0).wall_ns, 70u);
  EXPECT_EQ(phase_ns(profile.steps[0], Phase::kForward), 60u);
}

TEST(Steps, MayBeNone) {
  const Script script({"", "a"});
  const Profile profile = fold(script, 60);
  EXPECT_TRUE(profile.steps.empty());
  EXPECT_FALSE(profile.find("a")->ran);
  EXPECT_EQ(profile.health.attributed_share, 1);
}

TEST(Steps, AreRecordedInWindows) {
  Script script({"", "a"});
  ThreadScript& t = script.thread();
  t.enter(1, "a").leave(2);  // warm-up
  t.on(10, 3).enter(11, "a").leave(15).step(20, 3).enter(21, "a").leave(27).step(30, 4).off(30, 5);
  t.enter(40, "a").leave(90);
  t.on(100, 8).enter(101, "a").leave(103).step(110, 8).off(110, 9);
  const Profile profile = fold(script, 200);
  ASSERT_THAT(indices(profile), ElementsAre(3, 4, 8));
  EXPECT_EQ(profile.steps[2].start_ns, 100u);
  EXPECT_EQ(stats_of(profile, "a").host_ns.mean, 4);
  EXPECT_EQ(stats_of(profile, "a").host_ns.max, 6);
  EXPECT_TRUE(profile.health.notes.empty());
}

// ---- What is open where a step ends ----

TEST(Steps, ShareARegionThatIsAroundThemAll) {
  Script script({"", "a"});
  ThreadScript& t = script.thread();
  t.on(0).region(10, "epoch");
  t.enter(20, "a").leave(30).step(100, 0);
  t.enter(120, "a").leave(140).step(200, 1);
  t.enter(220, "a").leave(250).step(300, 2);
  t.end_region(350);
  const Profile profile = fold(script, 400);
  ASSERT_EQ(profile.steps.size(), 3u);
  EXPECT_EQ(phase_ns(profile.steps[0], Phase::kForward), 10u);
  EXPECT_EQ(phase_ns(profile.steps[1], Phase::kForward), 20u);
  EXPECT_EQ(phase_ns(profile.steps[2], Phase::kOther), 70u);
  const PhaseStats& other = outside(profile, Phase::kOther);
  EXPECT_EQ(other.host_ns.min, 70);
  EXPECT_EQ(other.host_ns.max, 90);
  EXPECT_EQ(other.calls.max, 1);  // in the step in which it began
}

TEST(Steps, ShareALayerThatIsAroundThem) {
  // A module whose forward runs the training loop.
  Script script({"", "a"});
  ThreadScript& t = script.thread();
  t.on(0).enter(10, "").enter(20, "").enter(30, "a").region(40, "part").step(100, 0);
  t.end_region(110).leave(130).leave(140).leave(150).step(200, 1);
  const Profile profile = fold(script, 200);
  const PhaseStats& root = stats_of(profile, "");
  EXPECT_EQ(root.host_ns.max, 90);  // 10…100, then 100…150
  EXPECT_EQ(root.host_ns.min, 50);
  EXPECT_EQ(root.self_host_ns.max, 20);
  EXPECT_EQ(root.self_host_ns.min, 20);
  EXPECT_EQ(stats_of(profile, "a").host_ns.max, 70);
  EXPECT_EQ(stats_of(profile, "a").host_ns.min, 30);
  EXPECT_EQ(stats_of(profile, "a").self_host_ns.mean, 50);
  EXPECT_EQ(root.calls.mean * 2, 2);
}

TEST(Steps, LeaveAPauseOutOfWhatIsAroundIt) {
  Script script({"", "a"});
  ThreadScript& t = script.thread();
  t.on(0).region(10, "epoch").step(100, 0).off(100, 1);
  t.on(1'000, 5).enter(1'010, "a").leave(1'020).step(1'100, 5).off(1'100, 6).end_region(2'000);
  const Profile profile = fold(script, 3'000);
  ASSERT_EQ(profile.steps.size(), 2u);
  EXPECT_EQ(outside(profile, Phase::kOther).host_ns.max, 100);
  EXPECT_EQ(phase_ns(profile.steps[1], Phase::kOther), 90u);
}

TEST(Steps, ShareWhatAnotherThreadHasOpen) {
  Script script({"", "a", "b"});
  script.thread(1).on(0).step(100, 0).step(200, 1).step(300, 2);
  script.thread(2).enter(50, "a").op(60, 190, "mm").leave(195);
  const Profile profile = fold(script, 300);
  EXPECT_EQ(stats_of(profile, "a").host_ns.mean * 3, 145);
  EXPECT_EQ(stats_of(profile, "a").host_ns.max, 95);
  EXPECT_EQ(stats_of(profile, "a").calls.mean * 3, 1);
  EXPECT_EQ(stats_of(profile, "a").activities.max, 1);
}

// A loader's thread that is at work when the recording pauses.
TEST(Steps, TakeNothingOfAnotherThreadFromAfterTheirEnd) {
  Script script({"", "a"});
  script.thread(1).on(0).step(100, 0).off(100, 1).on(5'000, 9).step(5'100, 9).off(5'100, 10);
  script.thread(2).region(50, "data", Phase::kData).end_region(2'000);
  script.thread(3).region(60, "data", Phase::kData);  // its end is never seen
  const Profile profile = fold(script, 9'000);
  ASSERT_EQ(profile.steps.size(), 2u);
  EXPECT_EQ(outside(profile, Phase::kData).host_ns.max, 90);
  EXPECT_EQ(outside(profile, Phase::kData).host_ns.mean * 2, 90);
}

TEST(Steps, AreTheThreadsThatEndedThem) {
  Script script({"", "a"});
  script.thread(1).on(0);
  script.thread(2).enter(10, "a").leave(90).step(100, 0).enter(110, "a").leave(190).step(200, 1);
  const Profile profile = fold(script, 300);
  ASSERT_EQ(profile.steps.size(), 2u);
  EXPECT_EQ(phase_ns(profile.steps[0], Phase::kForward), 80u);
  EXPECT_EQ(phase_ns(profile.steps[1], Phase::kForward), 80u);
}

TEST(Steps, ThatWereNeverMarkedAreOneOfTheBusiestThread) {
  Script script({"", "a"});
  script.thread(1).on(0).enter(1, "a").leave(2);
  script.thread(2).enter(10, "a").leave(90);
  const Profile profile = fold(script, 100);
  EXPECT_FALSE(profile.steps_marked);
  EXPECT_EQ(profile.step_count, 1u);
  EXPECT_EQ(phase_ns(profile.steps.at(0), Phase::kForward), 80u);
}

TEST(Steps, WhoseMarksAreMissingAreSaidToBe) {
  Script script({"", "a"});
  script.thread(1).on(0).step(100, 0).step(500, 4).step(600, 5);
  const Profile profile = fold(script, 600);
  ASSERT_EQ(profile.health.notes.size(), 1u);
  EXPECT_TRUE(profile.health.notes[0].starts_with("3 ends of steps were dropped"));
}

TEST(Steps, LeaveOutScopesAfterTheLastAndSayIt) {
  Script script({"", "a"});
  script.thread().on(0).step(100, 0).enter(110, "a").leave(120);
  const Profile profile = fold(script, 200);
  ASSERT_EQ(profile.health.notes.size(), 1u);
  EXPECT_TRUE(profile.health.notes[0].starts_with("1 scope or node after the last step()"));
}

TEST(Steps, MayBeMarkedByAnyThread) {
  Script script({"", "a"});
  script.thread(1).on(0).enter(10, "a").leave(20).step(100, 0);
  script.thread(2).enter(110, "a").leave(130).step(200, 1).enter(210, "a").leave(215).step(300, 2);
  const Profile profile = fold(script, 300);
  ASSERT_THAT(indices(profile), ElementsAre(0, 1, 2));
  EXPECT_EQ(phase_ns(profile.steps[2], Phase::kForward), 5u);
}

// ---- Figures ----

struct Figures {
  SampleClock clock;
  Series series;
  std::uint64_t steps = 0;

  void next() {
    if (steps++ != 0 && clock.advance()) series.halve();
  }
  void add(double value) {
    next();
    series.add(value, clock);
  }
  Stat stat() const { return series.stat(steps, clock.slot() + 1); }
};

TEST(Series, HasNoFiguresWithoutSteps) {
  const Series series;
  EXPECT_EQ(series.stat(0, 0).mean, 0);
  EXPECT_EQ(series.stat(0, 0).stdev, 0);
  EXPECT_EQ(series.stat(5, 5).max, 0);
}

TEST(Series, OfOneStepIsThatStep) {
  Figures figures;
  figures.add(7);
  const Stat stat = figures.stat();
  EXPECT_EQ(stat.mean, 7);
  EXPECT_EQ(stat.min, 7);
  EXPECT_EQ(stat.max, 7);
  EXPECT_EQ(stat.median, 7);
  EXPECT_EQ(stat.stdev, 0);
}

TEST(Series, CountsMissingStepsAsZero) {
  Figures figures;
  figures.next();
  figures.add(6);
  figures.next();
  figures.add(2);
  const Stat stat = figures.stat();
  EXPECT_EQ(stat.mean, 2);
  EXPECT_EQ(stat.min, 0);
  EXPECT_EQ(stat.max, 6);
  EXPECT_EQ(stat.median, 1);
  EXPECT_DOUBLE_EQ(stat.stdev, std::sqrt(24.0 / 3));
}

TEST(Series, KeepsTheDigitsOfASmallDeviation) {
  Figures figures;
  for (const double value : {1e10, 1e10 + 1, 1e10 + 2}) figures.add(value);
  EXPECT_DOUBLE_EQ(figures.stat().stdev, 1);
  EXPECT_EQ(figures.stat().mean, 1e10 + 1);
}

TEST(Series, IsExactButForTheMedianOverManySteps) {
  for (const std::uint64_t steps : {256u, 257u, 511u, 512u, 513u, 1'000u, 5'000u}) {
    Figures figures;
    double sum = 0;
    for (std::uint64_t i = 0; i < steps; ++i) {
      const auto value = static_cast<double>(i);
      figures.add(value);
      sum += value;
    }
    const Stat stat = figures.stat();
    const auto n = static_cast<double>(steps);
    EXPECT_DOUBLE_EQ(stat.mean, sum / n);
    EXPECT_EQ(stat.min, 0);
    EXPECT_EQ(stat.max, n - 1);
    EXPECT_NEAR(stat.stdev, std::sqrt(n * (n + 1) / 12), 1e-6 * n);
    // Of an even subset: at most a stride away from the true one.
    EXPECT_NEAR(stat.median, (n - 1) / 2, steps <= 256 ? 0 : n / 128) << steps;
  }
}

TEST(Series, HalvesWhatOccurredNowAndThen) {
  Figures figures;
  for (std::uint64_t i = 0; i < 2'000; ++i) {
    if (i % 10 == 9) {
      figures.add(100);
    } else {
      figures.next();
    }
  }
  const Stat stat = figures.stat();
  EXPECT_DOUBLE_EQ(stat.mean, 10);
  EXPECT_EQ(stat.median, 0);
  EXPECT_EQ(stat.max, 100);
}

// With little memory the list of steps is thinned out, and the medians' samples; nothing else.
TEST(Steps, KeepWithinMemory) {
  Script script({"", "a"});
  ThreadScript& t = script.thread();
  t.on(0);
  constexpr std::uint64_t kSteps = 10'000;
  for (std::uint64_t i = 0; i < kSteps; ++i) {
    t.enter(100 * i, "a").leave(100 * i + 1 + i % 50).step(100 * i + 100, i);
  }
  Fold fold(script.dictionary, 32'768);
  test::feed(script, fold, script.written.size(), 100 * kSteps);
  const Profile profile = fold.finish(100 * kSteps);
  EXPECT_EQ(profile.step_count, kSteps);
  EXPECT_EQ(profile.step_ns.mean, 100);
  EXPECT_LE(profile.steps.size() * sizeof(Step), 16'384u);
  EXPECT_GT(profile.steps.size(), 50u);
  EXPECT_EQ(profile.steps[1].index, 2 * (profile.steps[1].index / 2));
  EXPECT_EQ(profile.steps[1].index - profile.steps[0].index,
            profile.steps[2].index - profile.steps[1].index);
  EXPECT_DOUBLE_EQ(stats_of(profile, "a").host_ns.mean, 25.5);
  EXPECT_EQ(stats_of(profile, "a").host_ns.max, 50);
  EXPECT_NEAR(stats_of(profile, "a").host_ns.median, 25, 10);
}

TEST(Steps, AreFoldedInThousands) {
  Script script({"", "a"});
  ThreadScript& t = script.thread();
  t.on(0);
  constexpr std::uint64_t kSteps = 1'500;
  for (std::uint64_t i = 0; i < kSteps; ++i) {
    t.enter(100 * i + 1, "a").leave(100 * i + 1 + i % 50).step(100 * i + 100, i);
  }
  const Profile profile = fold(script, 100 * kSteps);
  EXPECT_EQ(profile.steps.size(), kSteps);
  const Stat host = stats_of(profile, "a").host_ns;
  EXPECT_DOUBLE_EQ(host.mean, 24.5);
  EXPECT_EQ(host.max, 49);
  EXPECT_NEAR(host.median, 24.5, 1.5);
}

}  // namespace
}  // namespace layertrace
