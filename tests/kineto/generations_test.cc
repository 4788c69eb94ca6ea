// The schema as it was over the years and with other vendors.
#include <gtest/gtest.h>

#include "kineto/made_up_trace.h"

namespace layertrace::kineto {
namespace {

// torch 1.8 to 1.10: other words, whole microseconds, numbers as strings.
TEST(Generation, Of2021HasOtherCategories) {
  const auto profile =
      MadeUpTrace(R"("schemaVersion": 1)")
          .add(
              R"({"ph": "X", "cat": "Operator", "name": "aten::conv2d", "pid": 9, "tid": "9", "ts": 100, "dur": 50,
                   "args": {"Device": 9, "External id": 3, "Trace name": "PyTorch Profiler", "Trace iteration": 0}})")
          .add(
              R"({"ph": "X", "cat": "Runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": "9", "ts": 110, "dur": 5,
                   "args": {"cbid": 211, "correlation": 77, "external id": 77, "external ts": 100}})")
          .add(
              R"({"ph": "X", "cat": "Kernel", "name": "volta_sgemm", "pid": 0, "tid": "stream 7", "ts": 120, "dur": 30,
                   "args": {"queued": 0, "device": 0, "context": 1, "stream": 7, "correlation": 77, "external id": 77,
                            "registers per thread": 32, "shared memory": 0, "warps per SM": 1.5, "grid": [9, 1, 1], "block": [128, 1, 1]}})")
          .add(
              R"({"ph": "X", "cat": "Memcpy", "name": "Memcpy HtoD", "pid": 0, "tid": "stream 7", "ts": 160, "dur": 0,
                   "args": {"device": 0, "context": 1, "stream": 7, "correlation": 78, "bytes": 12}})")
          .add(
              R"({"ph": "s", "id": 77, "pid": 9, "tid": "9", "ts": 110, "cat": "async_gpu", "name": "cudaLaunchKernel"})")
          .import();
  ASSERT_TRUE(profile);
  EXPECT_EQ(profile->health.activities, 2U);
  EXPECT_EQ(profile->health.activity_ns, 30000U);
  EXPECT_EQ(activities(*profile, "forward.aten::conv2d", Phase::kForward), 1);
  ASSERT_EQ(profile->kernels.size(), 2U);
  EXPECT_EQ(profile->kernels[0].name, "volta_sgemm");
  EXPECT_EQ(profile->kernels[0].grid[0], 9U);
  EXPECT_EQ(profile->kernels[0].registers, 32U);
}

// ROCm: hip* calls in a category named after CUDA, numbers in quotes, no External id.
TEST(Generation, OfRocmHasNumbersAsStrings) {
  const auto profile =
      MadeUpTrace(
          R"("deviceProperties": [{"id": 0, "name": "AMD Instinct MI300X"}], "schemaVersion": 1)")
          .module("Net_0", 100, 100)
          .add(
              R"({"ph": "X", "cat": "cuda_runtime", "name": "hipLaunchKernel", "pid": 1, "tid": 1, "ts": 110.5, "dur": 3.25,
                   "args": {"correlation": "12", "kernel": "k", "grid": "[1, 1, 1]", "block": "[64, 1, 1]", "ptr": "0x0"}})")
          .add(
              R"({"ph": "X", "cat": "kernel", "name": "Cijk_Ailk", "pid": 2, "tid": 0, "ts": 120.125, "dur": 7.5,
                   "args": {"device": "2", "stream": "0", "correlation": "12", "kind": "Dispatch Kernel"}})")
          .import();
  ASSERT_TRUE(profile);
  EXPECT_EQ(activities(*profile, "Net_0", Phase::kForward), 1);
  EXPECT_EQ(profile->run.device, "AMD Instinct MI300X");
  EXPECT_EQ(profile->health.activity_ns, 7500U);
  ASSERT_EQ(profile->steps.size(), 1U);
  EXPECT_EQ(profile->steps[0].devices.at(0).device, 2U);
}

// torch 2.4 and later: nanoseconds behind the point, counted from a base.
TEST(Generation, Of2024CountsFromABase) {
  const auto profile =
      MadeUpTrace(R"("schemaVersion": 1, "baseTimeNanoseconds": 1727743122000000000)")
          .module("Net_0", 5000.001, 100)
          .import();
  ASSERT_TRUE(profile);
  EXPECT_EQ(profile->steps.at(0).start_ns, 1727743122005000001U);
}

