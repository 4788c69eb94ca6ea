// Passes over a graph: nodes that make nodes, forwards that run again, and where one pass ends.
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

TEST(DoubleBackward, BelongsToTheOwnerOfTheNodeThatMadeIt) {
  Script script({"", "a", "b"});
  script.add_parameter(100, "b");
  ThreadScript& t = script.thread();
  t.on(0).enter(1, "a").make(1).leave(2).enter(3, "b").make(1).leave(4);
  t.backward(10);  // with create_graph: each node makes nodes
  t.node(11, "MmOfB", 1).make(2).end(12);
  t.node(13, "MmOfA", 0).make(1).end(14);
  t.accumulate(15, 100).make(1).end(16);
  t.make(1);  // the gradient penalty itself
  t.end_backward(20);
  t.backward(30);
  t.node(31, "Penalty", 6).end(32);
  t.node(33, "SecondOfParameter", 5).end(34);
  t.node(35, "SecondOfA", 4).make(1).end(36);  // and a third order
  t.node(37, "SecondOfB", 3).end(38);
  t.node(39, "SecondOfB", 2).end(40);
  t.end_backward(50);
  t.backward(60).node(61, "ThirdOfA", 7).end(62).end_backward(63);
  EXPECT_EQ(resolve(script).calls(), text(R"(
      recording on step 0 @0
      forward a #1 [1,2)
      forward b #2 [3,4)
      region loss loss [4,10)
      region backward backward [10,20)
        backward b #2 [11,12)
          node MmOfB b (1) [11,12)
        backward a #1 [13,14)
          node MmOfA a (0) [13,14)
        backward b [15,16)
          node AccumulateGrad b accumulates [15,16)
      region backward backward [30,50)
        node Penalty <made outside> (6) [31,32)
        backward b [33,34)
          node SecondOfParameter b (5) [33,34)
        backward a #1 [35,36)
          node SecondOfA a (4) [35,36)
        backward b #2 [37,40)
          node SecondOfB b (3) [37,38)
          node SecondOfB b (2) [39,40)
      region backward backward [60,63)
        backward a #1 [61,62)
          node ThirdOfA a (7) [61,62)
  )"));
}

TEST(DoubleBackward, MayRunInsideAForward) {
  // autograd.grad(create_graph=True) in a module's forward, as in a physics-informed network.
  Script script({"", "a", "b"});
  ThreadScript& t = script.thread();
  t.on(0).enter(1, "").enter(2, "a").make(1).leave(3);
  t.enter(4, "b").make(1).backward(5).node(6, "MmOfA", 0).make(1).end(7).end_backward(8);
  t.make(1).leave(9).leave(10);
  t.backward(20).node(21, "OfB", 3).end(22).node(23, "SecondOfA", 2).end(24);
  t.node(25, "OfB", 1).end(26).end_backward(30);
  EXPECT_EQ(resolve(script).calls(), text(R"(
      recording on step 0 @0
      forward . #1 [1,10)
        forward a #2 [2,3)
        forward b #3 [4,9)
          region backward backward [5,8)
            backward . #1 [6,7)
              backward a #2 [6,7)
                node MmOfA a (0) [6,7)
      region loss loss [10,20)
      region backward backward [20,30)
        backward . #1 [21,26)
          backward b #3 [21,22)
            node OfB b (3) [21,22)
          backward a #2 [23,24)
            node SecondOfA a (2) [23,24)
          backward b #3 [25,26)
            node OfB b (1) [25,26)
  )"));
}

TEST(Recompute, RunsInsideANode) {
  // A reentrant checkpoint: the node runs the block's forward again, then its backward.
  Script script({"", "block", "block.fc"});
  ThreadScript& t = script.thread();
  t.on(0).enter(1, "").enter(2, "block").make(1).leave(3).leave(4);
  t.backward(10).node(11, "Checkpoint", 0);
  t.enter(12, "block").enter(13, "block.fc").op(14, 15, "mm").make(1).leave(16).make(1).leave(17);
  t.op(18, 19, "detach");
  t.backward(20);
  t.node(21, "OfBlock", 2).end(22).node(23, "OfFc", 1).op(24, 25, "mm").end(26);
  t.end_backward(27).end(28).end_backward(30);
  const SpanLog log = resolve(script);
  EXPECT_EQ(log.calls(), text(R"(
      recording on step 0 @0
      forward . #1 [1,4)
        forward block #2 [2,3)
      region loss loss [4,10)
      region backward backward [10,30)
        backward . #1 [11,28)
          backward block #2 [11,28)
            node Checkpoint block (0) [11,28)
              recompute block #3 [12,17)
                recompute block.fc #4 [13,16)
              region backward backward [20,27)
                backward block #3 [21,26)
                  node OfBlock block (2) [21,22)
                  backward block.fc #4 [23,26)
                    node OfFc block.fc (1) [23,26)
  )"));
  EXPECT_EQ(log.ops(), text(R"(
      mm recompute block.fc [14,15)
      detach backward block [18,19)
      mm backward block.fc [24,25)
  )"));
}

// ---- Passes ----

TEST(Passes, AreSeparatedByTheEnginesRoot) {
  // Two backward passes over one graph, on an engine's thread where no region tells them apart.
  Script script({"", "a"});
  script.thread(1).on(0).enter(1, "a").make(1).leave(2);
  ThreadScript& engine = script.thread(2);
  engine.engine_root(10).end(11).node_of(12, "Mm", 0, 1).end(13);
  engine.engine_root(50).end(51).node_of(52, "Mm", 0, 1).end(53);
  EXPECT_EQ(resolve(script).calls(1), text(R"(
      backward a #1 [12,13)
        node Mm a (0) [12,13)
      backward a #1 [52,53)
        node Mm a (0) [52,53)
  )"));
}

TEST(Passes, EndTheirRunsAtTheLastNode) {
  Script script({"", "a"});
  script.thread(1).on(0).enter(1, "a").make(1).leave(2).step(100, 0);
  script.thread(2).node_of(10, "Mm", 0, 1).end(13);
  EXPECT_EQ(resolve(script, 1'000).scopes(1), text(R"(
      backward a [10,13)
        node Mm a [10,13)
  )"));
}

TEST(Passes, AreCutByAGap) {
  Script script({"", "a"});
  ThreadScript& t = script.thread();
  t.on(0).enter(1, "a").make(2).leave(2);
  t.backward(10).node(11, "Add", 1).end(12).gap(15, 4).node(16, "Mm", 0).end(17).end_backward(20);
  EXPECT_EQ(resolve(script).scopes(), text(R"(
      recording on step 0 @0
      forward a [1,2)
      region loss loss [2,10)
      region backward backward [10,20)
        backward a [11,12)
          node Add a [11,12)
        gap of 4 @15
        backward a [16,17)
          node Mm a [16,17)
  )"));
}

}  // namespace
}  // namespace layertrace
