// Who asked for it? Hand-made traces, each of one thing that real ones have.
#include <gtest/gtest.h>

#include <algorithm>

#include <layertrace/report.h>

#include "kineto/made_up_trace.h"

namespace layertrace::kineto {
namespace {

TEST(ImportedKernels, BelongToTheInnermostModuleAroundTheirLaunch) {
  const auto profile = MadeUpTrace()
                           .module("Net_0", 100, 100)
                           .module("Linear_3", 110, 20)
                           .launch(5, 115)
                           .launch(6, 140)
                           .kernel(5, 150, 10)
                           .kernel(6, 165, 4.5)
                           .import();
  ASSERT_TRUE(profile);
  EXPECT_EQ(profile->layers.size(), 2U);
  EXPECT_EQ(activities(*profile, "Net_0", Phase::kForward), 2);
  EXPECT_EQ(activities(*profile, "Net_0.Linear_3", Phase::kForward), 1);
  EXPECT_EQ(profile->find("Net_0.Linear_3")->type, "Linear");
  EXPECT_EQ(profile->health.activities, 2U);
  EXPECT_EQ(profile->health.activity_ns, 14500U);
  EXPECT_EQ(profile->health.attributed_share, 1);
}

TEST(ImportedKernels, OfOneGraphLaunchAreAllKept) {
  MadeUpTrace trace;
  trace.module("Net_0", 100, 100).launch(5, 115, 1, "cudaGraphLaunch");
  for (int i = 0; i < 544; ++i) trace.kernel(5, 200 + i, 1);
  const auto profile = trace.import();
  ASSERT_TRUE(profile);
  EXPECT_EQ(activities(*profile, "Net_0", Phase::kForward), 544);
  EXPECT_EQ(profile->health.gpu.earlier_graphs, 544U);
}

TEST(ImportedKernels, ThatOverlapOnOneStreamAreAllKept) {
  const auto profile = MadeUpTrace()
                           .module("Net_0", 100, 100)
                           .launch(5, 110)
                           .launch(6, 120)
                           .kernel(5, 150, 30)
                           .kernel(6, 160, 30)
                           .import("overlap.pftrace");
  ASSERT_TRUE(profile);
  const auto loaded = load("overlap.pftrace");
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->health.activities, 2U);
  EXPECT_EQ(loaded->find("Net_0")->phase(Phase::kForward).activity_ns.mean, 60000);
  EXPECT_EQ(loaded->find("Net_0")->phase(Phase::kForward).busy_ns.mean, 40000);
}

// The External id of old traces is the correlation, and of new ones an operator's number.
TEST(ImportedKernels, AreNotJoinedByTheirExternalId) {
  const auto profile =
      MadeUpTrace()
          .module("Net_0", 100, 100)
          .x("cpu_op", "aten::add", 110, 20, R"("External id": 7)")
          .module("Net_1", 300, 100)
          .x("cuda_runtime", "cudaLaunchKernel", 310, 1, R"("External id": 7, "correlation": 9)")
          .x("kernel", "k", 320, 5,
             R"("External id": 7, "correlation": 9, "device": 0, "stream": 7)")
          .import();
  ASSERT_TRUE(profile);
  EXPECT_EQ(activities(*profile, "Net_0", Phase::kForward), 0);
  EXPECT_EQ(activities(*profile, "Net_1", Phase::kForward), 1);
}

TEST(ImportedKernels, WithoutALaunchSayWhy) {
  const auto profile = MadeUpTrace()
                           .module("Net_0", 100, 100)
                           .launch(50, 110)
                           .kernel(50, 150, 10)
                           .kernel(3, 120, 10)
                           .kernel(60, 170, 10)
                           .x("kernel", "k", 180, 1, R"("device": 0, "stream": 7)", 7)
                           .import();
  ASSERT_TRUE(profile);
  EXPECT_EQ(profile->health.activities, 4U);
  const auto& causes = profile->health.unattributed;
  EXPECT_EQ(count_of(causes, "before the recording began"), 1U);
  EXPECT_EQ(count_of(causes, "by a call that was not recorded"), 1U);
  EXPECT_EQ(count_of(causes, "no correlation id"), 1U);
}

TEST(ImportedKernels, OfOneCorrelationTwiceGoWithTheLastLaunchBeforeThem) {
  const auto profile = MadeUpTrace()
                           .module("Net_0", 100, 50)
                           .launch(5, 110)
                           .module("Net_1", 200, 50)
                           .launch(5, 210)
                           .kernel(5, 120, 10)
                           .kernel(5, 220, 10)
                           .import();
  ASSERT_TRUE(profile);
  EXPECT_EQ(activities(*profile, "Net_0", Phase::kForward), 1);
  EXPECT_EQ(activities(*profile, "Net_1", Phase::kForward), 1);
}

TEST(ImportedBackward, BelongsToTheForwardsModuleBySequenceNumber) {
  const auto profile = MadeUpTrace()
                           .module("Net_0", 100, 100)
                           .module("Linear_0", 110, 20)
                           .forward_op("aten::linear", 41, 112, 10)
                           .forward_op("aten::addmm", 41, 114, 5)
                           .module("ReLU_0", 140, 20)
                           .forward_op("aten::relu", 42, 142, 10)
                           .node("ReluBackward0", 42, 300, 20)
                           .launch(7, 305, 2)
                           .node("AddmmBackward0", 41, 330, 20)
                           .launch(8, 335, 2)
                           .x("cpu_op",
                              "autograd::engine::evaluate_function: "
                              "torch::autograd::AccumulateGrad",
                              355, 10, "", 2)
                           .launch(9, 357, 2)
                           .kernel(7, 310, 5)
                           .kernel(8, 340, 5)
                           .kernel(9, 360, 5)
                           .import();
  ASSERT_TRUE(profile);
  EXPECT_EQ(activities(*profile, "Net_0.ReLU_0", Phase::kBackward), 1);
  EXPECT_EQ(activities(*profile, "Net_0.Linear_0", Phase::kBackward), 2);
  EXPECT_EQ(activities(*profile, "Net_0", Phase::kBackward), 3);
  EXPECT_EQ(profile->health.nodes, 3U);
  EXPECT_TRUE(profile->health.unattributed_nodes.empty());
}

TEST(ImportedBackward, BelongsToTheForwardsModuleByFlow) {
  const auto flow = [](const std::string& ph, int tid, int ts) {
    return R"({"ph": ")" + ph +
           R"(", "cat": "fwdbwd", "name": "fwdbwd", "id": 4, "pid": 1, "tid": )" +
           std::to_string(tid) + R"(, "ts": )" + std::to_string(ts) + "}";
  };
  const auto profile =
      MadeUpTrace()
          .module("Net_0", 100, 100)
          .module("Linear_0", 110, 20)
          .x("cpu_op", "aten::addmm", 112, 10)
          .add(flow("s", 1, 112))
          .x("cpu_op", "autograd::engine::evaluate_function: AddmmBackward0", 330, 20, "", 2)
          .x("cpu_op", "AddmmBackward0", 331, 18, "", 2)
          .add(flow("f", 2, 331))
          .launch(8, 335, 2)
          .kernel(8, 340, 5)
          .import();
  ASSERT_TRUE(profile);
  EXPECT_EQ(activities(*profile, "Net_0.Linear_0", Phase::kBackward), 1);
}

