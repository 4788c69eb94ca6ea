// Who asked for it? Hand-made traces, each of one thing that real ones have.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>

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

// The second launch comes before the first one's kernel: either kernel may be either's.
TEST(ImportedKernels, OfACorrelationThatOthersShareAreNotGuessedAt) {
  const auto profile = MadeUpTrace()
                           .module("Net_0", 100, 300)
                           .module("Linear_0", 110, 20)
                           .launch(7, 112)
                           .module("Linear_1", 140, 20)
                           .launch(7, 142)
                           .module("Linear_2", 300, 20)
                           .launch(8, 302)
                           .kernel(7, 200, 5)
                           .kernel(7, 210, 5)
                           .kernel(8, 310, 5)
                           .import();
  ASSERT_TRUE(profile);
  EXPECT_EQ(profile->health.activities, 3U);
  EXPECT_EQ(activities(*profile, "Net_0.Linear_1", Phase::kForward), 0);
  EXPECT_EQ(activities(*profile, "Net_0.Linear_2", Phase::kForward), 1);
  ASSERT_EQ(profile->health.unattributed.size(), 1U);
  EXPECT_EQ(profile->health.unattributed[0].cause,
            "has the correlation id of something else that the device did");
  EXPECT_EQ(profile->health.unattributed[0].count, 2U);
}

