// What a thread tells those outside layertrace: marks of layers, and to a device what runs.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "capture/fakes.h"
#include "capture/recorder.h"
#include "record/buffers.h"

namespace layertrace {
namespace {

using Place = ThreadState::Place;

constexpr std::uint64_t kMarkedKey = 7;
constexpr NameId kNodeName{6};
constexpr NameId kRegionName{5};
constexpr LayerId kNet{0};
constexpr LayerId kBody{1};                // in kNet
constexpr LayerId kLayer{2};               // in kBody
constexpr std::uint64_t kWeight = 0x1000;  // of kLayer

class ThreadMarks : public ::testing::Test {
 protected:
  const std::shared_ptr<test::MarkLog> marks_ = std::make_shared<test::MarkLog>();
  const std::shared_ptr<test::PushLog> device_ = std::make_shared<test::PushLog>();
  const std::shared_ptr<Recording> recording_ = make_recording();
  std::unique_ptr<ThreadState> state_ = std::make_unique<ThreadState>(recording_);
  std::uint64_t sequence_ = 0;  // autograd's next number on this thread

  std::shared_ptr<Recording> make_recording() {
    auto recording = std::make_shared<Recording>(16, [] { return kMarkedKey; });
    recording->use(std::shared_ptr<LayerMarks>(marks_));
    recording->use(std::shared_ptr<DeviceCapture>(device_));
    Definitions& definitions = recording->definitions();
    definitions.add_layer({.path = "", .type = "Net"});
    definitions.add_layer({.path = "body", .type = "Body", .parent = kNet});
    definitions.add_layer({.path = "body.layer", .type = "Linear", .parent = kBody});
    definitions.add_parameter({kWeight, kLayer});
    recording->open_window();
    return recording;
  }

  Place scope(LayerId layer) { return state_->enter_scope(layer, nullptr, sequence_); }
  Place region(std::uint8_t phase = kNoPhase) {
    return state_->enter_region(kRegionName, phase, sequence_);
  }
  Place node(std::uint64_t number) {
    return state_->enter_node(kNodeName, pack({number, kMarkedKey}), 0, sequence_);
  }
  Place weight_node(std::uint64_t address) {
    return state_->enter_node(kNodeName, address, kAccumulates, sequence_);
  }
  Place engine_root() {
    return state_->enter_node(kNodeName, kUnknownNode, kEngineRoot, sequence_);
  }
  std::uint64_t make_node() { return sequence_++; }
  void leave(Place place, bool thrown = false) { state_->leave(place, sequence_, thrown); }
  void run(std::uint64_t number) { leave(node(number)); }
  std::string marked() { return marks_->take(); }

  // Net calls body, which calls layer; each makes a node after what it calls. Their numbers are in
  // this order: layer, body, net.
  struct Made {
    std::uint64_t layer, body, net;
  };
  Made forward() {
    Made made{};
    const Place net = scope(kNet);
    const Place body = scope(kBody);
    const Place layer = scope(kLayer);
    made.layer = make_node();
    leave(layer);
    made.body = make_node();
    leave(body);
    made.net = make_node();
    leave(net);
    return made;
  }

