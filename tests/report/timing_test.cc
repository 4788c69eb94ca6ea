// Times of calls: what they come to, and the tables and the text of them, from fixed numbers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <layertrace/timing.h>

namespace layertrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> names_of(const Table& table) {
  std::vector<std::string> names;
  for (const TableColumn& column : table.columns) names.push_back(column.name);
  return names;
}

std::vector<std::string> texts(const Table& table, const char* column) {
  std::vector<std::string> out;
  for (const TableValue& value : table.find(column)->values)
    out.push_back(std::get<std::string>(value));
  return out;
}

std::vector<double> reals(const Table& table, const char* column) {
  std::vector<double> out;
  for (const TableValue& value : table.find(column)->values) out.push_back(std::get<double>(value));
  return out;
}

TimingEnvironment machine() {
  return {.device = "cpu",
          .gpu = "",
          .simulated = false,
          .intra_op_threads = 2,
          .inter_op_threads = 1,
          .host_name = "box",
          .os = "Linux",
          .os_release = "6.1.0",
          .cpu = "Some CPU",
          .cpu_count = 4,
          .memory_bytes = std::uint64_t{8} << 30,
          .torch_version = "2.15.0",
          .layertrace_version = "0.1.0",
          .python_version = "3.11.7",
          .command = "python time.py",
          .commit = "c0ffee",
          .run_name = "nightly",
          .created = "2026-01-02T03:04:05Z"};
}

