// A device knows what runs by the number of a thread's record; attribution counts the same records
// again, in another place. Random programs, written by a thread's hooks and resolved: each id that
// the device had at a moment leads to what ran then, by the program's own stack. And so do marks.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "attribute/resolver.h"
#include "attribute/span.h"
#include "capture/fakes.h"
#include "capture/recorder.h"
#include "record/buffers.h"

namespace layertrace {
namespace {

constexpr std::uint64_t kProgramKey = 11;
constexpr std::uint32_t kProgramLayers = 12;
constexpr std::uint64_t kFirstWeight = 1'000;  // layer i has the one at kFirstWeight + i

// Spans are none of these tests' business.
class NoSpans final : public SpanSink {
 public:
  void open_lane(Lane, std::uint64_t, const std::string&) override {}
  void begin(Lane, const SpanBegin&) override {}
  void end(Lane, Track, std::uint64_t, EndedBy) override {}
  void window(Lane, std::uint64_t, bool, std::uint64_t) override {}
  void step(Lane, std::uint64_t, std::uint64_t) override {}
  void gap(Lane, std::uint64_t, std::uint64_t) override {}
};

class HookProgram {
 public:
  struct Context {
    LayerId layer = kNoLayer;
    Phase phase = Phase::kOther;
  };
  struct Moment {
    std::uint64_t id;  // what the device had
    Context context;   // what ran
    bool in_frame;     // inside any: else it may also be the loss
  };

  HookProgram(unsigned seed, std::size_t chunks, int actions, std::uint64_t takes_every = 1)
      : random_(seed),
        takes_every_(takes_every),
        recording_(make_recording(chunks)),
        state_(recording_) {
    std::vector<std::shared_ptr<ThreadBuffer>> buffers;
    recording_->take_new_threads(buffers);
    buffer_ = buffers.at(0);
    state_.mark(RecordKind::kWindow, 0, 1);
    for (int i = 0; i < actions; ++i) {
      act();
      look();
    }
    while (!stack_.empty()) leave(stack_.size() - 1, false);
    state_.end_backward_run();
    take();
  }

  std::vector<Moment> moments;
  std::vector<Record> records;
  std::vector<std::string> wrong_marks;
  bool lost_records() const { return buffer_->dropped() != 0; }
  const test::MarkLog& marks() const { return *marks_; }
  const test::PushLog& device() const { return *device_; }
  Dictionary dictionary() const {
    Dictionary made;
    recording_->definitions().copy_new(made.layers, made.parameters);
    made.names = {"node", "users", "phase"};
    return made;
  }

 private:
  enum class Kind { kScope, kRegion, kNode };
  struct Frame {
    Kind kind;
    bool recorded;
    Context context;  // of what runs directly inside
    ThreadState::Place place;
  };
  struct MadeNode {
    std::uint64_t number;
    LayerId owner;
    bool marked;  // its call, or the node that made it, is known while the program runs
  };

  std::shared_ptr<Recording> make_recording(std::size_t chunks) {
    auto recording = std::make_shared<Recording>(chunks, [] { return kProgramKey; });
    recording->use(std::shared_ptr<LayerMarks>(marks_));
    recording->use(std::shared_ptr<DeviceCapture>(device_));
    for (std::uint32_t i = 0; i < kProgramLayers; ++i) {
      LayerDef def{.path = "l" + std::to_string(i), .type = "Module"};
      if (i != 0) def.parent = LayerId{static_cast<std::uint32_t>(below(i))};
      const LayerId layer = recording->definitions().add_layer(def);
      recording->definitions().add_parameter({kFirstWeight + i, layer});
    }
    recording->open_window();
    return recording;
  }

  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }

  void act() {
    const std::uint64_t choice = below(100);
    const bool deep = stack_.size() >= 12;
    if (choice < 25 && !deep) return enter_scope();
    if (choice < 35 && !deep) return enter_region();
    if (choice < 60 && !deep) return enter_node();
    if (choice < 72) return make_nodes();
    if (choice < 75) return state_.mark(RecordKind::kStep, steps_++, 0);
    if (choice < 77 && below(takes_every_) == 0) return take();
    if (choice < 80) return act_op();
    if (stack_.empty()) return;
    // Now and then an exception leaves several frames at once.
    const std::size_t frames = choice < 83 ? 1 + below(stack_.size()) : 1;
    leave(stack_.size() - frames, frames != 1);
  }

