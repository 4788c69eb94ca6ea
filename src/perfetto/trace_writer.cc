#include "perfetto/trace_writer.h"

#include <perfetto.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "perfetto/definition_events.h"
#include "perfetto/format.h"
#include "perfetto/sequence.h"
#include "perfetto/slice_event.h"

namespace layertrace {
namespace {

namespace pb = perfetto::protos::pbzero;

using perfetto::protos::pbzero::TrackEvent;

class Writer final : public TraceWriter {
 public:
  Writer(const Dictionary& dictionary, ByteSink& out, RunInfo run)
      : dictionary_(dictionary), out_(out), run_(std::move(run)), block_(kBlockBytes) {}

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
  void flush() override;
  void close(const Health& health, std::uint64_t end_ns) override;

 private:
  Sequence& scopes_of(Lane lane) { return sequences_[2 * std::size_t{lane}]; }
  Sequence& activities_of(Lane lane) { return sequences_[2 * std::size_t{lane} + 1]; }

  static constexpr std::size_t kBlockBytes = std::size_t{256} << 10;
  static constexpr unsigned kPacketsPerFlush = 8192;

  void write_head(std::uint64_t ns);
  void describe_track(std::uint64_t uuid, std::uint64_t parent, std::string_view name);
  void start_sequence(Sequence& sequence, std::uint64_t ns);
  void define_new_layers(std::uint64_t ns);
  void describe_lane(Lane lane, std::uint64_t tid, const std::string& name);
  pb::TracePacket* add_packet();
  Sequence& sequence(Lane lane, Track track, std::uint64_t ns);
  static std::uint64_t advance(Sequence& sequence, std::uint64_t ns);
  pb::TracePacket* packet(Sequence& sequence, std::uint64_t ns);
  SliceEvent slice(Sequence& sequence, std::uint64_t ns, TrackEvent::Type type);
  void slice_done(SliceEvent& slice);
  TrackEvent* definition_instant(std::uint64_t ns, std::uint64_t track, std::string_view name);
  void begin_step();
  void end_partial_step(std::uint64_t ns);
  pb::InternedData& interned(pb::InternedData*& data, Sequence& sequence);
  std::uint32_t event_name(pb::InternedData*& data, Sequence& sequence, const SpanBegin& span);
  std::uint32_t event_name(pb::InternedData*& data, Sequence& sequence, std::size_t key,
                           std::string_view text);
  std::uint32_t category_id(pb::InternedData*& data, Sequence& sequence, std::size_t category);
  std::uint32_t string_id(pb::InternedData*& data, Sequence& sequence, std::size_t key,
                          std::string_view text);
  void gather();

  const Dictionary& dictionary_;
  ByteSink& out_;
  RunInfo run_;
  // Slices are encoded into the block; all else by protozero, from where it comes into the block
  // before the next slice.
  std::vector<std::uint8_t> block_;  // whole packets only: a sink may stop between any two blocks
  std::size_t used_ = 0;
  protozero::HeapBuffered<pb::Trace> trace_;
  unsigned packets_ = 0;  // in trace_
  bool has_head_ =
      false;  // written with the first packet that has a time: a trace begins where recording does
  struct PendingLane {
    Lane lane;
    std::uint64_t tid;
    std::string name;
  };
  std::vector<PendingLane> pending_lanes_;
  std::size_t layers_defined_ = 0;
  std::vector<Sequence> sequences_;  // two for each lane

  // A track of one of a device's streams. What overlaps is on another one.
  struct StreamTrack {
    std::uint32_t device;
    std::uint32_t stream;
    std::uint64_t busy_until_ns;
    Sequence sequence;
  };
  StreamTrack& stream_track(const DeviceSpan& span);
  void start_stream_track(StreamTrack& track, std::uint32_t sibling);
  void describe_device_slice(TrackEvent& event, const DeviceSpan& span);
  std::vector<StreamTrack> stream_tracks_;
  std::vector<bool> devices_described_;