TEST(Generation, OfSeveralProcessesTellsWhichItIs) {
  const auto profile =
      MadeUpTrace(
          R"("schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 8})")
          .module("Net_0", 100, 100)
          .import("rank.pftrace");
  ASSERT_TRUE(profile);
  EXPECT_EQ(profile->run.rank, 3);
  EXPECT_EQ(profile->run.world_size, 8);
  const auto loaded = load("rank.pftrace");
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->run.rank, 3);
  EXPECT_EQ(loaded->run.world_size, 8);
  EXPECT_EQ(loaded->health.notes.at(0), "recorded on rank 3 of 8 (nccl)");
  const auto alone = MadeUpTrace().module("Net_0", 100, 100).import();
  ASSERT_TRUE(alone);
  EXPECT_EQ(alone->run.rank, -1);
  EXPECT_EQ(alone->run.world_size, 0);
}

TEST(Generation, WithKeysInAnotherOrderReadsTheSame) {
  const auto profile =
      MadeUpTrace()
          .add(
              R"({"args": {"correlation": 4, "device": 0, "stream": 7}, "cat": "kernel", "dur": 5, "name": "k", "ph": "X", "pid": 0, "tid": 7, "ts": 130})")
          .add(
              R"({"args": {"correlation": 4}, "cat": "cuda_runtime", "dur": 1, "name": "cudaLaunchKernel", "ph": "X", "pid": 1, "tid": 1, "ts": 110})")
          .add(
              R"({"args": {}, "cat": "python_function", "dur": 100, "name": "nn.Module: Net_0", "ph": "X", "pid": 1, "tid": 1, "ts": 100})")
          .import();
  ASSERT_TRUE(profile);
  EXPECT_EQ(activities(*profile, "Net_0", Phase::kForward), 1);
}

TEST(Generation, WithoutThreadsOrWithOddOnesIsRead) {
  const auto profile =
      MadeUpTrace()
          .add(R"({"ph": "X", "cat": "cpu_op", "name": "a", "ts": 100, "dur": 1})")
          .add(
              R"({"ph": "X", "cat": "cpu_op", "name": "b", "pid": "Spans", "tid": "PyTorch Profiler", "ts": 101, "dur": 1})")
          .add(
              R"({"ph": "X", "cat": "cpu_op", "name": "c", "pid": -1, "tid": -1, "ts": 102, "dur": 1})")
          .add(
              R"({"ph": "M", "name": "thread_name", "pid": -1, "tid": -1, "ts": 0, "args": {"name": "odd one"}})")
          .import("odd.pftrace");
  ASSERT_TRUE(profile);
  EXPECT_EQ(profile->health.activities, 3U);
  const auto threads = info("odd.pftrace");
  ASSERT_TRUE(threads);
  EXPECT_EQ(threads->threads.size(), 3U);
}

TEST(Generation, OfOtherToolsComesInAsRegions) {
  const auto profile = MadeUpTrace::import_bytes(
      R"([{"ph": "B", "name": "outer", "pid": 1, "tid": 1, "ts": 1}, {"ph": "X", "cat": "mine", "name": "inner", "pid": 1, "tid": 1, "ts": 2, "dur": 3},
          {"ph": "E", "pid": 1, "tid": 1, "ts": 9}, {"ph": "C", "name": "c", "pid": 1, "ts": 3, "args": {"v": 1}},)",
      "chrome.pftrace");
  ASSERT_TRUE(profile);
  EXPECT_EQ(profile->run.imported_from, "Chrome JSON");
  EXPECT_EQ(profile->outside[static_cast<std::size_t>(Phase::kOther)].calls.mean, 2);
  EXPECT_EQ(profile->health.source.events, 4U);
  EXPECT_EQ(profile->health.source.kept, 2U);
  EXPECT_EQ(profile->health.source.merged, 1U);
  EXPECT_EQ(count_of(profile->health.source.left_out, "a counter"), 1U);
  EXPECT_TRUE(profile->health.notes.empty());
}

