#include <layertrace/trace.h>

#include <utility>

#include "attribute/fold.h"
#include "perfetto/trace_reader.h"
#include "roofline/rates.h"

namespace layertrace {
namespace {

// Counts spans instead of folding them.
class Counter final : public SpanSink {
 public:
  explicit Counter(TraceInfo& info) : info_(info) {}

  void open_lane(Lane /*lane*/, std::uint64_t tid, const std::string& name) override {
    info_.threads.push_back({name, tid, 0, 0});
  }
  void begin(Lane lane, const SpanBegin& span) override {
    switch (span.kind) {
      case SpanKind::kScope:
        ++info_.scopes;
        ++info_.threads[lane].scopes;
        break;
      case SpanKind::kBackward:
        ++info_.backward_spans;
        break;
      case SpanKind::kNode:
        ++info_.nodes;
        break;
      case SpanKind::kActivity:
        ++info_.activities;
        ++info_.threads[lane].activities;
        break;
      case SpanKind::kRegion:
        break;
    }
  }
  void end(Lane /*lane*/, Track /*track*/, std::uint64_t /*end_ns*/, EndedBy /*by*/) override {}
  void window(Lane /*lane*/, std::uint64_t /*ns*/, bool /*on*/, std::uint64_t /*step*/) override {}
  void step(Lane /*lane*/, std::uint64_t /*ns*/, std::uint64_t /*index*/) override {
    ++info_.steps;
    info_.counted_steps += std::exchange(counts_, false) ? 1 : 0;
  }
  void amounts(Lane /*lane*/, const AmountsSpan& span) override {
    counts_ = true;
    info_.counted_operators += span.amounts.is_call ? 1 : 0;
    info_.uncounted_operators += span.amounts.is_uncounted ? 1 : 0;
    info_.flops += static_cast<double>(span.amounts.flops);
  }
  void memory(Lane /*lane*/, const MemorySpan& /*span*/) override { ++info_.memory_events; }
  void device(const DeviceSpan& span) override {
    ++(span.what.kind == DeviceKind::kKernel ? info_.kernels : info_.copies);
  }
  void launch(const LaunchSpan& span) override {
    info_.launches += span.kind == CallKind::kWait ? 0 : 1;
  }
  void gap(Lane /*lane*/, std::uint64_t /*ns*/, std::uint64_t /*dropped*/) override {}

 private:
  TraceInfo& info_;
  bool counts_ = false;  // in this step
};

}  // namespace

Result<Profile> load(const std::string& path) {
  Dictionary dictionary;
  Fold fold(dictionary);
  auto summary = read_trace(path, dictionary, fold);
  if (!summary) return summary.error();
  Profile profile = fold.finish(summary->end_ns);
  profile.run = std::move(summary->run);
  profile.optimizer_state_bytes = summary->optimizer_state_bytes;
  profile.metrics = std::move(summary->metrics);
  // A file that was cut, or is older, does not tell; a table may know.
  profile.device = summary->device.origin.empty() ? roofline::find_device_info(profile.run)
                                                  : std::move(summary->device);
  roofline::fill_rates(profile);
  add_closing(profile.health, summary->health);
  return profile;
}

Result<TraceInfo> info(const std::string& path) {
  Dictionary dictionary;
  TraceInfo info;
  Counter counter(info);
  auto summary = read_trace(path, dictionary, counter);
  if (!summary) return summary.error();
  info.run = std::move(summary->run);
  info.file_bytes = summary->file_bytes;
  info.packets = summary->packets;
  info.layers = dictionary.layers.size();
  info.start_ns = summary->start_ns;
  info.end_ns = summary->end_ns;
  info.cut = summary->health.cut;
  info.metrics = std::move(summary->metrics);
  info.device = summary->device.origin.empty() ? roofline::find_device_info(info.run)
                                               : std::move(summary->device);
  return info;
}

}  // namespace layertrace
