#include "perfetto/trace_writer.h"

#include <perfetto.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "perfetto/definition_events.h"
#include "perfetto/device_tracks.h"
#include "perfetto/format.h"
#include "perfetto/packet_block.h"
#include "perfetto/sequence.h"
#include "perfetto/slice_event.h"
#include "perfetto/slice_strings.h"

namespace layertrace {
namespace {

namespace pb = perfetto::protos::pbzero;

using perfetto::protos::pbzero::TrackEvent;

class Writer final : public TraceWriter {
 public:
  Writer(const Dictionary& dictionary, ByteSink& out, RunInfo run)
      : dictionary_(dictionary),
        run_(std::move(run)),
        packets_(out),
        device_tracks_(packets_, dictionary) {}

  void open_lane(Lane lane, std::uint64_t tid, const std::string& name) override;
  void close_lane(Lane lane) override {
    scopes_of(lane).forget_strings();
    activities_of(lane).forget_strings();
  }
  void begin(Lane lane, const SpanBegin& span) override;
  void end(Lane lane, Track track, std::uint64_t end_ns, EndedBy by) override;
  void window(Lane lane, std::uint64_t ns, bool on, std::uint64_t step) override;
  void step(Lane lane, std::uint64_t ns, std::uint64_t index) override;
  void gap(Lane lane, std::uint64_t ns, std::uint64_t dropped) override;
  void use_device(const std::string& name) override { run_.device = name; }
  void device(const DeviceSpan& span) override;
  void launch(const LaunchSpan& span) override;
  void event_pair(const EventSpan& span) override;
  void counter(const CounterSpan& sample) override;
  void clocks(const ClockReadings& now) override;
  void flush() override { packets_.flush(); }
  void close(const Health& health, std::uint64_t end_ns) override;

 private:
  Sequence& scopes_of(Lane lane) { return sequences_[2 * std::size_t{lane}]; }
  Sequence& activities_of(Lane lane) { return sequences_[2 * std::size_t{lane} + 1]; }

  void write_clocks(const ClockReadings& now);
  void write_head(std::uint64_t ns);
  void start_sequence(Sequence& sequence, std::uint64_t ns);
  void define_new_layers(std::uint64_t ns);
  void prepare(std::uint64_t ns);
  void describe_lane(Lane lane, std::uint64_t tid, const std::string& name);
  Sequence& sequence(Lane lane, Track track, std::uint64_t ns);
  static std::uint64_t advance(Sequence& sequence, std::uint64_t ns);
  pb::TracePacket* packet(Sequence& sequence, std::uint64_t ns);
  SliceEvent slice(Sequence& sequence, std::uint64_t ns, TrackEvent::Type type);
  TrackEvent* definition_instant(std::uint64_t ns, std::uint64_t track, std::string_view name);
  void begin_step();
  void end_partial_step(std::uint64_t ns);

  const Dictionary& dictionary_;
  RunInfo run_;
  PacketBlock packets_;
  bool has_head_ =
      false;  // written with the first packet that has a time: a trace begins where recording does
  std::optional<ClockReadings> first_clocks_;  // before the head
  struct PendingLane {
    Lane lane;
    std::uint64_t tid;
    std::string name;
  };
  std::vector<PendingLane> pending_lanes_;
  std::size_t layers_defined_ = 0;
  std::vector<Sequence> sequences_;  // two for each lane

  DeviceTracks device_tracks_;