  struct {
    bool waiting = false;  // a step begins, if anything comes before the recording pauses
    bool open = false;
    bool window = false;
    Lane lane = 0;
    std::uint64_t ns = 0;
    std::uint64_t index = 0;
  } step_;
};

template <typename Entry>
void set_interned(Entry* entry, std::uint64_t iid, std::string_view text) {
  entry->set_iid(iid);
  entry->set_name(text.data(), text.size());
}

void Writer::write_head(std::uint64_t ns) {
  has_head_ = true;
  {
    auto* packet = add_packet();
    packet->set_trusted_packet_sequence_id(format::kDefinitionSequence);
    packet->set_sequence_flags(pb::TracePacket::SEQ_INCREMENTAL_STATE_CLEARED);
    auto* snapshot = packet->set_clock_snapshot();
    auto* clock = snapshot->add_clocks();
    clock->set_clock_id(format::kBoottimeClock);
    clock->set_timestamp(ns);
  }
  {
    auto* packet = add_packet();
    packet->set_trusted_packet_sequence_id(format::kDefinitionSequence);
    auto* track = packet->set_track_descriptor();
    track->set_uuid(format::kProcessTrack);
    auto* process = track->set_process();
    process->set_pid(static_cast<std::int32_t>(run_.pid));
    process->set_process_name(run_.program);
  }
  describe_track(format::kStepTrack, format::kProcessTrack, "steps");
  describe_track(format::kLayerTrack, format::kProcessTrack, "layers");
  describe_track(format::kRunTrack, format::kProcessTrack, "layertrace");

  write_run(*definition_instant(ns, format::kRunTrack, format::kHeader), run_);
  for (const PendingLane& pending : pending_lanes_)
    describe_lane(pending.lane, pending.tid, pending.name);
  pending_lanes_.clear();
}

void Writer::describe_track(std::uint64_t uuid, std::uint64_t parent, std::string_view name) {
  auto* packet = add_packet();
  packet->set_trusted_packet_sequence_id(format::kDefinitionSequence);
  auto* track = packet->set_track_descriptor();
  track->set_uuid(uuid);
  track->set_parent_uuid(parent);
  track->set_name(name.data(), name.size());
}

TrackEvent* Writer::definition_instant(std::uint64_t ns, std::uint64_t track,
                                       std::string_view name) {
  auto* packet = add_packet();
  packet->set_timestamp(ns);
  packet->set_trusted_packet_sequence_id(format::kDefinitionSequence);
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
    auto* event = definition_instant(at_ns++, format::kLayerTrack,
                                     layer.path.empty() ? layer.type : layer.path);
    write_layer(*event, layer,
                layer.parent == kNoLayer ? nullptr : &dictionary_.layers[index(layer.parent)].path);
  }
}

void Writer::start_sequence(Sequence& sequence, std::uint64_t ns) {
  sequence.started = true;
  sequence.last_ns = ns;
  {
    auto* packet = add_packet();
    packet->set_trusted_packet_sequence_id(sequence.id);
    packet->set_sequence_flags(pb::TracePacket::SEQ_INCREMENTAL_STATE_CLEARED);
    auto* snapshot = packet->set_clock_snapshot();
    auto* own = snapshot->add_clocks();
    own->set_clock_id(format::kIncrementalClock);
    own->set_timestamp(ns);
    own->set_is_incremental(true);
    auto* boottime = snapshot->add_clocks();
    boottime->set_clock_id(format::kBoottimeClock);
    boottime->set_timestamp(ns);
  }
  auto* packet = add_packet();
  packet->set_trusted_packet_sequence_id(sequence.id);
  auto* defaults = packet->set_trace_packet_defaults();
  defaults->set_timestamp_clock_id(format::kIncrementalClock);
  defaults->set_track_event_defaults()->set_track_uuid(sequence.track);
  auto* data = packet->set_interned_data();
  for (std::size_t i = 0; i < kHostAnnotations; ++i) {
    set_interned(data->add_debug_annotation_names(), i + 1, kAnnotationNames[i]);
  }
}

void Writer::open_lane(Lane lane, std::uint64_t tid, const std::string& name) {
  if (sequences_.size() < 2 * (std::size_t{lane} + 1))
    sequences_.resize(2 * (std::size_t{lane} + 1));
  const std::uint64_t thread_track = format::kFirstLaneTrack + 2 * std::uint64_t{lane};
  scopes_of(lane).id = format::scope_sequence(lane);
  scopes_of(lane).track = thread_track;
  activities_of(lane).id = format::activity_sequence(lane);
  activities_of(lane).track = thread_track + 1;
  if (has_head_) {
    describe_lane(lane, tid, name);
  } else {
    pending_lanes_.push_back({lane, tid, name});
  }
}

void Writer::describe_lane(Lane lane, std::uint64_t tid, const std::string& name) {
  const std::uint64_t thread_track = scopes_of(lane).track;
  {
    auto* packet = add_packet();
    packet->set_trusted_packet_sequence_id(format::kDefinitionSequence);
    auto* track = packet->set_track_descriptor();
    track->set_uuid(thread_track);
    track->set_parent_uuid(format::kProcessTrack);
    auto* thread = track->set_thread();
    thread->set_pid(static_cast<std::int32_t>(run_.pid));
    thread->set_tid(static_cast<std::int32_t>(tid));
    thread->set_thread_name(name);
  }
  describe_track(thread_track + 1, thread_track, "ops");
}

// ---- Packets ----

pb::TracePacket* Writer::add_packet() {
  if (packets_ == kPacketsPerFlush) flush();
  ++packets_;
  return trace_->add_packet();
}

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
  auto* packet = add_packet();
  packet->set_timestamp(advance(sequence, ns));
  packet->set_trusted_packet_sequence_id(sequence.id);
  return packet;
}

