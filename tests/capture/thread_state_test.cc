// The stack of what a thread has open: every frame that was recorded is closed once, in its window.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "capture/recorder.h"
#include "capture/recording_thread.h"

namespace layertrace {
namespace {

using test::RecordingThread;
using test::Tally;
using test::tally;
using Place = ThreadState::Place;

constexpr NameId kName{5};

// "scope( region( )region! )scope": kinds in order, `!` where thrown.
std::string kinds(const std::vector<Record>& records) {
  static constexpr const char* kNames[] = {"scope(", ")scope", "region(", ")region",
                                           "node(",  ")node",  "op(",     ")op",
                                           "step",   "window", "gap"};
  std::string text;
  for (const Record& record : records) {
    if (!text.empty()) text += ' ';
    text += kNames[static_cast<int>(record.kind)];
    const bool is_end = !is_begin(record.kind);
    if (is_end && (record.flags & kThrown) != 0) text += '!';
  }
  return text;
}

TEST(ThreadState, WritesWhatItIsTold) {
  RecordingThread t;
  const int module = 0;
  const Place scope = t.state.enter_scope(LayerId{3}, &module, 10);
  const Place region = t.state.enter_region(kName, kNoPhase, 11);
  const Place node = t.state.enter_node(NameId{6}, 77, kAccumulates, 12);
  t.state.leave(node, 13, false);
  t.state.leave(region, 14, false);
  t.state.leave(scope, 15, false);
  const auto records = t.take();
  ASSERT_EQ(kinds(records), "scope( region( node( )node )region )scope");
  EXPECT_EQ(records[0].id, 3u);
  EXPECT_EQ(records[0].sequence, 10u);
  EXPECT_EQ(records[1].id, 5u);
  EXPECT_EQ(records[1].flags, kNoPhase);
  EXPECT_EQ(records[2].id, 6u);
  EXPECT_EQ(records[2].value, 77u);
  EXPECT_EQ(records[2].flags, kAccumulates);
  EXPECT_EQ(records[3].sequence, 13u);
  EXPECT_EQ(records[5].sequence, 15u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(records[i].window, static_cast<std::uint16_t>(t.recording->window()));
  }
  for (std::size_t i = 1; i < records.size(); ++i)
    EXPECT_GE(records[i].ticks, records[i - 1].ticks);
}

TEST(ThreadState, KnowsTheInnermostModule) {
  RecordingThread t;
  const int outer = 0;
  const int inner = 0;
  EXPECT_EQ(t.state.current_layer(), kNoLayer);
  EXPECT_EQ(t.state.current_module(), nullptr);
  const Place a = t.state.enter_scope(LayerId{1}, &outer, 0);
  const Place region = t.state.enter_region(kName, kNoPhase, 0);
  EXPECT_EQ(t.state.current_layer(), LayerId{1});  // through the region
  EXPECT_EQ(t.state.current_module(), &outer);
  const Place b = t.state.enter_scope(LayerId{2}, &inner, 0);
  EXPECT_EQ(t.state.current_layer(), LayerId{2});
  EXPECT_EQ(t.state.top().module, &inner);
  EXPECT_EQ(t.state.depth(), 3u);
  t.state.leave(b, 0, false);
  EXPECT_EQ(t.state.current_module(), &outer);
  t.state.leave(region, 0, false);
  t.state.leave(a, 0, false);
  EXPECT_EQ(t.state.current_layer(), kNoLayer);
  EXPECT_EQ(t.state.depth(), 0u);
}

TEST(ThreadState, MarksWhatAnExceptionLeft) {
  RecordingThread t;
  const Place a = t.state.enter_scope(LayerId{1}, nullptr, 0);
  const Place b = t.state.enter_scope(LayerId{2}, nullptr, 0);
  t.state.leave(b, 0, true);
  t.state.leave(a, 0, false);  // caught in between
  EXPECT_EQ(kinds(t.take()), "scope( scope( )scope! )scope");
}

TEST(ThreadState, ClosesWhatWasAbandonedInside) {
  RecordingThread t;
  const Place a = t.state.enter_scope(LayerId{1}, nullptr, 0);
  t.state.enter_region(kName, kNoPhase, 0);
  t.state.enter_node(kName, 0, 0, 0);
  t.state.leave(a, 9, false);
  const auto records = t.take();
  EXPECT_EQ(kinds(records), "scope( region( node( )node! )region! )scope");
  for (std::size_t i = 3; i < 6; ++i) EXPECT_EQ(records[i].sequence, 9u);
  EXPECT_EQ(t.state.depth(), 0u);
}

TEST(ThreadState, LeavesAFrameOnce) {
  RecordingThread t;
  const Place a = t.state.enter_scope(LayerId{1}, nullptr, 0);
  const Place b = t.state.enter_scope(LayerId{2}, nullptr, 0);
  t.state.leave(a, 0, false);  // takes b along
  t.state.leave(b, 0, false);
  t.state.leave(a, 0, false);
  t.state.leave({}, 0, false);  // the place of what was never entered
  EXPECT_EQ(tally(t.take()).ends, 2u);
}

TEST(ThreadState, FollowsDeepRecursion) {
  RecordingThread t;
  std::vector<Place> places;
  for (std::uint32_t i = 0; i < 1'000; ++i) {
    places.push_back(t.state.enter_scope(LayerId{i}, nullptr, i));
    ASSERT_EQ(places.back().depth, i + 1);
  }
  EXPECT_EQ(t.state.current_layer(), LayerId{999});
  while (!places.empty()) {
    t.state.leave(places.back(), 0, false);
    places.pop_back();
  }
  const auto records = t.take();
  const Tally read = tally(records);
  EXPECT_EQ(read.begins, 1'000u);
  EXPECT_EQ(read.ends, 1'000u);
  EXPECT_EQ(t.dropped(), 0u);
  for (const Record& record : records) EXPECT_EQ(record.flags & kThrown, 0);
}

TEST(ThreadState, CountsWhatIsTooDeepForItsBuffer) {
  RecordingThread t;
  constexpr std::uint32_t kDepth = 10'000;
  std::vector<Place> places;
  for (std::uint32_t i = 0; i < kDepth; ++i) {
    places.push_back(t.state.enter_scope(LayerId{i}, nullptr, 0));
    ASSERT_EQ(places.back().depth, i + 1);  // the stack itself has no such limit
  }
  while (!places.empty()) {
    t.state.leave(places.back(), 0, false);
    places.pop_back();
  }
  const Place after = t.state.enter_scope(LayerId{7}, nullptr, 0);
  t.state.leave(after, 0, false);
  const Tally read = tally(t.take());
  EXPECT_TRUE(read.nested);
  EXPECT_EQ(read.begins, read.ends);
  EXPECT_GT(t.dropped(), 0u);
  EXPECT_EQ(read.records + t.dropped(), 2u * (kDepth + 1));
}

// ---- Windows ----

TEST(ThreadState, DoesNotCloseInOneWindowWhatWasOpenedInAnother) {
  RecordingThread t;
  const Place old = t.state.enter_scope(LayerId{1}, nullptr, 0);
  t.recording->open_window();
  const Place fresh = t.state.enter_scope(LayerId{2}, nullptr, 0);
  t.state.leave(fresh, 0, false);
  t.state.leave(old, 0, false);
  EXPECT_EQ(kinds(t.take()), "scope( scope( )scope");
  EXPECT_EQ(t.state.depth(), 0u);
}

TEST(ThreadState, ClosesWhatIsOfThisWindowInsideWhatIsNot) {
  RecordingThread t;
  const Place old = t.state.enter_scope(LayerId{1}, nullptr, 0);
  t.recording->open_window();
  t.state.enter_region(kName, kNoPhase, 0);
  t.state.leave(old, 0, false);  // the region was abandoned
  EXPECT_EQ(kinds(t.take()), "scope( region( )region!");
}

TEST(ThreadState, KeepsNoRoomForEndsThatWillNotCome) {
  RecordingThread t(4);
  // Windows without number, each leaving a scope and an operator open: were their ends still to
  // come, they would fill a chunk.
  for (std::uint32_t i = 0; i < Chunk::kCapacity + 100; ++i) {
    const Place scope = t.state.enter_scope(LayerId{1}, nullptr, 0);
    t.state.enter_op(kName, 0);
    t.recording->open_window();
    t.state.leave(scope, 0, false);
    t.state.leave_op(&test::no_key);
    if (i % 500 == 0) static_cast<void>(t.take());
  }
  EXPECT_EQ(t.dropped(), 0u);
}

// ---- Operators ----

std::uint64_t some_sequence() { return 42; }

TEST(ThreadState, WritesOperators) {
  RecordingThread t;
  t.state.enter_op(kName, 0);
  t.state.enter_op(NameId{6}, 0);
  t.state.leave_op(&some_sequence);
  t.state.skip_op();
  t.state.enter_op(NameId{7}, 0);
  t.state.leave_op(&some_sequence);
  t.state.leave_op(&some_sequence);
  t.state.leave_op(&some_sequence);
  t.state.leave_op(&some_sequence);  // one too many
  const auto records = t.take();
  ASSERT_EQ(kinds(records), "op( op( )op op( )op )op");
  EXPECT_EQ(records[0].id, 5u);
  EXPECT_EQ(records[3].id, 7u);
  EXPECT_EQ(t.state.depth(), 0u);  // they take no frames
}

// One that calls another does nothing of its own.
TEST(ThreadState, WritesACompositeOperatorOnlyIfNothingRunsInside) {
  RecordingThread t;
  t.state.enter_op(kName, kOpComposite);
  t.state.enter_op(NameId{6}, kOpComposite);
  t.state.enter_op(NameId{7}, 0);
  t.state.leave_op(&some_sequence);
  t.state.leave_op(&some_sequence);
  t.state.enter_op(NameId{8}, kOpComposite);
  t.state.leave_op(&some_sequence);
  t.state.leave_op(&some_sequence);
  t.state.enter_op(NameId{9}, kOpComposite);
  const auto place = t.state.enter_scope(LayerId{0}, nullptr, 0);
  t.state.leave(place, 0, false);
  t.state.leave_op(&some_sequence);
  t.state.enter_op(NameId{10}, kOpComposite);
  t.state.enter_op_as_node(kName, 0, 0, 0);
  t.state.leave_op(&some_sequence);
  t.state.leave_op(&some_sequence);
  const auto records = t.take();
  ASSERT_EQ(kinds(records), "op( )op op( )op scope( )scope node( )node");
  EXPECT_EQ(records[0].id, 7u);
  EXPECT_EQ(records[2].id, 8u);
  EXPECT_EQ(records[2].flags, kOpComposite);
  EXPECT_LE(records[1].ticks, records[2].ticks);
  EXPECT_LE(records[2].ticks, records[3].ticks);
  EXPECT_EQ(t.dropped(), 0u);
}

TEST(ThreadState, DropsACompositeOperatorOfAnotherWindow) {
  RecordingThread t;
  t.state.enter_op(kName, kOpComposite);
  t.recording->open_window();
  t.state.leave_op(&some_sequence);
  t.state.enter_op(NameId{6}, kOpComposite);
  t.state.leave_op(&some_sequence);
  const auto records = t.take();
  ASSERT_EQ(kinds(records), "op( )op");
  EXPECT_EQ(records[0].id, 6u);
}

TEST(ThreadState, WritesAnOperatorThatIsANode) {
  RecordingThread t;
  t.state.enter_op_as_node(kName, 77, 0, 10);
  EXPECT_EQ(t.state.depth(), 1u);
  t.state.enter_op(NameId{6}, 0);
  t.state.enter_op_as_node(kName, 78, 0, 11);
  t.state.leave_op(&some_sequence);
  t.state.leave_op(&some_sequence);
  t.state.leave_op(&some_sequence);
  const auto records = t.take();
  ASSERT_EQ(kinds(records), "node( op( node( )node )op )node");
  EXPECT_EQ(records[0].value, 77u);
  EXPECT_EQ(records[3].sequence, 42u);
  EXPECT_EQ(t.state.depth(), 0u);
}

TEST(ThreadState, CountsOperatorsBeyondAnyDepth) {
  RecordingThread t;
  constexpr int kDepth = 2'000;
  for (int i = 0; i < kDepth; ++i) t.state.enter_op(kName, 0);
  for (int i = 0; i < kDepth; ++i) t.state.leave_op(&some_sequence);
  t.state.enter_op(NameId{9}, 0);
  t.state.leave_op(&some_sequence);
  const auto records = t.take();
  const Tally read = tally(records);
  EXPECT_EQ(read.begins, read.ends);
  EXPECT_EQ(read.records + t.dropped(), 2u * (kDepth + 1));
  EXPECT_GT(t.dropped(), 0u);
  EXPECT_EQ(records[records.size() - 2].id, 9u);  // back at the top it goes on
}

TEST(ThreadState, CountsNodesBeyondAnyDepth) {
  RecordingThread t;
  constexpr int kDepth = 700;
  for (int i = 0; i < kDepth; ++i) t.state.enter_op_as_node(kName, 0, 0, 0);
  for (int i = 0; i < kDepth; ++i) t.state.leave_op(&some_sequence);
  const Tally read = tally(t.take());
  EXPECT_EQ(read.begins, read.ends);
  EXPECT_EQ(read.records + t.dropped(), 2u * kDepth);
  EXPECT_EQ(t.state.depth(), 0u);
  t.state.enter_op_as_node(kName, 0, 0, 0);
  t.state.leave_op(&some_sequence);
  EXPECT_EQ(kinds(t.take()), "node( )node");
}

TEST(ThreadState, DropsWholeOperatorsWhenThereIsNoMemory) {
  RecordingThread t(2);
  constexpr int kOps = 5'000;
  for (int i = 0; i < kOps; ++i) {
    t.state.enter_op(kName, 0);
    t.state.enter_op_as_node(kName, 0, 0, 0);
    t.state.leave_op(&some_sequence);
    t.state.leave_op(&some_sequence);
  }
  const Tally read = tally(t.take());
  EXPECT_GT(t.dropped(), 0u);
  EXPECT_EQ(read.records + t.dropped(), 4u * kOps);
  EXPECT_EQ(read.begins, read.ends);
  EXPECT_TRUE(read.nested);
}

TEST(ThreadState, DoesNotEndAnOperatorOfAnotherWindow) {
  RecordingThread t;
  t.state.enter_op(kName, 0);
  t.recording->open_window();
  t.state.leave_op(&some_sequence);
  t.state.enter_op(NameId{6}, 0);
  t.state.leave_op(&some_sequence);
  EXPECT_EQ(kinds(t.take()), "op( op( )op");
}

}  // namespace
}  // namespace layertrace
