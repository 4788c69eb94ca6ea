#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <layertrace/report.h>

#include "report/profiles.h"

namespace layertrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// ---- Runs made by hand ----

Stat stat_of(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  Stat stat;
  stat.mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  stat.min = std::ranges::min(values);
  stat.max = std::ranges::max(values);
  std::vector<double> sorted = values;
  std::ranges::sort(sorted);
  stat.median = (sorted[(sorted.size() - 1) / 2] + sorted[sorted.size() / 2]) / 2;
  double squares = 0;
  for (const double value : values) squares += (value - stat.mean) * (value - stat.mean);
  stat.stdev = std::sqrt(squares / (n - 1));
  return stat;
}

// A net of blocks, each with times of its own in each step, which differ by the given noise.
class NoisyRun {
 public:
  NoisyRun(unsigned seed, int blocks, int steps, double noise)
      : random_(seed),
        steps_(steps),
        noise_(noise),
        slow_(static_cast<std::size_t>(blocks), 1.0),
        slow_backward_(slow_),
        large_(slow_) {}

  void slow_down(std::size_t block, double factor) { slow_[block] = factor; }
  void slow_down_all(std::size_t block, double factor) {
    slow_[block] = slow_backward_[block] = factor;
  }
  void enlarge(std::size_t block, double factor) { large_[block] = factor; }

  Profile make() {
    made::ProfileMaker net;
    const int root = net.root("Net");
    std::vector<double> whole(static_cast<std::size_t>(steps_), 0.0);
    for (std::size_t block = 0; block < slow_.size(); ++block) {
      const int layer = net.layer(root, std::to_string(block), "Block");
      // Blocks differ in size, the last is forty times the first.
      const double size_ns = made::kUs * (10 + 10 * static_cast<double>(block)) * large_[block];
      for (const Phase phase : {Phase::kForward, Phase::kBackward}) {
        std::vector<double> times;
        for (double& step : whole) {
          const double slow = (phase == Phase::kForward ? slow_ : slow_backward_)[block];
          times.push_back(size_ns * slow * std::exp(noise_ * normal_(random_)));
          step += times.back();
        }
        PhaseStats& stats = net[layer].phases[static_cast<std::size_t>(phase)];
        stats.host_ns = stats.self_host_ns = stat_of(times);
      }
    }
    net.profile.step_count = static_cast<std::uint64_t>(steps_);
    net.profile.step_ns = stat_of(whole);
    return std::move(net.profile);
  }

 private:
  std::mt19937 random_;
  std::normal_distribution<double> normal_;
  int steps_;
  double noise_;
  std::vector<double> slow_;
  std::vector<double> slow_backward_;
  std::vector<double> large_;
};

const ComparedRow* find(const Comparison& comparison, const std::string& kind,
                        const std::string& name, const std::string& metric) {
  const auto row = std::ranges::find_if(comparison.rows, [&](const ComparedRow& each) {
    return each.kind == kind && each.name == name && each.metric == metric;
  });
  return row == comparison.rows.end() ? nullptr : &*row;
}

Verdict verdict_of(const Comparison& comparison, const std::string& kind, const std::string& name,
                   const std::string& metric) {
  const ComparedRow* row = find(comparison, kind, name, metric);
  return row != nullptr ? row->runs.back().verdict : Verdict::kUnknown;
}

bool has_changed(const ComparedRow& row) {
  const Verdict verdict = row.runs.back().verdict;
  return verdict == Verdict::kFaster || verdict == Verdict::kSlower || verdict == Verdict::kMore ||
         verdict == Verdict::kLess;
}

std::string why(const Comparison& comparison, const std::string& text) {
  const auto condition = parse_condition(text);
  if (!condition) return "error: " + condition.error().message();
  const auto reason = check_condition(comparison, *condition);
  return reason ? *reason : "error: " + reason.error().message();
}

// ---- Noise ----

