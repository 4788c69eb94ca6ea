// What a device did, and whose it is: kernels, calls and scopes that come apart.
#include "attribute/device_resolver.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "attribute/fold.h"
#include "records.h"
#include "span_log.h"

namespace layertrace::test {
namespace {

// Keeps what comes of devices, as lines.
class DeviceLog final : public SpanSink {
 public:
  explicit DeviceLog(const Dictionary& dictionary) : dictionary_(dictionary) {}
  void open_lane(Lane /*lane*/, std::uint64_t /*tid*/, const std::string& /*name*/) override {}
  void begin(Lane /*lane*/, const SpanBegin& /*span*/) override {}
  void end(Lane /*lane*/, Track /*track*/, std::uint64_t /*ns*/, EndedBy /*by*/) override {}
  void window(Lane /*lane*/, std::uint64_t /*ns*/, bool /*on*/, std::uint64_t /*step*/) override {}
  void step(Lane /*lane*/, std::uint64_t /*ns*/, std::uint64_t /*index*/) override {}
  void gap(Lane /*lane*/, std::uint64_t /*ns*/, std::uint64_t /*dropped*/) override {}
  void device(const DeviceSpan& span) override {
    std::string line =
        dictionary_.names[index(span.what.name)] + " " + std::string(phase_name(span.phase)) + " ";
    line += span.layer != kNoLayer ? "'" + dictionary_.layers[index(span.layer)].path + "'"
                                   : "<" + std::string(cause_text(span.cause)) + ">";
    causes.push_back(span.cause);
    lines.push_back(line + " [" + std::to_string(span.start_ns) + "," +
                    std::to_string(span.end_ns) + ") asked " + std::to_string(span.launch_ns));
  }
  void event_pair(const EventSpan& span) override {
    pairs.push_back(std::string(phase_name(span.phase)) + " '" +
                    dictionary_.layers[index(span.layer)].path + "'");
  }
  std::vector<std::string> lines;
  std::vector<Cause> causes;
  std::vector<std::string> pairs;

 private:
  const Dictionary& dictionary_;
};

class Devices : public ::testing::Test {
 protected:
  static constexpr std::uint32_t kSession = 7;

  // The forward of a is record 3 of thread 1; its backward runs on thread 2, as record 1 there.
  Devices() {
    ThreadScript& t = script_.thread(1);
    t.on(0).enter(10, "").enter(20, "a").make(1).leave(30).leave(40);
    t.backward(60);
    script_.thread(2).node_of(70, "Mm", 0, 1).end(80);
    t.end_backward(90).region(91, "step", Phase::kOptimizer).end_region(99).step(100, 0);
  }

  DeviceActivity kernel(std::uint32_t correlation, const char* name = "gemm") {
    DeviceActivity activity;
    activity.start_ticks = 1000 + correlation;
    activity.end_ticks = 1010 + correlation;
    activity.correlation = correlation;
    activity.name = script_.name(name);
    return activity;
  }
  // Resolves all records of the host up to there.
  void resolve_host(std::uint64_t until = 1000) {
    if (resolved_ == 0) {
      resolver_.remember_places(most_places_);
      for (const ThreadScript& thread : script_.threads())
        resolver_.open_lane(thread.lane(), thread.key(), 100 + thread.key(), "");
    }
    const auto all = script_.in_order();
    for (; resolved_ < all.size() && all[resolved_].record.ticks < until; ++resolved_) {
      resolver_.index(all[resolved_].lane, {&all[resolved_].record, 1});
      resolver_.resolve(all[resolved_].lane, {&all[resolved_].record, 1});
    }
  }
  void ask(std::uint32_t correlation, std::uint64_t at, std::uint32_t thread,
           std::uint64_t frame = 0) {
    if (frame != 0) devices_.tag({frame_id(kSession, thread, frame), correlation});
    devices_.launch({at, at + 1, correlation, 100 + thread});
  }

  Script script_{{"", "a"}};
  DeviceLog log_{script_.dictionary};
  Resolver resolver_{script_.dictionary, log_, TickScale{}, 1000};
  DeviceResolver devices_{script_.dictionary, resolver_, log_, TickScale{}, kSession};
  std::size_t most_places_ = 100;