// Both threads count from 0: the number alone does not tell.
TEST(ImportedBackward, TellsForwardThreadsApart) {
  const auto flow = [](const std::string& ph, int id, int tid, int ts) {
    return R"({"ph": ")" + ph + R"(", "cat": "fwdbwd", "name": "fwdbwd", "id": )" +
           std::to_string(id) + R"(, "pid": 1, "tid": )" + std::to_string(tid) + R"(, "ts": )" +
           std::to_string(ts) + "}";
  };
  const auto profile = MadeUpTrace()
                           .module("Net_0", 100, 100, 1)
                           .forward_op("aten::mul", 5, 112, 10, 1)
                           .module("Net_1", 100, 100, 3)
                           .forward_op("aten::mul", 5, 113, 10, 3)
                           .add(flow("s", 1, 1, 112))
                           .add(flow("s", 2, 3, 113))
                           .node("MulBackward0", 5, 300, 10, 2, /*forward_thread=*/1)
                           .node("MulBackward0", 5, 320, 10, 2, /*forward_thread=*/9)
                           .add(flow("f", 1, 2, 300))
                           .add(flow("f", 2, 2, 320))
                           .launch(7, 305, 2)
                           .launch(8, 325, 2)
                           .launch(9, 326, 2)
                           .kernel(7, 310, 5)
                           .kernel(8, 330, 5)
                           .kernel(9, 340, 5)
                           .import();
  ASSERT_TRUE(profile);
  EXPECT_EQ(activities(*profile, "Net_0", Phase::kBackward), 1);
  EXPECT_EQ(activities(*profile, "Net_1", Phase::kBackward), 2);
}