TEST(Compare, SeesWhatDoubledInFiveSteps) {
  NoisyRun slow(1, 30, 5, 0.1);
  for (std::size_t block = 0; block < 30; ++block) slow.slow_down(block, 2);
  const Comparison comparison = compare({NoisyRun(2, 30, 5, 0.1).make(), slow.make()});
  int seen = 0;
  for (int block = 0; block < 30; ++block) {
    const Verdict verdict = verdict_of(comparison, "layer", std::to_string(block), "forward_ms");
    seen += verdict == Verdict::kSlower ? 1 : 0;
  }
  EXPECT_GE(seen, 28);
  EXPECT_EQ(verdict_of(comparison, "total", "", "step_ms"), Verdict::kSlower);
}

TEST(Compare, FindsNothingBetweenEqualRuns) {
  int with_a_change = 0;
  constexpr unsigned kTries = 200;
  for (unsigned i = 0; i < kTries; ++i) {
    const Comparison comparison =
        compare({NoisyRun(2 * i, 40, 5, 0.1).make(), NoisyRun(2 * i + 1, 40, 5, 0.1).make()});
    with_a_change += std::ranges::any_of(comparison.rows, has_changed) ? 1 : 0;
  }
  EXPECT_LE(with_a_change, kTries / 20);
}

TEST(Compare, PutsTheLayerThatBecameSlowerFirst) {
  for (unsigned i = 0; i < 20; ++i) {
    NoisyRun slow(100 + i, 40, 10, 0.02);
    slow.slow_down(5, 1.2);
    const Comparison comparison = compare({NoisyRun(i, 40, 10, 0.02).make(), slow.make()});
    const auto first = std::ranges::find(comparison.rows, "layer", &ComparedRow::kind);
    ASSERT_NE(first, comparison.rows.end());
    EXPECT_EQ(first->name, "5");
    EXPECT_EQ(verdict_of(comparison, "layer", "5", "forward_ms"), Verdict::kSlower);
    EXPECT_EQ(verdict_of(comparison, "layer", "5", "backward_ms"), Verdict::kWithinNoise);
    EXPECT_NEAR(find(comparison, "layer", "5", "forward_ms")->runs[1].change, 0.2, 0.05);
    EXPECT_EQ(verdict_of(comparison, "total", "", "step_ms"), Verdict::kWithinNoise);
  }
}

TEST(Compare, SaysFasterOfTheOther) {
  NoisyRun slow(1, 4, 10, 0.01);
  slow.slow_down(2, 1.5);
  const Comparison comparison = compare({slow.make(), NoisyRun(2, 4, 10, 0.01).make()});
  EXPECT_EQ(verdict_of(comparison, "layer", "2", "forward_ms"), Verdict::kFaster);
  EXPECT_EQ(verdict_of(comparison, "total", "", "step_ms"), Verdict::kFaster);
}

// One block takes most of the time: what it changes by is not what all have in common.
TEST(Compare, SeesTheChangeOfABlockThatTakesMostOfTheTime) {
  for (const int blocks : {3, 4, 13, 40}) {
    for (const double factor : {1.5, 4.0}) {
      for (const bool is_faster : {false, true}) {
        const std::string about = std::to_string(blocks) + " blocks, " + std::to_string(factor);
        const auto large = static_cast<std::size_t>(blocks - 1);
        NoisyRun usual(1, blocks, 10, 0.01);
        NoisyRun slow(2, blocks, 10, 0.01);
        for (NoisyRun* run : {&usual, &slow}) run->enlarge(large, 100);
        slow.slow_down_all(large, factor);
        std::vector<Profile> runs = {usual.make(), slow.make()};
        if (is_faster) std::swap(runs[0], runs[1]);
        const Comparison comparison = compare(runs);
        const Verdict expected = is_faster ? Verdict::kFaster : Verdict::kSlower;
        const std::string name = std::to_string(large);
        EXPECT_EQ(verdict_of(comparison, "total", "", "step_ms"), expected) << about;
        for (const char* metric : {"total_ms", "forward_ms", "backward_ms"}) {
          EXPECT_EQ(verdict_of(comparison, "layer", name, metric), expected)
              << about << ' ' << metric;
        }
        const auto first = std::ranges::find(comparison.rows, "layer", &ComparedRow::kind);
        ASSERT_NE(first, comparison.rows.end());
        EXPECT_EQ(first->name, name) << about;
        EXPECT_EQ(verdict_of(comparison, "layer", "0", "forward_ms"), Verdict::kWithinNoise)
            << about;
        const std::string condition = is_faster ? "step_ms < -5%" : "step_ms > +5%";
        EXPECT_THAT(why(comparison, condition), HasSubstr("step_ms went from")) << about;
      }
    }
  }
}