  void act_op() {
    state_.enter_op(NameId{0}, 0);
    state_.leave_op(+[]() -> std::uint64_t { return 0; });
  }

  // ---- The model ----

  // What runs now. A frame that was not recorded is not known to attribution.
  Context current() const {
    for (std::size_t i = stack_.size(); i-- != 0;) {
      if (stack_[i].recorded) return stack_[i].context;
    }
    return {};
  }
  bool in_node() const {
    return std::any_of(stack_.begin(), stack_.end(), [](const Frame& frame) {
      return frame.recorded && frame.kind == Kind::kNode;
    });
  }
  bool in_scope() const {
    return std::any_of(stack_.begin(), stack_.end(),
                       [](const Frame& frame) { return frame.kind == Kind::kScope; });
  }
  bool all_recorded() const {
    return std::all_of(stack_.begin(), stack_.end(),
                       [](const Frame& frame) { return frame.recorded; });
  }

  void push(Kind kind, Context context, ThreadState::Place place) {
    stack_.push_back({kind, state_.top().recorded, context, place});
  }

  void enter_scope() {
    const LayerId layer{static_cast<std::uint32_t>(below(kProgramLayers))};
    const Context inside{layer, in_node() ? Phase::kRecompute : Phase::kForward};
    push(Kind::kScope, inside, state_.enter_scope(layer, nullptr, sequence_));
    const auto& top = marks_->open.back();
    const bool fits = top.layer == layer && !top.is_region && top.phase != Phase::kBackward;
    if (!fits) wrong_marks.emplace_back("scope");
    if (state_.top().recorded && top.frame != state_.top().pushed)
      wrong_marks.emplace_back("frame");
  }

  // With a phase or without: a layer's data stay the layer's, a backward or optimizer is nobody's.
  void enter_region() {
    constexpr Phase kPhases[] = {Phase::kBackward, Phase::kOptimizer, Phase::kData,
                                 Phase::kCommunication};
    Context inside = current();
    std::uint8_t flags = kNoPhase;
    if (below(2) != 0) {
      const Phase phase = kPhases[below(4)];
      flags = static_cast<std::uint8_t>(phase);
      if (inside.layer == kNoLayer || phase == Phase::kBackward || phase == Phase::kOptimizer)
        inside = {kNoLayer, phase};
    }
    push(Kind::kRegion, inside,
         state_.enter_region(NameId{flags == kNoPhase ? 1U : 2U}, flags, sequence_));
    if (!marks_->open.back().is_region) wrong_marks.emplace_back("region");
  }

  void enter_node() {
    const std::uint64_t choice = below(10);
    if (choice == 0) return enter_node(kUnknownNode, kEngineRoot, kNoLayer, true);
    if (choice == 1) return enter_node(kUnknownNode, 0, kNoLayer, true);
    if (choice < 4) {
      const auto layer =
          static_cast<std::uint32_t>(below(kProgramLayers + 2));  // some are nobody's
      return enter_node(kFirstWeight + layer, kAccumulates,
                        layer < kProgramLayers ? LayerId{layer} : kNoLayer, true);
    }
    if (made_.empty()) return;
    const std::size_t back = std::min<std::size_t>(made_.size() - 1, below(20));
    const MadeNode node = made_[made_.size() - 1 - back];
    enter_node(pack({node.number, kProgramKey}), 0, node.owner, node.marked);
  }

  void enter_node(std::uint64_t value, std::uint8_t flags, LayerId owner, bool marked) {
    const std::size_t around = marks_of_frame();
    push(Kind::kNode, {owner, Phase::kBackward},
         state_.enter_node(NameId{0}, value, flags, sequence_));
    if (!marked) return;
    const std::size_t open = marks_->open.size();
    const bool fits = owner == kNoLayer ? open == around
                                        : open > around && marks_->open.back().layer == owner &&
                                              marks_->open.back().phase == Phase::kBackward;
    if (!fits) wrong_marks.emplace_back("node");
    stack_.back().context.layer = owner;
  }

