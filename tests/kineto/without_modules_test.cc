// Traces without modules' calls: the step, its phases and the operators in them stand for layers.
#include <gtest/gtest.h>

#include <string>

#include <layertrace/report.h>

#include "kineto/made_up_trace.h"

namespace layertrace::kineto {
namespace {

TEST(ImportedWithoutModules, TellWhatRunsAgainInTheBackward) {
  MadeUpTrace trace;
  trace.forward_op("aten::linear", 41, 100, 10)
      .launch(1, 105)
      .node("CheckpointFunctionBackward", 41, 300, 100)
      .forward_op("aten::linear", 60, 310, 10, 2)  // again
      .launch(2, 315, 2)
      .node("AddmmBackward0", 60, 330, 40, 2, 2)
      .x("cpu_op", "aten::mm", 335, 10, "", 2)
      .launch(3, 340, 2)
      .node("TBackward0", 61, 375, 20, 2, 2)
      .x("cpu_op", "aten::t", 376, 5, "", 2)
      .node("SumBackward0", 62, 420, 20, 2, 2)
      .x("cpu_op", "aten::expand", 421, 5, "", 2);
  for (int i = 1; i <= 3; ++i) trace.kernel(i, 500 + 20 * i, 10);
  const auto profile = trace.import();
  ASSERT_TRUE(profile);
  EXPECT_EQ(activities(*profile, "forward.aten::linear", Phase::kForward), 1);
  EXPECT_EQ(activities(*profile, "recompute.aten::linear", Phase::kRecompute), 1);
  EXPECT_EQ(activities(*profile, "backward.AddmmBackward0", Phase::kBackward), 1);
}

// Where the backward itself is to be differentiated, all its operators make nodes.
TEST(ImportedWithoutModules, TakeNoSecondDerivativeForRecomputation) {
  const auto profile = MadeUpTrace()
                           .forward_op("aten::mul", 41, 100, 10)
                           .node("MulBackward0", 41, 300, 20)
                           .forward_op("aten::mul", 60, 305, 10, 2)
                           .launch(1, 310, 2)
                           .node("SinBackward0", 40, 330, 20)
                           .forward_op("aten::cos", 61, 335, 10, 2)
                           .kernel(1, 400, 10)
                           .import();
  ASSERT_TRUE(profile);
  EXPECT_EQ(profile->find("recompute.aten::mul"), nullptr);
  EXPECT_EQ(activities(*profile, "backward.MulBackward0", Phase::kBackward), 1);
}

TEST(ImportedWithoutModules, HavePhasesAndOperatorsAsLayers) {
  const auto profile = MadeUpTrace()
                           .forward_op("aten::linear", 41, 112, 10)
                           .forward_op("aten::addmm", 41, 114, 5)
                           .launch(5, 115)
                           .node("AddmmBackward0", 41, 300, 20)
                           .x("cpu_op", "aten::mm", 304, 10, "", 2)
                           .launch(6, 305, 2)
                           .x("user_annotation", "Optimizer.step#SGD.step", 400, 50)
                           .launch(7, 410)
                           .kernel(5, 150, 10)
                           .kernel(6, 310, 10)
                           .kernel(7, 420, 10)
                           .import();
  ASSERT_TRUE(profile);
  EXPECT_EQ(activities(*profile, "forward.aten::linear", Phase::kForward), 1);
  EXPECT_EQ(activities(*profile, "backward.AddmmBackward0", Phase::kBackward), 1);
  EXPECT_EQ(activities(*profile, "optimizer.Optimizer.step#SGD.step", Phase::kOptimizer), 1);
  ASSERT_FALSE(profile->health.notes.empty());
  EXPECT_NE(profile->health.notes.back().find("no modules' calls"), std::string::npos);
}

TEST(ImportedWithoutModules, HaveTimesOnTheHostByStepPhaseAndOperator) {
  MadeUpTrace trace;
  for (int step = 0; step < 2; ++step) {
    const double at = 1000.0 * (step + 1);
    const int id = 10 * (step + 1);
    trace.x("user_annotation", "ProfilerStep#" + std::to_string(step), at, 900)
        .forward_op("aten::linear", 41 + step, at + 100, 40)
        .forward_op("aten::addmm", 41 + step, at + 110, 20)
        .launch(id, at + 115)
        .node("AddmmBackward0", 41 + step, at + 300, 30)
        .x("cpu_op", "aten::mm", at + 304, 10, "", 2)
        .launch(id + 1, at + 305, 2)
        .x("user_annotation", "Optimizer.step#SGD.step", at + 400, 100)
        .x("cpu_op", "aten::_foreach_add_", at + 410, 60)
        .launch(id + 2, at + 420)
        .launch(id + 3, at + 600, 1, "cudaStreamSynchronize")
        .kernel(id, at + 150, 8)
        .kernel(id + 1, at + 310, 9)
        .kernel(id + 2, at + 430, 7);
  }
  const auto profile = trace.import("no_modules.pftrace");
  ASSERT_TRUE(profile);
  const auto loaded = load("no_modules.pftrace");
  ASSERT_TRUE(loaded);
  for (const Profile& each : {*profile, *loaded}) {
    const auto host_ns = [&](std::string_view path, Phase phase) {
      const Layer* layer = each.find(path);
      return layer == nullptr ? -1 : layer->phase(phase).host_ns.mean;
    };
    EXPECT_EQ(host_ns("forward", Phase::kForward), 40000);
    EXPECT_EQ(host_ns("forward.aten::linear", Phase::kForward), 40000);
    EXPECT_EQ(host_ns("backward.AddmmBackward0", Phase::kBackward), 30000);
    EXPECT_EQ(host_ns("optimizer", Phase::kOptimizer), 100000);
    EXPECT_EQ(host_ns("optimizer.aten::_foreach_add_", Phase::kOptimizer), 60000);
    EXPECT_EQ(each.layers.at(0).name, "step");
    EXPECT_EQ(each.layers.at(0).path, "");
    EXPECT_EQ(each.find("backward")->parent, 0);
    EXPECT_EQ(each.find("backward.AddmmBackward0")->calls, 1);
    EXPECT_EQ(each.find("forward.aten::addmm"), nullptr);  // it is inside another
    EXPECT_EQ(each.health.nodes, 2U);
    EXPECT_TRUE(each.health.unattributed_nodes.empty());
    EXPECT_EQ(each.health.notes.size(), 1U);
    const std::string text = tree(each);
    EXPECT_NE(text.find("│   └── aten::linear"), std::string::npos) << text;
    EXPECT_NE(text.find("8.00 µs"), std::string::npos) << text;  // of the kernel
    EXPECT_NE(text.find("40.0 µs"), std::string::npos) << text;  // of the operator
    EXPECT_NE(text.find("7.00 µs"), std::string::npos) << text;  // of the optimizer's kernel
    EXPECT_EQ(text.find("unregistered"), std::string::npos) << text;
  }
}

// The thread that called the backward has nothing in the trace but a gap.
TEST(ImportedWithoutModules, WaitForTheBackwardThatOtherThreadsRun) {
  MadeUpTrace trace;
  trace.x("user_annotation", "ProfilerStep#3", 1000, 1000)
      .forward_op("aten::linear", 41, 1100, 100)
      .launch(1, 1110)
      .node("AddmmBackward0", 41, 1300, 200)  // [1300, 1500)
      .launch(2, 1310, 2)
      .x("cpu_op", "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", 1500, 80,
         "", 2)
      .x("user_annotation", "Optimizer.step#SGD.step", 1600, 100)
      .launch(3, 1610)
      .forward_op("aten::mul", 42, 1750, 10)
      .node("MulBackward0", 42, 1800, 50)  // a second pass, [1800, 1850)
      .launch(4, 1810, 2)
      .x("cpu_op", "aten::item", 1840, 20)  // its end is cut by what the thread does next
      .kernel(1, 1200, 10)
      .kernel(2, 1400, 10)
      .kernel(3, 1650, 10)
      .kernel(4, 1820, 10);
  const auto profile = trace.import();
  ASSERT_TRUE(profile);
  ASSERT_EQ(profile->steps.size(), 1U);
  const auto phase_ns = [&](Phase phase) {
    return profile->steps[0].phase_ns[static_cast<std::size_t>(phase)];
  };
  EXPECT_EQ(phase_ns(Phase::kForward), 130'000U);
  EXPECT_EQ(phase_ns(Phase::kBackward), 280'000U + 40'000U);
  EXPECT_EQ(phase_ns(Phase::kOptimizer), 100'000U);
  EXPECT_EQ(phase_ns(Phase::kOther), 1'000'000U - 550'000U);
  // Who waits does not work: the time is the nodes', and counts once.
  EXPECT_EQ(profile->find("backward")->phase(Phase::kBackward).host_ns.mean, 330'000);
  EXPECT_EQ(profile->outside[static_cast<std::size_t>(Phase::kBackward)].host_ns.mean, 0);
}

TEST(ImportedWithoutModules, DoNotWaitForABackwardOfTheirOwnThread) {
  const auto profile = MadeUpTrace()
                           .x("user_annotation", "ProfilerStep#3", 1000, 1000)
                           .forward_op("aten::linear", 41, 1100, 100)
                           .node("AddmmBackward0", 41, 1300, 200, /*tid=*/1)
                           .x("cpu_op", "aten::mm", 1310, 100)
                           .import();
  ASSERT_TRUE(profile);
  ASSERT_EQ(profile->steps.size(), 1U);
  const auto& phases = profile->steps[0].phase_ns;
  EXPECT_EQ(phases[static_cast<std::size_t>(Phase::kBackward)], 200'000U);
  EXPECT_EQ(phases[static_cast<std::size_t>(Phase::kOther)], 700'000U);
}

TEST(ImportedWithoutModules, ShowOperatorsOfTheHostWhereThereIsNoDevice) {
  const auto profile = MadeUpTrace()
                           .x("cpu_op", "aten::linear", 100, 40)
                           .x("cpu_op", "aten::addmm", 110, 20)
                           .x("cpu_op", "aten::relu", 150, 5)
                           .import();
  ASSERT_TRUE(profile);
  EXPECT_EQ(profile->find("forward.aten::linear")->phase(Phase::kForward).host_ns.mean, 40000);
  EXPECT_EQ(activities(*profile, "forward.aten::linear", Phase::kForward), 1);  // aten::addmm
  EXPECT_EQ(activities(*profile, "forward.aten::relu", Phase::kForward), 1);
  EXPECT_EQ(activities(*profile, "", Phase::kForward), 2);
}

// Collectives are in no layer, and what waits makes none.
TEST(ImportedWithoutModules, HaveNoLayerForCollectivesAndWaits) {
  const auto profile = MadeUpTrace()
                           .x("user_annotation", "## forward ##", 100, 100)
                           .launch(4, 110)
                           .launch(5, 120, 1, "cudaStreamSynchronize")
                           .kernel(4, 150, 10, "ncclDevKernel_AllReduce_Sum_f32_RING_LL(...)")
                           .import();
  ASSERT_TRUE(profile);
  EXPECT_EQ(profile->find("forward.## forward ##"), nullptr);
  EXPECT_EQ(profile->outside[static_cast<std::size_t>(Phase::kCommunication)].activities.mean, 1);
}

}  // namespace
}  // namespace layertrace::kineto