// A third of the blocks is as it was, a third takes twice as long, a third four times.
TEST(Compare, SeesAStepOfWhichEachPartChangedByAnotherFactor) {
  NoisyRun slow(1, 30, 10, 0.02);
  for (std::size_t block = 0; block < 30; ++block) slow.slow_down_all(block, std::exp2(block % 3));
  const Comparison comparison = compare({NoisyRun(2, 30, 10, 0.02).make(), slow.make()});
  EXPECT_EQ(verdict_of(comparison, "total", "", "step_ms"), Verdict::kSlower);
  EXPECT_THAT(why(comparison, "step_ms > +50%"), HasSubstr("step_ms went from"));
}

// Runs that have hardly anything in common.
TEST(Compare, SeesThreeStepsThatLieFarApart) {
  constexpr std::array<double, 4> kFactors{4, 2.5, 1, 0.5};
  NoisyRun slow(1, 30, 3, 0.02);
  for (std::size_t block = 0; block < 30; ++block) slow.slow_down_all(block, kFactors[block % 4]);
  const Comparison comparison = compare({NoisyRun(2, 30, 3, 0.02).make(), slow.make()});
  EXPECT_EQ(verdict_of(comparison, "total", "", "step_ms"), Verdict::kSlower);
  const Comparison equal =
      compare({NoisyRun(2, 30, 3, 0.02).make(), NoisyRun(3, 30, 3, 0.02).make()});
  EXPECT_EQ(verdict_of(equal, "total", "", "step_ms"), Verdict::kWithinNoise);
}

TEST(Compare, JudgesNothingByASingleStep) {
  Profile one = NoisyRun(1, 2, 3, 0.01).make();
  one.step_count = 1;
  const Comparison comparison = compare({one, NoisyRun(2, 2, 3, 0.01).make()});
  EXPECT_EQ(verdict_of(comparison, "total", "", "step_ms"), Verdict::kUnknown);
  EXPECT_THAT(comparison_text(comparison), HasSubstr("has one recorded step"));
}

// ---- What is counted ----

Profile counted(double gflops, std::uint64_t params, double memory) {
  made::ProfileMaker net;
  const int root = net.root("Net", {1 * made::kMs, 2 * made::kMs});
  net[root].params = params;
  PhaseStats& forward = net[root].phases[static_cast<std::size_t>(Phase::kForward)];
  forward.amounts.flops = gflops * 1e9;
  net.steps({10 * made::kMs, 12 * made::kMs});
  DeviceMemory host;
  host.peak = memory;
  net.profile.device_memory.push_back(host);
  return std::move(net.profile);
}

TEST(Compare, TellsOfEveryDifferenceInWhatIsCounted) {
  const Comparison comparison = compare({counted(4, 100, 1e6), counted(4.0001, 100, 1.2e6)});
  EXPECT_EQ(verdict_of(comparison, "total", "", "flops"), Verdict::kMore);
  EXPECT_EQ(verdict_of(comparison, "layer", "", "flops"), Verdict::kMore);
  EXPECT_EQ(verdict_of(comparison, "total", "", "params"), Verdict::kSame);
  EXPECT_EQ(verdict_of(comparison, "total", "", "memory_bytes"), Verdict::kMore);
  EXPECT_NEAR(find(comparison, "total", "", "memory_bytes")->runs[1].change, 0.2, 1e-12);
}