  struct {
    bool waiting = false;  // a step begins, if anything comes before the recording pauses
    bool open = false;
    bool window = false;
    Lane lane = 0;
    std::uint64_t ns = 0;
    std::uint64_t index = 0;
  } step_;
};

void add_clock(pb::ClockSnapshot& snapshot, std::uint32_t id, std::uint64_t ns) {
  auto* clock = snapshot.add_clocks();
  clock->set_clock_id(id);
  clock->set_timestamp(ns);
}

// ---- Head and definitions ----

void Writer::clocks(const ClockReadings& now) {
  if (has_head_) return write_clocks(now);
  first_clocks_ = now;
}

void Writer::write_clocks(const ClockReadings& now) {
  auto* snapshot = packets_.add(format::kDefinitionSequence)->set_clock_snapshot();
  add_clock(*snapshot, format::kBoottimeClock, now.boottime_ns);
  add_clock(*snapshot, format::kMonotonicClock, now.monotonic_ns);
  add_clock(*snapshot, format::kMonotonicRawClock, now.monotonic_raw_ns);
  add_clock(*snapshot, format::kRealtimeClock, now.realtime_ns);
}

void Writer::write_head(std::uint64_t ns) {
  has_head_ = true;
  {
    auto* packet = packets_.add(format::kDefinitionSequence);
    packet->set_sequence_flags(pb::TracePacket::SEQ_INCREMENTAL_STATE_CLEARED);
    add_clock(*packet->set_clock_snapshot(), format::kBoottimeClock, ns);
  }
  if (first_clocks_) write_clocks(*first_clocks_);
  {
    auto* track = packets_.add(format::kDefinitionSequence)->set_track_descriptor();
    track->set_uuid(format::kProcessTrack);
    auto* process = track->set_process();
    process->set_pid(static_cast<std::int32_t>(run_.pid));
    process->set_process_name(run_.program);
  }
  packets_.describe_track(format::kStepTrack, format::kProcessTrack, "steps");
  packets_.describe_track(format::kLayerTrack, format::kProcessTrack, "layers");
  packets_.describe_track(format::kRunTrack, format::kProcessTrack, "layertrace");

  write_run(*definition_instant(ns, format::kRunTrack, format::kHeader), run_);
  for (const PendingLane& pending : pending_lanes_)
    describe_lane(pending.lane, pending.tid, pending.name);
  pending_lanes_.clear();
}

TrackEvent* Writer::definition_instant(std::uint64_t ns, std::uint64_t track,
                                       std::string_view name) {
  auto* packet = packets_.add(format::kDefinitionSequence);
  packet->set_timestamp(ns);
  auto* event = packet->set_track_event();
  event->set_type(TrackEvent::TYPE_INSTANT);
  event->set_track_uuid(track);
  event->set_name(name.data(), name.size());
  return event;
}

// Type and further facts, once for each layer; slices carry the path alone.
void Writer::define_new_layers(std::uint64_t ns) {
  if (layers_defined_ == dictionary_.layers.size()) return;
  // Just before their first use, each at a time of its own: instants of one time are drawn on top
  // of each other.
  std::uint64_t at_ns = ns - (dictionary_.layers.size() - layers_defined_);
  for (; layers_defined_ < dictionary_.layers.size(); ++layers_defined_) {
    const LayerDef& layer = dictionary_.layers[layers_defined_];
    auto* event = definition_instant(at_ns++, format::kLayerTrack, SliceStrings::label(layer));
    write_layer(*event, layer,
                layer.parent == kNoLayer ? nullptr : &dictionary_.layers[index(layer.parent)].path);
  }
}

void Writer::start_sequence(Sequence& sequence, std::uint64_t ns) {
  sequence.started = true;
  sequence.last_ns = ns;
  {
    auto* packet = packets_.add(sequence.id);
    packet->set_sequence_flags(pb::TracePacket::SEQ_INCREMENTAL_STATE_CLEARED);
    auto* snapshot = packet->set_clock_snapshot();
    auto* own = snapshot->add_clocks();
    own->set_clock_id(format::kIncrementalClock);
    own->set_timestamp(ns);
    own->set_is_incremental(true);
    add_clock(*snapshot, format::kBoottimeClock, ns);
  }
  auto* packet = packets_.add(sequence.id);
  auto* defaults = packet->set_trace_packet_defaults();
  defaults->set_timestamp_clock_id(format::kIncrementalClock);
  defaults->set_track_event_defaults()->set_track_uuid(sequence.track);
  tell_annotation_names(*packet, kHostAnnotations);
}

void Writer::open_lane(Lane lane, std::uint64_t tid, const std::string& name) {
  if (sequences_.size() < 2 * (std::size_t{lane} + 1))
    sequences_.resize(2 * (std::size_t{lane} + 1));
  const std::uint64_t thread_track = format::kFirstLaneTrack + 2 * std::uint64_t{lane};
  scopes_of(lane).id = format::scope_sequence(lane);
  scopes_of(lane).track = thread_track;
  activities_of(lane).id = format::activity_sequence(lane);
  activities_of(lane).track = thread_track + 1;
  device_tracks_.know_thread(tid, thread_track);
  if (has_head_) {
    describe_lane(lane, tid, name);
  } else {
    pending_lanes_.push_back({lane, tid, name});
  }
}

void Writer::describe_lane(Lane lane, std::uint64_t tid, const std::string& name) {
  const std::uint64_t thread_track = scopes_of(lane).track;
  {
    auto* packet = packets_.add(format::kDefinitionSequence);
    auto* track = packet->set_track_descriptor();
    track->set_uuid(thread_track);
    track->set_parent_uuid(format::kProcessTrack);
    auto* thread = track->set_thread();
    thread->set_pid(static_cast<std::int32_t>(run_.pid));
    thread->set_tid(static_cast<std::int32_t>(tid));
    thread->set_thread_name(name);
  }
  packets_.describe_track(thread_track + 1, thread_track, "ops");
}

// ---- Packets ----

// The lane's sequence, begun if this is its first packet.
Sequence& Writer::sequence(Lane lane, Track track, std::uint64_t ns) {
  if (!has_head_) [[unlikely]]
    write_head(ns);
  Sequence& sequence = track == Track::kActivities ? activities_of(lane) : scopes_of(lane);
  if (!sequence.started) [[unlikely]]
    start_sequence(sequence, ns);
  return sequence;
}

// Goes on to that time; returns how far it is. Clocks never run backwards here: attribution gives a
// lane's spans in time order, and a stray tick is held still.
std::uint64_t Writer::advance(Sequence& sequence, std::uint64_t ns) {
  const std::uint64_t at_ns = std::max(ns, sequence.last_ns);
  return at_ns - std::exchange(sequence.last_ns, at_ns);
}

pb::TracePacket* Writer::packet(Sequence& sequence, std::uint64_t ns) {
  auto* packet = packets_.add(sequence.id);
  packet->set_timestamp(advance(sequence, ns));
  return packet;
}

SliceEvent Writer::slice(Sequence& sequence, std::uint64_t ns, TrackEvent::Type type) {
  return {packets_.room_for<SliceEvent>(), advance(sequence, ns), sequence.id, type};
}

// ---- Spans ----

std::uint32_t event_name(SliceStrings& strings, const SpanBegin& span) {
  if (span.name != kNoName) return strings.name(span.name);
  if (span.layer != kNoLayer) return strings.name(span.layer);
  return strings.name(kLossName, "loss");
}

void Writer::begin(Lane lane, const SpanBegin& span) {
  // Operators after the last step() do not make another step.
  if (step_.waiting && span.kind != SpanKind::kActivity) begin_step();
  Sequence& sequence = this->sequence(lane, track_of(span.kind), span.start_ns);
  define_new_layers(span.start_ns);
  SliceStrings strings(packets_, dictionary_, sequence);
  const std::uint32_t name = event_name(strings, span);
  const std::uint32_t category = strings.category(span.phase);
  const Owner owner = strings.owner(span.layer, span.cause);

  SliceEvent event = slice(sequence, span.start_ns, TrackEvent::TYPE_SLICE_BEGIN);
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
  Sequence& sequence = this->sequence(lane, track, end_ns);
  if (by == EndedBy::kExit) [[likely]] {
    SliceEvent event = slice(sequence, end_ns, TrackEvent::TYPE_SLICE_END);
    packets_.slice_done(event.finish());
    return;
  }
  auto* event = packet(sequence, end_ns)->set_track_event();
  event->set_type(TrackEvent::TYPE_SLICE_END);
  auto* annotation = event->add_debug_annotations();
  annotation->set_name_iid(annotation::kEndedBy);
  annotation->set_string_value(by == EndedBy::kException ? "exception" : "cut");
}

// ---- Devices ----

// What is known of a trace before something that begins at this time.
void Writer::prepare(std::uint64_t ns) {
  if (!has_head_) write_head(ns);
  define_new_layers(ns);
}

void Writer::device(const DeviceSpan& span) {
  prepare(span.launch_ns != 0 ? std::min(span.launch_ns, span.start_ns) : span.start_ns);
  device_tracks_.device(span);
}

void Writer::launch(const LaunchSpan& span) {
  prepare(span.start_ns);
  device_tracks_.launch(span);
}

void Writer::event_pair(const EventSpan& span) {
  prepare(std::min(span.host_ns, span.start_ns));
  device_tracks_.event_pair(span);
}

void Writer::counter(const CounterSpan& sample) {
  prepare(sample.ns);
  device_tracks_.counter(sample);
}

// ---- Steps, pauses, gaps ----

void Writer::window(Lane lane, std::uint64_t ns, bool on, std::uint64_t step) {
  // Something of another lane may have come between a step's end and the pause, and begun the step
  // that is not recorded.
  end_partial_step(ns);
  if (on) {
    step_ = {.waiting = true, .open = false, .window = true, .lane = lane, .ns = ns, .index = step};
    begin_step();
    return;
  }
  step_.waiting = false;
  Sequence& sequence = this->sequence(lane, Track::kScopes, ns);
  SliceStrings strings(packets_, dictionary_, sequence);
  const std::uint32_t name = strings.name(kPauseName, format::kPause);
  auto* event = packet(sequence, ns)->set_track_event();
  event->set_type(TrackEvent::TYPE_INSTANT);
  event->set_track_uuid(format::kStepTrack);
  event->set_name_iid(name);
  auto* annotation = event->add_debug_annotations();
  annotation->set_name_iid(annotation::kWindow);
  annotation->set_uint_value(step);
}

void Writer::begin_step() {
  step_.waiting = false;
  step_.open = true;
  Sequence& sequence = this->sequence(step_.lane, Track::kScopes, step_.ns);
  SliceStrings strings(packets_, dictionary_, sequence);
  const std::uint32_t category = strings.category(format::kStepCategory);
  auto* event = packet(sequence, step_.ns)->set_track_event();
  event->set_type(TrackEvent::TYPE_SLICE_BEGIN);
  event->set_track_uuid(format::kStepTrack);
  event->add_category_iids(category);
  event->set_name("step " + std::to_string(step_.index));
  if (step_.window) {
    auto* annotation = event->add_debug_annotations();
    annotation->set_name_iid(annotation::kWindow);
    annotation->set_uint_value(step_.index);
  }
}

void Writer::end_partial_step(std::uint64_t ns) {
  if (!std::exchange(step_.open, false)) return;
  auto* event = packet(sequence(step_.lane, Track::kScopes, ns), ns)->set_track_event();
  event->set_type(TrackEvent::TYPE_SLICE_END);
  event->set_track_uuid(format::kStepTrack);
  auto* annotation = event->add_debug_annotations();
  annotation->set_name_iid(annotation::kPartial);
  annotation->set_bool_value(true);
}

void Writer::step(Lane lane, std::uint64_t ns, std::uint64_t index) {
  if (step_.waiting) begin_step();
  if (step_.open) {
    auto* event = packet(sequence(lane, Track::kScopes, ns), ns)->set_track_event();
    event->set_type(TrackEvent::TYPE_SLICE_END);
    event->set_track_uuid(format::kStepTrack);
    auto* annotation = event->add_debug_annotations();
    annotation->set_name_iid(annotation::kStep);
    annotation->set_uint_value(index);
  }
  step_ = {
      .waiting = true, .open = false, .window = false, .lane = lane, .ns = ns, .index = index + 1};
}

void Writer::gap(Lane lane, std::uint64_t ns, std::uint64_t dropped) {
  Sequence& sequence = this->sequence(lane, Track::kScopes, ns);
  SliceStrings strings(packets_, dictionary_, sequence);
  const std::uint32_t category = strings.category(kLostCategory);
  const std::uint32_t name = strings.name(kGapName, format::kGap);
  auto* event = packet(sequence, ns)->set_track_event();
  event->set_type(TrackEvent::TYPE_INSTANT);
  event->add_category_iids(category);
  event->set_name_iid(name);
  auto* annotation = event->add_debug_annotations();
  annotation->set_name_iid(annotation::kDropped);
  annotation->set_uint_value(dropped);
}

void Writer::close(const Health& health, std::uint64_t end_ns) {
  if (!has_head_) write_head(end_ns);
  define_new_layers(end_ns);
  end_partial_step(end_ns);
  device_tracks_.finish();
  write_closing(*definition_instant(end_ns, format::kRunTrack, format::kFooter), health, end_ns);
  flush();
}

}  // namespace

std::unique_ptr<TraceWriter> TraceWriter::make(const Dictionary& dictionary, ByteSink& out,
                                               const RunInfo& run) {
  return std::make_unique<Writer>(dictionary, out, run);
}

}  // namespace layertrace
