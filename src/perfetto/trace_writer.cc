#include "perfetto/trace_writer.h"

#include <perfetto.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "perfetto/counted_tracks.h"
#include "perfetto/definition_events.h"
#include "perfetto/device_tracks.h"
#include "perfetto/format.h"
#include "perfetto/lane_sequences.h"
#include "perfetto/open_slices.h"
#include "perfetto/packet_block.h"
#include "perfetto/sequence.h"
#include "perfetto/slice_event.h"
#include "perfetto/slice_strings.h"
#include "perfetto/step_track.h"
#include "perfetto/trace_head.h"

namespace layertrace {
namespace {

using perfetto::protos::pbzero::TrackEvent;

void put_metric(PacketBlock& packets, TraceHead& head, std::uint64_t ns,
                const MetricValue& metric) {
  packets.describe_track(format::kMetricTrack, format::kProcessTrack, "metrics");
  // Never the bare key: readers know the run's own instants by their names.
  write_metric(*head.instant(ns, format::kMetricTrack, "metric: " + metric.info.key), metric);
}

class Writer final : public TraceWriter {
 public:
  Writer(const Dictionary& dictionary, ByteSink& out, RunInfo run)
      : dictionary_(dictionary),
        packets_(out),
        head_(packets_, dictionary, std::move(run)),
        lanes_(packets_, head_),
        steps_(packets_, dictionary, lanes_),
        counted_tracks_(packets_, dictionary),
        device_tracks_(packets_, dictionary) {}

  void open_lane(Lane lane, std::uint64_t tid, const std::string& name) override;
  void close_lane(Lane lane) override;
  void begin(Lane lane, const SpanBegin& span) override;
  void end(Lane lane, Track track, std::uint64_t end_ns, EndedBy by) override;
  void window(Lane lane, std::uint64_t ns, bool on, std::uint64_t step) override {
    begin_stretch(ns);
    steps_.window(lane, ns, on, step);
  }
  void step(Lane lane, std::uint64_t ns, std::uint64_t index) override {
    begin_stretch(ns);
    steps_.step(lane, ns, index);
  }
  void gap(Lane lane, std::uint64_t ns, std::uint64_t dropped) override;
  void amounts(Lane lane, const AmountsSpan& span) override;
  void shapes(Lane lane, const ShapesSpan& span) override;
  void counting(Lane lane, const CountingSpan& span) override;
  void memory(Lane lane, const MemorySpan& span) override;
  void use_device(const std::string& name) override { head_.use_device(name); }
  void device(const DeviceSpan& span) override;
  void launch(const LaunchSpan& span) override;
  void event_pair(const EventSpan& span) override;
  void counter(const CounterSpan& sample) override;
  void clocks(const ClockReadings& now) override { head_.clocks(now); }
  void flush() override { packets_.flush(); }
  void describe_device(const DeviceInfo& device) override { device_info_ = device; }
  void describe_optimizers(std::optional<double> state_bytes) override {
    optimizer_state_bytes_ = state_bytes;
  }
  void metric(std::uint64_t ns, const MetricValue& metric) override;
  void close(const Health& health, std::uint64_t end_ns) override;

 private:
  // Inlined into end(), it would make that slower for all other slices.
  [[gnu::noinline]] void end_with_more(Lane lane, Sequence& sequence, const OpenSlice& ended,
                                       std::uint64_t end_ns, EndedBy by);
  bool may_be_counted_at_end(const OpenSlices& open, const OpenSlice& ended) const;
  void write_amounts(Lane lane);
  void begin_stretch(std::uint64_t ns);
  void write_metrics(std::uint64_t ns);