// Six calls of which two are left out; `gate` runs in every second iteration only.
Benchmark small() {
  Benchmark benchmark{.model = "Net", .iterations = 6, .drop_first = 2};
  benchmark.total_ns = {1'000'000, 3'000'000, 2'000'000, 2'000'000};
  benchmark.scoped_ns = {2'200'000, 2'200'000, 2'200'000, 2'200'000};
  benchmark.modules = {
      {"", "Net", 0, false, 1, {2, 3, 4, 5}, {2'100'000, 2'100'000, 2'100'000, 2'100'000}},
      {"blocks", "Sequential", 1, false, 0, {2, 3, 4, 5}, {900'000, 900'000, 900'000, 900'000}},
      {"blocks.0", "Linear", 2, false, 2, {2, 3, 4, 5}, {800'000, 1'000'000, 900'000, 900'000}},
      {"gate", "Gate", 1, false, 1, {3, 5}, {10'000, 30'000}},
  };
  benchmark.environment = machine();
  return benchmark;
}

TEST(TimeStats, AreWhatHandsReckon) {
  // 1, 2, 3, 4, 10 ms: mean 4, squares 9 + 4 + 1 + 0 + 36 = 50, over 4 = 12.5.
  const TimeStats stats = time_stats({10'000'000, 1'000'000, 4'000'000, 2'000'000, 3'000'000});
  EXPECT_EQ(stats.count, 5u);
  EXPECT_DOUBLE_EQ(stats.mean_ms, 4);
  EXPECT_DOUBLE_EQ(stats.stdev_ms, 3.5355339059327378);
  EXPECT_DOUBLE_EQ(stats.min_ms, 1);
  EXPECT_DOUBLE_EQ(stats.p5_ms, 1.2);  // a fifth of the way from the first to the second
  EXPECT_DOUBLE_EQ(stats.p25_ms, 2);
  EXPECT_DOUBLE_EQ(stats.median_ms, 3);
  EXPECT_DOUBLE_EQ(stats.p75_ms, 4);
  EXPECT_DOUBLE_EQ(stats.p90_ms, 7.6);
  EXPECT_DOUBLE_EQ(stats.p95_ms, 8.8);
  EXPECT_DOUBLE_EQ(stats.p99_ms, 9.76);
  EXPECT_DOUBLE_EQ(stats.max_ms, 10);
}

TEST(TimeStats, OfAnEvenNumberTheMedianIsInTheMiddle) {
  EXPECT_DOUBLE_EQ(time_stats({4'000'000, 1'000'000, 2'000'000, 3'000'000}).median_ms, 2.5);
}

TEST(TimeStats, OfOneTimeIsThatTime) {
  const TimeStats stats = time_stats({1'500'000});
  EXPECT_DOUBLE_EQ(stats.mean_ms, 1.5);
  EXPECT_DOUBLE_EQ(stats.p99_ms, 1.5);
  EXPECT_EQ(stats.stdev_ms, 0);
}

TEST(TimeStats, OfNoneIsNothing) {
  EXPECT_EQ(time_stats({}).count, 0u);
  EXPECT_EQ(time_stats({}).mean_ms, 0);
}

TEST(BenchmarkTable, HasTheModelWithoutScopesAndItsModulesWithThem) {
  const auto table = benchmark_table(small());
  ASSERT_TRUE(table) << table.error().message();
  EXPECT_THAT(texts(*table, "module"), ElementsAre("", "", "blocks", "blocks.0", "gate"));
  EXPECT_THAT(texts(*table, "type"), ElementsAre("Net", "Net", "Sequential", "Linear", "Gate"));
  EXPECT_THAT(table->find("scopes")->values,
              ElementsAre(TableValue(false), TableValue(true), TableValue(true), TableValue(true),
                          TableValue(true)));
  EXPECT_THAT(reals(*table, "mean_ms"), ElementsAre(2.0, 2.1, 0.9, 0.9, 0.02));
  EXPECT_THAT(reals(*table, "calls"), ElementsAre(1, 1, 0, 2, 1));
  // Of the iterations in which it ran.
  EXPECT_EQ(table->find("iterations")->values.back(), TableValue(std::int64_t{2}));
  EXPECT_EQ(table->find("share")->values.front(), TableValue());
  EXPECT_DOUBLE_EQ(std::get<double>(table->find("share")->values[2]), 0.9 / 2.1);
}

TEST(BenchmarkTable, HasTheEnvironmentInEachRow) {
  const auto table = benchmark_table(small());
  ASSERT_TRUE(table);
  EXPECT_THAT(names_of(*table),
              ElementsAre("module", "type", "scopes", "clock", "calls", "iterations", "mean_ms",
                          "std_ms", "min_ms", "p5_ms", "p25_ms", "median_ms", "p75_ms", "p90_ms",
                          "p95_ms", "p99_ms", "max_ms", "share", "device", "gpu", "simulated",
                          "intra_op_threads", "inter_op_threads", "host_name", "os", "os_release",
                          "cpu", "cpu_count", "memory_bytes", "torch_version", "layertrace_version",
                          "python_version", "command", "commit", "run_name", "created"));
  EXPECT_EQ(table->find("command")->values.back(), TableValue(std::string("python time.py")));
  EXPECT_TRUE(table->find("commit")->detail);
  EXPECT_EQ(table->find("os_release")->values.back(), TableValue(std::string("6.1.0")));
  EXPECT_EQ(table->find("gpu")->values.back(), TableValue());
}

TEST(BenchmarkTable, WithoutAggregationHasEachIteration) {
  const auto table = benchmark_table(small(), {.aggregate = false});
  ASSERT_TRUE(table);
  EXPECT_EQ(table->rows(), 4u + 4 + 4 + 4 + 2);
  EXPECT_EQ(table->find("iteration")->values[0], TableValue(std::int64_t{2}));
  EXPECT_EQ(table->find("time_ms")->values[1], TableValue(3.0));
  EXPECT_EQ(table->find("iteration")->values.back(), TableValue(std::int64_t{5}));
  EXPECT_EQ(table->find("time_ms")->values.back(), TableValue(0.03));
  EXPECT_EQ(table->find("mean_ms"), nullptr);
}

TEST(BenchmarkTable, RowsAndPathsAreChosen) {
  const auto total = benchmark_table(small(), {.rows = TimedRows::kTotal});
  ASSERT_TRUE(total);
  EXPECT_EQ(total->rows(), 1u);
  const auto modules =
      benchmark_table(small(), {.rows = TimedRows::kModules,
                                .table = {.depth = 1, .root = "__root__", .leading_dot = true}});
  ASSERT_TRUE(modules);
  EXPECT_THAT(texts(*modules, "module"), ElementsAre("__root__", ".blocks", ".gate"));
  const auto below =
      benchmark_table(small(), {.table = {.module = "blocks", .columns = {"module"}}});
  ASSERT_TRUE(below);
  EXPECT_THAT(texts(*below, "module"), ElementsAre("blocks", "blocks.0"));
  EXPECT_THAT(names_of(*below), ElementsAre("module"));
}

TEST(BenchmarkTable, SaysWhatItDoesNotHave) {
  const auto module = benchmark_table(small(), {.table = {.module = "block"}});
  ASSERT_FALSE(module);
  EXPECT_EQ(module.error().message(),
            "cannot make a table of block: no module that was timed has this path. Use a path of "
            "the column `module`");
  const auto column = benchmark_table(small(), {.table = {.columns = {"mean"}}});
  ASSERT_FALSE(column);
  EXPECT_THAT(column.error().message(), HasSubstr("no such column. Use one of: module, type"));
  const auto rows = parse_timed_rows("some");
  ASSERT_FALSE(rows);
  EXPECT_EQ(rows.error().remedy, "Use one of: all, total, modules");
}

TEST(BenchmarkTable, OfNothingIsEmptyAndValid) {
  const auto table = benchmark_table({});
  ASSERT_TRUE(table);
  EXPECT_EQ(table->rows(), 0u);
  EXPECT_THAT(to_csv(*table), testing::StartsWith("module,type,scopes,clock,calls,"));
}

TEST(BenchmarkTable, ForPeopleIsInMilliseconds) {
  const auto table = benchmark_table(small(), {.rows = TimedRows::kModules, .table = {.depth = 0}});
  ASSERT_TRUE(table);
  EXPECT_EQ(to_markdown(*table),
            "| module | type | scopes | clock | calls (per iteration) | mean (ms) | std (ms) | min "
            "(ms) | median (ms) | p95 (ms) | p99 (ms) | max (ms) | share (%) |\n"
            "| --- | --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | "
            "---: |\n"
            "|  | Net | yes | host | 1 | 2.10 | 0 | 2.10 | 2.10 | 2.10 | 2.10 | 2.10 | 100 |\n");
}

TEST(BenchmarkText, IsATableAndHowItWasMeasured) {
  EXPECT_EQ(
      benchmark_text(small()),
      "Net · 4 of 6 calls, without the first 2 · Some CPU · 2 threads · torch 2.15.0\n"
      "\n"
      "module                 type        calls     mean      std      min   median      p95      "
      "p99      max   share\n"
      "total, without scopes  Net             1  2.00 ms   816 µs  1.00 ms  2.00 ms  2.85 ms  2.97 "
      "ms  3.00 ms\n"
      "Net                    Net             1  2.10 ms     0 ns  2.10 ms  2.10 ms  2.10 ms  2.10 "
      "ms  2.10 ms   100 %\n"
      "blocks                 Sequential      0   900 µs     0 ns   900 µs   900 µs   900 µs   900 "
      "µs   900 µs  42.9 %\n"
      "blocks.0               Linear          2   900 µs  81.6 µs   800 µs   900 µs   985 µs   997 "
      "µs  1.00 ms  42.9 %\n"
      "gate                   Gate            1  20.0 µs  14.1 µs  10.0 µs  20.0 µs  29.0 µs  29.8 "
      "µs  30.0 µs   1.0 %\n"
      "\n"
      "With scopes in it the model takes 2.20 ms (median), without any 2.00 ms: 10.0 % more, which "
      "is within the spread of single calls. Figures of modules are with scopes, from a pass of "
      "their own.\n");
}

TEST(BenchmarkText, SaysWhereScopesTakeMoreThanSingleCallsDiffer) {
  Benchmark benchmark = small();
  benchmark.scoped_ns = {4'000'000, 4'000'000, 4'000'000, 5'000'000};
  EXPECT_THAT(benchmark_text(benchmark), HasSubstr("without any 2.00 ms: 100 % more. Figures of"));
  benchmark.scoped_ns = {1'000'000, 1'000'000, 1'000'000, 1'000'000};
  EXPECT_THAT(benchmark_text(benchmark), HasSubstr("without any 2.00 ms: 50.0 % less. Figures of"));
}

TEST(BenchmarkText, FitsWhatItIsGiven) {
  const std::string text =
      benchmark_text(small(), {.root = "__root__", .depth = 0, .width = 60, .ascii = true});
  EXPECT_THAT(text, HasSubstr("\n__root__ "));
  EXPECT_THAT(text, testing::Not(HasSubstr("gate")));
  for (std::size_t at = 0, end = 0; at < text.size(); at = end + 1) {
    end = text.find('\n', at);
    EXPECT_LE(end - at, 60u) << text.substr(at, end - at);
  }
}

TEST(BenchmarkTable, SaysWhatAReaderMustKnow) {
  Benchmark benchmark = small();
  EXPECT_EQ(benchmark_table(benchmark)->note, "");
  benchmark.environment.gpu = "simulated H100-class GPU";
  benchmark.environment.simulated = true;
  benchmark.notes = {"A note."};
  for (const bool aggregate : {true, false}) {
    const auto table = benchmark_table(benchmark, {.aggregate = aggregate});
    EXPECT_THAT(to_markdown(*table),
                testing::StartsWith("*Simulated: timed on a simulated H100-class GPU (simgpu). Its "
                                    "times say nothing about how fast a real GPU is.*\n\n"
                                    "*A note.*\n\n| module |"));
  }
}

TEST(BenchmarkText, SaysThatAGpuIsSimulated) {
  Benchmark benchmark = small();
  benchmark.environment.gpu = "simulated H100-class GPU";
  benchmark.environment.simulated = true;
  benchmark.modules[0].is_gpu = true;
  const std::string text = benchmark_text(benchmark);
  EXPECT_THAT(text, testing::StartsWith("Simulated: timed on a simulated H100-class GPU (simgpu). "
                                        "Its times say nothing about how fast a real GPU is.\n"));
  // By another clock than the root's there is no share of it.
  EXPECT_THAT(text, HasSubstr("997 µs  1.00 ms      –\n"));
}

TEST(BenchmarkText, SaysNothingOfScopesWhereThereWereNone) {
  Benchmark benchmark = small();
  benchmark.scoped_ns.clear();
  benchmark.modules.clear();
  benchmark.notes = {"A note."};
  const std::string text = benchmark_text(benchmark);
  EXPECT_THAT(text, testing::Not(HasSubstr("Figures of modules")));
  EXPECT_THAT(text, testing::EndsWith("\nA note.\n"));
}

Throughput sweep() {
  return {.model = "Net",
          .iterations = 3,
          .drop_first = 1,
          .batches = {{1, {2'000'000, 2'000'000}}, {8, {4'000'000, 4'000'000}}},
          .environment = machine(),
          .out_of_memory_at = 16};
}

TEST(ThroughputTable, HasSamplesPerSecond) {
  const Table table = throughput_table(sweep());
  EXPECT_EQ(table.find("batch_size")->values[1], TableValue(std::int64_t{8}));
  EXPECT_THAT(reals(table, "median_ms"), ElementsAre(2, 4));
  EXPECT_THAT(reals(table, "sample_ms"), ElementsAre(2, 0.5));
  EXPECT_THAT(reals(table, "samples_per_s"), ElementsAre(500, 2000));
  EXPECT_EQ(table.find("host_name")->values[1], TableValue(std::string("box")));
}

TEST(ThroughputTable, SaysThatAGpuIsSimulated) {
  EXPECT_EQ(throughput_table(sweep()).note, "");
  Throughput simulated = sweep();
  simulated.environment.simulated = true;
  EXPECT_THAT(to_latex(throughput_table(simulated)),
              HasSubstr("{Simulated: timed on a simulated GPU (simgpu). Its times say nothing"));
}

TEST(ThroughputText, IsATableAndItsNotes) {
  EXPECT_EQ(throughput_text(sweep()),
            "Net · 2 of 3 calls, without the first 1 · Some CPU · 2 threads · torch 2.15.0\n"
            "\n"
            "batch size     mean   std      min   median      p95      p99      max  per sample  "
            "samples/s\n"
            "1           2.00 ms  0 ns  2.00 ms  2.00 ms  2.00 ms  2.00 ms  2.00 ms     2.00 ms    "
            "    500\n"
            "8           4.00 ms  0 ns  4.00 ms  4.00 ms  4.00 ms  4.00 ms  4.00 ms      500 µs    "
            " 2.00 k\n"
            "\n"
            "Memory does not suffice for batches of 16: larger ones were not tried.\n");
}

TEST(RecordingNotes, SayWhatIsMissing) {
  Profile profile;
  EXPECT_THAT(recording_notes(profile, false), ElementsAre());
  profile.health.emitted = 1000;
  profile.health.dropped = 10;
  profile.health.gpu.events_missed = 3;
  EXPECT_THAT(recording_notes(profile, true),
              ElementsAre(HasSubstr("the host's"), HasSubstr("10 of 1,000 records"),
                          HasSubstr("3 pairs of CUDA events")));
}

}  // namespace
}  // namespace layertrace