TEST(ImportedBackward, OfWhatRanBeforeTheWindowSaysSo) {
  const auto profile = MadeUpTrace()
                           .module("Net_0", 500, 10)
                           .node("MulBackward0", 5, 300, 10)
                           .launch(7, 305, 2)
                           .kernel(7, 310, 5)
                           .import();
  ASSERT_TRUE(profile);
  EXPECT_EQ(count_of(profile->health.unattributed, "ran before the recording began"), 1U);
}

TEST(ImportedBackward, TellsRecomputationApart) {
  const auto profile = MadeUpTrace()
                           .module("Net_0", 100, 100)
                           .module("Linear_0", 110, 20)
                           .forward_op("CheckpointFunction", 41, 108, 50)
                           .launch(6, 115)
                           .node("CheckpointFunctionBackward", 41, 300, 100)
                           .module("Linear_0", 310, 20, 2)
                           .forward_op("aten::addmm", 3, 312, 10, 2)
                           .launch(7, 315, 2)
                           .node("AddmmBackward0", 3, 350, 20, 2, /*forward_thread=*/2)
                           .launch(8, 355, 2)
                           .kernel(6, 150, 5)
                           .kernel(7, 320, 5)
                           .kernel(8, 360, 5)
                           .import();
  ASSERT_TRUE(profile);
  EXPECT_EQ(profile->find("Linear_0"), nullptr);
  EXPECT_EQ(activities(*profile, "Net_0.Linear_0", Phase::kForward), 1);
  EXPECT_EQ(activities(*profile, "Net_0.Linear_0", Phase::kRecompute), 1);
  EXPECT_EQ(activities(*profile, "Net_0.Linear_0", Phase::kBackward), 1);
}

TEST(ImportedModules, CalledTwiceAreOneLayerAndInstancesAreTold) {
  const auto profile = MadeUpTrace()
                           .module("Net_0", 100, 100)
                           .module("Linear_0", 110, 10)
                           .module("Linear_1", 130, 10)
                           .module("Linear_0", 150, 10)
                           .import();
  ASSERT_TRUE(profile);
  ASSERT_EQ(profile->layers.size(), 3U);
  EXPECT_EQ(profile->find("Net_0.Linear_0")->calls, 2);
  EXPECT_EQ(profile->find("Net_0.Linear_1")->calls, 1);
}

// Python's frames and operators are timed by different means.
TEST(ImportedModules, MayBeginALittleAfterTheirOperator) {
  const auto profile = MadeUpTrace()
                           .module("Net_0", 100, 100)
                           .module("Linear_0", 110.3, 20)
                           .forward_op("aten::addmm", 41, 110, 10)
                           .node("AddmmBackward0", 41, 330, 20)
                           .launch(8, 335, 2)
                           .kernel(8, 340, 5)
                           .import();
  ASSERT_TRUE(profile);
  EXPECT_EQ(activities(*profile, "Net_0.Linear_0", Phase::kBackward), 1);
}

