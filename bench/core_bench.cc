// What each stage from a record to a result costs, without Torch and without a session.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <layertrace/trace.h>

#include "attribute/fold.h"
#include "attribute/resolver.h"
#include "base/byte_sink.h"
#include "base/clock.h"
#include "base/output_file.h"
#include "capture/recording.h"
#include "made_up_run.h"
#include "perfetto/trace_writer.h"
#include "record/thread_buffer.h"
#include "session/pipeline.h"

namespace layertrace {
namespace {

constexpr int kSteps = 400;
constexpr int kModuleCalls = 200'000;

class CountingSink final : public ByteSink {
 public:
  void write(std::span<const std::uint8_t> bytes) override { bytes_ += bytes.size(); }
  std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  std::uint64_t bytes_ = 0;
};

// Drops every span: what is left is attribution alone.
class NoSink final : public SpanSink {
 public:
  void open_lane(Lane /*lane*/, std::uint64_t /*tid*/, const std::string& /*name*/) override {}
  void begin(Lane /*lane*/, const SpanBegin& span) override { benchmark::DoNotOptimize(&span); }
  void end(Lane /*lane*/, Track /*track*/, std::uint64_t /*ns*/, EndedBy /*by*/) override {}
  void window(Lane /*lane*/, std::uint64_t /*ns*/, bool /*on*/, std::uint64_t /*step*/) override {}
  void step(Lane /*lane*/, std::uint64_t /*ns*/, std::uint64_t /*index*/) override {}
  void gap(Lane /*lane*/, std::uint64_t /*ns*/, std::uint64_t /*dropped*/) override {}
};

const MadeUpRun& run() {
  static const MadeUpRun kRun;
  return kRun;
}
const std::vector<Record>& made_up_records() {
  static const std::vector<Record> kRecords = run().records(kSteps);
  return kRecords;
}
const SpanLog& made_up_spans() {
  static const SpanLog kSpans = run().spans(kSteps);
  return kSpans;
}

void set_items(benchmark::State& state, std::uint64_t items_per_iteration) {
  state.SetItemsProcessed(static_cast<std::int64_t>(items_per_iteration) * state.iterations());
}

// ---- Recording ----

// A begin and its end, as hooks append them: two records, with their clock readings. What a drain
// would do meanwhile is done in place, once for each chunk.
void append_pair(benchmark::State& state) {
  static ChunkPool pool(64);
  ThreadBuffer buffer(pool, 0, 0, "bench");
  std::uint64_t unread = 0;
  for (auto _ : state) {
    buffer.begin({clock_ticks(), 0, 0, 1, RecordKind::kScopeBegin, 0, 0});
    buffer.end({clock_ticks(), 0, 0, 0, RecordKind::kScopeEnd, 0, 0});
    unread += 2;
    if (unread >= Chunk::kCapacity) {
      buffer.consume(unread);
      unread = 0;
    }
  }
}
BENCHMARK(append_pair)->Threads(1)->Threads(2);

// ---- From records to results ----

void resolve(benchmark::State& state) {
  for (auto _ : state) {
    NoSink sink;
    Resolver resolver(run().dictionary(), sink, TickScale(), std::size_t{1} << 16);
    resolver.open_lane(0, 1, 1, "main");
    feed(resolver, made_up_records());
    resolver.finish(made_up_records().back().ticks);
  }
  set_items(state, made_up_records().size());
}
BENCHMARK(resolve)->Unit(benchmark::kMillisecond);

void resolve_and_fold(benchmark::State& state) {
  for (auto _ : state) {
    Fold fold(run().dictionary());
    Resolver resolver(run().dictionary(), fold, TickScale(), std::size_t{1} << 16);
    resolver.open_lane(0, 1, 1, "main");
    feed(resolver, made_up_records());
    resolver.finish(made_up_records().back().ticks);
    benchmark::DoNotOptimize(fold.finish(made_up_records().back().ticks));
  }
  set_items(state, made_up_records().size());
}
BENCHMARK(resolve_and_fold)->Unit(benchmark::kMillisecond);

void write_spans(benchmark::State& state, const SpanLog& spans) {
  std::uint64_t bytes = 0;
  for (auto _ : state) {
    CountingSink out;
    const auto writer = TraceWriter::make(run().dictionary(), out, RunInfo());
    spans.replay(*writer);
    writer->close(Health(), 1'000'000'000);
    bytes = out.bytes();
  }
  set_items(state, spans.spans());
  state.counters["bytes"] = static_cast<double>(bytes) / static_cast<double>(spans.spans());
}

// Every slice with a path and a flow: the largest ones.
void write_module_calls(benchmark::State& state) {
  static const SpanLog kCalls = run().module_calls(kModuleCalls);
  write_spans(state, kCalls);
}
BENCHMARK(write_module_calls)->Unit(benchmark::kMillisecond);

// The mixture of a training step: modules, autograd nodes, operators.
void write_steps(benchmark::State& state) { write_spans(state, made_up_spans()); }
BENCHMARK(write_steps)->Unit(benchmark::kMillisecond);

// ---- Reading back ----

class TemporaryTrace {
 public:
  explicit TemporaryTrace(const SpanLog& spans) {
    const int fd = mkstemp(path_.data());
    if (fd >= 0) close(fd);
    auto file = OutputFile::create(path_, 0);
    if (!file) return;
    const auto writer = TraceWriter::make(run().dictionary(), **file, RunInfo());
    spans.replay(*writer);
    writer->close(Health(), made_up_records().back().ticks);
    written_ = static_cast<bool>((*file)->commit());
  }
  ~TemporaryTrace() { std::remove(path_.c_str()); }
  TemporaryTrace(const TemporaryTrace&) = delete;
  TemporaryTrace& operator=(const TemporaryTrace&) = delete;

  bool written() const noexcept { return written_; }
  const std::string& path() const noexcept { return path_; }

 private:
  std::string path_ = "/tmp/layertrace-bench-XXXXXX";
  bool written_ = false;
};

void load_trace(benchmark::State& state, const SpanLog& spans) {
  const TemporaryTrace trace(spans);
  if (!trace.written()) return state.SkipWithError("cannot write a trace to /tmp");
  for (auto _ : state) {
    auto profile = load(trace.path());
    if (!profile) return state.SkipWithError(profile.error().message().c_str());
    benchmark::DoNotOptimize(*profile);
  }
  set_items(state, spans.spans());
}

void load_module_calls(benchmark::State& state) {
  static const SpanLog kCalls = run().module_calls(kModuleCalls);
  load_trace(state, kCalls);
}
BENCHMARK(load_module_calls)->Unit(benchmark::kMillisecond);

void load_steps(benchmark::State& state) { load_trace(state, made_up_spans()); }
BENCHMARK(load_steps)->Unit(benchmark::kMillisecond);

// ---- All of it ----

// A recording as a session leaves it when nothing has been drained yet.
std::shared_ptr<Recording> undrained() {
  auto recording =
      std::make_shared<Recording>(std::size_t{1} << 12, [] { return std::uint64_t{1}; });
  for (const LayerDef& layer : run().dictionary().layers) recording->definitions().add_layer(layer);
  for (const ParameterDef& parameter : run().dictionary().parameters) {
    recording->definitions().add_parameter(parameter);
  }
  std::vector<std::uint32_t> names;  // as the process numbers them
  for (const std::string& name : run().dictionary().names) {
    names.push_back(index(NameTable::instance().intern(name)));
  }
  const auto buffer = recording->add_thread();
  for (Record record : made_up_records()) {
    if (record.kind == RecordKind::kStep || record.kind == RecordKind::kWindow) {
      buffer->mark(record);
    } else if (is_begin(record.kind)) {
      if (record.kind != RecordKind::kScopeBegin) record.id = names[record.id];
      buffer->begin(record);
    } else {
      buffer->end(record);
    }
  }
  return recording;
}

// Everything that the writer thread does: drain, attribution, profile and trace.
void pipeline(benchmark::State& state) {
  for (auto _ : state) {
    state.PauseTiming();
    CountingSink out;
    Pipeline pipeline(undrained(), out, RunInfo(), TickScale(), std::size_t{1} << 16);
    state.ResumeTiming();
    const Profile profile = pipeline.finish(made_up_records().back().ticks, Health());
    if (profile.health.recorded != made_up_records().size()) {
      return state.SkipWithError("records are missing");
    }
  }
  set_items(state, made_up_spans().spans());
}
BENCHMARK(pipeline)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace layertrace
