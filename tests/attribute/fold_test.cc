// The Profile as a fold over spans: totals, selves, and what is outside any layer.
#include "attribute/fold.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "attribute/folding.h"

namespace layertrace {
namespace {

using test::fold;
using test::outside;
using test::phase_ns;
using test::Script;
using test::stats_of;
using test::ThreadScript;
using ::testing::ElementsAre;

TEST(Totals, IncludeWhatIsInsideAndSelvesDoNot) {
  Script script({"", "a", "a.b"});
  script.thread().on(0).enter(10, "").enter(20, "a").enter(30, "a.b").leave(45).leave(60).leave(
      100);
  script.thread().step(200, 0);
  const Profile profile = fold(script);
  EXPECT_EQ(stats_of(profile, "").host_ns.mean, 90);
  EXPECT_EQ(stats_of(profile, "").self_host_ns.mean, 50);
  EXPECT_EQ(stats_of(profile, "a").host_ns.mean, 40);
  EXPECT_EQ(stats_of(profile, "a").self_host_ns.mean, 25);
  EXPECT_EQ(stats_of(profile, "a.b").host_ns.mean, 15);
  EXPECT_EQ(stats_of(profile, "a.b").self_host_ns.mean, 15);
  EXPECT_EQ(stats_of(profile, "a").calls.mean, 1);
  EXPECT_EQ(profile.find("a")->calls, 1);
  EXPECT_TRUE(profile.find("a")->ran);
}

TEST(Totals, OfAContainerThatIsNeverCalledAreItsChildrens) {
  Script script({"", "list", "list.0", "list.1"});
  script.thread().on(0).enter(0, "");
  script.thread().enter(10, "list.0").leave(30).enter(40, "list.1").leave(45).leave(50).step(60, 0);
  const Profile profile = fold(script);
  EXPECT_EQ(stats_of(profile, "list").host_ns.mean, 25);
  EXPECT_EQ(stats_of(profile, "list").self_host_ns.mean, 0);
  EXPECT_EQ(stats_of(profile, "list").calls.mean, 0);
  EXPECT_EQ(profile.find("list")->calls, 0);
  EXPECT_TRUE(profile.find("list")->ran);
}

TEST(Totals, CountRecursionOnce) {
  Script script({"", "a", "a.b"});
  script.thread().on(0).enter(0, "a").enter(10, "a.b").enter(20, "a").leave(30).leave(40).leave(50);
  script.thread().step(100, 0);
  const Profile profile = fold(script);
  EXPECT_EQ(stats_of(profile, "a").host_ns.mean, 50);
  EXPECT_EQ(stats_of(profile, "a").self_host_ns.mean, 30);
  EXPECT_EQ(stats_of(profile, "a").calls.mean, 2);
  EXPECT_EQ(stats_of(profile, "a.b").host_ns.mean, 30);
  EXPECT_EQ(stats_of(profile, "a.b").self_host_ns.mean, 20);
  EXPECT_EQ(stats_of(profile, "").host_ns.mean, 50);
}

TEST(Totals, OfALayerThatIsCalledElsewhereStayItsOwn) {
  // b is registered under the root and called inside a: its time is in both totals.
  Script script({"", "a", "b"});
  script.thread().on(0).enter(0, "").enter(10, "a").enter(20, "b").leave(30).leave(40).leave(50);
  script.thread().step(60, 0);
  const Profile profile = fold(script);
  EXPECT_EQ(stats_of(profile, "a").host_ns.mean, 30);
  EXPECT_EQ(stats_of(profile, "a").self_host_ns.mean, 20);
  EXPECT_EQ(stats_of(profile, "b").host_ns.mean, 10);
  EXPECT_EQ(stats_of(profile, "").host_ns.mean, 50);
}

TEST(Totals, LeaveOutLayersThatDidNotRun) {
  Script script({"", "a", "unused"});
  script.thread().on(0).enter(0, "a").leave(5).step(10, 0);
  const Profile profile = fold(script);
  EXPECT_FALSE(profile.find("unused")->ran);
  EXPECT_TRUE(stats_of(profile, "unused").empty());
  EXPECT_EQ(profile.find("nowhere"), nullptr);
  EXPECT_THAT(profile.layers[0].children, ElementsAre(1, 2));
  EXPECT_EQ(profile.layers[0].parent, -1);
  EXPECT_EQ(profile.layers[1].parent, 0);
}

TEST(Totals, OfTheBackwardAreItsNodes) {
  Script script({"", "a"});
  script.add_parameter(100, "a");
  ThreadScript& t = script.thread();
  t.on(0).enter(0, "").enter(10, "a").make(1).leave(20).make(1).leave(30);
  t.backward(100).node(110, "Add", 1).end(120).node(130, "Mm", 0).op(132, 138, "mm").end(140);
  t.accumulate(150, 100).end(155).end_backward(200).step(300, 0);
  const Profile profile = fold(script);
  const PhaseStats& root = stats_of(profile, "", Phase::kBackward);
  EXPECT_EQ(root.host_ns.mean, 45);       // from its first node to its last
  EXPECT_EQ(root.self_host_ns.mean, 20);  // its node, and what is between the two
  EXPECT_EQ(root.calls.mean, 1);
  const PhaseStats& a = stats_of(profile, "a", Phase::kBackward);
  EXPECT_EQ(a.host_ns.mean, 25);
  EXPECT_EQ(a.self_host_ns.mean, 25);  // nodes divide a layer's own time, they do not take it
  EXPECT_EQ(a.activities.mean, 1);
  EXPECT_EQ(a.activity_ns.mean, 6);
  EXPECT_EQ(outside(profile, Phase::kBackward).host_ns.mean, 55);
  EXPECT_EQ(profile.health.nodes, 3u);
  EXPECT_TRUE(profile.health.unattributed_nodes.empty());
  EXPECT_EQ(profile.find("a")->calls, 1);  // of the forward only
}

TEST(Totals, KeepRecomputationApart) {
  Script script({"", "a"});
  ThreadScript& t = script.thread();
  t.on(0).enter(0, "a").make(1).leave(10);
  t.backward(20).node(30, "Checkpoint", 0).enter(40, "a").op(41, 49, "mm").leave(50).end(60);
  t.end_backward(70).step(100, 0);
  const Profile profile = fold(script);
  EXPECT_EQ(stats_of(profile, "a").host_ns.mean, 10);
  EXPECT_EQ(stats_of(profile, "a", Phase::kRecompute).host_ns.mean, 10);
  EXPECT_EQ(stats_of(profile, "a", Phase::kRecompute).activity_ns.mean, 8);
  EXPECT_EQ(stats_of(profile, "a", Phase::kBackward).host_ns.mean, 20);
  EXPECT_EQ(stats_of(profile, "a", Phase::kBackward).self_host_ns.mean, 20);
  EXPECT_EQ(profile.find("a")->calls, 2);
}

TEST(Totals, TakeFromAPhaseWhatAnotherOneHasInsideIt) {
  Script script({"", "a", "b"});
  ThreadScript& t = script.thread();
  t.on(0).enter(0, "").enter(1, "a").make(1).leave(9).enter(10, "b").make(2).leave(19).leave(20);
  // The backward of b runs a's forward again, in which there is a backward of its own.
  t.backward(30).node(31, "Checkpoint", 1).enter(40, "a");
  t.backward(50).node(51, "Mul", 1).end(58).end_backward(60);
  t.leave(70).end(80).end_backward(90).step(100, 0);
  const Profile profile = fold(script);
  const auto host_ns = [&](const char* path, Phase phase) {
    return stats_of(profile, path, phase).host_ns.mean;
  };
  EXPECT_EQ(host_ns("a", Phase::kRecompute), 20);  // 40…50 and 60…70
  EXPECT_EQ(host_ns("b", Phase::kBackward), 29);   // 31…40, 50…60 and 70…80
  EXPECT_EQ(host_ns("", Phase::kForward), 20);
  EXPECT_EQ(host_ns("", Phase::kBackward), 29);
  EXPECT_EQ(host_ns("", Phase::kRecompute), 20);
}

// On a GPU the backward runs on autograd's own threads, while the one that called it waits.
TEST(Totals, DoNotCountTheWaitForABackwardThatRunsElsewhere) {
  Script script({"", "a"});
  ThreadScript& t = script.thread(1);
  t.on(0).enter(0, "a").make(1).leave(10).backward(20);
  script.thread(2).node_of(30, "Mm", 0, 1).end(60);
  t.end_backward(70).step(100, 0);
  const Profile profile = fold(script);
  EXPECT_EQ(stats_of(profile, "a", Phase::kBackward).host_ns.mean, 30);
  EXPECT_EQ(outside(profile, Phase::kBackward).host_ns.mean, 20);
  EXPECT_EQ(profile.steps[0].phase_ns[static_cast<std::size_t>(Phase::kBackward)], 50u);
}

TEST(Totals, OfRegionsInsideALayerAreTheLayers) {
  Script script({"", "a"});
  script.thread().on(0).enter(0, "").region(10, "part").enter(20, "a").leave(30).end_region(40);
  script.thread().leave(50).step(60, 0);
  const Profile profile = fold(script);
  EXPECT_EQ(stats_of(profile, "").self_host_ns.mean, 40);
  EXPECT_EQ(stats_of(profile, "").calls.mean, 1);
  EXPECT_EQ(outside(profile, Phase::kOther).calls.mean, 0);
}

// ---- Models that are not entered ----

TEST(ModelNotEntered, IsSaidWithWhatMendsIt) {
  Script script({"", "a"}, "Net");
  script.thread().on(0).enter(1, "a").leave(2).op(3, 4, "relu").step(9, 0);
  const Profile profile = fold(script);
  ASSERT_EQ(profile.health.notes.size(), 1U);
  EXPECT_TRUE(profile.health.notes[0].starts_with("Net itself was never entered"));
  EXPECT_NE(profile.health.notes[0].find("ModuleScope"), std::string::npos);
}

TEST(ModelNotEntered, IsSaidOfAModuleInsideToo) {
  Script script({"", "block", "block.fc", "list", "list.0"}, "Net");
  script.dictionary.layers[3].type = "ModuleList";
  script.thread().on(0).enter(0, "").enter(1, "block.fc").leave(2).enter(3, "list.0").leave(4);
  script.thread().leave(5).step(9, 0);
  const Profile profile = fold(script);
  ASSERT_EQ(profile.health.notes.size(), 1U);
  EXPECT_TRUE(profile.health.notes[0].starts_with("block (Module) itself was never entered"));
}

TEST(ModelNotEntered, IsNotSaidWhereNothingIsMissing) {
  Script sequential({"", "a"});
  sequential.thread().on(0).op(0, 1, "copy_").enter(1, "a").leave(2).op(3, 4, "relu").step(9, 0);
  EXPECT_TRUE(fold(sequential).health.notes.empty());

  Script entered({"", "a"}, "Net");
  entered.thread().on(0).enter(1, "").leave(2).enter(3, "a").leave(4).op(5, 6, "relu").step(9, 0);
  EXPECT_TRUE(fold(entered).health.notes.empty());

  Script all_known({"", "a"}, "Net");
  all_known.thread().on(0).enter(1, "a").op(2, 3, "relu").leave(4).step(9, 0);
  EXPECT_TRUE(fold(all_known).health.notes.empty());
}

// ---- Outside ----

TEST(Outside, HasThePhases) {
  Script script({""});
  ThreadScript& t = script.thread();
  t.on(0).region(0, "data", Phase::kData).region(2, "decode").end_region(6).end_region(10);
  t.enter(20, "").make(1).leave(50).op(52, 55, "mse");
  t.backward(60).end_backward(65).region(70, "SGD", Phase::kOptimizer).end_region(90).step(100, 0);
  const Profile profile = fold(script);
  EXPECT_EQ(outside(profile, Phase::kData).host_ns.mean, 10);
  EXPECT_EQ(outside(profile, Phase::kData).calls.mean, 2);
  EXPECT_EQ(outside(profile, Phase::kLoss).host_ns.mean, 10);
  EXPECT_EQ(outside(profile, Phase::kLoss).activities.mean, 1);
  EXPECT_EQ(outside(profile, Phase::kLoss).self_activity_ns.mean, 3);
  EXPECT_EQ(outside(profile, Phase::kBackward).host_ns.mean, 5);
  EXPECT_EQ(outside(profile, Phase::kOptimizer).host_ns.mean, 20);
  EXPECT_EQ(outside(profile, Phase::kOther).host_ns.mean, 25);  // what no span covers

  ASSERT_EQ(profile.steps.size(), 1u);
  const Step& step = profile.steps[0];
  EXPECT_EQ(step.wall_ns, 100u);
  EXPECT_EQ(phase_ns(step, Phase::kForward), 30u);
  EXPECT_EQ(phase_ns(step, Phase::kData), 10u);
  EXPECT_EQ(phase_ns(step, Phase::kOther), 25u);
  EXPECT_EQ(profile.health.attributed_share, 1);
}

TEST(Outside, CountsAnOptimizersClosureOnce) {
  Script script({""});
  ThreadScript& t = script.thread();
  t.on(0).region(0, "LBFGS", Phase::kOptimizer).enter(10, "").make(1).leave(30).op(32, 33, "mse");
  t.backward(40).node(45, "Mm", 0).end(55).end_backward(60).end_region(100).step(100, 0);
  const Profile profile = fold(script);
  const Step& step = profile.steps.at(0);
  EXPECT_EQ(phase_ns(step, Phase::kForward), 20u);
  EXPECT_EQ(phase_ns(step, Phase::kLoss), 10u);
  EXPECT_EQ(phase_ns(step, Phase::kBackward), 20u);
  EXPECT_EQ(phase_ns(step, Phase::kOptimizer), 50u);
  EXPECT_EQ(phase_ns(step, Phase::kOther), 0u);
  EXPECT_EQ(outside(profile, Phase::kOptimizer).host_ns.mean, 50);
}

TEST(Outside, DoesNotMixThreadsIntoTheStepsPhases) {
  Script script({"", "a"});
  script.thread(1).on(0).enter(10, "a").leave(20).step(100, 0);
  script.thread(2).enter(5, "a").leave(95);
  const Profile profile = fold(script);
  EXPECT_EQ(phase_ns(profile.steps.at(0), Phase::kForward), 10u);
  EXPECT_EQ(stats_of(profile, "a").host_ns.mean, 100);
  EXPECT_EQ(stats_of(profile, "a").calls.mean, 2);
}

// ---- Activities ----

TEST(Activities, AreBusyOnceWhereTheyOverlap) {
  Script script({"", "a"});
  script.thread(1).on(0).enter(0, "a").op(10, 30, "mm").leave(50).step(100, 0);
  script.thread(2).enter(0, "a").op(20, 40, "mm").leave(50);
  const PhaseStats stats = stats_of(fold(script), "a");
  EXPECT_EQ(stats.activities.mean, 2);
  EXPECT_EQ(stats.activity_ns.mean, 40);
  EXPECT_EQ(stats.busy_ns.mean, 30);
}

TEST(Activities, AreBusyOnceInTheParentToo) {
  Script script({"", "a", "b"});
  script.thread(1).on(0).enter(0, "a").op(10, 30, "mm").op(60, 70, "mm").leave(80).step(100, 0);
  script.thread(2).enter(0, "b").op(20, 40, "mm").leave(50);
  const Profile profile = fold(script);
  EXPECT_EQ(stats_of(profile, "").activity_ns.mean, 50);
  EXPECT_EQ(stats_of(profile, "").self_activity_ns.mean, 0);
  EXPECT_EQ(stats_of(profile, "").busy_ns.mean, 40);
  EXPECT_EQ(stats_of(profile, "").activities.mean, 3);
  EXPECT_EQ(stats_of(profile, "a").busy_ns.mean, 30);
}

TEST(Activities, CountTheTimeOfANestedOneThere) {
  Script script({""});
  script.thread().on(0).enter(0, "").begin_op(10, "addmm").op(12, 15, "copy_").end_op(30).leave(50);
  script.thread().step(100, 0);
  const Profile profile = fold(script);
  EXPECT_EQ(stats_of(profile, "").activities.mean, 2);
  EXPECT_EQ(stats_of(profile, "").activity_ns.mean, 20);
  EXPECT_EQ(stats_of(profile, "").busy_ns.mean, 20);
  EXPECT_EQ(profile.health.activities, 2u);
  EXPECT_EQ(profile.health.activity_ns, 20u);
}

TEST(BusyTime, IsTheUnionInWhateverOrder) {
  BusyTime busy;
  for (const TimeInterval interval :
       {TimeInterval{50, 60}, {10, 20}, {15, 30}, {55, 58}, {30, 31}, {5, 6}}) {
    busy.add(interval);
  }
  EXPECT_EQ(busy.length(), 10u + 21u + 1u);
  BusyTime other;
  other.add({0, 100});
  busy.merge(other);
  EXPECT_EQ(busy.length(), 100u);
  busy.clear();
  EXPECT_TRUE(busy.empty());
  EXPECT_EQ(busy.length(), 0u);
}

TEST(BusyTime, StaysBoundedInAStepWithoutEnd) {
  BusyTime busy;
  constexpr std::uint64_t kCount = 300'000;
  for (std::uint64_t i = 0; i < kCount; ++i) busy.add({10 * i, 10 * i + 4});
  EXPECT_EQ(busy.length(), 4 * kCount);
  EXPECT_LT(busy.normalised().size(), 70'000u);
}

// ---- What has no layer ----

TEST(Ledger, SaysWhyAndWhat) {
  Script script({"", "a"});
  ThreadScript& t = script.thread(1);
  t.on(0).enter(0, "a").make(1).op(1, 2, "mm").leave(3).step(5, 0);
  t.op(10, 20, "clip").op(20, 21, "print").op(30, 35, "clip").make(1);
  t.backward(40).node(41, "Add", 1).end(43).node(44, "Mm", 0).end(45).end_backward(50).step(60, 1);
  script.thread(2).op(1, 101, "load");
  const Profile profile = fold(script, 200);
  const auto& causes = profile.health.unattributed;
  ASSERT_EQ(causes.size(), 2u);
  EXPECT_EQ(causes[0].cause, cause_text(Cause::kThreadNoScope));  // the longest first
  EXPECT_EQ(causes[0].ns, 100u);
  EXPECT_EQ(causes[1].cause, cause_text(Cause::kNoScope));
  EXPECT_EQ(causes[1].count, 3u);
  EXPECT_EQ(causes[1].ns, 16u);
  ASSERT_EQ(causes[1].names.size(), 2u);
  EXPECT_EQ(causes[1].names[0].name, "clip");
  EXPECT_EQ(causes[1].names[0].count, 2u);
  EXPECT_EQ(causes[1].names[1].name, "print");
  EXPECT_EQ(profile.health.activities, 5u);
  EXPECT_NEAR(profile.health.attributed_share, 1.0 / 117, 1e-12);

  EXPECT_EQ(profile.health.nodes, 2u);
  ASSERT_EQ(profile.health.unattributed_nodes.size(), 1u);
  EXPECT_EQ(profile.health.unattributed_nodes[0].cause, cause_text(Cause::kMadeOutside));
  EXPECT_EQ(profile.health.unattributed_nodes[0].names.at(0).name, "Add");
}

TEST(Ledger, CountsScopesThatDidNotEndOrThrew) {
  Script script({"", "a"});
  script.thread().on(0).enter(1, "").enter(2, "a").leave_thrown(3).leave_thrown(4).step(10, 0);
  script.thread().enter(11, "a").leave_thrown(12).enter(13, "");
  const Profile profile = fold(script, 20);
  // Also after the last step(): that is where a program that fails stops.
  EXPECT_EQ(profile.health.thrown_scopes, 3u);
  EXPECT_EQ(profile.health.cut_scopes, 1u);
}

}  // namespace
}  // namespace layertrace