 private:
  std::size_t resolved_ = 0;
};

using Lines = std::vector<std::string>;

TEST_F(Devices, BelongToTheScopeInWhichTheyWereAskedFor) {
  resolve_host();
  ask(1, 25, 1, 3);
  ask(2, 35, 1, 4);
  ask(3, 75, 2, 1);
  for (const std::uint32_t i : {1, 2, 3}) devices_.activity(kernel(i));
  devices_.settle(1000);
  EXPECT_EQ(log_.lines,
            (Lines{"gemm forward 'a' [1001,1011) asked 25", "gemm forward '' [1002,1012) asked 35",
                   "gemm backward 'a' [1003,1013) asked 75"}));
}

TEST_F(Devices, OutsideAnyModuleBelongToThePhaseOfTheirTime) {
  resolve_host();
  ask(1, 50, 1);     // between forward and backward: the loss
  ask(2, 95, 1, 8);  // the optimizer's step is a region of its own
  ask(3, 150, 1);
  ask(4, 50, 7);  // a thread of which nothing is known
  for (const std::uint32_t i : {1, 2, 3, 4}) devices_.activity(kernel(i));
  devices_.settle(1000);
  EXPECT_EQ(
      log_.lines,
      (Lines{"gemm loss <> [1001,1011) asked 50", "gemm optimizer <> [1002,1012) asked 95",
             "gemm other <" + std::string(cause_text(Cause::kNoScope)) + "> [1003,1013) asked 150",
             "gemm other <" + std::string(cause_text(Cause::kThreadNoScope)) +
                 "> [1004,1014) asked 50"}));
}

TEST_F(Devices, WaitForTheirCallAndForTheHost) {
  resolve_host(15);
  devices_.activity(kernel(1));
  devices_.settle(15);
  EXPECT_TRUE(log_.lines.empty());  // who asked for it?
  ask(1, 25, 1, 3);
  devices_.settle(15);
  EXPECT_TRUE(log_.lines.empty());  // the host's records are not that far
  resolve_host(26);
  devices_.settle(26);
  EXPECT_EQ(log_.lines, Lines{"gemm forward 'a' [1001,1011) asked 25"});
  devices_.settle(1000);
  EXPECT_EQ(log_.lines.size(), 1u);  // once
}

// Of a module without a scope of its own: whose it is shows when the next layer begins.
TEST(InferredDevices, WaitForTheNextLayer) {
  constexpr std::uint32_t kSession = 7;
  Script script({"", "block", "block.a", "block.b", "c"}, "Net");
  script.thread(1)
      .on(0)                 // record 1
      .enter(10, "block.a")  // 2
      .leave(20)             // 3: between layers
      .op(21, 22, "add")
      .enter(30, "block.b")  // 4
      .leave(40)             // 5: between layers
      .enter(50, "c")        // 6
      .leave(60)             // 7: after the last
      .step(100, 0);         // 8
  DeviceLog log(script.dictionary);
  Resolver resolver(script.dictionary, log, TickScale{}, 1000, /*infers=*/true);
  DeviceResolver devices(script.dictionary, resolver, log, TickScale{}, kSession);
  resolver.remember_places(100);
  resolver.open_lane(script.thread(1).lane(), 1, 101, "");
  std::uint32_t correlation = 0;
  for (const auto& [at, frame] : {std::pair{25, 3}, std::pair{45, 5}, std::pair{65, 7}}) {
    ++correlation;
    devices.tag({frame_id(kSession, 1, static_cast<std::uint64_t>(frame)), correlation});
    devices.launch(
        {static_cast<std::uint64_t>(at), static_cast<std::uint64_t>(at) + 1, correlation, 101});
    DeviceActivity activity;
    activity.start_ticks = 1000 + correlation;
    activity.end_ticks = 1010 + correlation;
    activity.correlation = correlation;
    activity.name = script.name("add_kernel");
    devices.activity(activity);
  }
  std::vector<std::size_t> known;
  for (const auto& each : script.in_order()) {
    resolver.index(each.lane, {&each.record, 1});
    resolver.resolve(each.lane, {&each.record, 1});
    devices.settle(each.record.ticks + 1);
    known.push_back(log.lines.size());
  }
  EXPECT_EQ(known, (std::vector<std::size_t>{0, 0, 0, 0, 0, 1, 1, 2, 2, 3}));
  EXPECT_EQ(log.lines, (Lines{"add_kernel forward 'block' [1001,1011) asked 25",
                              "add_kernel forward '' [1002,1012) asked 45",
                              "add_kernel other <" + std::string(cause_text(Cause::kAfterLayers)) +
                                  "> [1003,1013) asked 65"}));
  EXPECT_EQ(log.causes,
            (std::vector<Cause>{Cause::kInferred, Cause::kInferred, Cause::kAfterLayers}));
}

TEST_F(Devices, WithTheIdOfAnotherAreSaidToBe) {
  resolve_host();
  ask(1, 25, 1, 3);
  devices_.activity(kernel(1));
  devices_.settle(1000);
  devices_.activity(kernel(1, "other"));  // its own id went amiss
  devices_.settle(1000);
  EXPECT_EQ(log_.lines,
            (Lines{"gemm forward 'a' [1001,1011) asked 25",
                   "other other <" + std::string(cause_text(Cause::kSharedCorrelation)) +
                       "> [1001,1011) asked 0"}));
}

TEST_F(Devices, AreOfTheKindThatTheirCallAsksFor) {
  resolve_host();
  ask(1, 25, 1, 3);
  DeviceActivity copy = kernel(1, "copy");
  copy.kind = DeviceKind::kCopy;
  devices_.activity(copy);
  devices_.settle(1000);
  EXPECT_TRUE(devices_.awaits_kernels(20, 30));
  EXPECT_FALSE(devices_.awaits_kernels(26, 30));
  devices_.activity(kernel(1));
  devices_.settle(1000);
  EXPECT_FALSE(devices_.awaits_kernels(20, 30));
  EXPECT_EQ(log_.causes, (std::vector<Cause>{Cause::kSharedCorrelation, Cause::kNone}));
}

TEST_F(Devices, OfOneCallMayBeManyWhereItAsksForMany) {
  resolve_host();
  devices_.tag({frame_id(kSession, 1, 3), 1});
  devices_.launch({25, 26, 1, 101, kNoName, CallKind::kAsk, /*asks_for_many=*/true});
  devices_.tag({frame_id(kSession, 1, 3), 2});
  devices_.launch({27, 28, 2, 101, kNoName, CallKind::kCopy});
  for (const char* name : {"gemm", "relu"}) devices_.activity(kernel(1, name));
  for (const char* name : {"first half", "second half"}) {
    DeviceActivity piece = kernel(2, name);
    piece.kind = DeviceKind::kCopy;
    devices_.activity(piece);
  }
  devices_.settle(1000);
  EXPECT_EQ(log_.lines,
            (Lines{"gemm forward 'a' [1001,1011) asked 25", "relu forward 'a' [1001,1011) asked 25",
                   "first half forward 'a' [1002,1012) asked 27",
                   "second half forward 'a' [1002,1012) asked 27"}));
}

TEST_F(Devices, WithoutACallAreSaidToBe) {
  resolve_host();
  devices_.activity(kernel(1));
  devices_.finish();
  EXPECT_EQ(log_.lines, Lines{"gemm other <" + std::string(cause_text(Cause::kNoLaunch)) +
                              "> [1001,1011) asked 0"});
}

// Where it was captured is known, though the record of the graph's launch was dropped.
TEST_F(Devices, OfAGraphBelongToTheScopeOfTheirCaptureAlsoWithoutACall) {
  resolve_host();
  constexpr std::uint64_t kNode = 40;
  devices_.graph_node({kNode, frame_id(kSession, 1, 3)});
  DeviceActivity known = kernel(1);
  known.graph_node = kNode;
  DeviceActivity unknown = kernel(2, "relu");
  unknown.graph_node = kNode + 1;
  devices_.activity(known);
  devices_.activity(unknown);
  devices_.finish();
  EXPECT_EQ(log_.lines, (Lines{"gemm forward 'a' [1001,1011) asked 0",
                               "relu other <" + std::string(cause_text(Cause::kNoLaunch)) +
                                   "> [1002,1012) asked 0"}));
}

// Some versions of CUPTI tell the scopes of calls, too, that nobody asked for.
TEST_F(Devices, AreNotLostBehindManyScopesOfOtherCalls) {
  resolve_host();
  constexpr std::uint32_t kCalls = 4'000;
  constexpr std::uint32_t kOthers = 10;  // of each
  std::uint32_t correlation = 0;
  for (std::uint32_t i = 0; i < kCalls; ++i) {
    for (std::uint32_t other = 0; other < kOthers; ++other)
      devices_.tag({frame_id(kSession, 1, 3), ++correlation});
    ask(++correlation, 25, 1, 3);
  }
  for (std::uint32_t i = 1; i <= kCalls; ++i) devices_.activity(kernel(i * (kOthers + 1)));
  devices_.settle(1'000'000);
  ASSERT_EQ(log_.lines.size(), kCalls);
  EXPECT_EQ(
      std::ranges::count_if(
          log_.lines, [](const std::string& line) { return line.starts_with("gemm forward 'a'"); }),
      kCalls);
}

TEST_F(Devices, OfAScopeThatIsForgottenAreSaidToBe) {
  most_places_ = 1;
  resolve_host();
  ask(1, 25, 1, 3);
  devices_.activity(kernel(1));
  devices_.settle(1000);
  EXPECT_EQ(log_.lines, Lines{"gemm other <" + std::string(cause_text(Cause::kOldScope)) +
                              "> [1001,1011) asked 25"});
}

TEST_F(Devices, OfNcclAreCommunication) {
  resolve_host();
  ask(1, 75, 2, 1);
  devices_.activity(kernel(1, "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage)"));
  devices_.settle(1000);
  ASSERT_EQ(log_.lines.size(), 1u);
  EXPECT_NE(log_.lines[0].find("communication <>"), std::string::npos) << log_.lines[0];
}

// ---- Pairs of events ----

DeviceEventPair pair_of(LayerId layer, Phase phase, std::uint64_t frame) {
  return {.start_ticks = 1000, .end_ticks = 1010, .frame = frame, .layer = layer, .phase = phase};
}

TEST_F(Devices, OfAPairOfEventsHaveThePhaseOfItsFrame) {
  resolve_host();
  const LayerId a = script_.layer("a");
  devices_.event_pair(pair_of(a, Phase::kForward, frame_id(kSession, 1, 3)));
  devices_.event_pair(pair_of(a, Phase::kBackward, 0));  // it has none
  devices_.settle(1000);
  EXPECT_EQ(log_.pairs, (Lines{"forward 'a'", "backward 'a'"}));
}

TEST_F(Devices, OfAPairWhoseFrameTellsNothingKeepItsOwnPhase) {
  most_places_ = 1;
  resolve_host();
  const LayerId a = script_.layer("a");
  devices_.event_pair(pair_of(a, Phase::kForward, frame_id(kSession, 1, 3)));    // long ago
  devices_.event_pair(pair_of(a, Phase::kForward, frame_id(kSession, 1, 8)));    // of another layer
  devices_.event_pair(pair_of(a, Phase::kRecompute, frame_id(kSession, 9, 1)));  // nobody's
  devices_.settle(1000);
  EXPECT_EQ(log_.pairs, (Lines{"forward 'a'", "forward 'a'"}));
  devices_.finish();
  EXPECT_EQ(log_.pairs, (Lines{"forward 'a'", "forward 'a'", "recompute 'a'"}));
}

// ---- The profile ----

TEST(DeviceTotals, AreOfTheStepInWhichTheyWereAskedFor) {
  Script script({"", "a"});
  script.thread().on(0).enter(10, "").op(11, 12, "mm").leave(20).step(100, 0);
  script.thread().enter(110, "").leave(120).step(200, 1).off(200);
  Fold fold(script.dictionary);
  fold.use_device("a GPU");
  Resolver resolver(script.dictionary, fold, TickScale{}, 100);
  resolver.open_lane(0, 1, 1, "");
  for (const auto& written : script.in_order()) {
    resolver.index(0, {&written.record, 1});
    resolver.resolve(0, {&written.record, 1});
  }
  const auto add = [&](std::uint64_t launch_ns, std::uint64_t start_ns, std::uint64_t end_ns) {
    DeviceSpan span{.start_ns = start_ns,
                    .end_ns = end_ns,
                    .launch_ns = launch_ns,
                    .phase = Phase::kForward,
                    .layer = script.layer("a"),
                    .what = {}};
    span.what.name = script.name("gemm");
    fold.device(span);
  };
  add(15, 50, 90);
  add(15, 70, 110);    // overlaps the other, and ends in the next step
  add(115, 300, 310);  // ends after the recording
  add(250, 400, 500);  // asked for after it
  const Profile profile = fold.finish(1000);
  const PhaseStats& stats = profile.find("a")->phase(Phase::kForward);
  EXPECT_EQ(stats.activities.max, 2);
  EXPECT_EQ(stats.activities.min, 1);
  EXPECT_EQ(stats.activity_ns.max, 80);
  EXPECT_EQ(stats.busy_ns.max, 60);
  EXPECT_EQ(stats.busy_ns.min, 10);
  EXPECT_EQ(profile.health.activities, 3u);  // the operator is none
  EXPECT_EQ(profile.health.gpu.outside_steps, 1u);
}

}  // namespace
}  // namespace layertrace::test