  void TearDown() override {
    state_->end_backward_run();
    EXPECT_TRUE(marks_->open.empty()) << marks_->open.size();
    EXPECT_EQ(state_->depth(), 0u);
    state_.reset();
    EXPECT_EQ(marks_->too_many, 0);
    EXPECT_TRUE(device_->pushed.empty());
    EXPECT_EQ(device_->too_many, 0);
    EXPECT_EQ(device_->wrong_outer, 0);
  }
};

// ---- Marks ----

TEST_F(ThreadMarks, MarkScopesAndRegions) {
  EXPECT_TRUE(state_->makes_marks());
  const Place outer = scope(kNet);
  const Place data = region(static_cast<std::uint8_t>(Phase::kData));
  const Place inner = scope(kBody);
  leave(inner);
  leave(data);
  const Place users = region();
  leave(users);
  leave(outer);
  EXPECT_EQ(marked(), "f0( g5:6( f1( ) ) g5:7( ) )");
}

TEST_F(ThreadMarks, TellTheRecordOfACall) {
  const Place outer = scope(kNet);
  const Place inner = scope(kBody);
  ASSERT_EQ(marks_->open.size(), 2u);
  EXPECT_EQ(marks_->open[0].frame, frame_id(recording_->session(), kMarkedKey, 1));
  EXPECT_EQ(marks_->open[1].frame, frame_id(recording_->session(), kMarkedKey, 2));
  EXPECT_EQ(marks_->open[1].frame, device_->top());
  leave(inner);
  leave(outer);
}

TEST_F(ThreadMarks, JoinTheNodesOfACall) {
  const Made made = forward();
  EXPECT_EQ(marked(), "f0( f1( f2( ) ) )");
  const Place pass = region(static_cast<std::uint8_t>(Phase::kBackward));
  leave(engine_root());
  EXPECT_EQ(marked(), "g5:2(");
  run(made.net);
  EXPECT_EQ(marked(), "b0(");  // stays open: more may come
  run(made.body);
  EXPECT_EQ(marked(), "b1(");
  run(made.layer);
  leave(weight_node(kWeight));
  EXPECT_EQ(marked(), "b2(");
  leave(pass);
  EXPECT_EQ(marked(), ") ) ) )");
}

TEST_F(ThreadMarks, EndWithTheNextPass) {
  const Made made = forward();
  run(made.layer);
  marked();
  leave(engine_root());
  EXPECT_EQ(marked(), ") ) )");
}

TEST_F(ThreadMarks, EndWhenNoNodeWaits) {
  const Made made = forward();
  run(made.layer);
  marked();
  state_->end_backward_run();
  EXPECT_EQ(marked(), ") ) )");
  state_->end_backward_run();
  EXPECT_EQ(marked(), "");
}

TEST_F(ThreadMarks, EndBeforeAScopeOrARegionBegins) {
  const Made made = forward();
  run(made.body);
  marked();
  const Place net = scope(kNet);
  EXPECT_EQ(marked(), ") ) f0(");
  leave(net);
  run(made.net);
  marked();
  leave(region());
  EXPECT_EQ(marked(), ") g5:7( )");
}

TEST_F(ThreadMarks, MakeTwoRunsOfALayerCalledTwice) {
  const Made first = forward();
  const Made second = forward();
  marked();
  run(second.layer);
  run(first.layer);
  EXPECT_EQ(marked(), "b0( b1( b2( ) ) ) b0( b1( b2(");
}

TEST_F(ThreadMarks, HaveNothingOfANodeThatNobodyMade) {
  const std::uint64_t outside = make_node();
  const Made made = forward();
  run(made.net);
  marked();
  run(outside);
  EXPECT_EQ(marked(), ")");
  leave(state_->enter_node(kNodeName, kUnknownNode, 0, sequence_));
  leave(state_->enter_node(kNodeName, pack({made.net, kMarkedKey + 1}), 0, sequence_));
  leave(weight_node(kWeight + 1));
  EXPECT_EQ(marked(), "");
}

// Another thread runs the backward of what this one made: autograd's own threads do.
TEST_F(ThreadMarks, KnowTheCallsOfOtherThreads) {
  const Made made = forward();
  marked();
  ThreadState other(recording_);
  other.leave(other.enter_node(kNodeName, pack({made.layer, kMarkedKey}), 0, 0), 0, false);
  other.end_backward_run();
  EXPECT_EQ(marked(), "b0( b1( b2( ) ) )");
}

// Checkpointing: a node runs a forward again, and what that made.
TEST_F(ThreadMarks, NestARecomputedForwardInItsNode) {
  const Made made = forward();
  marked();
  const Place checkpoint = node(made.net);
  const Made again = forward();
  EXPECT_EQ(marked(), "b0( r0( r1( r2( ) ) )");
  run(again.layer);
  EXPECT_EQ(marked(), "b0( b1( b2(");  // runs of its own, inside the node
  run(again.body);
  EXPECT_EQ(marked(), ")");
  leave(checkpoint);
  EXPECT_EQ(marked(), ") )");
  run(made.body);
  EXPECT_EQ(marked(), "b1(");  // the outer run has gone on
}

TEST_F(ThreadMarks, FindTheOwnerOfNodesThatANodeMade) {
  const Made made = forward();
  marked();
  const Place first = node(made.layer);
  const std::uint64_t second_order = make_node();
  leave(first);
  leave(engine_root());
  marked();
  run(second_order);
  EXPECT_EQ(marked(), "b2(");
}

TEST_F(ThreadMarks, EndWithFramesThatAnExceptionLeftOpen) {
  const Made made = forward();
  marked();
  const Place net = scope(kNet);
  region();
  scope(kBody);
  node(made.layer);
  scope(kLayer);
  node(made.body);
  EXPECT_EQ(marked(), "f0( g5:7( f1( b0( b1( b2( r2( b0( b1(");
  leave(net, /*thrown=*/true);
  EXPECT_EQ(marked(), ") ) ) ) ) ) ) ) )");
  EXPECT_TRUE(marks_->open.empty());
}

TEST_F(ThreadMarks, EndWithFramesOfAnotherWindow) {
  const Place net = scope(kNet);
  const Made made = forward();
  node(made.body);
  recording_->open_window();
  scope(kLayer);
  leave(net);
  EXPECT_TRUE(marks_->open.empty());
}

TEST_F(ThreadMarks, GoOnWithoutRecords) {
  // A buffer without room: what is not recorded runs all the same.
  const auto full = std::make_shared<Recording>(1, [] { return kMarkedKey; });
  full->use(std::shared_ptr<LayerMarks>(marks_));
  full->use(std::shared_ptr<DeviceCapture>(device_));
  full->open_window();
  ThreadState thread(full);
  std::vector<Place> places;
  bool missed = false;
  for (std::uint32_t i = 0; i < 2 * Chunk::kCapacity; ++i) {
    places.push_back(thread.enter_scope(kBody, nullptr, 0));
    missed = missed || !thread.top().recorded;
  }
  EXPECT_TRUE(missed);
  EXPECT_EQ(marks_->open.size(), 2 * Chunk::kCapacity);
  EXPECT_LT(device_->pushed.size(), 2 * Chunk::kCapacity);
  for (; !places.empty(); places.pop_back()) thread.leave(places.back(), 0, false);
  EXPECT_TRUE(marks_->open.empty());
  // What remains is by which the device knows what runs outside all.
  EXPECT_LE(device_->pushed.size(), 1u);
}

// ---- What a device is told ----

// The device's library is the process's: the next who asks it must not find ids of ours.
TEST_F(ThreadMarks, LeaveNoIdBehindWhenTheSessionEnds) {
  state_->mark(RecordKind::kStep, 0, 0);
  EXPECT_EQ(device_->pushed.size(), 1u);  // what runs outside all
  recording_->end();
  state_->end_session();
  EXPECT_TRUE(device_->pushed.empty());
}

TEST_F(ThreadMarks, LeaveNoIdBehindWhereTheSessionEndsInsideAScope) {
  state_->mark(RecordKind::kStep, 0, 0);
  const Place net = scope(kNet);
  const Place body = scope(kBody);
  recording_->end();
  state_->end_session();
  EXPECT_EQ(device_->pushed.size(), 3u);
  leave(body);
  leave(net);
  EXPECT_TRUE(device_->pushed.empty());
  EXPECT_EQ(device_->wrong_outer, 0);
}

// Autograd's own threads outlive the session, and do nothing by which they could give it back.
TEST_F(ThreadMarks, LeaveNoIdBehindOnAThreadOfAutogradAfterANode) {
  const std::uint64_t number = make_node();
  run(number);
  EXPECT_TRUE(device_->pushed.empty());
  state_->mark(RecordKind::kStep, 0, 0);
  EXPECT_EQ(device_->pushed.size(), 1u);
  run(number);
  EXPECT_TRUE(device_->pushed.empty());
}

// The next session finds the thread in the middle of something.
TEST_F(ThreadMarks, CloseWhatIsOpenWhereTheThreadGoesOnToAnotherSession) {
  const Made made = forward();
  static_cast<void>(scope(kNet));
  static_cast<void>(region());
  static_cast<void>(node(made.layer));
  EXPECT_FALSE(marks_->open.empty());
  state_ = std::make_unique<ThreadState>(recording_);
  EXPECT_TRUE(marks_->open.empty());
  EXPECT_TRUE(device_->pushed.empty());
  static_cast<void>(marked());
}

TEST_F(ThreadMarks, PushTheInnermostFrame) {
  const auto id = [&](std::uint64_t number) {
    return frame_id(recording_->session(), kMarkedKey, number);
  };
  const Place net = scope(kNet);  // record 1
  EXPECT_EQ(device_->pushed, std::vector{id(1)});
  const Place body = scope(kBody);
  EXPECT_EQ(device_->pushed, (std::vector{id(1), id(2)}));
  leave(body);  // record 3
  EXPECT_EQ(device_->pushed, std::vector{id(1)});
  state_->enter_op(kNodeName, 0);  // operators have no number
  state_->leave_op(+[]() -> std::uint64_t { return 0; });
  const Place users = region();
  EXPECT_EQ(device_->pushed, (std::vector{id(1), id(4)}));
  leave(scope(kBody));  // records 5 and 6: in a region each record counts
  EXPECT_EQ(device_->pushed, (std::vector{id(1), id(6)}));
  leave(users);
  EXPECT_EQ(device_->pushed, std::vector{id(1)});
  leave(net);  // record 8: what follows is told apart from what was before
  EXPECT_EQ(device_->pushed, std::vector{id(8)});
  state_->mark(RecordKind::kStep, 0, 0);
  EXPECT_EQ(device_->pushed, std::vector{id(9)});
}

// What runs between two nodes is the engine's, after whichever of them.
TEST_F(ThreadMarks, TellADeviceOnceOfWhatRunsBetweenNodes) {
  const auto id = [&](std::uint64_t number) {
    return frame_id(recording_->session(), kMarkedKey, number);
  };
  const auto node = [&] { return state_->enter_node(kNodeName, kUnknownNode, 0, sequence_); };
  state_->mark(RecordKind::kStep, 0, 0);  // record 1
  EXPECT_EQ(device_->pushed, std::vector{id(1)});
  const Place pass = region(static_cast<std::uint8_t>(Phase::kBackward));  // record 2
  EXPECT_EQ(device_->pushed, (std::vector{id(1), id(2)}));
  leave(node());  // records 3 and 4
  EXPECT_EQ(device_->pushed, (std::vector{id(1), id(4)}));
  const Place second = node();  // record 5
  EXPECT_EQ(device_->pushed, (std::vector{id(1), id(4), id(5)}));
  leave(second);
  EXPECT_EQ(device_->pushed, (std::vector{id(1), id(4)}));
  state_->mark(RecordKind::kStep, 1, 0);  // record 7: no longer between nodes
  EXPECT_EQ(device_->pushed, (std::vector{id(1), id(7)}));
  leave(node());
  EXPECT_EQ(device_->pushed, (std::vector{id(1), id(9)}));
  leave(pass);
  EXPECT_EQ(device_->pushed, std::vector{id(10)});
}

TEST_F(ThreadMarks, TellADeviceAgainWhenTheLastTimeIsLongAgo) {
  constexpr std::uint64_t kLong = 4096;
  const Place pass = region(static_cast<std::uint8_t>(Phase::kBackward));
  leave(state_->enter_node(kNodeName, kUnknownNode, 0, sequence_));
  const std::uint64_t first = device_->top();
  for (std::uint64_t i = 0; i < kLong; i += 2) {
    EXPECT_EQ(device_->top(), first);
    leave(state_->enter_node(kNodeName, kUnknownNode, 0, sequence_));
  }
  EXPECT_NE(device_->top(), first);
  leave(pass);
}

}  // namespace
}  // namespace layertrace