SliceEvent Writer::slice(Sequence& sequence, std::uint64_t ns, TrackEvent::Type type) {
  if (packets_ != 0) [[unlikely]]
    gather();
  if (used_ + SliceEvent::kMaxBytes > block_.size()) [[unlikely]]
    flush();
  return {block_.data() + used_, advance(sequence, ns), sequence.id, type};
}

void Writer::slice_done(SliceEvent& slice) {
  used_ = static_cast<std::size_t>(slice.finish() - block_.data());
}

// Takes what protozero has written into the block.
void Writer::gather() {
  for (const auto& slice : trace_.GetSlices()) {
    const auto written = slice.GetUsedRange();
    if (used_ + written.size() > block_.size()) block_.resize(used_ + written.size());
    std::copy(written.begin, written.end, block_.data() + used_);
    used_ += written.size();
  }
  trace_.Reset();
  packets_ = 0;
}

void Writer::flush() {
  if (packets_ != 0) gather();
  if (used_ != 0) out_.write(std::span(block_).first(used_));
  used_ = 0;
}

// ---- Interned strings ----

// Strings that are new to a sequence go into a packet before the one that uses them.
pb::InternedData& Writer::interned(pb::InternedData*& data, Sequence& sequence) {
  if (data == nullptr) {
    auto* packet = add_packet();
    packet->set_trusted_packet_sequence_id(sequence.id);
    data = packet->set_interned_data();
  }
  return *data;
}

std::uint32_t Writer::category_id(pb::InternedData*& data, Sequence& sequence,
                                  std::size_t category) {
  const auto [id, fresh] = sequence.categories.id(category);
  if (fresh) [[unlikely]] {
    const std::string_view text = category == format::kStepCategory ? format::kStep
                                  : category == kLostCategory
                                      ? "lost"
                                      : phase_name(static_cast<Phase>(category));
    set_interned(interned(data, sequence).add_event_categories(), id, text);
  }
  return id;
}

