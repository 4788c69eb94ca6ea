// Attribution of autograd's nodes: whose they are, and how a layer's backward is nested.
#include <gtest/gtest.h>

#include <string>

#include "attribute/folding.h"
#include "attribute/records.h"
#include "attribute/span_log.h"

namespace layertrace {
namespace {

using test::fold;
using test::resolve;
using test::Script;
using test::SpanLog;
using test::stats_of;
using test::text;
using test::ThreadScript;

// As measured with LibTorch: Linear [0,2), Linear [3,5), Linear [7,9) in Net [0,9).
TEST(Backward, IsNestedAsTheForwardCallsWere) {
  Script script({"", "seq", "seq.0", "seq.1", "head"});
  ThreadScript& t = script.thread();
  t.on(0).enter(1, "");
  t.enter(2, "seq").enter(3, "seq.0").make(2).leave(4);
  t.make(1).enter(5, "seq.1").make(2).leave(6).leave(7);
  t.make(2).enter(8, "head").make(2).leave(9).leave(10);
  t.backward(20);
  t.node(21, "Addmm", 8).end(22);
  t.node(23, "T", 7).end(24);
  t.node(25, "Add", 6).end(26);
  t.node(27, "Addmm", 4).end(28);
  t.node(29, "Relu", 2).end(30);
  t.node(31, "Addmm", 1).end(32);
  t.end_backward(40);
  EXPECT_EQ(resolve(script).calls(), text(R"(
      recording on step 0 @0
      forward . #1 [1,10)
        forward seq #2 [2,7)
          forward seq.0 #3 [3,4)
          forward seq.1 #4 [5,6)
        forward head #5 [8,9)
      region loss loss [10,20)
      region backward backward [20,40)
        backward . #1 [21,32)
          backward head #5 [21,24)
            node Addmm head (8) [21,22)
            node T head (7) [23,24)
          node Add . (6) [25,26)
          backward seq #2 [27,32)
            backward seq.1 #4 [27,28)
              node Addmm seq.1 (4) [27,28)
            node Relu seq (2) [29,30)
            backward seq.0 #3 [31,32)
              node Addmm seq.0 (1) [31,32)
  )"));
}

TEST(Backward, GivesEachCallOfAModuleASpanOfItsOwn) {
  Script script({"", "a"});
  ThreadScript& t = script.thread();
  t.on(0).enter(1, "");
  t.enter(2, "a").make(1).leave(3).enter(4, "a").make(1).leave(5).leave(6);
  t.backward(10).node(11, "Mm", 1).end(12).node(13, "Mm", 0).end(14).end_backward(15);
  EXPECT_EQ(resolve(script).calls(), text(R"(
      recording on step 0 @0
      forward . #1 [1,6)
        forward a #2 [2,3)
        forward a #3 [4,5)
      region loss loss [6,10)
      region backward backward [10,15)
        backward . #1 [11,14)
          backward a #3 [11,12)
            node Mm a (1) [11,12)
          backward a #2 [13,14)
            node Mm a (0) [13,14)
  )"));
}

TEST(Backward, FollowsRecursion) {
  Script script({"", "a"});
  ThreadScript& t = script.thread();
  t.on(0).enter(1, "a").make(1).enter(2, "a").make(1).leave(3).make(1).leave(4);
  t.backward(10);
  for (std::uint64_t n = 3; n-- != 0;) t.node(11 + 2 * (2 - n), "Mm", n).end(12 + 2 * (2 - n));
  t.end_backward(20);
  EXPECT_EQ(resolve(script).calls(), text(R"(
      recording on step 0 @0
      forward a #1 [1,4)
        forward a #2 [2,3)
      region loss loss [4,10)
      region backward backward [10,20)
        backward a #1 [11,16)
          node Mm a (2) [11,12)
          backward a #2 [13,14)
            node Mm a (1) [13,14)
          node Mm a (0) [15,16)
  )"));
}

TEST(Backward, OwnsTheOperatorsOfItsNodes) {
  Script script({"", "a"});
  ThreadScript& t = script.thread();
  t.on(0).enter(1, "a").make(2).leave(2);
  t.backward(10);
  t.node(11, "Addmm", 1)
      .op(12, 13, "mm")
      .begin_op(14, "sum")
      .op(15, 16, "fill_")
      .end_op(17)
      .end(18);
  t.op(19, 20, "add_");  // the engine's own
  t.node(21, "T", 0).op(22, 23, "t").end(24);
  t.end_backward(30);
  const SpanLog log = resolve(script);
  EXPECT_EQ(log.ops(), text(R"(
      mm backward a [12,13)
      sum backward a [14,17)
        fill_ backward a [15,16)
      add_ backward <between nodes> [19,20)
      t backward a [22,23)
  )"));
  // What runs between the nodes ends the run of nodes before it.
  EXPECT_EQ(log.scopes(), text(R"(
      recording on step 0 @0
      forward a [1,2)
      region loss loss [2,10)
      region backward backward [10,30)
        backward a [11,18)
          node Addmm a [11,18)
        backward a [21,24)
          node T a [21,24)
  )"));
}

TEST(Backward, MarksANodeThatThrew) {
  Script script({"", "a"});
  ThreadScript& t = script.thread();
  t.on(0).enter(1, "a").make(1).leave(2).backward(10).node(11, "Mm", 0);
  script.written.push_back({0, {12, 0, 1, 0, RecordKind::kNodeEnd, kThrown, 0}});
  script.written.push_back({0, {13, 0, 1, 0, RecordKind::kRegionEnd, kThrown, 0}});
  EXPECT_EQ(resolve(script).scopes(), text(R"(
      recording on step 0 @0
      forward a [1,2)
      region loss loss [2,10)
      region backward backward [10,13) thrown
        backward a [11,12)
          node Mm a [11,12) thrown
  )"));
}

// ---- Parameters' gradients ----

struct Accumulating : ::testing::Test {
  Accumulating() : script({"", "a", "a.b", "c"}), t(&script.thread()) {
    script.add_parameter(100, "a.b");
    script.add_parameter(200, "c");
    script.add_parameter(300, "");
    t->on(0).enter(1, "").enter(2, "a").enter(3, "a.b").make(1).leave(4).make(1).leave(5);
    t->make(1).leave(6).backward(10);
  }
  Script script;
  ThreadScript* t;
};

TEST_F(Accumulating, StaysInTheOpenRunOfItsLayer) {
  t->node(11, "Mm", 0).end(12).accumulate(13, 100).end(14).accumulate(15, 100).end(16);
  t->end_backward(20);
  EXPECT_EQ(resolve(script).calls(), text(R"(
      recording on step 0 @0
      forward . #1 [1,6)
        forward a #2 [2,5)
          forward a.b #3 [3,4)
      region loss loss [6,10)
      region backward backward [10,20)
        backward . #1 [11,16)
          backward a #2 [11,16)
            backward a.b #3 [11,16)
              node Mm a.b (0) [11,12)
              node AccumulateGrad a.b accumulates [13,14)
              node AccumulateGrad a.b accumulates [15,16)
  )"));
}

TEST_F(Accumulating, GoesBesideWhatIsNotAroundIt) {
  t->node(11, "Mm", 0).end(12).accumulate(13, 200).end(14).accumulate(15, 300).end(16);
  t->end_backward(20);
  EXPECT_EQ(resolve(script).scopes(), text(R"(
      recording on step 0 @0
      forward . [1,6)
        forward a [2,5)
          forward a.b [3,4)
      region loss loss [6,10)
      region backward backward [10,20)
        backward . [11,16)
          backward a [11,12)
            backward a.b [11,12)
              node Mm a.b [11,12)
          backward c [13,14)
            node AccumulateGrad c accumulates [13,14)
          node AccumulateGrad . accumulates [15,16)
  )"));
}

TEST_F(Accumulating, IsJoinedByTheCallThatFollows) {
  t->accumulate(11, 300).end(12).node(13, "Add", 2).end(14).end_backward(20);
  EXPECT_EQ(resolve(script).scopes(), text(R"(
      recording on step 0 @0
      forward . [1,6)
        forward a [2,5)
          forward a.b [3,4)
      region loss loss [6,10)
      region backward backward [10,20)
        backward . [11,14)
          node AccumulateGrad . accumulates [11,12)
          node Add . [13,14)
  )"));
}

TEST_F(Accumulating, GivesATiedWeightToItsFirstOwner) {
  script.add_parameter(100, "c");  // registered a second time
  t->accumulate(11, 100).end(12).end_backward(20);
  EXPECT_NE(resolve(script).scopes().find("node AccumulateGrad a.b accumulates [11,12)"),
            std::string::npos);
}

TEST_F(Accumulating, KnowsNoForeignLeaf) {
  t->node(11, "Mm", 0).end(12).accumulate(13, 999).op(13, 14, "add_").end(14).end_backward(20);
  const SpanLog log = resolve(script);
  EXPECT_NE(log.scopes().find("  node AccumulateGrad <foreign leaf> accumulates [13,14)"),
            std::string::npos);
  EXPECT_EQ(log.ops(), "add_ backward <foreign leaf> [13,14)\n");
}

// ---- Where a node came from ----

TEST(Owner, IsFoundOnTheThreadThatMadeIt) {
  Script script({"", "a", "b"});
  script.thread(1).on(0).enter(1, "a").make(3).leave(5);
  script.thread(2).enter(2, "b").make(3).leave(4);  // the same numbers
  ThreadScript& engine = script.thread(9);
  engine.node_of(10, "Mm", 1, 1).end(11).node_of(12, "Mm", 1, 2).end(13);
  EXPECT_EQ(resolve(script).calls(2), text(R"(
      backward a #1 [10,11)
        node Mm a (1) [10,11)
      backward b #1/1 [12,13)
        node Mm b (1) [12,13)
  )"));
}

TEST(Owner, IsUnknownForReasonsThatAreTold) {
  Script script({"", "a"});
  ThreadScript& t = script.thread();
  t.make(5).on(0).enter(1, "a").make(1).leave(2).make(1);
  t.backward(10);
  t.node(11, "Before", 4).end(12);
  t.node(13, "Outside", 6).end(14);
  t.node_of(15, "OfAnother", 3, 77).end(16);
  t.unknown_node(17).end(18);
  t.node(19, "Mine", 5).end(20);
  t.end_backward(30);
  EXPECT_EQ(resolve(script).scopes(), text(R"(
      recording on step 0 @0
      forward a [1,2)
      region loss loss [2,10)
      region backward backward [10,30)
        node Before <made before> [11,12)
        node Outside <made outside> [13,14)
        node OfAnother <unknown thread> [15,16)
        node Unknown <unknown thread> [17,18)
        backward a [19,20)
          node Mine a [19,20)
  )"));
}

TEST(Owner, WasOutsideAnyModuleRatherThanBeforeTheRecording) {
  // A region tells the count as well as a module does.
  Script script({"", "a"});
  ThreadScript& t = script.thread();
  t.make(5).on(0).region(1, "features").make(2).end_region(2).enter(3, "a").make(1).leave(4);
  t.backward(10).node(11, "Outside", 6).end(12).node(13, "Before", 4).end(14).end_backward(20);
  const std::string scopes = resolve(script).scopes();
  EXPECT_NE(scopes.find("node Outside <made outside>"), std::string::npos) << scopes;
  EXPECT_NE(scopes.find("node Before <made before>"), std::string::npos) << scopes;
}

TEST(Owner, IsForgottenAfterManyCalls) {
  Script script({"", "a"});
  ThreadScript& t = script.thread();
  t.on(0);
  constexpr std::uint64_t kCalls = 5'000;
  for (std::uint64_t i = 0; i < kCalls; ++i) t.enter(1 + i, "a").make(1).leave(1 + i);
  t.backward(10'000).node(10'001, "Old", 3).end(10'002);
  t.node(10'003, "New", kCalls - 1).end(10'004).end_backward(10'005);
  const std::string scopes = resolve(script, 20'000, /*max_intervals=*/1).scopes();
  EXPECT_NE(scopes.find("node Old <forgotten> [10001,10002)"), std::string::npos);
  EXPECT_NE(scopes.find("node New a [10003,10004)"), std::string::npos);
}

// The writer comes later than the program: by then the address may be a parameter's.
TEST(Backward, AParameterOwnsOnlyWhatHappenedSinceItIsThere) {
  Script script({"", "a"});
  script.add_parameter(7, "a");
  script.dictionary.parameters.back().since_ticks = 20;
  ThreadScript& t = script.thread();
  t.on(0).backward(10).accumulate(11, 7).end(12).end_backward(13);
  t.backward(20).accumulate(21, 7).end(22).end_backward(23).step(30, 0);
  const Profile profile = fold(script, 40);
  EXPECT_EQ(profile.health.nodes, 2U);
  ASSERT_EQ(profile.health.unattributed_nodes.size(), 1U);
  EXPECT_EQ(profile.health.unattributed_nodes[0].count, 1U);
  EXPECT_EQ(stats_of(profile, "a", Phase::kBackward).calls.mean, 1);
}

}  // namespace
}  // namespace layertrace