// As a runtime's call that calls the driver's.
TEST(ImportedKernels, OfACallInsideAnotherOfTheSameCorrelationBelongToIt) {
  const auto profile = MadeUpTrace()
                           .module("Net_0", 100, 300)
                           .x("cuda_runtime", "cudaLaunchKernel", 110, 10, R"("correlation": 7)")
                           .x("cuda_driver", "cuLaunchKernel", 112, 5, R"("correlation": 7)")
                           .kernel(7, 200, 5)
                           .import();
  ASSERT_TRUE(profile);
  EXPECT_EQ(activities(*profile, "Net_0", Phase::kForward), 1);
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
  EXPECT_EQ(loaded->run.program, "made_up_trace.json");
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

// A step is as long as its annotation, and what is between two is in neither.
TEST(ImportedSteps, LeaveOutWhatIsBetweenThem) {
  const auto profile = MadeUpTrace()
                           .x("user_annotation", "ProfilerStep#4", 1000, 100)
                           .module("Net_0", 1010, 50)
                           .launch(1, 1020)
                           .module("Net_0", 1110, 30)  // a validation between steps
                           .launch(2, 1120)
                           .x("user_annotation", "ProfilerStep#5", 1150, 90)
                           .module("Net_0", 1160, 50)
                           .launch(3, 1170)
                           .kernel(1, 1105, 10)  // after its step's end, and its all the same
                           .kernel(2, 1125, 20)
                           .kernel(3, 1180, 30)
                           .import("steps.pftrace");
  ASSERT_TRUE(profile);
  const auto loaded = load("steps.pftrace");
  ASSERT_TRUE(loaded);
  for (const Profile& each : {*profile, *loaded}) {
    ASSERT_EQ(each.steps.size(), 2U);
    EXPECT_EQ(each.steps[0].wall_ns, 100'000U);
    EXPECT_EQ(each.steps[1].wall_ns, 90'000U);
    EXPECT_EQ(each.steps[1].start_ns - each.steps[0].start_ns, 150'000U);
    EXPECT_EQ(each.steps[1].index, 5U);
    EXPECT_EQ(activities(each, "Net_0", Phase::kForward), 1);
    EXPECT_EQ(each.find("Net_0")->phase(Phase::kForward).activity_ns.mean, 20'000);
    EXPECT_EQ(each.health.activities, 3U);
    EXPECT_EQ(each.health.activity_ns, 60'000U);
    EXPECT_EQ(each.health.gpu.outside_steps, 1U);
    ASSERT_EQ(each.kernels.size(), 1U);
    EXPECT_EQ(each.kernels[0].count, 3U);
    EXPECT_EQ(each.kernels[0].outside_count, 1U);
  }
}

// ROCm tells of shapes and sizes with the calls.
TEST(ImportedKernels, MayHaveTheirShapeFromTheirCall) {
  const auto profile =
      MadeUpTrace()
          .x("cuda_runtime", "hipLaunchKernel", 110, 1,
             R"("correlation": 5, "grid": [6, 2, 1], "block": [64, 1, 1], "shared memory": 128)")
          .x("cuda_runtime", "hipMemcpyAsync", 120, 1, R"("correlation": "6", "size": "4096")")
          .kernel(5, 150, 10)
          .x("gpu_memcpy", "CopyHostToDevice", 170, 5,
             R"("device": 0, "stream": 7, "correlation": 6)", 7)
          .import();
  ASSERT_TRUE(profile);
  ASSERT_EQ(profile->kernels.size(), 2U);
  const Kernel& kernel = profile->kernels[0];
  EXPECT_EQ(kernel.grid, (std::array<std::uint32_t, 3>{6, 2, 1}));
  EXPECT_EQ(kernel.block, (std::array<std::uint32_t, 3>{64, 1, 1}));
  EXPECT_EQ(kernel.shared_bytes, 128U);
  EXPECT_EQ(profile->kernels[1].bytes, 4096U);
}

// A flow tells the moment, when the call itself is not in the trace: what has ended by then has.
TEST(ImportedKernels, WithNothingButAFlowBelongToWhatIsOpenThen) {
  const auto flow = [](int id, int ts) {
    return R"({"ph": "s", "cat": "ac2g", "name": "ac2g", "id": )" + std::to_string(id) +
           R"(, "pid": 1, "tid": 1, "ts": )" + std::to_string(ts) + "}";
  };
  const auto profile = MadeUpTrace()
                           .module("Net_0", 100, 100)
                           .module("Linear_0", 110, 20)
                           .add(flow(5, 120))
                           .add(flow(6, 150))
                           .kernel(5, 160, 10)
                           .kernel(6, 170, 10)
                           .module("Tail_0", 190, 5)
                           .import();
  ASSERT_TRUE(profile);
  EXPECT_EQ(activities(*profile, "Net_0.Linear_0", Phase::kForward), 1);
  EXPECT_EQ(profile->find("Net_0")->phase(Phase::kForward).self_activity_ns.mean, 10'000);
}

// A gradient within the forward (of a force field, a penalty) does not end the loss before it
// began.
TEST(ImportedLoss, FollowsAModelThatDifferentiatesItself) {
  const auto profile = MadeUpTrace()
                           .module("Net_0", 100, 100)
                           .forward_op("aten::mul", 41, 110, 10)
                           .node("MulBackward0", 41, 130, 10)
                           .forward_op("aten::mse_loss", 50, 210, 20)
                           .launch(5, 215)
                           .node("MseLossBackward0", 50, 300, 20)
                           .kernel(5, 230, 10)
                           .import();
  ASSERT_TRUE(profile);
  EXPECT_EQ(profile->outside[static_cast<std::size_t>(Phase::kLoss)].activities.mean, 1);
}

TEST(ImportedModules, AreNotCutByAnAnnotationThatEndsInside) {
  const auto profile = MadeUpTrace()
                           .module("Net_0", 100, 300)
                           .x("user_annotation", "prefetch", 110, 100)  // to 210
                           .module("Linear_0", 150, 200)                // to 350
                           .launch(5, 160)
                           .launch(6, 300)
                           .kernel(5, 400, 10)
                           .kernel(6, 420, 10)
                           .import();
  ASSERT_TRUE(profile);
  EXPECT_EQ(activities(*profile, "Net_0.Linear_0", Phase::kForward), 2);
  EXPECT_EQ(profile->find("Net_0.Linear_0")->phase(Phase::kForward).host_ns.mean, 200'000);
}

}  // namespace
}  // namespace layertrace::kineto