double change_of_reward(double before, double after) {
  std::vector<Profile> runs(2);
  for (Profile& run : runs) {
    MetricValue& reward = run.metrics.emplace_back();
    reward.info.key = "reward";
    reward.value = &run == runs.data() ? before : after;
  }
  const Comparison comparison = compare(runs);
  const auto row = std::ranges::find(comparison.rows, "metric", &ComparedRow::kind);
  return row == comparison.rows.end() ? NAN : row->runs[1].change;
}

TEST(Compare, TellsWhichWayAMetricBelowZeroWent) {
  EXPECT_DOUBLE_EQ(change_of_reward(-10, -12), -0.2);
  EXPECT_DOUBLE_EQ(change_of_reward(-10, 5), 1.5);
  EXPECT_DOUBLE_EQ(change_of_reward(10, 12), 0.2);
  EXPECT_EQ(change_of_reward(0, -1), -HUGE_VAL);
  EXPECT_EQ(change_of_reward(0, 1), HUGE_VAL);
  EXPECT_EQ(change_of_reward(0, 0), 0);
}

// Without modules, phases stand for layers, the optimizer among them.
Profile imported(double optimizer_ns) {
  made::ProfileMaker trace;
  const int step = trace.root("step", {2 * made::kMs});
  trace.layer(step, "forward", "phase", {2 * made::kMs});
  const int optimizer = trace.layer(step, "optimizer", "phase");
  for (const int layer : {step, optimizer}) {
    trace[layer].phases[static_cast<std::size_t>(Phase::kOptimizer)].host_ns =
        made::constant(optimizer_ns);
  }
  for (const auto& [layer, phase, ns] : {std::tuple{1, Phase::kForward, 2 * made::kMs},
                                         std::tuple{2, Phase::kOptimizer, optimizer_ns}}) {
    trace[layer].phases[static_cast<std::size_t>(phase)].self_host_ns = made::constant(ns);
  }
  trace.steps({10 * made::kMs, 12 * made::kMs});
  trace.profile.run.imported_from = "Kineto";
  return std::move(trace.profile);
}

TEST(Compare, ComparesTheOptimizerOfATraceWithoutModules) {
  const Comparison comparison = compare({imported(1 * made::kMs), imported(3 * made::kMs)});
  const ComparedRow* total = find(comparison, "total", "", "optimizer_ms");
  ASSERT_NE(total, nullptr);
  EXPECT_DOUBLE_EQ(total->runs[0].value, 1);
  EXPECT_DOUBLE_EQ(total->runs[1].value, 3);
  EXPECT_EQ(total->runs[1].verdict, Verdict::kSlower);
  const ComparedRow* layer = find(comparison, "layer", "optimizer", "total_ms");
  ASSERT_NE(layer, nullptr);
  EXPECT_DOUBLE_EQ(layer->runs[1].value, 3);
  EXPECT_EQ(layer->runs[1].verdict, Verdict::kSlower);
  EXPECT_DOUBLE_EQ(find(comparison, "layer", "", "total_ms")->runs[1].value, 5);
}

TEST(Compare, ListsWhatOneSideAloneHas) {
  Profile more = made::small_net();
  made::ProfileMaker maker;
  maker.profile = more;
  maker.layer(0, "extra", "Linear", {1 * made::kMs, 0});
  const Comparison comparison = compare({more, maker.profile});
  ASSERT_EQ(comparison.not_in_all.size(), 1u);
  EXPECT_EQ(comparison.not_in_all[0].kind, "layer");
  EXPECT_EQ(comparison.not_in_all[0].name, "extra");
  EXPECT_THAT(comparison.not_in_all[0].runs, ElementsAre(1));
  EXPECT_THAT(comparison_text(comparison), HasSubstr("Layers that A does not have: extra."));
}

// ---- What cannot be compared ----

