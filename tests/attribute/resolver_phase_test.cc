// Phases: what follows the forward is the loss, and what a region's name says.
#include <gtest/gtest.h>

#include "attribute/records.h"
#include "attribute/span_log.h"

namespace layertrace {
namespace {

using test::resolve;
using test::Script;
using test::SpanLog;
using test::text;
using test::ThreadScript;

constexpr const char* kCriterion = "(CrossEntropyLoss)";

struct Loss : ::testing::Test {
  Loss() : script({"", "a", kCriterion}), t(script.thread()) {
    t.on(0).enter(1, "").enter(2, "a").make(2).leave(3).leave(4);
  }
  // What comes after the forward, which is the same in all of these.
  std::string rest() {
    const std::string all = resolve(script).scopes();
    const std::string forward = text(R"(
        recording on step 0 @0
        forward . [1,4)
          forward a [2,3)
    )");
    EXPECT_EQ(all.substr(0, forward.size()), forward);
    return all.substr(std::min(all.size(), forward.size()));
  }
  Script script;
  ThreadScript& t;
};

TEST_F(Loss, LastsFromTheForwardToTheBackward) {
  t.op(5, 6, "log_softmax").make(1).backward(10).end_backward(20).op(21, 22, "clip").step(30, 0);
  EXPECT_EQ(rest(), text(R"(
      region loss loss [4,10)
      region backward backward [10,20)
      step 0 @30
  )"));
  EXPECT_EQ(resolve(script).ops(), text(R"(
      log_softmax loss - [5,6)
      clip other <no scope> [21,22)
  )"));
}

TEST_F(Loss, EndsAtANodeOfABackwardThatNoRegionTells) {
  t.node(10, "Mm", 1).end(11).op(12, 13, "clip");
  EXPECT_EQ(rest(), text(R"(
      region loss loss [4,10)
      backward . [10,11)
        backward a [10,11)
          node Mm a [10,11)
  )"));
}

TEST_F(Loss, EndsWithTheStep) {
  t.step(10, 0).op(11, 12, "next");
  EXPECT_EQ(rest(), text(R"(
      region loss loss [4,10)
      step 0 @10
  )"));
  EXPECT_EQ(resolve(script).ops(), "next other <no scope> [11,12)\n");
}

TEST_F(Loss, EndsWhereTheModelIsCalledAgain) {
  t.enter(10, "a").make(1).leave(11).backward(20).end_backward(21);
  EXPECT_EQ(rest(), text(R"(
      region loss loss [4,10)
      forward a [10,11)
      region loss loss [11,20)
      region backward backward [20,21)
  )"));
}

TEST_F(Loss, EndsWhereTheOptimizerOrTheDataBegin) {
  t.region(10, "optimizer", Phase::kOptimizer).end_region(20);
  EXPECT_EQ(rest(), text(R"(
      region loss loss [4,10)
      region optimizer optimizer [10,20)
  )"));
}

TEST_F(Loss, IsInterruptedWhileTheGradientsAreCleared) {
  t.region(10, "zero_grad", Phase::kOptimizer).op(11, 12, "zero_").end_region(20);
  t.op(21, 22, "mse").backward(30).end_backward(31);
  EXPECT_EQ(rest(), text(R"(
      region loss loss [4,10)
      region zero_grad optimizer [10,20)
      region loss loss [20,30)
      region backward backward [30,31)
  )"));
  EXPECT_EQ(resolve(script).ops(), text(R"(
      zero_ optimizer - [11,12)
      mse loss - [21,22)
  )"));
}

TEST_F(Loss, HoldsTheModuleOfALossFunction) {
  t.enter(5, kCriterion).op(6, 7, "nll_loss").make(1).leave(8).backward(10).end_backward(11);
  EXPECT_EQ(rest(), text(R"(
      region loss loss [4,10)
        loss (CrossEntropyLoss) [5,8)
      region backward backward [10,11)
  )"));
  EXPECT_EQ(resolve(script).ops(), "nll_loss loss (CrossEntropyLoss) [6,7)\n");
}

TEST_F(Loss, HoldsTheUsersRegion) {
  t.region(5, "metrics").op(6, 7, "argmax").end_region(8).backward(10).end_backward(11);
  EXPECT_EQ(rest(), text(R"(
      region loss loss [4,10)
        region metrics loss [5,8)
      region backward backward [10,11)
  )"));
  EXPECT_EQ(resolve(script).ops(), "argmax loss - [6,7)\n");
}

TEST_F(Loss, HoldsTheUsersOwnLossRegionAndWhatItCalls) {
  t.region(5, "loss", Phase::kLoss).enter(6, kCriterion).op(7, 8, "nll_loss").leave(9);
  t.end_region(10).backward(20).end_backward(21);
  EXPECT_EQ(rest(), text(R"(
      region loss loss [4,20)
        region loss loss [5,10)
          loss (CrossEntropyLoss) [6,9)
      region backward backward [20,21)
  )"));
}

TEST_F(Loss, IsNotReopenedByALossFunction) {
  t.backward(10).end_backward(11).enter(12, kCriterion).make(1).leave(13).op(14, 15, "print");
  EXPECT_EQ(rest(), text(R"(
      region loss loss [4,10)
      region backward backward [10,11)
      forward (CrossEntropyLoss) [12,13)
  )"));
}

TEST_F(Loss, ComesAfterARegionAroundTheForwardAlone) {
  Script other({"", "a"});
  other.thread().on(0).region(1, "fwd").enter(2, "").make(1).leave(3).end_region(4);
  other.thread().op(5, 6, "nll").backward(7).end_backward(8).op(9, 10, "print");
  const SpanLog log = resolve(other);
  EXPECT_EQ(log.ops(), text(R"(
      nll loss - [5,6)
      print other <no scope> [9,10)
  )"));
}

TEST_F(Loss, IsCutShortByTheEndOfARegionAroundIt) {
  Script other({"", "a"});
  other.thread().on(0).region(1, "train").enter(2, "").make(1).leave(3).op(4, 5, "nll");
  other.thread().end_region(6).op(7, 8, "print");
  const SpanLog log = resolve(other);
  EXPECT_EQ(log.scopes(), text(R"(
      recording on step 0 @0
      region train other [1,6)
        forward . [2,3)
        region loss loss [3,6)
  )"));
  EXPECT_EQ(log.ops(), text(R"(
      nll loss - [4,5)
      print other <no scope> [7,8)
  )"));
}

TEST(NoLoss, FollowsAForwardThatMadeNoNodes) {
  Script script({"", "a"});
  script.thread().on(0).enter(1, "").enter(2, "a").leave(3).leave(4).op(5, 6, "argmax");
  EXPECT_EQ(resolve(script).scopes(), text(R"(
      recording on step 0 @0
      forward . [1,4)
        forward a [2,3)
  )"));
}

TEST(NoLoss, FollowsAForwardThatThrew) {
  Script script({"", "a"});
  script.thread().on(0).enter(1, "").make(1).leave_thrown(4).op(5, 6, "log");
  EXPECT_EQ(resolve(script).ops(), "log other <no scope> [5,6)\n");
}

TEST(NoLoss, FollowsAnInnerModule) {
  Script script({"", "a"});
  script.thread().on(0).enter(1, "").enter(2, "a").make(1).leave(3).op(4, 5, "add").leave(6);
  EXPECT_EQ(resolve(script).ops(), "add forward . [4,5)\n");
}

// It may be the model's own, and only what the model does after its last layer.
TEST(NoLoss, FollowsALayerOfAModelThatIsNotEntered) {
  Script script({"", "a", "b"}, "Net");
  ThreadScript& t = script.thread();
  t.on(0).enter(1, "a").make(1).leave(2).op(3, 4, "relu").enter(5, "b").make(1).leave(6);
  t.op(7, 8, "log_softmax").op(9, 10, "nll_loss").backward(11).end_backward(12);
  const SpanLog log = resolve(script);
  EXPECT_EQ(log.scopes(), text(R"(
      recording on step 0 @0
      forward a [1,2)
      forward b [5,6)
      region backward backward [11,12)
  )"));
  EXPECT_EQ(log.ops(), text(R"(
      relu other <no scope> [3,4)
      log_softmax other <no scope> [7,8)
      nll_loss other <no scope> [9,10)
  )"));
}

// A Sequential is never entered, but nothing runs in it after its last layer.
TEST(SequentialsLoss, FollowsTheLastLayer) {
  Script script({"", "0", "1", "1.0", "1.1", "(ReLU)"});
  script.dictionary.layers[2].type = "Sequential";
  ThreadScript& t = script.thread();
  t.on(0).enter(1, "0").make(1).leave(2).enter(3, "1.0").make(1).leave(4);
  t.enter(5, "1.1").make(1).leave(6).op(7, 8, "mse").backward(9).end_backward(10);
  EXPECT_EQ(resolve(script).scopes(), text(R"(
      recording on step 0 @0
      forward 0 [1,2)
      forward 1.0 [3,4)
      forward 1.1 [5,6)
      region loss loss [6,9)
      region backward backward [9,10)
  )"));
}

// ---- Regions ----

TEST(Region, PutsWhatRunsInsideIntoItsPhase) {
  Script script({"", "a"});
  script.thread()
      .on(0)
      .region(1, "data", Phase::kData)
      .op(2, 3, "stack")
      .region(4, "decode")
      .op(5, 6, "copy_")
      .end_region(7)
      .end_region(8)
      .region(10, "communication", Phase::kCommunication)
      .op(11, 12, "all_reduce")
      .end_region(13)
      .region(20, "augment")
      .op(21, 22, "flip")
      .end_region(23);
  const SpanLog log = resolve(script);
  EXPECT_EQ(log.scopes(), text(R"(
      recording on step 0 @0
      region data data [1,8)
        region decode data [4,7)
      region communication communication [10,13)
      region augment other [20,23)
  )"));
  EXPECT_EQ(log.ops(), text(R"(
      stack data - [2,3)
      copy_ data - [5,6)
      all_reduce communication - [11,12)
      flip other <thread without scope> [21,22)
  )"));
}

TEST(Region, InsideAModuleIsPartOfIt) {
  Script script({"", "a"});
  script.thread()
      .on(0)
      .enter(1, "a")
      .region(2, "attention")
      .op(3, 4, "softmax")
      .end_region(5)
      .region(6, "loss", Phase::kLoss)  // the name of a phase means nothing there
      .op(7, 8, "mse")
      .end_region(9)
      .leave(10);
  const SpanLog log = resolve(script);
  EXPECT_EQ(log.scopes(), text(R"(
      recording on step 0 @0
      forward a [1,10)
        region attention forward in a [2,5)
        region loss forward in a [6,9)
  )"));
  EXPECT_EQ(log.ops(), text(R"(
      softmax forward a [3,4)
      mse forward a [7,8)
  )"));
}

TEST(Region, KeepsAModulesPhaseForTheModulesInsideIt) {
  Script script({"", "a", kCriterion, "(Inner)"});
  script.thread().on(0).enter(1, "a").make(1).leave(2);
  script.thread().enter(3, kCriterion).region(4, "part").enter(5, "(Inner)").leave(6).end_region(7);
  script.thread().leave(8).backward(9).end_backward(10);
  EXPECT_EQ(resolve(script).scopes(), text(R"(
      recording on step 0 @0
      forward a [1,2)
      region loss loss [2,9)
        loss (CrossEntropyLoss) [3,8)
          region part loss in (CrossEntropyLoss) [4,7)
            loss (Inner) [5,6)
      region backward backward [9,10)
  )"));
}

TEST(Optimizer, MayRunTheWholeStepInItsClosure) {
  // As LBFGS does.
  Script script({"", "a"});
  ThreadScript& t = script.thread();
  t.on(0).region(1, "LBFGS", Phase::kOptimizer).op(2, 3, "dot");
  t.enter(4, "").make(1).leave(5).op(6, 7, "mse");
  t.backward(8).node(9, "Mm", 0).end(10).end_backward(11);
  t.op(12, 13, "axpy").end_region(20).op(21, 22, "print").step(30, 0);
  const SpanLog log = resolve(script);
  EXPECT_EQ(log.scopes(), text(R"(
      recording on step 0 @0
      region LBFGS optimizer [1,20)
        forward . [4,5)
        region loss loss [5,8)
        region backward backward [8,11)
          backward . [9,10)
            node Mm . [9,10)
      step 0 @30
  )"));
  EXPECT_EQ(log.ops(), text(R"(
      dot optimizer - [2,3)
      mse loss - [6,7)
      axpy optimizer - [12,13)
      print other <no scope> [21,22)
  )"));
}

TEST(Optimizer, MayRunInsideAModule) {
  // Meta-learning: an inner loop in the outer model's forward.
  Script script({"", "a"});
  ThreadScript& t = script.thread();
  t.on(0).enter(1, "").enter(2, "a").make(1).leave(3);
  t.backward(4).node(5, "Mm", 0).end(6).op(7, 8, "add_").end_backward(9);
  t.region(10, "SGD", Phase::kOptimizer)
      .op(11, 12, "add_")
      .end_region(13)
      .op(14, 15, "mm")
      .leave(20);
  const SpanLog log = resolve(script);
  EXPECT_EQ(log.scopes(), text(R"(
      recording on step 0 @0
      forward . [1,20)
        forward a [2,3)
        region backward backward [4,9)
          backward . [5,6)
            backward a [5,6)
              node Mm a [5,6)
        region SGD optimizer [10,13)
      region loss loss [20,1000000)
  )"));
  EXPECT_EQ(log.ops(), text(R"(
      add_ backward <between nodes> [7,8)
      add_ optimizer - [11,12)
      mm forward . [14,15)
  )"));
}

TEST(Region, AroundTheWholeTrainingChangesNothingInside) {
  Script script({"", "a"});
  ThreadScript& t = script.thread();
  t.on(0).region(1, "epoch");
  for (std::uint64_t i = 0; i < 2; ++i) {
    const std::uint64_t at = 100 * i;
    t.region(at + 2, "data", Phase::kData).end_region(at + 5);
    t.enter(at + 10, "").make(1).leave(at + 20).op(at + 21, at + 22, "mse");
    t.backward(at + 30).node(at + 31, "Mm", i).end(at + 32).end_backward(at + 40);
    t.region(at + 50, "SGD", Phase::kOptimizer).end_region(at + 60);
    t.step(at + 90, i);
  }
  t.end_region(250);
  EXPECT_EQ(resolve(script).scopes(), text(R"(
      recording on step 0 @0
      region epoch other [1,250)
        region data data [2,5)
        forward . [10,20)
        region loss loss [20,30)
        region backward backward [30,40)
          backward . [31,32)
            node Mm . [31,32)
        region SGD optimizer [50,60)
        step 0 @90
        region data data [102,105)
        forward . [110,120)
        region loss loss [120,130)
        region backward backward [130,140)
          backward . [131,132)
            node Mm . [131,132)
        region SGD optimizer [150,160)
        step 1 @190
  )"));
}

TEST(Region, AroundLossAndBackwardIsNotAllLoss) {
  // The user's region begins in the loss and holds the backward: what follows is not the loss.
  Script script({"", "a"});
  ThreadScript& t = script.thread();
  t.on(0).enter(1, "").make(1).leave(2);
  t.region(3, "update").op(4, 5, "mse").backward(10).end_backward(20).op(21, 22, "clip");
  t.end_region(30).op(31, 32, "log").step(40, 0);
  const SpanLog log = resolve(script);
  EXPECT_EQ(log.ops(), text(R"(
      mse loss - [4,5)
      clip other <no scope> [21,22)
      log other <no scope> [31,32)
  )"));
  EXPECT_EQ(log.scopes(), text(R"(
      recording on step 0 @0
      forward . [1,2)
      region loss loss [2,10)
        region update loss [3,10)
      region update other [10,30)
        region backward backward [10,20)
      step 0 @40
  )"));
}

}  // namespace
}  // namespace layertrace