std::uint32_t Writer::string_id(pb::InternedData*& data, Sequence& sequence, std::size_t key,
                                std::string_view text) {
  const auto [id, fresh] = sequence.strings.id(key);
  if (fresh) [[unlikely]] {
    auto* value = interned(data, sequence).add_debug_annotation_string_values();
    value->set_iid(id);
    value->set_str(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
  }
  return id;
}

std::uint32_t Writer::event_name(pb::InternedData*& data, Sequence& sequence, std::size_t key,
                                 std::string_view text) {
  const auto [id, fresh] = sequence.event_names.id(key);
  if (fresh) [[unlikely]]
    set_interned(interned(data, sequence).add_event_names(), id, text);
  return id;
}

std::uint32_t Writer::event_name(pb::InternedData*& data, Sequence& sequence,
                                 const SpanBegin& span) {
  if (span.name != kNoName) {
    const std::size_t key = kFixedNames + 2 * std::size_t{index(span.name)};
    return event_name(data, sequence, key, dictionary_.names[index(span.name)]);
  }
  if (span.layer != kNoLayer) {
    const LayerDef& layer = dictionary_.layers[index(span.layer)];
    const std::size_t key = kFixedNames + 2 * std::size_t{index(span.layer)} + 1;
    return event_name(data, sequence, key, layer.path.empty() ? layer.type : layer.path);
  }
  return event_name(data, sequence, kLossName, "loss");
}

// ---- Spans ----

void Writer::begin(Lane lane, const SpanBegin& span) {
  // Operators after the last step() do not make another step.
  if (step_.waiting && span.kind != SpanKind::kActivity) begin_step();
  Sequence& sequence = this->sequence(lane, track_of(span.kind), span.start_ns);
  define_new_layers(span.start_ns);
  pb::InternedData* data = nullptr;
  const std::uint32_t name = event_name(data, sequence, span);
  const std::uint32_t category = category_id(data, sequence, static_cast<std::size_t>(span.phase));
  std::uint32_t path = 0;
  std::uint32_t cause = 0;
  if (span.layer != kNoLayer) {
    path = string_id(data, sequence, kCauseCount + index(span.layer),
                     dictionary_.layers[index(span.layer)].path);
  }
  if (span.cause != Cause::kNone) {
    cause = string_id(data, sequence, static_cast<std::size_t>(span.cause), cause_text(span.cause));
  }

  SliceEvent event = slice(sequence, span.start_ns, TrackEvent::TYPE_SLICE_BEGIN);
  event.add_category_iid(category);
  event.set_name_iid(name);
  if (path != 0) event.annotate_string(annotation::kPath, path);
  if (cause != 0) {
    event.annotate_string(path != 0 ? annotation::kInferred : annotation::kUnattributed, cause);
  }
  if (span.sequence != 0) event.annotate_uint(annotation::kSequence, span.sequence - 1);
  if (span.accumulates) event.annotate_true(annotation::kAccumulates);
  if (span.kind == SpanKind::kRegion) event.annotate_true(annotation::kRegion);
  if (span.call != 0) event.add_flow_id(span.call);
  slice_done(event);
}

void Writer::end(Lane lane, Track track, std::uint64_t end_ns, EndedBy by) {
  Sequence& sequence = this->sequence(lane, track, end_ns);
  if (by == EndedBy::kExit) [[likely]] {
    SliceEvent event = slice(sequence, end_ns, TrackEvent::TYPE_SLICE_END);
    slice_done(event);
    return;
  }
  auto* event = packet(sequence, end_ns)->set_track_event();
  event->set_type(TrackEvent::TYPE_SLICE_END);
  auto* annotation = event->add_debug_annotations();
  annotation->set_name_iid(annotation::kEndedBy);
  annotation->set_string_value(by == EndedBy::kException ? "exception" : "cut");
}

// ---- Devices ----

Writer::StreamTrack& Writer::stream_track(const DeviceSpan& span) {
  std::uint32_t siblings = 0;
  for (StreamTrack& track : stream_tracks_) {
    if (track.device != span.what.device || track.stream != span.what.stream) continue;
    if (span.start_ns >= track.busy_until_ns) return track;
    ++siblings;
  }
  const auto number = static_cast<std::uint32_t>(stream_tracks_.size());
  StreamTrack& track = stream_tracks_.emplace_back();
  track.device = span.what.device;
  track.stream = span.what.stream;
  track.busy_until_ns = 0;
  track.sequence.id = format::kFirstDeviceSequence + number;
  track.sequence.track = format::device_track(track.device, track.stream, siblings);
  start_stream_track(track, siblings);
  return track;
}

void Writer::start_stream_track(StreamTrack& track, std::uint32_t sibling) {
  const std::uint64_t group = format::kDeviceGroups + track.device;
  if (devices_described_.size() <= track.device) devices_described_.resize(track.device + 1);
  if (!devices_described_[track.device]) {
    devices_described_[track.device] = true;
    describe_track(group, format::kProcessTrack, "GPU " + std::to_string(track.device));
  }
  std::string name = "stream " + std::to_string(track.stream);
  if (sibling != 0) name += ", overlapping";
  describe_track(track.sequence.track, group, name);
  track.sequence.started = true;
  auto* packet = add_packet();
  packet->set_trusted_packet_sequence_id(track.sequence.id);
  packet->set_sequence_flags(pb::TracePacket::SEQ_INCREMENTAL_STATE_CLEARED);
  auto* defaults = packet->set_trace_packet_defaults();
  defaults->set_timestamp_clock_id(format::kBoottimeClock);
  defaults->set_track_event_defaults()->set_track_uuid(track.sequence.track);
  auto* data = packet->set_interned_data();
  for (std::size_t i = 0; i < std::size(kAnnotationNames); ++i)
    set_interned(data->add_debug_annotation_names(), i + 1, kAnnotationNames[i]);
}

namespace {

std::string extent(const std::array<std::uint32_t, 3>& size) {
  return std::to_string(size[0]) + "x" + std::to_string(size[1]) + "x" + std::to_string(size[2]);
}

}  // namespace

void Writer::describe_device_slice(TrackEvent& event, const DeviceSpan& span) {
  const auto text = [&event](std::uint8_t name, const std::string& value) {
    auto* annotation = event.add_debug_annotations();
    annotation->set_name_iid(name);
    annotation->set_string_value(value);
  };
  const auto number = [&event](std::uint8_t name, std::uint64_t value) {
    auto* annotation = event.add_debug_annotations();
    annotation->set_name_iid(name);
    annotation->set_uint_value(value);
  };
  const DeviceActivity& what = span.what;
  if (what.kind == DeviceKind::kKernel) {
    text(annotation::kGrid, extent(what.grid));
    text(annotation::kBlock, extent(what.block));
    number(annotation::kRegisters, what.registers);
    if (what.shared_bytes != 0) number(annotation::kSharedBytes, what.shared_bytes);
  } else {
    text(annotation::kKind, what.kind == DeviceKind::kCopy ? "copy" : "set");
    number(annotation::kBytes, what.bytes);
  }
  number(annotation::kCorrelation, what.correlation);
  if (span.launch_ns != 0) number(annotation::kLaunch, span.launch_ns);
  if (what.graph_node != 0) number(annotation::kGraphNode, what.graph_node);
}

void Writer::device(const DeviceSpan& span) {
  if (!has_head_) write_head(span.launch_ns != 0 ? span.launch_ns : span.start_ns);
  define_new_layers(span.start_ns);
  StreamTrack& track = stream_track(span);
  track.busy_until_ns = std::max(track.busy_until_ns, span.end_ns);
  Sequence& sequence = track.sequence;
  pb::InternedData* data = nullptr;
  const std::size_t key = kFixedNames + 2 * std::size_t{index(span.what.name)};
  const std::uint32_t name =
      event_name(data, sequence, key, dictionary_.names[index(span.what.name)]);
  const std::uint32_t category = category_id(data, sequence, static_cast<std::size_t>(span.phase));
  std::uint32_t path = 0;
  std::uint32_t cause = 0;
  if (span.layer != kNoLayer) {
    path = string_id(data, sequence, kCauseCount + index(span.layer),
                     dictionary_.layers[index(span.layer)].path);
  } else if (span.cause != Cause::kNone) {
    cause = string_id(data, sequence, static_cast<std::size_t>(span.cause), cause_text(span.cause));
  }
  auto* begin = add_packet();
  begin->set_timestamp(span.start_ns);
  begin->set_trusted_packet_sequence_id(sequence.id);
  auto* event = begin->set_track_event();
  event->set_type(TrackEvent::TYPE_SLICE_BEGIN);
  event->add_category_iids(category);
  event->set_name_iid(name);
  if (span.call != 0) event->add_flow_ids(span.call);
  if (path != 0 || cause != 0) {
    auto* annotation = event->add_debug_annotations();
    annotation->set_name_iid(path != 0 ? annotation::kPath : annotation::kUnattributed);
    annotation->set_string_value_iid(path != 0 ? path : cause);
  }
  describe_device_slice(*event, span);
  auto* end = add_packet();
  end->set_timestamp(span.end_ns);
  end->set_trusted_packet_sequence_id(sequence.id);
  end->set_track_event()->set_type(TrackEvent::TYPE_SLICE_END);
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
  pb::InternedData* data = nullptr;
  const std::uint32_t name = event_name(data, sequence, kPauseName, format::kPause);
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
  pb::InternedData* data = nullptr;
  const std::uint32_t category = category_id(data, sequence, format::kStepCategory);
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
    annotation->set_name(format::kStep.data(), format::kStep.size());
    annotation->set_uint_value(index);
  }
  step_ = {
      .waiting = true, .open = false, .window = false, .lane = lane, .ns = ns, .index = index + 1};
}

void Writer::gap(Lane lane, std::uint64_t ns, std::uint64_t dropped) {
  Sequence& sequence = this->sequence(lane, Track::kScopes, ns);
  pb::InternedData* data = nullptr;
  const std::uint32_t category = category_id(data, sequence, kLostCategory);
  const std::uint32_t name = event_name(data, sequence, kGapName, format::kGap);
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
  write_closing(*definition_instant(end_ns, format::kRunTrack, format::kFooter), health, end_ns);
  flush();
}

}  // namespace

std::unique_ptr<TraceWriter> TraceWriter::make(const Dictionary& dictionary, ByteSink& out,
                                               const RunInfo& run) {
  return std::make_unique<Writer>(dictionary, out, run);
}

}  // namespace layertrace