TEST(Compare, ComparesAHostWithAGpuByWhatWasCountedOnly) {
  Profile gpu = counted(4, 100, 1e6);
  gpu.run.device = "some GPU";
  const Comparison comparison = compare({counted(4, 100, 1e6), gpu}, {.names = {"cpu", "gpu"}});
  EXPECT_EQ(find(comparison, "total", "", "step_ms"), nullptr);
  EXPECT_EQ(find(comparison, "total", "", "memory_bytes"), nullptr);
  EXPECT_EQ(verdict_of(comparison, "total", "", "flops"), Verdict::kSame);
  EXPECT_THAT(comparison.notes,
              ::testing::Contains(HasSubstr("cpu ran on the host, gpu on a GPU")));
}

TEST(Compare, ComparesKernelsByName) {
  Profile before = made::gpu_net();
  Profile after = before;
  for (Kernel& kernel : after.kernels) {
    if (kernel.short_name != "ampere_sgemm_128x64_tn") continue;
    kernel.ns *= 2;
    for (Kernel::Use& use : kernel.uses) use.ns *= 2;
  }
  for (Profile* profile : {&before, &after}) {
    for (Kernel& kernel : profile->kernels) {
      for (Kernel::Use& use : kernel.uses) use.min_ns = use.max_ns = use.ns / use.count;
    }
  }
  const Comparison comparison = compare({before, after});
  const auto first = std::ranges::find(comparison.rows, "kernel", &ComparedRow::kind);
  ASSERT_NE(first, comparison.rows.end());
  EXPECT_EQ(first->name, "ampere_sgemm_128x64_tn");
  EXPECT_EQ(first->runs[1].verdict, Verdict::kSlower);
  EXPECT_NEAR(first->runs[0].value, 2.4 / 2, 1e-9);  // ms a step, of two
  EXPECT_EQ(verdict_of(comparison, "kernel", "set", "gpu_ms"), Verdict::kWithinNoise);
}

TEST(Compare, DoesNotHoldKernelsAgainstEvents) {
  Profile events = made::gpu_net();
  events.health.gpu.timing = "events";
  events.kernels.clear();
  for (Layer& layer : events.layers) {
    for (PhaseStats& phase : layer.phases) phase.busy_ns = {};
  }
  const Comparison mixed = compare({made::gpu_net(), events});
  EXPECT_EQ(find(mixed, "total", "", "gpu_ms"), nullptr);
  EXPECT_EQ(find(mixed, "total", "", "gpu_forward_ms"), nullptr);
  EXPECT_EQ(find(mixed, "total", "", "kernels"), nullptr);
  EXPECT_THAT(mixed.notes, ::testing::Contains(HasSubstr("by CUDA events alone")));
  const Comparison alike = compare({events, events});
  EXPECT_EQ(find(alike, "total", "", "kernels"), nullptr);
  const ComparedRow* forward = find(alike, "layer", "body.0", "gpu_forward_ms");
  ASSERT_NE(forward, nullptr);
  EXPECT_NEAR(forward->runs[0].value, 0.3, 1e-9);
}

TEST(Compare, KnowsNoParametersWhereNoneWereRecorded) {
  const Comparison comparison = compare({counted(4, 0, 1e6), counted(4, 100, 1e6)});
  EXPECT_EQ(find(comparison, "total", "", "params"), nullptr);
}

TEST(Compare, AddsUpTheMemoryOfGpus) {
  Profile before = counted(4, 100, 1e6);
  for (const int device : {0, 1}) {
    DeviceMemory gpu;
    gpu.device = device;
    gpu.peak = 5e6;
    before.device_memory.push_back(gpu);
  }
  Profile after = before;
  after.device_memory[1].peak = 10e6;
  const Comparison comparison = compare({before, after});
  EXPECT_DOUBLE_EQ(find(comparison, "total", "", "memory_bytes")->runs[0].value, 10e6);
  EXPECT_DOUBLE_EQ(find(comparison, "total", "", "memory_bytes")->runs[1].value, 15e6);
}

