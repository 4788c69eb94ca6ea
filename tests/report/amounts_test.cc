// What a tree says of what operators computed.
#include <gtest/gtest.h>

#include <string>

#include <layertrace/report.h>

#include "profiles.h"
#include "report/numbers.h"
#include "rows.h"

namespace layertrace {
namespace {

TEST(Amounts, StandBesideTheTimes) {
  EXPECT_EQ('\n' + tree(made::counted_net()), R"(
Net · some GPU
1 recorded step of 1.00 ms. Shares are of the step.

layer    type        GPU forward     GPU backward          forward         backward  recompute  calls  kernels  forward FLOPs  backward FLOPs  FLOP/s
Net              80.0 µs   8.0 %   160 µs  16.0 %   200 µs  20.0 %   300 µs  30.0 %          –      1        6         4.00 G          8.00 G  50.0 T
├── fc   Linear  80.0 µs   8.0 %   160 µs  16.0 %   100 µs  10.0 %   200 µs  20.0 %          –      1        4         4.00 G          8.00 G  50.0 T
└── act  ReLU                  –                –  50.0 µs   5.0 %  50.0 µs   5.0 %          –      1        2              –               –       –

MFU 12.0 %, HFU 16.0 % of 100 TFLOP/s bf16, published (some GPU).
Of 320 µs of activities in layers neither the peak nor the memory's bandwidth (1.00 TB/s) explains 160 µs (50.0 %).
FLOPs are known of 100 % of the recorded steps: counted, or like one that was.
2 of 6 operators of a step are not counted, for want of a formula that can: my::op ×2 (25.0 % of operators' time).
No activity was recorded.
No autograd node ran.
0 dropped of 0 records.
What recording cost was not measured.
)");
}

TEST(Amounts, HaveColumnsOfTheirOwn) {
  const Profile profile = made::counted_net();
  EXPECT_EQ(rows(profile,
                 {.columns = {Column::kParams, Column::kParamsTrainable, Column::kParamBytes,
                              Column::kKernelSize, Column::kInputShapes, Column::kOutputShapes}}),
            R"(
layer    params  trainable  param bytes  kernel size  input              output
Net           –          –            –
├── fc   1.00 M      900 k      1.9 MiB  3 × 3        bfloat16[8, 1000]  bfloat16[8, 500]
└── act       –          –            –
)");
  EXPECT_EQ(
      rows(profile, {.columns = {Column::kFlops, Column::kMacs, Column::kAuxFlops, Column::kBytes,
                                 Column::kActivations, Column::kMemoryPeak, Column::kMemoryKept}}),
      R"(
layer     FLOPs    MACs  aux FLOPs     bytes  activation elements  memory peak  memory kept
Net      16.0 G  8.00 G     1.00 M  76.3 MiB                500 k            –            –
├── fc   16.0 G  8.00 G     1.00 M  76.3 MiB                500 k      2.9 KiB      2.0 KiB
└── act       –       –          –         –                    –            –            –
)");
  EXPECT_EQ(rows(profile, {.columns = {Column::kTflops, Column::kGbs, Column::kIntensity,
                                       Column::kRoof, Column::kPeakShare, Column::kUnexplained}}),
            R"(
layer    FLOP/s    B/s  FLOP/B     roof  of roof      unexplained
Net      50.0 T  250 G     200  compute   50.0 %   120 µs  12.0 %
├── fc   50.0 T  250 G     200  compute   50.0 %   120 µs  12.0 %
└── act       –      –       –        –        –                –
)");
}

// Under the memory roof a layer is at 50 % of that, and of the peak at what its FLOPs come to.
TEST(Amounts, HaveAShareOfThePeakUnderAnyRoof) {
  Profile profile = made::counted_net();
  for (Layer& layer : profile.layers) {
    for (PhaseStats& phase : layer.phases) phase.amounts.bytes *= 10;
  }
  profile.device.bytes_per_s *= 2;
  EXPECT_EQ(rows(profile, {.columns = {Column::kRoof, Column::kPeakShare, Column::kComputeShare}}),
            R"(
layer      roof  of roof  of peak
Net      memory    125 %   50.0 %
├── fc   memory    125 %   50.0 %
└── act       –        –        –
)");
  const Table layers = *table(profile, TableKind::kLayers);
  EXPECT_DOUBLE_EQ(std::get<double>(layers.find("compute_share")->values[1]), 0.5);
  EXPECT_TRUE(std::holds_alternative<std::monostate>(layers.find("compute_share")->values[2]));
}

TEST(Amounts, OfFoldedBlocksThatDifferAreTold) {
  Profile profile = made::transformer();
  for (Layer& layer : profile.layers) {
    if (layer.type != "Block") continue;
    PhaseStats& forward = layer.phases[static_cast<std::size_t>(Phase::kForward)];
    forward.amounts.flops = layer.path == "blocks.3" ? 4e9 : 1e9;
  }
  const TreeOptions options{.depth = 2, .columns = {Column::kType, Column::kFlops}};
  EXPECT_NE(rows(profile, options)
                .find("12 × Block  15.0 G  each 5.00–7.00 ms, 1.00 GFLOP–4.00 "
                      "GFLOP, most in blocks.7\n"),
            std::string::npos)
      << rows(profile, options);
  profile.run.summary = true;
  EXPECT_NE(rows(profile, options).find("15.0 G  each 1.00 GFLOP–4.00 GFLOP\n"), std::string::npos)
      << rows(profile, options);
}

TEST(Amounts, OfFoldedBlocksAddUp) {
  Profile profile = made::transformer();
  for (Layer& layer : profile.layers) {
    if (layer.type != "Block") continue;
    layer.params = 1000;
    PhaseStats& forward = layer.phases[static_cast<std::size_t>(Phase::kForward)];
    forward.amounts.flops = forward.amounts.flops_by_format[1] = 2e9;
    forward.amounts.bytes = 1e6;
    forward.busy_ns = made::constant(1e6);
    forward.memory.peak = 1024;
    forward.memory.kept = 1024;
  }
  EXPECT_EQ(rows(profile, {.depth = 2,
                           .columns = {Column::kType, Column::kParams, Column::kForwardFlops,
                                       Column::kTflops, Column::kMemoryPeak, Column::kMemoryKept}}),
            R"(
layer                          type        params  forward FLOPs  FLOP/s  memory peak  memory kept
GPT                                             –              –       –            –            –
├── embed                      Embedding        –              –       –            –            –
├── blocks                     ModuleList       –              –       –            –            –
│   └── 0–11                   12 × Block  12.0 k         24.0 G  2.00 T        1 KiB       12 KiB  each 5.00–7.00 ms, most in blocks.7
│       └── … 60 layers below
└── head                       Linear           –              –       –            –            –
)");
}

TEST(Amounts, AreNotShownWhereNothingWasCounted) {
  const std::string text = tree(made::small_net());
  EXPECT_EQ(text.find("FLOP"), std::string::npos);
  EXPECT_EQ(text.find("MFU"), std::string::npos);
}

TEST(Amounts, AreMissedWhereNothingWasCounted) {
  const std::string text =
      tree(made::small_net(), {.columns = {Column::kParams, Column::kFlops, Column::kMemoryPeak}});
  EXPECT_NE(text.find("\n\nOperators were not counted, so there is nothing to show for flops, "
                      "memory_peak: record with count=\"first\" or \"always\" (layertrace run "
                      "--count first).\n"),
            std::string::npos)
      << text;
  EXPECT_EQ(tree(made::small_net(), {.columns = {Column::kParams}}).find("counted"),
            std::string::npos);
  EXPECT_EQ(tree(made::counted_net(), {.columns = {Column::kFlops}}).find("not counted, so"),
            std::string::npos);
}

TEST(Amounts, OutsideOfLayersStandUnderTheirHeadings) {
  Profile profile = made::counted_net();
  profile.outside[static_cast<std::size_t>(Phase::kLoss)].host_ns = made::constant(5e3);
  PhaseStats& optimizer = profile.outside[static_cast<std::size_t>(Phase::kOptimizer)];
  optimizer.host_ns = made::constant(7e4);
  optimizer.amounts = {.aux_flops = 3e6, .bytes = 12e6};
  EXPECT_EQ(rows(profile, {.columns = {Column::kType, Column::kFlops, Column::kAuxFlops}}), R"(
layer        type     FLOPs  aux FLOPs
Net                  16.0 G     1.00 M
├── fc       Linear  16.0 G     1.00 M
└── act      ReLU         –          –
(optimizer)               –     3.00 M
)");
  EXPECT_EQ(rows(profile, {.columns = {Column::kFlops, Column::kForward}}), R"(
layer         FLOPs          forward
Net          16.0 G   200 µs  20.0 %
├── fc       16.0 G   100 µs  10.0 %
└── act           –  50.0 µs   5.0 %
(loss)               5.00 µs on the host
(optimizer)          70.0 µs on the host
)");
}

TEST(Amounts, AreNoPartOfWhatRecordingCost) {
  Profile profile = made::counted_net();
  profile.health.scope_cost_ns = 50;
  EXPECT_NE(tree(profile).find("of CPU time. What counting took is not in this.\n"),
            std::string::npos);
}

TEST(Amounts, AreSortedBy) {
  Profile profile = made::counted_net();
  Layer& act = profile.layers[2];
  act.params = 5'000'000;
  PhaseStats& forward = act.phases[static_cast<std::size_t>(Phase::kForward)];
  forward.memory.peak = 4000;
  forward.amounts.bytes = 1e9;
  const auto first = [&](SortKey key) {
    const std::string text = rows(profile, {.sort = key, .columns = {Column::kType}});
    return text.find("fc") < text.find("act") ? "fc" : "act";
  };
  EXPECT_STREQ(first(SortKey::kFlops), "fc");
  EXPECT_STREQ(first(SortKey::kGpu), "fc");
  EXPECT_STREQ(first(SortKey::kParams), "act");
  EXPECT_STREQ(first(SortKey::kMemory), "act");
  EXPECT_STREQ(first(SortKey::kBytes), "act");
  for (const char* name : {"flops", "gpu", "params", "memory", "bytes"})
    EXPECT_TRUE(parse_sort_key(name)) << name;
}

std::string utilization_line(const Profile& profile) {
  const std::string text = tree(profile);
  const std::size_t begin = text.find("MFU");
  return text.substr(begin, text.find('\n', begin) - begin);
}

TEST(Amounts, SayWhatTheyAreHeldAgainst) {
  Profile profile = made::counted_net();
  EXPECT_EQ(utilization_line(profile),
            "MFU 12.0 %, HFU 16.0 % of 100 TFLOP/s bf16, published (some GPU).");
  profile.device.count = 2;
  EXPECT_EQ(utilization_line(profile),
            "MFU 12.0 %, HFU 16.0 % of 2 × 100 TFLOP/s bf16, published (some GPU).");
  profile.device.count = 1;
  profile.device.origin = "simulated";
  EXPECT_EQ(utilization_line(profile),
            "MFU 12.0 %, HFU 16.0 % of 100 TFLOP/s bf16, simulated (some GPU). That is how the "
            "simulation reckons, and says nothing about a real GPU.");
  profile.device.origin = "given";
  EXPECT_EQ(utilization_line(profile).find("simulation"), std::string::npos);
  profile.run.simulated = "simulated GPU";
  EXPECT_NE(utilization_line(profile).find("simulation"), std::string::npos);
  profile.device = {};
  EXPECT_EQ(utilization_line(profile),
            "MFU is not known: no peak is known for bf16 on this device. Give it with "
            "device_peaks.");
}

TEST(Amounts, SayWhatWasNotCounted) {
  Profile profile = made::counted_net();
  profile.counted_share = 0.5;
  EXPECT_NE(tree(profile).find("FLOPs are known of 50.0 % of the recorded steps: counted, or like "
                               "one that was; amounts and rates are too low by the rest.\n"),
            std::string::npos);
  profile.operators.pop_back();
  EXPECT_NE(tree(profile).find("All 4 operators of a step are counted.\n"), std::string::npos);
}

TEST(Numbers, HavePrefixes) {
  using report::format_si;
  EXPECT_EQ(format_si(0), "0");
  EXPECT_EQ(format_si(512), "512");
  EXPECT_EQ(format_si(2.5), "2.50");
  EXPECT_EQ(format_si(999.6), "1.00 k");
  EXPECT_EQ(format_si(4.124e9), "4.12 G");
  EXPECT_EQ(format_si(989e12, "FLOP/s"), "989 TFLOP/s");
  EXPECT_EQ(format_si(812, "B"), "812 B");
  EXPECT_EQ(format_si(-1), "?");
}

}  // namespace
}  // namespace layertrace