  const Dictionary& dictionary_;
  DeviceInfo device_info_;
  std::optional<double> optimizer_state_bytes_;
  PacketBlock packets_;
  TraceHead head_;
  LaneSequences lanes_;
  StepTrack steps_;
  CountedTracks counted_tracks_;
  DeviceTracks device_tracks_;
  std::vector<OpenSlices> open_;      // by lane
  std::vector<MetricValue> metrics_;  // on their way
  std::uint64_t stretch_ns_ = 0;      // where the last step, pause or stretch that was told begins
};

// ---- Lanes ----

void Writer::open_lane(Lane lane, std::uint64_t tid, const std::string& name) {
  if (open_.size() < std::size_t{lane} + 1) open_.resize(std::size_t{lane} + 1);
  lanes_.open_lane(lane);
  device_tracks_.know_thread(tid, format::thread_track(lane));
  head_.describe_lane(lane, tid, name);
}

void Writer::close_lane(Lane lane) {
  write_amounts(lane);
  lanes_.close_lane(lane);
  counted_tracks_.close_lane(lane);
}

// ---- Spans ----

std::uint32_t event_name(SliceStrings& strings, const SpanBegin& span) {
  if (span.name != kNoName) return strings.name(span.name);
  if (span.layer != kNoLayer) return strings.name(span.layer);
  return strings.name(kLossName, "loss");
}

void Writer::begin(Lane lane, const SpanBegin& span) {
  // Operators after the last step() do not make another step.
  if (span.kind != SpanKind::kActivity) steps_.begin_if_waiting();
  OpenSlices& open = open_[lane];
  if (open.has_amounts()) [[unlikely]]
    write_amounts(lane);
  open.begin(span);
  Sequence& sequence = lanes_.sequence(lane, track_of(span.kind), span.start_ns);
  head_.define_new_layers(span.start_ns);
  SliceStrings strings(packets_, dictionary_, sequence);
  const std::uint32_t name = event_name(strings, span);
  const std::uint32_t category = strings.category(span.phase);
  const Owner owner = strings.owner(span.layer, span.cause);

  SliceEvent event = lanes_.slice(sequence, span.start_ns, TrackEvent::TYPE_SLICE_BEGIN);
  event.add_category_iid(category);
  event.set_name_iid(name);
  owner.annotate(event);
  if (span.sequence != 0) event.annotate_uint(annotation::kSequence, span.sequence - 1);
  if (span.accumulates) event.annotate_true(annotation::kAccumulates);
  if (span.kind == SpanKind::kRegion) event.annotate_true(annotation::kRegion);
  if (span.call != 0) event.add_flow_id(span.call);
  packets_.slice_done(event.finish());
}

void Writer::end(Lane lane, Track track, std::uint64_t end_ns, EndedBy by) {
  Sequence& sequence = lanes_.sequence(lane, track, end_ns);
  OpenSlices& open = open_[lane];
  if (by == EndedBy::kExit && !open.has_more(track)) [[likely]] {
    SliceEvent event = lanes_.slice(sequence, end_ns, TrackEvent::TYPE_SLICE_END);
    packets_.slice_done(event.finish());
  } else {
    end_with_more(lane, sequence, open.innermost(track), end_ns, by);
  }
  open.end(track);
}

// What there is to tell of a slice at its end. Perfetto adds it to what its begin told.
void Writer::end_with_more(Lane lane, Sequence& sequence, const OpenSlice& ended,
                           std::uint64_t end_ns, EndedBy by) {
  OpenSlices& open = open_[lane];
  std::optional<AmountsSpan> counted;
  if (open.has_amounts()) {
    if (may_be_counted_at_end(open, ended)) {
      counted = open.release_amounts();
    } else {
      write_amounts(lane);
    }
  }
  SliceStrings strings(packets_, dictionary_, sequence);
  const std::uint32_t input = ended.input != kNoName ? strings.text(ended.input) : 0;
  const std::uint32_t output = ended.output != kNoName ? strings.text(ended.output) : 0;

  WideSliceEvent event(packets_.room_for<WideSliceEvent>(),
                       LaneSequences::advance(sequence, end_ns), sequence.id,
                       TrackEvent::TYPE_SLICE_END);
  if (by != EndedBy::kExit)
    event.annotate_text(annotation::kEndedBy, by == EndedBy::kException ? "exception" : "cut");
  if (input != 0) event.annotate_string(annotation::kInput, input);
  if (output != 0) event.annotate_string(annotation::kOutput, output);
  if (counted) CountedTracks::annotate(event, counted->amounts);
  if (ended.is_counted && ended.is_layers()) {
    event.annotate_uint(annotation::kFlops, ended.flops);
    event.annotate_uint(annotation::kMacs, ended.flops / 2);
  }
  packets_.slice_done(event.finish());
}

// ---- What is counted ----

// An operator's amounts, told at its end, have the time of that. No stretch may begin in between:
// they would be counted in another one.
bool Writer::may_be_counted_at_end(const OpenSlices& open, const OpenSlice& ended) const {
  return ended.kind == SpanKind::kActivity && open.has_amounts_of(ended) &&
         stretch_ns_ <= open.amounts_ns();
}

void Writer::amounts(Lane lane, const AmountsSpan& span) {
  OpenSlices& open = open_[lane];
  open.count(span);
  if (open.take(span)) return;
  write_amounts(lane);
  open.take(span);
}

// Those of an operator that has no slice, or whose slice goes on.
void Writer::write_amounts(Lane lane) {
  OpenSlices& open = open_[lane];
  if (!open.has_amounts()) return;
  const AmountsSpan span = open.release_amounts();
  head_.prepare(span.ns);
  counted_tracks_.amounts(lane, span);
}

void Writer::shapes(Lane lane, const ShapesSpan& span) {
  if (span.shapes == kNoName || open_[lane].take(span)) return;
  head_.prepare(span.ns);
  counted_tracks_.shapes(lane, span);
}

void Writer::counting(Lane lane, const CountingSpan& span) {
  begin_stretch(span.ns);
  head_.prepare(span.ns);
  counted_tracks_.counting(lane, span);
}

void Writer::memory(Lane lane, const MemorySpan& span) {
  head_.prepare(span.ns);
  counted_tracks_.memory(lane, span);
  device_tracks_.memory(span);
}

// Whatever was told before it is read before it.
void Writer::begin_stretch(std::uint64_t ns) {
  for (std::size_t lane = 0; lane < open_.size(); ++lane) write_amounts(static_cast<Lane>(lane));
  stretch_ns_ = std::max(stretch_ns_, ns);
}

// ---- Devices ----

void Writer::device(const DeviceSpan& span) {
  head_.prepare(span.launch_ns != 0 ? std::min(span.launch_ns, span.start_ns) : span.start_ns);
  device_tracks_.device(span);
}

void Writer::launch(const LaunchSpan& span) {
  head_.prepare(span.start_ns);
  device_tracks_.launch(span);
}

void Writer::event_pair(const EventSpan& span) {
  head_.prepare(std::min(span.host_ns, span.start_ns));
  device_tracks_.event_pair(span);
}

void Writer::counter(const CounterSpan& sample) {
  head_.prepare(sample.ns);
  device_tracks_.counter(sample);
}

// ---- Ends ----

void Writer::gap(Lane lane, std::uint64_t ns, std::uint64_t dropped) {
  Sequence& sequence = lanes_.sequence(lane, Track::kScopes, ns);
  SliceStrings strings(packets_, dictionary_, sequence);
  const std::uint32_t category = strings.category(kLostCategory);
  const std::uint32_t name = strings.name(kGapName, format::kGap);
  auto* event = lanes_.event(sequence, ns, TrackEvent::TYPE_INSTANT);
  event->add_category_iids(category);
  event->set_name_iid(name);
  auto* annotation = event->add_debug_annotations();
  annotation->set_name_iid(annotation::kDropped);
  annotation->set_uint_value(dropped);
}

// Where recording has not begun, the trace has not, either.
void Writer::metric(std::uint64_t ns, const MetricValue& metric) {
  metrics_.push_back(metric);
  if (head_.is_written()) write_metrics(ns);
}

void Writer::write_metrics(std::uint64_t ns) {
  for (const MetricValue& metric : metrics_) put_metric(packets_, head_, ns, metric);
  metrics_.clear();
}

void Writer::close(const Health& health, std::uint64_t end_ns) {
  head_.prepare(end_ns);
  write_metrics(end_ns);
  begin_stretch(end_ns);
  steps_.end_partial(end_ns);
  device_tracks_.finish();
  auto footer = head_.instant(end_ns, format::kRunTrack, format::kFooter);
  write_closing(*footer, health, end_ns);
  write_device(*footer, device_info_);
  write_optimizers(*footer, optimizer_state_bytes_);
  flush();
}

}  // namespace

std::unique_ptr<TraceWriter> TraceWriter::make(const Dictionary& dictionary, ByteSink& out,
                                               const RunInfo& run) {
  return std::make_unique<Writer>(dictionary, out, run);
}

void append_metric(ByteSink& out, std::uint64_t ns, const MetricValue& metric) {
  PacketBlock packets(out);
  const Dictionary nothing;
  TraceHead head(packets, nothing, {});
  put_metric(packets, head, ns, metric);
  packets.flush();
}

}  // namespace layertrace