  // How many marks the frames have, without what is left of a run.
  std::size_t marks_of_frame() { return marks_of_frames_.empty() ? 0 : marks_of_frames_.back(); }

  // The innermost scope or node that attribution knows made them.
  void make_nodes() {
    LayerId owner = kNoLayer;
    bool by_node = false;
    for (std::size_t i = stack_.size(); i-- != 0;) {
      if (!stack_[i].recorded || stack_[i].kind == Kind::kRegion) continue;
      owner = stack_[i].context.layer;
      by_node = stack_[i].kind == Kind::kNode;
      break;
    }
    for (std::uint64_t count = 1 + below(3); count != 0; --count)
      made_.push_back({sequence_++, owner, all_recorded() && !by_node});
  }

  void leave(std::size_t frame, bool thrown) {
    state_.leave(stack_[frame].place, sequence_, thrown);
    stack_.resize(frame);
    marks_of_frames_.resize(std::min(marks_of_frames_.size(), frame));
  }

  void look() {
    while (marks_of_frames_.size() < stack_.size()) marks_of_frames_.push_back(marks_->open.size());
    if (device_->top() == 0) return;
    const bool in_frame = std::any_of(stack_.begin(), stack_.end(),
                                      [](const Frame& frame) { return frame.recorded; });
    moments.push_back({device_->top(), current(), in_frame});
  }

  void take() {
    const auto taken = test::take(*buffer_);
    records.insert(records.end(), taken.begin(), taken.end());
  }

  std::mt19937_64 random_;
  const std::uint64_t takes_every_;  // the rarer, the fuller the buffer
  const std::shared_ptr<test::MarkLog> marks_ = std::make_shared<test::MarkLog>();
  const std::shared_ptr<test::PushLog> device_ = std::make_shared<test::PushLog>();
  const std::shared_ptr<Recording> recording_;
  ThreadState state_;
  std::shared_ptr<ThreadBuffer> buffer_;
  std::vector<Frame> stack_;
  std::vector<std::size_t> marks_of_frames_;
  std::vector<MadeNode> made_;
  std::uint64_t sequence_ = 0;
  std::uint64_t steps_ = 0;
};

// Each id leads to what ran when the device had it.
void expect_places(const HookProgram& program) {
  const Dictionary dictionary = program.dictionary();
  NoSpans sink;
  Resolver resolver(dictionary, sink, TickScale(), 1 << 20);
  resolver.remember_places(1 << 20);
  resolver.open_lane(0, kProgramKey, 1, "main");
  resolver.index(0, program.records);
  resolver.resolve(0, program.records);
  for (const HookProgram::Moment& moment : program.moments) {
    const auto place = resolver.place_of_frame(moment.id);
    ASSERT_TRUE(place.has_value());
    ASSERT_EQ(place->layer, moment.context.layer) << "record " << number_of_frame(moment.id);
    if (moment.context.layer == kNoLayer) continue;  // loss or not is attribution's to say
    ASSERT_EQ(place->phase, moment.context.phase) << "record " << number_of_frame(moment.id);
  }
  EXPECT_FALSE(program.moments.empty());
}

TEST(FrameIds, LeadToWhatRan) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const HookProgram program(seed, 16, 500);
    ASSERT_FALSE(program.lost_records());
    ASSERT_NO_FATAL_FAILURE(expect_places(program));
    EXPECT_EQ(program.device().wrong_outer, 0);
    EXPECT_EQ(program.device().too_many, 0);
    EXPECT_LE(program.device().pushed.size(), 1u);  // what runs outside all
  }
}

// Records that find no room have no number, on either side.
TEST(FrameIds, LeadToWhatRanAlsoWhereRecordsWereLost) {
  int lost = 0;
  for (unsigned seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const HookProgram program(seed, 1, 20'000, 200);
    if (program.lost_records()) ++lost;
    ASSERT_NO_FATAL_FAILURE(expect_places(program));
  }
  EXPECT_GT(lost, 0);
}

TEST(LiveMarks, ShowTheLayersThatRun) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const HookProgram program(seed, 16, 500);
    EXPECT_EQ(program.wrong_marks, std::vector<std::string>());
    EXPECT_TRUE(program.marks().open.empty());
    EXPECT_EQ(program.marks().too_many, 0);
  }
}

}  // namespace
}  // namespace layertrace
