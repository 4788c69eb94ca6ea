// Attribution of what runs in the forward: scopes, operators, windows, and what is left open.
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

TEST(Forward, IsNestedAsTheCallsWere) {
  Script script({"", "a", "a.b", "c"});
  script.thread()
      .on(0)
      .enter(10, "")
      .enter(20, "a")
      .enter(30, "a.b")
      .leave(40)
      .leave(50)
      .enter(60, "c")
      .leave(70)
      .leave(80)
      .step(100, 0);
  EXPECT_EQ(resolve(script).calls(), text(R"(
      recording on step 0 @0
      forward . #1 [10,80)
        forward a #2 [20,50)
          forward a.b #3 [30,40)
        forward c #4 [60,70)
      step 0 @100
  )"));
}

TEST(Forward, GivesEachCallOfAModuleItsOwnNumber) {
  Script script({"", "a"});
  script.thread().on(0).enter(1, "").enter(2, "a").leave(3).enter(4, "a").leave(5).leave(6);
  EXPECT_EQ(resolve(script).calls(), text(R"(
      recording on step 0 @0
      forward . #1 [1,6)
        forward a #2 [2,3)
        forward a #3 [4,5)
  )"));
}

TEST(Forward, FollowsRecursion) {
  Script script({"", "a"});
  script.thread().on(0).enter(1, "a").enter(2, "a").enter(3, "a").leave(4).leave(5).leave(6);
  EXPECT_EQ(resolve(script).scopes(), text(R"(
      recording on step 0 @0
      forward a [1,6)
        forward a [2,5)
          forward a [3,4)
  )"));
}

TEST(Forward, MarksWhatAnExceptionLeft) {
  Script script({"", "a"});
  script.thread().on(0).enter(1, "").enter(2, "a").leave_thrown(3).leave_thrown(4);
  EXPECT_EQ(resolve(script).scopes(), text(R"(
      recording on step 0 @0
      forward . [1,4) thrown
        forward a [2,3) thrown
  )"));
}

TEST(Forward, KeepsThreadsApart) {
  Script script({"", "a", "b"});
  script.thread(1).on(0).enter(1, "a").leave(9);
  script.thread(2).enter(2, "b").op(3, 4, "mm").leave(8);
  const SpanLog log = resolve(script);
  EXPECT_EQ(log.scopes(0), text(R"(
      recording on step 0 @0
      forward a [1,9)
  )"));
  EXPECT_EQ(log.calls(1), "forward b #1/1 [2,8)\n");
  EXPECT_EQ(log.ops(1), "mm forward b [3,4)\n");
}

// ---- Operators ----

TEST(Operators, BelongToTheScopeTheyRanIn) {
  Script script({"", "a"});
  script.thread()
      .on(0)
      .enter(10, "")
      .op(11, 12, "add")
      .enter(20, "a")
      .op(21, 22, "mm")
      .leave(30)
      .op(31, 32, "relu")
      .leave(40);
  EXPECT_EQ(resolve(script).ops(), text(R"(
      add forward . [11,12)
      mm forward a [21,22)
      relu forward . [31,32)
  )"));
}

TEST(Operators, AreActivitiesWhereTheyDoWorkOfTheirOwn) {
  Script script({""});
  script.thread()
      .on(0)
      .enter(0, "")
      .begin_op(10, "linear", true)  // only calls others
      .begin_op(11, "addmm")         // copies its bias by an operator, then multiplies itself
      .op(12, 13, "copy_")
      .end_op(14)
      .end_op(15)
      .begin_op(20, "dropout", true)  // composite, but nothing ran inside: then it did the work
      .end_op(21)
      .leave(30);
  EXPECT_EQ(resolve(script).ops(), text(R"(
      addmm forward . [11,14)
        copy_ forward . [12,13)
      dropout forward . [20,21)
  )"));
}

TEST(Operators, MayHoldAModuleCall) {
  Script script({"", "a"});
  script.thread()
      .on(0)
      .enter(0, "")
      .begin_op(10, "custom")
      .enter(11, "a")
      .op(12, 13, "mm")
      .leave(14)
      .end_op(15)
      .leave(20);
  EXPECT_EQ(resolve(script).ops(), text(R"(
      custom forward . [10,15)
        mm forward a [12,13)
  )"));
}

TEST(Operators, OutsideAnyModuleSayWhy) {
  Script script({"", "a"});
  script.thread(1).on(0).op(1, 2, "early").enter(3, "a").leave(4).op(5, 6, "late");
  script.thread(2).op(7, 8, "elsewhere");
  const SpanLog log = resolve(script);
  EXPECT_EQ(log.ops(0), text(R"(
      early other <thread without scope> [1,2)
      late other <no scope> [5,6)
  )"));
  EXPECT_EQ(log.ops(1), "elsewhere other <thread without scope> [7,8)\n");
}

TEST(Operators, SayWhyAlsoInARegionThatBeganBeforeTheFirstModule) {
  Script script({"", "a"});
  script.thread().on(0).region(1, "epoch").op(2, 3, "early").enter(4, "a").leave(5);
  script.thread().op(6, 7, "late").end_region(8);
  EXPECT_EQ(resolve(script).ops(), text(R"(
      early other <thread without scope> [2,3)
      late other <no scope> [6,7)
  )"));
}

// ---- Windows ----

TEST(Window, DropsWhatTheWarmUpRecorded) {
  Script script({"", "a"});
  script.thread()
      .enter(1, "a")
      .op(2, 3, "mm")
      .leave(4)
      .on(10, 1)
      .enter(11, "a")
      .op(12, 13, "mm")
      .leave(14)
      .step(20, 1)
      .off(21, 2)
      .enter(31, "a")
      .op(32, 33, "mm")
      .leave(34);
  const SpanLog log = resolve(script);
  EXPECT_EQ(log.scopes(), text(R"(
      recording on step 1 @10
      forward a [11,14)
      step 1 @20
      recording off step 2 @21
  )"));
  EXPECT_EQ(log.ops(), "mm forward a [12,13)\n");
}

TEST(Window, KnowsTheCallsOfTheWarmUp) {
  Script script({"", "a"});
  ThreadScript& t = script.thread();
  t.enter(1, "a").make(1).leave(2).on(10);
  t.backward(11).node(12, "MmBackward0", 0).end(13).end_backward(14);
  EXPECT_EQ(resolve(script).scopes(), text(R"(
      recording on step 0 @10
      region backward backward [11,14)
        backward a [12,13)
          node MmBackward0 a [12,13)
  )"));
}

TEST(Window, EndsWhatItBegan) {
  Script script({"", "a", "b"});
  script.thread(1).on(0).step(20, 0).off(20, 1);
  script.thread(2).enter(10, "a").begin_op(11, "mm").end_op(30).enter(40, "b").leave(41).leave(50);
  const SpanLog log = resolve(script);
  EXPECT_EQ(log.scopes(1), "forward a [10,50)\n");  // b began while nothing was recorded
  EXPECT_EQ(log.ops(1), "mm forward a [11,30)\n");
}

TEST(Window, BeginsInsideWhatIsOpen) {
  Script script({"", "a", "b"});
  script.thread(1).on(20);
  script.thread(2).enter(10, "a").enter(30, "b").op(31, 32, "mm").leave(40).leave(50);
  const SpanLog log = resolve(script);
  EXPECT_EQ(log.scopes(1), "forward b [30,40)\n");
  EXPECT_EQ(log.ops(1), "mm forward b [31,32)\n");
}

TEST(Window, CutsWhatAnotherStretchLeftOpen) {
  // Thread 2 is inside a region and an operator when recording pauses, and leaves both unseen.
  Script script({"", "a"});
  script.thread(1).on(0).step(20, 0).off(20, 1).on(90, 5).step(200, 5);
  ThreadScript& t = script.thread(2);
  t.in_window(1).region(10, "load", Phase::kData).begin_op(15, "read").op(16, 17, "seek");
  t.in_window(2).enter(100, "a").op(101, 102, "mm").leave(110);
  const SpanLog log = resolve(script);
  // Cut where the recording paused: what came after is not known.
  EXPECT_EQ(log.scopes(1), text(R"(
      region load data [10,20) cut
      forward a [100,110)
  )"));
  EXPECT_EQ(log.ops(1), text(R"(
      read data - [15,20) cut
        seek data - [16,17)
      mm forward a [101,102)
  )"));
}

TEST(Window, ForgetsTheCallsThatAnotherStretchLeftOpen) {
  Script script({"", "a"});
  ThreadScript& t = script.thread();
  t.on(0).in_window(1).enter(10, "").make(1);
  t.step(20, 0).off(20, 1).make(1).on(30, 2);
  t.in_window(2).enter(40, "a").make(1).leave(50).make(1);
  t.backward(60).node(61, "Outside", 3).end(62).node(63, "InA", 2).end(64);
  t.node(65, "InRoot", 0).end(66).end_backward(70);
  EXPECT_EQ(resolve(script).scopes(), text(R"(
      recording on step 0 @0
      forward . [10,30) cut
        step 0 @20
        recording off step 1 @20
        recording on step 2 @30
      forward a [40,50)
      region loss loss [50,60)
      region backward backward [60,70)
        node Outside <made outside> [61,62)
        backward a [63,64)
          node InA a [63,64)
        backward . [65,66)
          node InRoot . [65,66)
  )"));
}

TEST(Window, StaysNestedWhateverIsDropped) {
  Script script({"", "a"});
  script.thread().on(0).enter(1, "").gap(5, 12).enter(6, "a").leave(7).gap(8, 2).leave(9);
  EXPECT_EQ(resolve(script).scopes(), text(R"(
      recording on step 0 @0
      forward . [1,9)
        gap of 12 @5
        forward a [6,7)
        gap of 2 @8
  )"));
}

// ---- The end ----

TEST(Finish, CutsWhatIsOpen) {
  Script script({"", "a"});
  script.thread(1).on(0).enter(1, "").enter(2, "a").begin_op(3, "mm").op(4, 5, "copy_");
  script.thread(2).region(6, "load", Phase::kData);
  const SpanLog log = resolve(script, 100);
  EXPECT_EQ(log.scopes(0), text(R"(
      recording on step 0 @0
      forward . [1,100) cut
        forward a [2,100) cut
  )"));
  EXPECT_EQ(log.ops(0), text(R"(
      mm forward a [3,100) cut
        copy_ forward a [4,5)
  )"));
  EXPECT_EQ(log.scopes(1), "region load data [6,100) cut\n");
}

TEST(Finish, ShowsAnOperatorThatWasRunning) {
  Script script({"", "a"});
  script.thread().on(0).enter(1, "a").begin_op(2, "mm");
  EXPECT_EQ(resolve(script, 100).ops(), "mm forward a [2,100) cut\n");
}

TEST(Finish, CutsANodeWithItsRun) {
  Script script({"", "a"});
  ThreadScript& t = script.thread();
  t.on(0).enter(1, "a").make(2).leave(2);
  t.backward(10).node(11, "Add", 1).end(12).node(13, "Mm", 0);
  EXPECT_EQ(resolve(script, 100).scopes(), text(R"(
      recording on step 0 @0
      forward a [1,2)
      region loss loss [2,10)
      region backward backward [10,100) cut
        backward a [11,100) cut
          node Add a [11,12)
          node Mm a [13,100) cut
  )"));
}

TEST(Finish, NeverEndsASpanBeforeItBegan) {
  // Threads go on for a moment after stop() has read the clock.
  Script script({"", "a"});
  script.thread().on(0).enter(90, "").enter(110, "a").op(111, 112, "mm").leave(120);
  EXPECT_EQ(resolve(script, 100).scopes(), text(R"(
      recording on step 0 @0
      forward . [90,120) cut
        forward a [110,120)
  )"));
}

TEST(Finish, HoldsTheClockStillWhereItRanBackwards) {
  // As between two processors whose counters differ.
  Script script({"", "a"});
  script.thread().on(0);
  auto& written = script.written;
  const auto add = [&](std::uint64_t at, RecordKind kind, std::uint32_t id) {
    written.push_back({0, {at, 0, 0, id, kind, 0, 0}});
  };
  add(50, RecordKind::kScopeBegin, 0);
  add(60, RecordKind::kScopeBegin, 1);
  add(55, RecordKind::kScopeEnd, 0);
  add(40, RecordKind::kScopeEnd, 0);
  SpanLog log(script.dictionary);
  Resolver resolver(script.dictionary, log, TickScale{}, test::kManyIntervals);
  resolver.open_lane(0, 1, 1, "");
  for (const auto& each : written) resolver.index(0, {&each.record, 1});
  for (const auto& each : written) resolver.resolve(0, {&each.record, 1});
  resolver.finish(100);
  EXPECT_EQ(log.scopes(), text(R"(
      recording on step 0 @0
      forward . [50,60)
        forward a [60,60)
  )"));
}

// ---- A thread that ends ----

TEST(CloseLane, EndsWhatTheThreadLeftOpen) {
  Script script({"", "a"});
  script.thread(1).on(0);
  script.thread(2).enter(10, "").make(1).leave(20);    // the loss may begin…
  script.thread(3).enter(10, "a").begin_op(12, "mm");  // or it ends in the middle
  SpanLog log(script.dictionary);
  Resolver resolver(script.dictionary, log, TickScale{}, test::kManyIntervals);
  for (Lane lane = 0; lane < 3; ++lane) resolver.open_lane(lane, lane + 1, 0, "");
  for (const auto& each : script.in_order()) resolver.index(each.lane, {&each.record, 1});
  for (const auto& each : script.in_order()) resolver.resolve(each.lane, {&each.record, 1});
  resolver.close_lane(1);
  resolver.close_lane(2);
  // …but nothing of it lasts until the program's end.
  resolver.finish(1'000);
  EXPECT_EQ(log.scopes(1), text(R"(
      forward . [10,20)
      region loss loss [20,20)
  )"));
  EXPECT_EQ(log.scopes(2), "forward a [10,12) cut\n");
  EXPECT_EQ(log.ops(2), "mm forward a [12,12) cut\n");
}

TEST(CloseLane, ForgetsTheCallsOfThreadsWithoutNumber) {
  Script script({"", "a"});
  script.name("Mm");
  SpanLog log(script.dictionary);
  constexpr std::size_t kMaxIntervals = 100;
  Resolver resolver(script.dictionary, log, TickScale{}, kMaxIntervals);
  const auto feed = [&](Lane lane, const Record& record) {
    resolver.index(lane, {&record, 1});
    resolver.resolve(lane, {&record, 1});
  };
  resolver.open_lane(0, 1'000, 0, "");
  feed(0, {1, 0, 0, 0, RecordKind::kWindow, 1, 0});
  constexpr Lane kThreads = 50;
  std::uint64_t now = 2;
  for (Lane lane = 1; lane <= kThreads; ++lane) {  // each makes ten calls and ends
    resolver.open_lane(lane, lane, 0, "");
    for (std::uint64_t call = 0; call < 10; ++call) {
      feed(lane, {now++, 0, call, 1, RecordKind::kScopeBegin, 0, 0});
      feed(lane, {now++, 0, call + 1, 0, RecordKind::kScopeEnd, 0, 0});
    }
    resolver.close_lane(lane);
  }
  for (const std::uint64_t maker : {1, 40, 41, 50}) {
    feed(0, {now++, pack({3, maker}), 0, 0, RecordKind::kNodeBegin, 0, 0});
    feed(0, {now++, 0, 0, 0, RecordKind::kNodeEnd, 0, 0});
  }
  resolver.finish(now);
  EXPECT_EQ(log.scopes(0), text(R"(
      recording on step 0 @1
      node Mm <forgotten> [1002,1003)
      node Mm <forgotten> [1004,1005)
      backward a [1006,1007)
        node Mm a [1006,1007)
      backward a [1008,1009)
        node Mm a [1008,1009)
  )"));
}

}  // namespace
}  // namespace layertrace