TEST(ImportedPhases, AreStepsOptimizerDataLossAndCommunication) {
  MadeUpTrace trace;
  for (int step = 0; step < 2; ++step) {
    const double at = 1000.0 * (step + 1);
    const int id = 100 * (step + 1);
    trace.x("user_annotation", "ProfilerStep#" + std::to_string(step + 7), at, 990)
        .x("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at + 1,
           20)
        .launch(id, at + 5, 1, "cudaMemcpyAsync")
        .module("Net_0", at + 100, 100)
        .forward_op("aten::addmm", 10 * step, at + 110, 10)
        .launch(id + 1, at + 112)
        .launch(id + 2, at + 220)  // the loss, before the backward
        .node("AddmmBackward0", 10 * step, at + 300, 20)
        .launch(id + 3, at + 305, 2)
        .launch(id + 4, at + 310, 2)
        .x("user_annotation", "Optimizer.step#AdamW.step", at + 400, 50)
        .launch(id + 5, at + 410)
        .x("gpu_memcpy", "Memcpy HtoD", at + 10, 5,
           R"("device": 0, "stream": 7, "bytes": 4096, "correlation": )" + std::to_string(id), 7)
        .kernel(id + 1, at + 120, 50)
        .kernel(id + 2, at + 230, 5)
        .kernel(id + 3, at + 306, 100)
        .kernel(id + 4, at + 350, 100, "ncclDevKernel_AllReduce_Sum_f32_RING_LL(...)")
        .kernel(id + 5, at + 460, 20);
  }
  const auto profile = trace.import("phases.pftrace");
  ASSERT_TRUE(profile);
  ASSERT_EQ(profile->step_count, 2U);
  EXPECT_TRUE(profile->steps_marked);
  EXPECT_EQ(profile->steps[0].index, 7U);
  const auto outside = [&](Phase phase) {
    return profile->outside[static_cast<std::size_t>(phase)].activities.mean;
  };
  EXPECT_EQ(outside(Phase::kData), 1);
  EXPECT_EQ(outside(Phase::kLoss), 1);
  EXPECT_EQ(outside(Phase::kOptimizer), 1);
  EXPECT_EQ(outside(Phase::kCommunication), 1);
  EXPECT_EQ(activities(*profile, "Net_0", Phase::kForward), 1);
  EXPECT_EQ(activities(*profile, "Net_0", Phase::kBackward), 1);
  // From 350 to 450, of which the other kernel covers up to 406.
  ASSERT_EQ(profile->steps[0].devices.size(), 1U);
  EXPECT_EQ(profile->steps[0].devices[0].exposed_communication_ns, 44000U);
  EXPECT_EQ(profile->health.attributed_share, 1);

  const auto loaded = load("phases.pftrace");
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->health.activities, 12U);
  EXPECT_EQ(loaded->steps[1].devices[0].exposed_communication_ns, 44000U);
  EXPECT_EQ(loaded->health.source.events, profile->health.source.events);
  EXPECT_EQ(loaded->run.imported_from, "Kineto");
}

TEST(ImportedSteps, LeaveNoActivityOut) {
  const auto profile = MadeUpTrace()
                           .x("user_annotation", "ProfilerStep#1", 1000, 100)
                           .module("Net_0", 1010, 20)
                           .launch(5, 1015)
                           .launch(6, 1500)
                           .kernel(2, 900, 10)
                           .kernel(5, 1020, 10)
                           .kernel(6, 1510, 10)
                           .import("outside.pftrace");
  ASSERT_TRUE(profile);
  EXPECT_EQ(profile->health.activities, 3U);
  EXPECT_EQ(profile->health.gpu.outside_steps, 2U);
  EXPECT_EQ(profile->kernels.at(0).count, 3U);
  const auto loaded = load("outside.pftrace");
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->health.activities, 3U);
}

// What a kernel took per step is without what no step asked for.
TEST(ImportedSteps, TellWhatOfAKernelIsOutsideThem) {
  const auto profile = MadeUpTrace()
                           .x("user_annotation", "ProfilerStep#1", 1000, 100)
                           .x("user_annotation", "ProfilerStep#2", 1100, 100)
                           .module("Net_0", 1010, 20)
                           .module("Net_0", 1110, 20)
                           .module("Net_0", 1510, 20)
                           .launch(5, 1015)
                           .launch(6, 1115)
                           .launch(7, 1515)
                           .kernel(2, 900, 40)
                           .kernel(5, 1020, 10)
                           .kernel(6, 1120, 10)
                           .kernel(7, 1520, 30)
                           .import("outside_kernels.pftrace");
  ASSERT_TRUE(profile);
  const auto loaded = load("outside_kernels.pftrace");
  ASSERT_TRUE(loaded);
  for (const Profile& each : {*profile, *loaded}) {
    const Kernel& kernel = each.kernels.at(0);
    EXPECT_EQ(kernel.count, 4U);
    EXPECT_EQ(kernel.ns, 90000U);
    EXPECT_EQ(kernel.outside_count, 2U);
    EXPECT_EQ(kernel.outside_ns, 70000U);
    const auto in_layer = std::ranges::find(kernel.uses, 0, &Kernel::Use::layer);
    ASSERT_NE(in_layer, kernel.uses.end());
    EXPECT_EQ(in_layer->count, 3U);
    EXPECT_EQ(in_layer->outside_count, 1U);
    EXPECT_EQ(in_layer->outside_ns, 30000U);
    EXPECT_EQ(each.find("Net_0")->phase(Phase::kForward).activity_ns.mean, 10000);
    EXPECT_NE(kernels_table(each).find("(2 in 2 recorded steps, 2 outside of them, 70.0 µs)"),
              std::string::npos);
    EXPECT_NE(kernels_json(each).find(R"("outside_count":2,"outside_ns":70000})"),
              std::string::npos);
  }
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