TEST(Generation, AccountsForEveryEvent) {
  const auto profile =
      MadeUpTrace()
          .module("Net_0", 100, 100)
          .x("python_function", "train.py(3): main", 90, 200)
          .x("overhead", "Activity Buffer Request", 90, 5)
          .x("gpu_user_annotation", "Optimizer.step#SGD.step", 100, 5)
          .x("cuda_sync", "Stream Sync", 100, 5)
          .x("mtia_ccp_events", "dpe", 100, 5)
          .x("Trace", "PyTorch Profiler (0)", 0, 1000)
          .launch(1, 105, 1, "cudaEventRecord")
          .launch(2, 107, 1, "cudaStreamSynchronize")
          .add(
              R"({"ph": "i", "s": "g", "name": "Iteration Start: PyTorch Profiler", "pid": "Traces", "tid": "Trace", "ts": 1})")
          .add(
              R"({"ph": "f", "id": 1, "pid": 0, "tid": 7, "ts": 1, "cat": "ac2g", "name": "ac2g", "bp": "e"})")
          .add(R"({"ph": "?", "name": "x", "ts": 1})")
          .import();
  ASSERT_TRUE(profile);
  const SourceEvents& source = profile->health.source;
  std::uint64_t left_out = 0;
  for (const Unattributed& group : source.left_out) left_out += group.count;
  EXPECT_EQ(source.events, 12U);
  EXPECT_EQ(source.kept, 2U);  // the module and the wait
  EXPECT_EQ(source.merged, 1U);
  EXPECT_EQ(source.kept + source.merged + left_out, source.events);
  EXPECT_EQ(count_of(source.left_out, "unknown category"), 1U);
}

// As Chrome's format allows: a begin and an end in place of a whole event, of any category.
TEST(ImportedEvents, MayComeAsABeginAndAnEnd) {
  const auto pair = [](const std::string& cat, const std::string& name, int start, int end,
                       const std::string& args, int tid = 1) {
    return R"({"ph": "B", "cat": ")" + cat + R"(", "name": ")" + name + R"(", "pid": 1, "tid": )" +
           std::to_string(tid) + R"(, "ts": )" + std::to_string(start) + R"(, "args": {)" + args +
           R"(}}, {"ph": "E", "pid": 1, "tid": )" + std::to_string(tid) + R"(, "ts": )" +
           std::to_string(end) + "}";
  };
  const auto profile =
      MadeUpTrace()
          .add(R"({"ph": "B", "cat": "python_function", "name": "nn.Module: Net_0", "pid": 1,)"
               R"( "tid": 1, "ts": 100})")
          .add(pair("python_function", "train.py(3): f", 105, 106, ""))
          .add(pair("cuda_runtime", "cudaLaunchKernel", 110, 112, R"("correlation": 9)"))
          .add(R"({"ph": "E", "pid": 1, "tid": 1, "ts": 150})")
          .add(pair("kernel", "gemm", 130, 141, R"("correlation": 9, "device": 0, "stream": 7)", 7))
          .add(R"({"ph": "B", "cat": "kernel", "name": "cut", "pid": 1, "tid": 8, "ts": 160})")
          .add(R"({"ph": "B", "cat": "kernel", "name": "no", "pid": 1, "tid": 9, "ts": "x"})")
          .add(R"({"ph": "E", "pid": 1, "tid": 9, "ts": 170})")
          .import();
  ASSERT_TRUE(profile);
  EXPECT_EQ(activities(*profile, "Net_0", Phase::kForward), 1);
  EXPECT_EQ(profile->find("Net_0")->phase(Phase::kForward).activity_ns.mean, 11'000);
  EXPECT_EQ(profile->health.activities, 3U);  // with those that could not be kept
  EXPECT_EQ(count_of(profile->health.rejected, "a begin or an end without the other"), 1U);
  EXPECT_EQ(count_of(profile->health.rejected, "a time that is no number"), 1U);
  const SourceEvents& source = profile->health.source;
  std::uint64_t left_out = 0;
  for (const Unattributed& group : source.left_out) left_out += group.count;
  EXPECT_EQ(source.kept + source.merged + left_out, source.events);
  EXPECT_EQ(source.kept, 3U);
}

// An event's members come in any order.
TEST(ImportedEvents, MayTellTheirCategoryAfterTheirArguments) {
  const auto profile =
      MadeUpTrace()
          .module("Net_0", 100, 100)
          .add(R"({"ph": "X", "args": {"correlation": 5}, "ts": 110, "dur": 2, "pid": 1, "tid": 1,)"
               R"( "name": "cudaLaunchKernel", "cat": "cuda_runtime"})")
          .add(R"({"ph": "X", "args": {"correlation": 5, "device": 3, "stream": 9}, "ts": 150,)"
               R"( "dur": 8, "pid": 1, "tid": 9, "name": "gemm", "cat": "kernel"})")
          .import();
  ASSERT_TRUE(profile);
  EXPECT_EQ(activities(*profile, "Net_0", Phase::kForward), 1);
}

}  // namespace
}  // namespace layertrace::kineto
