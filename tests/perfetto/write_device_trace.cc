// Writes the trace of a made-up training on a made-up GPU, with layertrace's own writer, for those
// that look at it from outside: Perfetto's protos and Perfetto UI.
//
//   write_device_trace FILE
//
// A model of two layers is trained for three steps. Each layer's operator makes one call, which
// launches one kernel on stream 7, twice as long; the optimizer launches a graph of two kernels
// that was captured earlier, the second of which begins before the first has ended. What devices
// did is told backwards, at the end of each step.
#include <algorithm>
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "attribute/span.h"
#include "base/clock.h"
#include "base/output_file.h"
#include "perfetto/trace_writer.h"

namespace layertrace {
namespace {

constexpr int kSteps = 3;
constexpr std::uint64_t kUs = 1'000;
constexpr std::uint32_t kMainThread = 4'711;
constexpr std::uint32_t kAutogradThread = 4'712;
constexpr std::uint32_t kStream = 7;
constexpr LayerId kRoot{0};

enum Name : std::uint32_t { kGemm, kAdam, kLinear, kLinearBackward, kLaunchKernel, kLaunchGraph };

Dictionary the_dictionary() {
  Dictionary dictionary;
  dictionary.layers = {{.path = "", .type = "Net"},
                       {.path = "a", .name = "a", .type = "Linear", .parent = kRoot},
                       {.path = "b", .name = "b", .type = "Linear", .parent = kRoot}};
  dictionary.names = {
      "gemm",           "multi_tensor_adam", "aten::linear", "LinearBackward0", "cudaLaunchKernel",
      "cudaGraphLaunch"};
  return dictionary;
}

// Plays the training into a writer, on a clock of its own.
class Training {
 public:
  Training(TraceWriter& writer, std::uint64_t start_ns) : writer_(writer), now_ns_(start_ns) {
    writer_.open_lane(0, kMainThread, "main");
    writer_.open_lane(1, kAutogradThread, "autograd");
  }

  std::uint64_t run() {
    writer_.window(0, now_ns_, true, 0);
    for (std::uint64_t step = 0; step < kSteps; ++step) {
      forward();
      backward();
      optimizer();
      tell_devices();
      pass(500);
      writer_.step(0, now_ns_, step);
    }
    return now_ns_;
  }

 private:
  void pass(std::uint64_t us) { now_ns_ += us * kUs; }

  void enter(Lane lane, LayerId layer, Phase phase) {
    SpanBegin begin;
    begin.start_ns = now_ns_;
    begin.kind = phase == Phase::kBackward ? SpanKind::kBackward : SpanKind::kScope;
    begin.phase = phase;
    begin.layer = layer;
    begin.call = call_of(layer);
    writer_.begin(lane, begin);
    pass(5);
  }
  void leave(Lane lane) {
    pass(5);
    writer_.end(lane, Track::kScopes, now_ns_, EndedBy::kExit);
  }

  std::uint64_t call_of(LayerId layer) const {
    return (std::uint64_t{1} << 40) + 10 * passes_ + index(layer) + 1;
  }

  // An operator that makes one call.
  void op(Lane lane, LayerId layer, Phase phase) {
    SpanBegin begin;
    begin.start_ns = now_ns_;
    begin.kind = SpanKind::kActivity;
    begin.phase = phase;
    begin.layer = layer;
    begin.name = NameId{phase == Phase::kBackward ? kLinearBackward : kLinear};
    writer_.begin(lane, begin);
    pass(2);
    launch(lane == 0 ? kMainThread : kAutogradThread, layer, phase, kLaunchKernel);
    DeviceSpan kernel = a_kernel(kGemm, 80);
    kernel.call = call_of(layer);
    activities_.push_back(kernel);
    pass(20);
    count(lane, begin);
    writer_.end(lane, Track::kActivities, now_ns_, EndedBy::kExit);
  }

  // It took a block of memory and computed; what called it, and has no slice, some more.
  void count(Lane lane, const SpanBegin& op) {
    AmountsSpan span;
    span.ns = now_ns_;
    span.phase = op.phase;
    span.layer = op.layer;
    writer_.memory(lane, {.ns = now_ns_,
                          .phase = op.phase,
                          .layer = op.layer,
                          .address = 0x1000 + passes_,
                          .bytes = 512,
                          .is_freed = op.phase == Phase::kBackward});
    span.amounts = {.op = NameId{kGemm}, .aux_flops = 7};
    writer_.amounts(lane, span);
    span.amounts = {.op = op.name, .flops = kFlops, .bytes = 96, .format = 1};
    writer_.amounts(lane, span);
  }

