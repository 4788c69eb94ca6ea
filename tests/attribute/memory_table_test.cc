// Memory by layer and phase, from blocks that are taken and given back.
#include "attribute/memory_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "attribute/folding.h"

namespace layertrace {
namespace {

using test::fold;
using test::outside;
using test::Script;
using test::stats_of;
using test::ThreadScript;
using ::testing::Contains;
using ::testing::HasSubstr;

MemoryStats memory_of(const Profile& profile, std::string_view path,
                      Phase phase = Phase::kForward) {
  return stats_of(profile, path, phase).memory;
}

// A forward whose first layer takes 100 bytes that the backward gives back, and 30 of its own.
Script& train(Script& script) {
  ThreadScript& t = script.thread();
  t.on(0).counting(1).enter(10, "").enter(20, "a");
  t.take(21, 0x1000, 30).take(22, 0x2000, 100).make(1).give_back(23, 0x1000);
  t.leave(30).enter(40, "b").make(1).take(41, 0x3000, 7).leave(50).leave(60);
  t.backward(70).node(71, "BBackward", 1).take(72, 0x4000, 50).end(75);
  t.node(80, "ABackward", 0).take(81, 0x5000, 40).give_back(82, 0x2000).give_back(83, 0x4000);
  t.end(85).end_backward(90);
  t.region(100, "step", Phase::kOptimizer).take(101, 0x6000, 80).take(102, 0x7000, 5);
  t.give_back(103, 0x7000).end_region(110).give_back(115, 0x3000).step(120, 0);
  return script;
}

TEST(Memory, IsChargedToTheLayerAndPhaseThatTookIt) {
  Script script({"", "a", "b"});
  const Profile profile = fold(train(script));
  const MemoryStats a{.allocated = 130, .freed = 130, .kept = 100, .peak = 130};
  EXPECT_EQ(memory_of(profile, "a"), a);
  const MemoryStats b{.allocated = 7, .freed = 7, .kept = 0, .peak = 107};
  EXPECT_EQ(memory_of(profile, "b"), b);
  const MemoryStats both{.allocated = 137, .freed = 137, .kept = 100, .peak = 130};
  EXPECT_EQ(memory_of(profile, ""), both);
  const MemoryStats b_backward{.allocated = 50, .freed = 50, .kept = 0, .peak = 157};
  EXPECT_EQ(memory_of(profile, "b", Phase::kBackward), b_backward);
  const MemoryStats a_backward{.allocated = 40, .freed = 0, .kept = 0, .peak = 197};
  EXPECT_EQ(memory_of(profile, "a", Phase::kBackward), a_backward);
  const MemoryStats optimizer{.allocated = 85, .freed = 5, .kept = 0, .peak = 132};
  EXPECT_EQ(outside(profile, Phase::kOptimizer).memory, optimizer);
}

TEST(Memory, OfTheDeviceHasItsPeakWithLayerPhaseAndMoment) {
  Script script({"", "a", "b"});
  const Profile profile = fold(train(script));
  const DeviceMemory host{.device = -1,
                          .allocated = 312,
                          .freed = 192,
                          .peak = 197,
                          .peak_layer = 1,
                          .peak_phase = Phase::kBackward,
                          .peak_ns = 81,
                          .timeline = {{21, 30, 1, Phase::kForward},
                                       {22, 130, 1, Phase::kForward},
                                       {23, 100, 1, Phase::kForward},
                                       {41, 107, 2, Phase::kForward},
                                       {72, 157, 2, Phase::kBackward},
                                       {81, 197, 1, Phase::kBackward},
                                       {82, 97, 1, Phase::kBackward},
                                       {83, 47, 1, Phase::kBackward},
                                       {101, 127, -1, Phase::kOptimizer},
                                       {102, 132, -1, Phase::kOptimizer},
                                       {103, 127, -1, Phase::kOptimizer},
                                       {115, 120, -1, Phase::kOther}}};
  ASSERT_EQ(profile.device_memory.size(), 1);
  EXPECT_EQ(profile.device_memory[0], host);
}

TEST(Memory, OfGradientsAndOptimizersIsWhatStays) {
  Script script({"", "a", "b"});
  const Profile profile = fold(train(script));
  EXPECT_EQ(profile.gradient_bytes, 40);
  EXPECT_EQ(profile.optimizer_bytes, 80);
}

TEST(Memory, OfGradientsIsThereWhenTheBackwardIsOverAndMayBeGoneLater) {
  Script script({"", "a"});
  ThreadScript& t = script.thread();
  t.on(0).counting(1).enter(10, "").make(1).leave(20);
  t.backward(30).node(31, "Backward", 0).take(32, 1, 64).end(35).end_backward(40);
  t.give_back(50, 1).step(60, 0);
  EXPECT_EQ(fold(script).gradient_bytes, 64);
}

TEST(Memory, IsTheAverageOfTheCountedStepsAndTheirHighestPeak) {
  Script script({"", "a"});
  ThreadScript& t = script.thread();
  t.on(0).counting(1).enter(10, "a").take(11, 1, 100).leave(12).give_back(13, 1).step(20, 0);
  t.counting(21).enter(30, "a").take(31, 1, 50).leave(32).give_back(33, 1).step(40, 1);
  t.counting(41, 0, false).enter(50, "a").leave(52).step(60, 2);
  const Profile profile = fold(script);
  const MemoryStats expected{.allocated = 75, .freed = 75, .kept = 0, .peak = 100};
  EXPECT_EQ(memory_of(profile, "a"), expected);
  EXPECT_EQ(profile.device_memory.at(0).allocated, 75);
  EXPECT_EQ(profile.device_memory.at(0).peak_ns, 11);
}

TEST(Memory, OfAStepThatIsNotCountedIsLeftOut) {
  Script script({"", "a"});
  ThreadScript& t = script.thread();
  t.on(0).take(1, 1, 8).counting(2, 0, false).enter(10, "a").take(11, 2, 100).leave(12).step(20, 0);
  const Profile profile = fold(script);
  EXPECT_TRUE(memory_of(profile, "a").empty());
  EXPECT_TRUE(profile.device_memory.empty());
}

TEST(Memory, ThatAnotherThreadTellsOfJustBeforeTheCountingCounts) {
  Script script({"", "a"});
  script.thread().on(0);
  script.thread(2).take(1, 1, 8);
  script.thread().counting(2).step(20, 0);
  EXPECT_EQ(fold(script).device_memory.at(0).allocated, 8);
}

TEST(Memory, OfBlocksFromBeforeIsKnownWhereItIsTold) {
  Script script({"", "a"});
  ThreadScript& t = script.thread();
  t.on(0).counting(1).give_back(2, 1).give_back(3, 2, 512, 0).take(4, 3, 256, 0).step(20, 0);
  const Profile profile = fold(script);
  ASSERT_EQ(profile.device_memory.size(), 2);
  EXPECT_EQ(profile.device_memory[0].freed, 0);
  EXPECT_EQ(profile.device_memory[1].freed, 512);
  EXPECT_EQ(profile.device_memory[1].peak, 0);
  EXPECT_EQ(outside(profile, Phase::kOther).memory.freed, 0);
}

TEST(Memory, OfAnEarlierCountedStepIsNobodysWhenItIsGivenBack) {
  Script script({"", "a"});
  ThreadScript& t = script.thread();
  t.on(0).counting(1).enter(10, "a").take(11, 1, 100).leave(12).step(20, 0);
  t.counting(21).give_back(22, 1).step(40, 1);
  const Profile profile = fold(script);
  EXPECT_EQ(memory_of(profile, "a").freed, 0);
  EXPECT_EQ(profile.device_memory.at(0).freed, 50);  // the average of 0 and 100
}

// Meanwhile the block may have been given back, and another be at its address.
TEST(Memory, IsForgottenWhileNothingIsCounted) {
  Script script({"", "a"});
  ThreadScript& t = script.thread();
  t.on(0).counting(1).take(2, 1, 100).step(20, 0).counting(21, 0, false).step(30, 1);
  t.counting(31).give_back(32, 1).step(40, 2);
  EXPECT_EQ(fold(script).device_memory.at(0).freed, 0);
}

TEST(Memory, OfLayersIsTheGpusWhereThatIsUsed) {
  Script script({"", "a"});
  ThreadScript& t = script.thread();
  t.on(0).counting(1).enter(10, "a").take(11, 1, 100).take(12, 1, 512, 0).leave(13).step(20, 0);
  const Profile profile = fold(script);
  EXPECT_EQ(memory_of(profile, "a").allocated, 512);
  EXPECT_EQ(memory_of(profile, "a").peak, 512);
  ASSERT_EQ(profile.device_memory.size(), 2);
  EXPECT_EQ(profile.device_memory[0].device, -1);
  EXPECT_EQ(profile.device_memory[0].allocated, 100);
  EXPECT_EQ(profile.device_memory[1].device, 0);
}

TEST(Memory, PeaksCountForWhatIsOpenOnAnyThread) {
  Script script({"", "a", "b"});
  script.thread().on(0).counting(1).enter(10, "a");
  script.thread(2).enter(20, "b").take(21, 1, 100).give_back(22, 1).leave(30);
  script.thread().leave(40).step(50, 0);
  const Profile profile = fold(script);
  EXPECT_EQ(memory_of(profile, "a").peak, 100);
  EXPECT_EQ(memory_of(profile, "a").allocated, 0);
  EXPECT_EQ(memory_of(profile, "b").allocated, 100);
}

TEST(Memory, OfALayerThatTakesNoneHasTheLevelThatItMet) {
  Script script({"", "a", "b"});
  ThreadScript& t = script.thread();
  t.on(0).counting(1).enter(10, "a").take(11, 1, 100).leave(12);
  t.enter(20, "b").leave(21).give_back(22, 1).step(30, 0);
  const MemoryStats expected{.allocated = 0, .freed = 0, .kept = 0, .peak = 100};
  EXPECT_EQ(memory_of(fold(script), "b"), expected);
}

TEST(Memory, ThatIsTooManyBlocksIsSaidToBe) {
  Script script({""});
  ThreadScript& t = script.thread();
  t.on(0).counting(1);
  for (std::uint64_t i = 0; i < 1030; ++i) t.take(2 + i, 1 + i, 1);
  t.step(2000, 0);
  Fold fold(script.dictionary, /*memory_bytes=*/1);
  test::feed(script, fold, script.written.size(), test::kEnd);
  const Profile profile = fold.finish(test::kEnd);
  EXPECT_EQ(profile.device_memory.at(0).allocated, 1030);
  EXPECT_THAT(profile.health.notes, Contains(HasSubstr("6 blocks of memory were too many")));
}

TEST(Forecast, AddsUpWhatTrainingHolds) {
  Profile profile;
  Layer root;
  root.param_bytes = 1000;
  root.phases[static_cast<std::size_t>(Phase::kForward)].memory.kept = 300;
  root.phases[static_cast<std::size_t>(Phase::kRecompute)].memory.kept = 5000;
  const auto add = [&](const char* name, std::uint64_t bytes, bool trainable) -> Parameter& {
    Parameter& parameter = root.parameters.emplace_back();
    parameter.name = name;
    parameter.bytes = bytes;
    parameter.trainable = trainable;
    return parameter;
  };
  add("w", 600, true);
  add("frozen", 400, false);
  add("tied", 600, true).shared_with = "w";
  Layer child = root;
  child.parent = 0;
  child.parameters.clear();
  profile.layers = {root, child};
  profile.outside[static_cast<std::size_t>(Phase::kLoss)].memory.kept = 20;
  profile.optimizer_bytes = 1200;
  const MemoryForecast expected{
      .parameters = 1000, .gradients = 600, .optimizer = 1200, .activations = 320};
  EXPECT_EQ(forecast(profile), expected);
  EXPECT_EQ(forecast(profile).total(), 3120);
}

TEST(Forecast, SaysWhetherItKnowsOfTheOptimizersState) {
  Profile profile;
  EXPECT_FALSE(forecast(profile).optimizer_known) << "none was made, but one may have been there";
  profile.optimizer_state_bytes = 0;
  EXPECT_TRUE(forecast(profile).optimizer_known) << "it has none";
  profile.optimizer_bytes = 40;
  profile.optimizer_state_bytes = 700;
  EXPECT_EQ(forecast(profile).optimizer, 700);
}

}  // namespace
}  // namespace layertrace