TEST(Compare, JudgesNoKernelByASingleStep) {
  Profile before = made::gpu_net();
  before.step_count = 1;
  Profile after = before;
  for (Kernel& kernel : after.kernels) kernel.ns *= 3;
  const Comparison comparison = compare({before, after});
  EXPECT_EQ(verdict_of(comparison, "kernel", "set", "gpu_ms"), Verdict::kUnknown);
}

TEST(Compare, TakesRunsWithoutAnything) {
  const Comparison comparison = compare({Profile(), Profile()});
  EXPECT_TRUE(comparison.rows.empty());
  EXPECT_EQ(comparison_table(comparison).rows(), 0u);
  EXPECT_THAT(comparison_text(comparison), HasSubstr("no recorded step"));
}

TEST(Compare, TellsRunsOfOneNameApart) {
  Profile run;
  run.run.program = "train.py";
  EXPECT_THAT(compare({run, run}).names, ElementsAre("train.py", "train.py #2"));
  run.run.name = "wide";
  EXPECT_THAT(compare({Profile(), run}).names, ElementsAre("#1", "wide"));
}

TEST(Compare, NamesRunsAsTheyWereNamedAndElseByTheirFiles) {
  Profile plain;
  plain.run.program = "train.py";
  Profile wide = plain;
  wide.run.name = "wide";
  const auto names = [](const std::vector<Profile>& runs, std::vector<std::string> files) {
    return compare(runs, {.files = std::move(files)}).names;
  };
  EXPECT_THAT(names({wide, plain}, {"x/a.pftrace", "x/b.pftrace"}),
              ElementsAre("wide", "b.pftrace"));
  EXPECT_THAT(names({wide, wide}, {"x/a.pftrace", "x/b.pftrace"}),
              ElementsAre("a.pftrace", "b.pftrace"));
  EXPECT_THAT(names({plain, plain}, {"x/a.pftrace", "y/a.pftrace"}),
              ElementsAre("x/a.pftrace", "y/a.pftrace"));
  EXPECT_THAT(names({plain, plain, wide}, {"x/a.pftrace", "", ""}),
              ElementsAre("a.pftrace", "train.py", "wide"));
  EXPECT_THAT(compare({wide, plain}, {.names = {"a", "b"}, .files = {"c", "d"}}).names,
              ElementsAre("a", "b"));
}

// ---- Text and table ----

TEST(Compare, IsATextForPeople) {
  Profile before = counted(4, 100, 1e6);
  Profile after = counted(5, 100, 1e6);
  after.step_ns = {.mean = 22e6, .min = 21e6, .max = 23e6, .median = 22e6, .stdev = 1e6};
  before.step_ns = {.mean = 11e6, .min = 10e6, .max = 12e6, .median = 11e6, .stdev = 1e6};
  before.step_count = after.step_count = 8;
  const std::string text =
      comparison_text(compare({before, after}, {.names = {"a.pftrace", "b.pftrace"}}));
  EXPECT_EQ(text, R"(A: a.pftrace
B: b.pftrace

Total, per step
    figure                             A                       B    change  verdict
    step_ms       11.0 ms [10.0–12.0 ms]  22.0 ms [21.0–23.0 ms]  +100.0 %  slower
    forward_ms                   1.00 ms                 1.00 ms       0 %  within noise
    backward_ms                  2.00 ms                 2.00 ms       0 %  within noise
    flops                     4.00 GFLOP              5.00 GFLOP   +25.0 %  more
    params                           100                     100       0 %  same
    memory_bytes                 977 KiB                 977 KiB       0 %  same

Layers: 1 of 5 figures changed
       figure           A           B   change  verdict
  Net  flops   4.00 GFLOP  5.00 GFLOP  +25.0 %  more

Times are medians; in brackets where a run's steps lie, from the fastest to as far above the median. A time has changed where one run takes longer even undisturbed than the other usually does, and by more than unchanged layers' times scatter between these runs.
)");
}