  void launch(std::uint32_t tid, LayerId layer, Phase phase, Name name) {
    ++correlation_;
    calls_.push_back({.start_ns = now_ns_,
                      .end_ns = now_ns_ + 6 * kUs,
                      .tid = tid,
                      .correlation = correlation_,
                      .name = NameId{name},
                      .kind = CallKind::kAsk,
                      .phase = phase,
                      .layer = layer});
  }

  // Of the last call, when the stream has come to it.
  DeviceSpan a_kernel(Name name, std::uint64_t us) {
    const LaunchSpan& asked = calls_.back();
    DeviceSpan span;
    span.start_ns = std::max(free_ns_, asked.end_ns) + kUs;
    span.end_ns = free_ns_ = span.start_ns + us * kUs;
    span.launch_ns = asked.start_ns;
    span.launch_tid = asked.tid;
    span.phase = asked.phase;
    span.layer = asked.layer;
    span.what.correlation = asked.correlation;
    span.what.name = NameId{name};
    span.what.stream = kStream;
    span.what.context = 1;
    span.what.registers = 64;
    span.what.occupancy = 21.F / 64;
    span.what.grid = {128, 2, 1};
    span.what.block = {256, 1, 1};
    return span;
  }

  void forward() {
    ++passes_;
    writer_.counting(0, {now_ns_, 42, passes_ == 1});
    enter(0, kRoot, Phase::kForward);
    for (const LayerId layer : {LayerId{1}, LayerId{2}}) {
      enter(0, layer, Phase::kForward);
      writer_.shapes(0, {now_ns_, layer, NameId{kGemm}, false});
      op(0, layer, Phase::kForward);
      writer_.shapes(0, {now_ns_, layer, NameId{kAdam}, true});
      leave(0);
    }
    leave(0);
    writer_.counter({.ns = now_ns_, .value = 3U << 20});
    writer_.counter({.ns = now_ns_, .value = 8U << 20, .counter = DeviceCounter::kMemoryReserved});
  }

  void backward() {
    enter(1, kRoot, Phase::kBackward);
    for (const LayerId layer : {LayerId{2}, LayerId{1}}) {
      enter(1, layer, Phase::kBackward);
      op(1, layer, Phase::kBackward);
      leave(1);
    }
    leave(1);
    writer_.counter({.ns = now_ns_, .value = 1U << 20});
  }

  void optimizer() {
    launch(kMainThread, kRoot, Phase::kOptimizer, kLaunchGraph);
    for (int i = 0; i < 2; ++i) {
      DeviceSpan kernel = a_kernel(kAdam, 30);
      kernel.cause = Cause::kEarlierGraph;
      kernel.what.graph_node = 0x100 + static_cast<std::uint64_t>(i);
      free_ns_ -= 10 * kUs;
      activities_.push_back(kernel);
    }
    pass(30);
  }

  // Forward and backward of the layers took as long as their kernels.
  void tell_devices() {
    for (const LaunchSpan& call : calls_) writer_.launch(call);
    std::reverse(activities_.begin(), activities_.end());
    for (const DeviceSpan& span : activities_) {
      writer_.device(span);
      if (span.cause != Cause::kNone) continue;
      writer_.event_pair({.start_ns = span.start_ns,
                          .end_ns = span.end_ns,
                          .host_ns = span.launch_ns,
                          .phase = span.phase,
                          .layer = span.layer,
                          .device = 0,
                          .stream = kStream,
                          .depth = 1});
    }
    calls_.clear();
    activities_.clear();
  }

  static constexpr std::uint64_t kFlops = (std::uint64_t{1} << 63) + 5;

  TraceWriter& writer_;
  std::uint64_t now_ns_;
  std::uint64_t free_ns_ = 0;  // when the stream is
  std::uint64_t passes_ = 0;
  std::uint32_t correlation_ = 0;
  std::vector<LaunchSpan> calls_;
  std::vector<DeviceSpan> activities_;
};

int write(const std::string& path) {
  auto file = OutputFile::create(path, 0);
  if (!file) {
    std::cerr << file.error().message() << '\n';
    return 1;
  }
  const Dictionary dictionary = the_dictionary();
  RunInfo run;
  run.pid = 4'242;
  run.program = "made-up training";
  const auto writer = TraceWriter::make(dictionary, **file, run);
  const std::uint64_t start_ns = boottime_ns();
  if (const auto clocks = read_clocks()) writer->clocks(*clocks);
  const std::uint64_t end_ns = Training(*writer, start_ns).run() + kUs;
  if (const auto clocks = read_clocks()) writer->clocks(*clocks);
  writer->close(Health(), end_ns);
  return (*file)->commit() ? 0 : 1;
}

}  // namespace
}  // namespace layertrace

int main(int count, char** words) {
  if (count != 2) {
    std::cerr << "usage: write_device_trace FILE\n";
    return 2;
  }
  return layertrace::write(words[1]);
}
