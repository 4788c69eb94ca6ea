// The tables of profiles made by hand: their rows, and what is nothing in them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <layertrace/report.h>

#include "profiles.h"

namespace layertrace {
namespace {

using ::testing::ElementsAre;

Table made_table(const Profile& profile, TableKind kind, const TableOptions& options = {}) {
  return *table(profile, kind, options);
}

std::vector<std::string> texts(const Table& table, std::string_view column) {
  std::vector<std::string> out;
  for (const TableValue& value : table.find(column)->values) {
    const auto* text = std::get_if<std::string>(&value);
    out.push_back(text == nullptr ? "(nothing)" : *text);
  }
  return out;
}

// Reals and integers alike; −1 for nothing.
std::vector<double> numbers(const Table& table, std::string_view column) {
  std::vector<double> out;
  for (const TableValue& value : table.find(column)->values) {
    if (const auto* real = std::get_if<double>(&value)) {
      out.push_back(*real);
    } else if (const auto* integer = std::get_if<std::int64_t>(&value)) {
      out.push_back(static_cast<double>(*integer));
    } else {
      out.push_back(-1);
    }
  }
  return out;
}

TEST(Tables, LayersHaveARowEach) {
  const Table layers = made_table(made::small_net(), TableKind::kLayers);
  EXPECT_EQ(layers.rows(), 8u);
  EXPECT_THAT(texts(layers, "path"),
              ElementsAre("", "embed", "heads", "heads.0", "heads.1", "drop", "out", "late"));
  EXPECT_THAT(numbers(layers, "depth"), ElementsAre(0, 1, 1, 2, 2, 1, 1, 1));
  EXPECT_THAT(numbers(layers, "forward_ns"), ElementsAre(4e6, 250e3, 3e6, 2e6, 1e6, -1, -1, 950));
  EXPECT_THAT(numbers(layers, "backward_ns"), ElementsAre(5e6, 400e3, 4e6, 3e6, 1e6, -1, -1, 0));
  EXPECT_DOUBLE_EQ(numbers(layers, "total_share")[3], 5e6 / 11e6);  // steps of 10 and 12 ms
  EXPECT_THAT(texts(layers, "shared_with")[6], "embed");
  EXPECT_EQ(numbers(layers, "kernels")[0], -1);  // no GPU
  EXPECT_EQ(numbers(layers, "activities")[0], 120);
}

TEST(Tables, ColumnsOfOneTableHaveOneLength) {
  for (const TableKind kind :
       {TableKind::kLayers, TableKind::kKernels, TableKind::kOperators, TableKind::kSteps,
        TableKind::kParameters, TableKind::kSizes, TableKind::kLedger}) {
    const Table table = made_table(made::small_net(), kind);
    for (const TableColumn& column : table.columns)
      EXPECT_EQ(column.values.size(), table.rows()) << table.name << ' ' << column.name;
  }
}

TEST(Tables, OfAnEmptyRunAreEmptyAndValid) {
  for (const TableKind kind :
       {TableKind::kLayers, TableKind::kKernels, TableKind::kOperators, TableKind::kSteps,
        TableKind::kParameters, TableKind::kSizes, TableKind::kLedger}) {
    const Table table = made_table(Profile{}, kind);
    EXPECT_EQ(table.rows(), 0u) << table.name;
    EXPECT_FALSE(table.columns.empty());
    for (const TableFormat format :
         {TableFormat::kJson, TableFormat::kCsv, TableFormat::kMarkdown, TableFormat::kHtml,
          TableFormat::kLatex, TableFormat::kParquet})
      EXPECT_FALSE(write(table, format).empty());
  }
}

// What was not measured is nothing: 0 would say that there was none.
TEST(Tables, OfCudaEventsAloneKnowNothingOfKernels) {
  Profile profile = made::gpu_net();
  profile.health.gpu.timing = "events";
  profile.kernels.clear();
  for (Layer& layer : profile.layers) {
    for (PhaseStats& phase : layer.phases) {
      phase.busy_ns = phase.activity_ns = phase.idle_ns = {};
      phase.copies = phase.launches = phase.activities = {};
    }
  }
  const Table layers = *table(profile, TableKind::kLayers);
  for (const char* name :
       {"gpu_forward_ns", "gpu_backward_ns", "gpu_idle_ns", "kernels", "copies", "launches",
        "activities", "forward_activities", "forward_activity_ns", "forward_self_activity_ns",
        "forward_busy_ns", "forward_copies", "forward_launches", "forward_gpu_idle_ns"}) {
    const TableColumn* column = layers.find(name);
    ASSERT_NE(column, nullptr) << name;
    for (const TableValue& value : column->values)
      EXPECT_TRUE(std::holds_alternative<std::monostate>(value)) << name;
  }
  const TableColumn* forward = layers.find("gpu_event_forward_ns");
  EXPECT_EQ(std::get<double>(forward->values[0]), 550e3);
  EXPECT_FALSE(forward->detail);  // people see it: there is nothing else of the GPU
  EXPECT_EQ(std::get<double>(layers.find("forward_gpu_event_ns")->values[0]), 550e3);

  profile = made::gpu_net();
  const Table with_both = *table(profile, TableKind::kLayers);
  EXPECT_EQ(std::get<double>(with_both.find("gpu_forward_ns")->values[0]), 500e3);
  EXPECT_EQ(std::get<double>(with_both.find("gpu_event_forward_ns")->values[0]), 550e3);
  EXPECT_TRUE(with_both.find("gpu_event_forward_ns")->detail);
  profile.health.gpu.timing = "cupti";
  const Table without_events = *table(profile, TableKind::kLayers);
  EXPECT_TRUE(std::holds_alternative<std::monostate>(
      without_events.find("gpu_event_forward_ns")->values[0]));
}

TEST(Tables, LayersAreChosenByModuleAndDepth) {
  const Profile profile = made::small_net();
  EXPECT_THAT(texts(made_table(profile, TableKind::kLayers, {.module = "heads"}), "path"),
              ElementsAre("heads", "heads.0", "heads.1"));
  EXPECT_THAT(
      texts(made_table(profile, TableKind::kLayers, {.module = "heads", .depth = 0}), "path"),
      ElementsAre("heads"));
  EXPECT_THAT(texts(made_table(profile, TableKind::kLayers, {.depth = 0}), "path"),
              ElementsAre(""));
  EXPECT_EQ(table(profile, TableKind::kLayers, {.module = "heads.7"}).error().cause,
            "no layer \"heads.7\" in this profile; \"heads\" has 0, 1");
}

TEST(Tables, LayersAreChosenByWhatIsTrainable) {
  const Profile profile = made::counted_net();
  EXPECT_THAT(texts(made_table(profile, TableKind::kLayers, {.trainable = true}), "path"),
              ElementsAre("fc"));
  EXPECT_THAT(texts(made_table(profile, TableKind::kSizes, {.trainable = true}), "module"),
              ElementsAre("fc"));
}

TEST(Tables, PathsReadAsAskedFor) {
  const Profile profile = made::small_net();
  EXPECT_THAT(
      texts(made_table(profile, TableKind::kLayers, {.depth = 1, .root = "__root__", .limit = 2}),
            "path"),
      ElementsAre("__root__", "embed"));
  EXPECT_THAT(
      texts(made_table(profile, TableKind::kLayers, {.leading_dot = true, .limit = 4}), "path"),
      ElementsAre("", ".embed", ".heads", ".heads.0"));
}

TEST(Tables, ColumnsAreChosenByName) {
  const Profile profile = made::small_net();
  const Table layers =
      made_table(profile, TableKind::kLayers, {.columns = {"depth", "path"}, .limit = 1});
  ASSERT_EQ(layers.columns.size(), 2u);
  EXPECT_EQ(to_markdown(layers), "| depth (levels) | path |\n| ---: | --- |\n| 0 |  |\n");
  const auto unknown = table(profile, TableKind::kSizes, {.columns = {"size"}});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().remedy,
            "Use one of: module, type, input_size, output_size, input, output, calls");
}

TEST(Tables, SingleCallsAreNotInAProfile) {
  EXPECT_FALSE(table(made::small_net(), TableKind::kCalls));
}

TEST(Tables, StepsHaveTheirTimes) {
  Profile profile = made::small_net();
  profile.steps[0].phase_ns[0] = 77;
  profile.steps[1].devices = {{0, 5, 6, 7}, {2, 50, 60, 70}};
  const Table steps = made_table(profile, TableKind::kSteps);
  EXPECT_THAT(numbers(steps, "wall_ns"), ElementsAre(10e6, 12e6));
  EXPECT_THAT(numbers(steps, "forward_ns"), ElementsAre(77, 0));
  EXPECT_THAT(numbers(steps, "gpu_busy_ns"), ElementsAre(-1, 55));
  EXPECT_THAT(numbers(steps, "gpu2_idle_ns"), ElementsAre(-1, 60));
}

Profile with_kernels() {
  Profile profile = made::small_net();
  profile.run.device = "some GPU";
  Kernel gemm;
  gemm.name = "void gemm<float>(float*)";
  gemm.short_name = "gemm";
  gemm.kind = "kernel";
  gemm.count = 6;
  gemm.ns = 600;
  gemm.min_ns = 10;
  gemm.max_ns = 300;
  gemm.grid = {4, 2, 1};
  gemm.uses = {{3, Phase::kForward, 4, 400, 20, 300, 0}, {4, Phase::kBackward, 2, 200, 10, 150, 0}};
  Kernel copy;
  copy.name = copy.short_name = "copy HtoD";
  copy.kind = "copy";
  copy.count = 1;
  copy.ns = 1000;
  copy.bytes = 4096;
  copy.uses = {{-1, Phase::kData, 1, 1000, 1000, 1000, 4096}};
  profile.kernels = {gemm, copy};
  return profile;
}

TEST(Tables, KernelsAreOfAllStepsAndByTime) {
  const Table kernels = made_table(with_kernels(), TableKind::kKernels);
  EXPECT_THAT(texts(kernels, "short_name"), ElementsAre("copy HtoD", "gemm"));
  EXPECT_THAT(numbers(kernels, "total_ns"), ElementsAre(1000, 600));
  EXPECT_THAT(numbers(kernels, "mean_ns"), ElementsAre(1000, 100));
  EXPECT_THAT(numbers(kernels, "share"), ElementsAre(0.625, 0.375));
  EXPECT_THAT(texts(kernels, "grid"), ElementsAre("(nothing)", "4×2×1"));
  EXPECT_THAT(numbers(kernels, "copied_bytes"), ElementsAre(4096, -1));
}

TEST(Tables, KernelsOfOneModuleAndByLayer) {
  const Table of_one = made_table(with_kernels(), TableKind::kKernels, {.module = "heads.1"});
  EXPECT_THAT(numbers(of_one, "total_ns"), ElementsAre(200));
  EXPECT_THAT(numbers(of_one, "max_ns"), ElementsAre(150));
  const Table each =
      made_table(with_kernels(), TableKind::kKernels, {.root = "__root__", .by_layer = true});
  EXPECT_THAT(texts(each, "path"), ElementsAre("(nothing)", "heads.0", "heads.1"));
  EXPECT_THAT(texts(each, "phase"), ElementsAre("data", "forward", "backward"));
  EXPECT_THAT(numbers(each, "count"), ElementsAre(1, 4, 2));
}

TEST(Tables, LedgerAddsUp) {
  const Table ledger = made_table(made::small_net(), TableKind::kLedger);
  EXPECT_THAT(texts(ledger, "of"), ElementsAre("activities", "activities", "autograd nodes",
                                               "autograd nodes", "records"));
  EXPECT_THAT(texts(ledger, "cause"),
              ElementsAre("attributed", "launched by a thread with no scope", "attributed",
                          "made before the recording began", "kept"));
  EXPECT_EQ(numbers(ledger, "count")[0] + numbers(ledger, "count")[1], 1204);
  EXPECT_EQ(numbers(ledger, "total_ns")[1], 24'000);
  EXPECT_DOUBLE_EQ(numbers(ledger, "share")[1], 0.002);
  EXPECT_EQ(texts(ledger, "names")[1], "aten::add ×2, aten::mul ×1");
}

TEST(Tables, LedgerOfAnImportAddsUp) {
  Profile net = made::small_net();
  net.health.rejected = {{.cause = "a negative duration", .count = 4, .ns = 0, .names = {}}};
  net.health.source = {.events = 2000, .kept = 1500, .merged = 400, .left_out = {}};
  net.health.source.left_out = {
      {.cause = "a negative duration", .count = 100, .ns = 0, .names = {}}};
  const Table ledger = made_table(net, TableKind::kLedger);
  EXPECT_THAT(texts(ledger, "cause"),
              ElementsAre("attributed", "launched by a thread with no scope",
                          "could not be kept: a negative duration", "attributed",
                          "made before the recording began", "kept", "parts of those",
                          "left out: a negative duration"));
  const auto counts = numbers(ledger, "count");
  EXPECT_EQ(counts[0] + counts[1] + counts[2], 1204);
  EXPECT_EQ(counts[5] + counts[6] + counts[7], 2000);
}

}  // namespace
}  // namespace layertrace