TEST(Compare, KeepsTheVerdictOnANarrowTerminal) {
  Profile before = counted(4, 100, 1e6);
  before.step_ns = {.mean = 11e6, .min = 10e6, .max = 12e6, .median = 11e6, .stdev = 1e6};
  before.step_count = 8;
  Profile after = before;
  after.step_ns = {.mean = 22e6, .min = 20e6, .max = 24e6, .median = 22e6, .stdev = 1e6};
  const Comparison comparison = compare({before, after});
  EXPECT_THAT(comparison_text(comparison, {.width = 90}), HasSubstr("11.0 ms [10.0–12.0 ms]"));
  const std::string narrower = comparison_text(comparison, {.width = 70});
  EXPECT_THAT(narrower, HasSubstr("    step_ms          11.0 ms     22.0 ms  +100.0 %  slower\n"));
  EXPECT_THAT(narrower, ::testing::Not(HasSubstr("[10.0")));
  EXPECT_THAT(comparison_text(comparison, {.width = 44}),
              HasSubstr("    backward_ms        0 %  within noise\n"));
  EXPECT_THAT(comparison_text(comparison, {.width = 36}),
              HasSubstr("    backward_ms   within noise\n"));
}

TEST(Compare, ShowsMetricsInTheUnitsThatTheyAskFor) {
  const auto run_with = [](double bytes, double boxes) {
    Profile run;
    run.metrics = {
        {.info = {.key = "size", .unit = "bytes", .shown_in = "MB"}, .value = bytes},
        {.info = {.key = "boxes", .unit = "boxes", .scales = {{"crates", 100}}}, .value = boxes}};
    return run;
  };
  const std::string text = comparison_text(compare({run_with(5e5, 50), run_with(5e6, 500)}));
  EXPECT_THAT(text, HasSubstr("0.5000 MB      5 MB"));
  EXPECT_THAT(text, HasSubstr("0.5000 crates  5 crates"));
}

TEST(Compare, NamesTheUnitsOfWhatItCounts) {
  const Comparison comparison = compare({made::gpu_net(), made::gpu_net()});
  EXPECT_EQ(find(comparison, "total", "", "kernels")->unit, "per step");
  EXPECT_EQ(
      find(compare({counted(4, 100, 1e6), counted(4, 100, 1e6)}), "total", "", "params")->unit,
      "elements");
}

// What is believed less often is found less often, too.
TEST(Compare, BelievesAsOftenAsItIsTold) {
  NoisyRun slow(100, 40, 10, 0.02);
  slow.slow_down(5, 1.2);
  const std::vector<Profile> runs = {NoisyRun(0, 40, 10, 0.02).make(), slow.make()};
  const auto changed = [&](double error_rate) {
    return std::ranges::count_if(compare(runs, {.error_rate = error_rate}).rows, has_changed);
  };
  EXPECT_EQ(changed(0), 0);
  EXPECT_GT(changed(0.05), 0);
}

TEST(Compare, IsATable) {
  const Table table = comparison_table(compare({counted(4, 100, 1e6), counted(5, 100, 1e6)}));
  const TableColumn* metric = table.find("metric");
  const TableColumn* change = table.find("change");
  ASSERT_NE(metric, nullptr);
  ASSERT_NE(change, nullptr);
  bool is_found = false;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    if (std::get<std::string>(metric->values[row]) != "flops") continue;
    is_found = true;
    EXPECT_DOUBLE_EQ(std::get<double>(change->values[row]), 0.25);
  }
  EXPECT_TRUE(is_found);
}

