// What runs between two layers of a module that has no scope of its own.
#include <gtest/gtest.h>

#include "attribute/folding.h"
#include "attribute/records.h"
#include "attribute/span_log.h"

namespace layertrace {
namespace {

using test::kEnd;
using test::kManyIntervals;
using test::Script;
using test::SpanLog;
using test::text;

SpanLog infer(const Script& script) {
  return test::resolve(script, kEnd, kManyIntervals, /*infers=*/true);
}

TEST(Inference, GivesWhatIsBetweenLayersToTheLowestThatHoldsBoth) {
  Script script({"", "a", "block", "block.c", "block.d", "e"}, "Net");
  script.thread()
      .on(0)
      .enter(10, "a")
      .leave(20)
      .op(21, 22, "relu")
      .enter(30, "block.c")
      .leave(40)
      .op(41, 42, "gelu")
      .enter(50, "block.d")
      .leave(60)
      .begin_op(61, "linear", /*composite=*/true)
      .op(62, 63, "addmm")
      .end_op(64)
      .enter(70, "e")
      .leave(80)
      .step(100, 0);
  EXPECT_EQ(infer(script).ops(), text(R"(
      relu forward . (inferred) [21,22)
      gelu forward block (inferred) [41,42)
      addmm forward . (inferred) [62,63)
  )"));
}

TEST(Inference, IsOffUnlessAskedFor) {
  Script script({"", "a", "b"}, "Net");
  script.thread().on(0).enter(1, "a").leave(2).op(3, 4, "relu").enter(5, "b").leave(6);
  EXPECT_EQ(test::resolve(script).ops(), text(R"(
      relu other <no scope> [3,4)
  )"));
}

TEST(Inference, SaysOfWhatFollowsTheLastLayerThatNobodyKnows) {
  Script script({"", "a", "b"}, "Net");
  script.thread()
      .on(0)
      .op(1, 2, "randn")
      .enter(10, "a")
      .make(1)
      .leave(20)
      .op(21, 22, "relu")
      .make(1)
      .enter(30, "b")
      .make(1)
      .leave(40)
      .op(41, 42, "log_softmax")
      .make(1)
      .backward(50)
      .node(51, "LogSoftmaxBackward0", 3)
      .op(52, 53, "log_softmax_backward")
      .end(54)
      .node(55, "MmBackward0", 2)
      .end(56)
      .node(57, "ReluBackward0", 1)
      .op(58, 59, "threshold_backward")
      .end(60)
      .node(61, "MmBackward1", 0)
      .end(62)
      .end_backward(63)
      .op(64, 65, "add_")
      .step(100, 0);
  const SpanLog log = infer(script);
  EXPECT_EQ(log.ops(), text(R"(
      randn other <thread without scope> [1,2)
      relu forward . (inferred) [21,22)
      log_softmax other <after layers> [41,42)
      log_softmax_backward backward <made outside> [52,53)
      threshold_backward backward . (inferred) [58,59)
      add_ other <no scope> [64,65)
  )"));
  EXPECT_EQ(log.scopes(), text(R"(
      recording on step 0 @0
      forward a [10,20)
      forward b [30,40)
      region backward backward [50,63)
        node LogSoftmaxBackward0 <made outside> [51,54)
        backward b [55,56)
          node MmBackward0 b [55,56)
        backward . [57,60)
          node ReluBackward0 . (inferred) [57,60)
        backward a [61,62)
          node MmBackward1 a [61,62)
      step 0 @100
  )"));
}

TEST(Inference, GivesTheTimeBetweenTwoCallsOfALayerToItsParent) {
  Script script({"", "cell"}, "Net");
  script.thread().on(0).enter(1, "cell").leave(2).op(3, 4, "mul").enter(5, "cell").leave(6);
  EXPECT_EQ(infer(script).ops(), text(R"(
      mul forward . (inferred) [3,4)
  )"));
}

TEST(Inference, StopsAtStepsRegionsAndOtherModels) {
  Script script({"", "a", "b"}, "Net");
  script.add_layer("(Loss)");
  auto& thread = script.thread();
  thread.on(0).enter(1, "a").leave(2).op(3, 4, "x").step(5, 0).op(6, 7, "y").enter(8, "b").leave(9);
  thread.op(10, 11, "z").region(12, "optimizer", Phase::kOptimizer).op(13, 14, "w").end_region(15);
  thread.enter(16, "a").leave(17).op(18, 19, "v").enter(20, "(Loss)").leave(21);
  EXPECT_EQ(infer(script).ops(), text(R"(
      x other <after layers> [3,4)
      y other <no scope> [6,7)
      z other <after layers> [10,11)
      w optimizer - [13,14)
      v other <after layers> [18,19)
  )"));
}

TEST(Inference, ChangesNothingWhereTheModelHasAScope) {
  Script script({"", "a", "b"}, "Net");
  script.thread()
      .on(0)
      .enter(1, "")
      .enter(2, "a")
      .leave(3)
      .op(4, 5, "relu")
      .enter(6, "b")
      .leave(7)
      .leave(8)
      .op(9, 10, "nll")
      .step(11, 0);
  EXPECT_EQ(infer(script).stream(), test::resolve(script).stream());
}

TEST(Inference, GivesUpOnVeryMuch) {
  Script script({"", "a", "b"}, "Net");
  auto& thread = script.thread().on(0).enter(1, "a").leave(2);
  std::uint64_t at = 3;
  for (int i = 0; i < 5000; ++i, at += 2) thread.op(at, at + 1, "x");
  thread.enter(at, "b").leave(at + 1);
  const std::string ops = infer(script).ops();
  EXPECT_NE(ops.find("x other <after layers> [3,4)"), std::string::npos);
  EXPECT_EQ(ops.find("inferred"), std::string::npos);
}

TEST(Inference, IsCounted) {
  Script script({"", "a", "b"}, "Net");
  script.thread().on(0).enter(1, "a").leave(2).op(3, 7, "relu").enter(8, "b").leave(9).step(10, 0);
  Fold fold(script.dictionary);
  test::feed(script, fold, 100, kEnd, kManyIntervals, /*infers=*/true);
  const Profile profile = fold.finish(kEnd);
  EXPECT_EQ(profile.health.inferred, 1U);
  EXPECT_EQ(profile.health.inferred_ns, 4U);
  EXPECT_EQ(profile.health.attributed_share, 1);
  EXPECT_EQ(profile.find("")->phase(Phase::kForward).self_activity_ns.mean, 4);
}

}  // namespace
}  // namespace layertrace
