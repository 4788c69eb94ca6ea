#include <gtest/gtest.h>

#include <layertrace/report.h>
#include <layertrace/trace.h>

#include "perfetto/traces.h"

namespace layertrace::test {
namespace {

TEST(RoundTrip, GivesEveryCallAgain) {
  Script script({"", "a", "a.b", "(Loss)"});
  fill(script);
  const SpanLog written = resolve(script);
  const ReadBack back = read(write(script));
  ASSERT_TRUE(back.summary) << back.summary.error().message();
  EXPECT_EQ(back.stream, written.stream());
  EXPECT_FALSE(back.summary->health.cut);
}

TEST(RoundTrip, GivesTheDefinitionsAgain) {
  Script script({"", "a", "a.b", "(Loss)"});
  script.dictionary.layers[2].shared_with = "a";
  script.dictionary.layers[2].kernel_size = "3 × 3";
  fill(script);
  script.dictionary.parameters.push_back({.address = ~std::uint64_t{0},
                                          .owner = LayerId{2},
                                          .name = "weight",
                                          .shape = {64, 3, 0, 7},
                                          .dtype = "bfloat16",
                                          .elements = 9408,
                                          .bytes = 18816,
                                          .trainable = true});
  script.dictionary.parameters.push_back(
      {.address = 7, .owner = LayerId{0}, .name = "scale", .dtype = "float32", .buffer = true});
  const ReadBack back = read(write(script));
  ASSERT_EQ(back.dictionary.layers.size(), script.dictionary.layers.size());
  for (std::size_t i = 0; i < back.dictionary.layers.size(); ++i) {
    const LayerDef& got = back.dictionary.layers[i];
    const LayerDef& put = script.dictionary.layers[i];
    EXPECT_EQ(got.path, put.path);
    EXPECT_EQ(got.name, put.name);
    EXPECT_EQ(got.type, put.type);
    EXPECT_EQ(got.parent, put.parent);
    EXPECT_EQ(got.registered, put.registered);
    EXPECT_EQ(got.shared_with, put.shared_with);
    EXPECT_EQ(got.kernel_size, put.kernel_size);
  }
  EXPECT_EQ(back.dictionary.parameters, script.dictionary.parameters);
}

TEST(RoundTrip, GivesTheRunAndTheClosingRecordAgain) {
  Script script({""});
  script.thread().on(1).enter(2, "").leave(3).step(4, 0);
  const ReadBack back = read(write(script));
  ASSERT_TRUE(back.summary);
  const RunInfo& run = back.summary->run;
  EXPECT_EQ(run.layertrace_version, "0.1.0");
  EXPECT_EQ(run.format_version, kFormatVersion);
  EXPECT_EQ(run.torch_version, "2.15.0");
  EXPECT_EQ(run.host, "host");
  EXPECT_EQ(run.cpu_count, 2U);
  EXPECT_EQ(run.pid, 4711U);
  EXPECT_EQ(run.program, "trainer");
  EXPECT_EQ(run.name, "wide");
  EXPECT_EQ(run.command, "trainer --lr 1");
  EXPECT_EQ(run.commit, "0a1b");
  EXPECT_EQ(run.python_version, "3.11.7");
  EXPECT_EQ(run.created, "2026-01-01T00:00:00Z");
  EXPECT_TRUE(run.ops);
  EXPECT_EQ(run.simulated, "simulated H100-class GPU");
  const Health& health = back.summary->health;
  EXPECT_EQ(health.emitted, 12U);
  EXPECT_EQ(health.recorded, 10U);
  EXPECT_EQ(health.dropped, 2U);
  EXPECT_EQ(health.scope_cost_ns, 50.25);
  EXPECT_EQ(health.op_cost_ns, 101.5);
  EXPECT_EQ(health.writer_cpu_ns, 1234U);
  EXPECT_EQ(health.tracing_share, 0.0625);
  EXPECT_EQ(health.notes, (std::vector<std::string>{"a note", "another"}));
  EXPECT_EQ(back.summary->start_ns, 1U);
  EXPECT_EQ(back.summary->end_ns, kEnd);
}

// The profile of a file is the one that the program had, to the last key.
TEST(RoundTrip, GivesTheSameProfile) {
  Script script({"", "a", "a.b", "(Loss)"});
  fill(script);
  Fold fold(script.dictionary);
  feed(script, fold, script.written.size(), kEnd);
  Profile live = fold.finish(kEnd);
  live.run = a_run();
  add_closing(live.health, a_health());

  const File file(write(script));
  const auto loaded = load(file.path());
  ASSERT_TRUE(loaded) << loaded.error().message();
  EXPECT_EQ(layers_json(*loaded), layers_json(live));
  EXPECT_EQ(tree(*loaded), tree(live));
}

TEST(RoundTrip, KeepsWhatTheDeviceCanDo) {
  DeviceInfo device;
  device.name = "CPU, 2 threads";
  device.origin = "measured";
  device.flops_per_s[1] = 123'456'789'012.5;
  device.flops_per_s[0] = 61'728'394'506.25;
  device.bytes_per_s = 12'345'678'901.5;
  device.source = "AVX2, 30 ms";
  const Script script({""});
  Memory out;
  const auto writer = TraceWriter::make(script.dictionary, out, a_run());
  writer->describe_device(device);
  writer->close(a_health(), kEnd);
  EXPECT_EQ(read(out.bytes).summary->device, device);
  const auto loaded = load(File(out.bytes).path());
  ASSERT_TRUE(loaded) << loaded.error().message();
  EXPECT_EQ(loaded->device, device);
}

TEST(RoundTrip, KeepsWhatTheOptimizersStateTakes) {
  const Script script({""});
  for (const std::optional<double> bytes : {std::optional<double>(), std::optional<double>(4096)}) {
    Memory out;
    const auto writer = TraceWriter::make(script.dictionary, out, a_run());
    writer->describe_optimizers(bytes);
    writer->close(a_health(), kEnd);
    const auto loaded = load(File(out.bytes).path());
    ASSERT_TRUE(loaded) << loaded.error().message();
    EXPECT_EQ(loaded->optimizer_state_bytes, bytes);
  }
}

MetricValue a_metric(const std::string& key, double value) {
  return {{.key = key,
           .name = "A metric",
           .description = "Of a test.",
           .unit = "widgets",
           .shown_in = "crates",
           .scales = {{"crates", 100}},
           .comparison = MetricComparison::kReciprocal,
           .better = Better::kHigh},
          value};
}

TEST(RoundTrip, KeepsMetrics) {
  Script script({""});
  script.thread().on(1).enter(2, "").leave(3);
  const std::vector<MetricValue> expected = {a_metric("layertrace", 2.5), a_metric("later", 3)};
  Memory out;
  const auto writer = TraceWriter::make(script.dictionary, out, a_run());
  writer->metric(1, a_metric("layertrace", 1));  // before the trace has begun
  feed(script, *writer, script.written.size(), kEnd);
  writer->metric(4, a_metric("layertrace", 2.5));
  writer->close(a_health(), kEnd);
  append_metric(out, kEnd, a_metric("later", 3));
  const File file(out.bytes);
  const auto loaded = load(file.path());
  ASSERT_TRUE(loaded) << loaded.error().message();
  EXPECT_EQ(loaded->metrics, expected);
  EXPECT_FALSE(loaded->health.cut);
  EXPECT_EQ(loaded->run.program, a_run().program) << "no metric is taken for the header";
  const auto told = info(file.path());
  ASSERT_TRUE(told) << told.error().message();
  EXPECT_EQ(told->metrics, expected);
}

// A file that was cut does not tell; a table may know.
TEST(RoundTrip, FindsADeviceByItsName) {
  Script script({""});
  script.thread().on(1).enter(2, "").leave(3);
  RunInfo run = a_run();
  run.device = "NVIDIA A100-SXM4-80GB";
  const auto loaded = load(File(write(script, /*closed=*/false, run)).path());
  ASSERT_TRUE(loaded) << loaded.error().message();
  EXPECT_EQ(loaded->device.origin, "published");
}

TEST(RoundTrip, KeepsNamesByteForByte) {
  const std::string hostile[] = {
      "blöcke-Ω",
      "line\nbreak",
      "quote\"and\\backslash",
      std::string("bytes \xff\xfe\x80"),
      std::string(10000, 'x'),
      " ",
      "<script>",
      "\t",
  };
  Script script({""});
  for (const std::string& name : hostile) script.add_layer(name);
  ThreadScript& t = script.thread();
  t.on(1).enter(2, "");
  std::uint64_t at = 10;
  for (const std::string& name : hostile) {
    t.enter(at, name).op(at + 1, at + 2, name).leave(at + 3);
    at += 10;
  }
  t.region(at, hostile[1]).end_region(at + 1).leave(at + 2).step(at + 3, 0);
  const SpanLog written = resolve(script);
  EXPECT_EQ(read(write(script)).stream, written.stream());
}

TEST(RoundTrip, CountsWhatATraceHolds) {
  Script script({"", "a", "a.b", "(Loss)"});
  fill(script);
  const Bytes bytes = write(script);
  const File file(bytes);
  const auto trace = info(file.path());
  ASSERT_TRUE(trace) << trace.error().message();
  EXPECT_EQ(trace->layers, 4U);
  EXPECT_EQ(trace->steps, 2U);
  EXPECT_EQ(trace->scopes, 8U);
  EXPECT_EQ(trace->nodes, 7U);
  EXPECT_EQ(trace->activities, 10U);
  EXPECT_EQ(trace->threads.size(), 2U);
  EXPECT_EQ(trace->threads[1].scopes, 1U);
  EXPECT_EQ(trace->threads[1].activities, 3U);
  EXPECT_EQ(trace->file_bytes, bytes.size());
  EXPECT_FALSE(trace->cut);
}

TEST(Size, ASliceWithPathAndFlowTakesAtMost56Bytes) {
  Script script(
      {"", "encoder", "encoder.layers", "encoder.layers.0", "encoder.layers.0.attention"});
  ThreadScript& t = script.thread();
  constexpr std::uint64_t kSlices = 20'000;
  t.on(1).enter(2, "");
  std::uint64_t at = 1000;
  for (std::uint64_t i = 0; i < kSlices; ++i) {
    t.enter(at, "encoder.layers.0.attention").leave(at + 20'000);
    at += 25'000;
  }
  t.leave(at);
  const Bytes bytes = write(script);
  EXPECT_LE(static_cast<double>(bytes.size()) / kSlices, 56.0);
}

}  // namespace
}  // namespace layertrace::test
