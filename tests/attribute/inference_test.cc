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

TEST(Inference, StopsAtTheEndOfTheModel) {
  Script script({"", "a", "b"});
  auto& thread = script.thread().on(0);
  const auto forward = [&](std::uint64_t at) {
    thread.enter(at, "a").make(1).leave(at + 1).op(at + 2, at + 3, "relu").make(1);
    thread.enter(at + 4, "b").make(1).leave(at + 5).op(at + 6, at + 7, "mse").make(1);
  };
  forward(10);
  forward(20);
  thread.backward(30).node(31, "MseLossBackward0", 7).end(32).node(33, "MseLossBackward0", 3);
  thread.end(34).node(35, "MmBackward0", 2).end(36).node(37, "ReluBackward0", 1).end(38);
  thread.end_backward(39).step(40, 0);
  const SpanLog log = infer(script);
  EXPECT_EQ(log.ops(), text(R"(
      relu forward . (inferred) [12,13)
      mse loss - [16,17)
      relu forward . (inferred) [22,23)
      mse loss - [26,27)
  )"));
  EXPECT_EQ(log.scopes(), text(R"(
      recording on step 0 @0
      forward a [10,11)
      forward b [14,15)
      region loss loss [15,20)
      forward a [20,21)
      forward b [24,25)
      region loss loss [25,30)
      region backward backward [30,39)
        node MseLossBackward0 <made outside> [31,32)
        node MseLossBackward0 <made outside> [33,34)
        backward b [35,36)
          node MmBackward0 b [35,36)
        backward . [37,38)
          node ReluBackward0 . (inferred) [37,38)
      step 0 @40
  )"));
}

TEST(Inference, StopsAtTheEndOfTheModelAlsoWithoutGradients) {
  Script script({"", "a", "b"});
  auto& thread = script.thread().on(0);
  thread.enter(1, "a").leave(2).op(3, 4, "x").enter(5, "b").leave(6).op(7, 8, "argmax");
  thread.enter(9, "a").leave(10).enter(11, "b").leave(12);
  EXPECT_EQ(infer(script).ops(), text(R"(
      x forward . (inferred) [3,4)
      argmax other <no scope> [7,8)
  )"));
}

TEST(Inference, BeginsAnewAfterAPauseThatLeftALayerOpen) {
  Script script({"", "a", "b"}, "Net");
  auto& thread = script.thread().on(0).enter(1, "a").make(1).off(2).make(5).in_window(1).on(10, 3);
  thread.enter(11, "a").make(1).leave(12).op(13, 14, "relu").make(1);
  thread.enter(15, "b").make(1).leave(16).backward(20).node(21, "ReluBackward0", 7).end(22);
  thread.end_backward(23);
  const SpanLog log = infer(script);
  EXPECT_EQ(log.ops(), text(R"(
      relu forward . (inferred) [13,14)
  )"));
  EXPECT_EQ(log.scopes(), text(R"(
      recording on step 0 @0
      forward a [1,10) cut
        recording off step 0 @2
        recording on step 3 @10
      forward a [11,12)
      forward b [15,16)
      region backward backward [20,23)
        backward . [21,22)
          node ReluBackward0 . (inferred) [21,22)
  )"));
}

TEST(Inference, DoesNotReachOverAPause) {
  Script script({"", "a", "b"}, "Net");
  auto& stepper = script.thread(1).on(0);
  auto& other = script.thread(2).enter(1, "a").make(1).leave(2).make(1);
  stepper.off(3).on(10, 3);
  other.in_window(1).op(11, 12, "x").make(1).enter(13, "b").make(1).leave(14);
  stepper.backward(20).node_of(21, "XBackward0", 2, other.key()).end(22).end_backward(23);
  const SpanLog log = infer(script);
  EXPECT_EQ(log.ops(other.lane()), text(R"(
      x other <no scope> [11,12)
  )"));
  EXPECT_EQ(log.scopes(), text(R"(
      recording on step 0 @0
      recording off step 0 @3
      recording on step 3 @10
      region backward backward [20,23)
        node XBackward0 <made outside> [21,22)
  )"));
}

TEST(Inference, GoesOnAfterALayerWithARegionInside) {
  Script script({"", "a", "b"}, "Net");
  auto& thread = script.thread().on(0).enter(1, "a").make(1).region(2, "own").end_region(3);
  thread.leave(4).op(5, 6, "relu").make(1).enter(7, "b").make(1).leave(8).backward(10);
  thread.node(11, "ReluBackward0", 1).end(12).end_backward(13);
  const SpanLog log = infer(script);
  EXPECT_EQ(log.ops(), text(R"(
      relu forward . (inferred) [5,6)
  )"));
  EXPECT_NE(log.scopes().find("node ReluBackward0 . (inferred)"), std::string::npos);
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