TEST(Compare, SaysInItsTableWhatWasLeftOutAndWhatOneAloneHas) {
  Profile gpu = counted(4, 100, 1e6);
  gpu.run.device = gpu.run.simulated = "simulated H100-class GPU";
  made::ProfileMaker with_more;
  with_more.profile = gpu;
  with_more.layer(0, "extra", "Linear");
  gpu = with_more.profile;
  gpu.metrics.push_back({.info = {.key = "reward"}, .value = 1});
  const std::vector<Profile> runs = {counted(4, 100, 1e6), gpu};
  const Table table = comparison_table(compare(runs, {.names = {"cpu", "gpu"}}));
  EXPECT_THAT(table.note, ::testing::StartsWith("Simulated: recorded on a simulated H100-class"));
  EXPECT_THAT(table.note,
              HasSubstr("\nNote: cpu ran on the host, gpu on a simulated GPU: times, kernels and "
                        "memory are not compared"));
  EXPECT_EQ(table.find("simulated")->values[0], TableValue(true));
  const std::string markdown = to_markdown(table);
  EXPECT_THAT(markdown, HasSubstr("*Simulated: "));
  EXPECT_THAT(markdown, HasSubstr("| layer | extra |  |  |  | gpu |  |  |  | only after |\n"));
  EXPECT_THAT(markdown, HasSubstr("| metric | reward |  | reward |  | gpu |  |  |  | only after"));

  const Table back = comparison_table(compare({gpu, runs[0]}, {.names = {"gpu", "cpu"}}));
  EXPECT_EQ(std::get<std::string>(back.find("verdict")->values.back()), "only before");
  const Table alike = comparison_table(compare({runs[0], runs[0]}));
  EXPECT_EQ(alike.note, "");
  EXPECT_EQ(alike.find("simulated")->values[0], TableValue(false));
}

// ---- Conditions ----

TEST(Condition, HoldsForChangesBeyondTheLimitAndTheNoise) {
  NoisyRun slow(1, 4, 10, 0.01);
  slow.slow_down(3, 1.3);
  const Comparison comparison = compare({NoisyRun(2, 4, 10, 0.01).make(), slow.make()});
  EXPECT_THAT(why(comparison, "forward_ms@3 > +5%"), HasSubstr("forward_ms of 3 went from 0.0"));
  EXPECT_EQ(why(comparison, "forward_ms@3 > +50%"), "");
  EXPECT_EQ(why(comparison, "forward_ms@2 > +0%"), "");  // within noise
  EXPECT_EQ(why(comparison, "forward_ms@3 < -5%"), "");
  EXPECT_NE(why(comparison, "forward_ms@3 > +0.005"), "");
  EXPECT_EQ(why(comparison, "forward_ms@3 > +0.5"), "");
}

TEST(Condition, HoldsForTheLastRunsFigure) {
  const Comparison comparison =
      compare({counted(4, 100, 1e6), counted(5, 100, 1e6)}, {.names = {"a", "b"}});
  EXPECT_EQ(why(comparison, "flops > 4.5e9"), "flops > 4.5e9: flops of b is 5e+09 FLOP");
  EXPECT_EQ(why(comparison, "flops > 5e9"), "");
  EXPECT_NE(why(comparison, " params<101 "), "");
  EXPECT_EQ(why(comparison, "flops > +20%"),
            "flops > +20%: flops went from 4e+09 to 5e+09 FLOP (+25.0 %)");
}

TEST(Condition, DoesNotPassWhatCannotBeJudged) {
  Profile before = counted(4, 100, 1e6);
  before.step_count = 1;
  Profile after = before;
  after.step_ns.mean *= 3;
  EXPECT_THAT(why(compare({before, after}), "step_ms > +5%"),
              HasSubstr("Record two steps or more"));
}

TEST(Condition, SaysWhatIsWrongWithIt) {
  const Comparison comparison = compare({counted(4, 100, 1e6), counted(5, 100, 1e6)});
  EXPECT_THAT(why(comparison, "forward_ms"), HasSubstr("neither > nor <"));
  EXPECT_THAT(why(comparison, "speed > 5"), HasSubstr("Use one of: step_ms, total_ms, forward_ms"));
  for (const char* limit : {"", "5x", "+-5%", "nan", "inf", "%"}) {
    EXPECT_THAT(why(comparison, std::string("flops > ") + limit), HasSubstr("is no number"))
        << limit;
  }
  EXPECT_THAT(why(comparison, "flops@missing > 5"), HasSubstr("no flops of missing in common"));
  EXPECT_THAT(why(comparison, "kernels > 5"), HasSubstr("no kernels in common"));
}

}  // namespace
}  // namespace layertrace
