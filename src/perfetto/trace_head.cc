#include "perfetto/trace_head.h"

#include <algorithm>

#include "perfetto/definition_events.h"
#include "perfetto/format.h"
#include "perfetto/slice_strings.h"

namespace layertrace {

namespace pb = perfetto::protos::pbzero;

void add_clock(pb::ClockSnapshot& snapshot, std::uint32_t id, std::uint64_t ns) {
  auto* clock = snapshot.add_clocks();
  clock->set_clock_id(id);
  clock->set_timestamp(ns);
}

void TraceHead::clocks(const ClockReadings& now) {
  if (is_written_) return write_clocks(now);
  first_clocks_ = now;
}

void TraceHead::write_clocks(const ClockReadings& now) {
  auto* snapshot = packets_.add(format::kDefinitionSequence)->set_clock_snapshot();
  add_clock(*snapshot, format::kBoottimeClock, now.boottime_ns);
  add_clock(*snapshot, format::kMonotonicClock, now.monotonic_ns);
  add_clock(*snapshot, format::kMonotonicRawClock, now.monotonic_raw_ns);
  add_clock(*snapshot, format::kRealtimeClock, now.realtime_ns);
}

void TraceHead::write(std::uint64_t ns) {
  is_written_ = true;
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

  write_run(*instant(ns, format::kRunTrack, format::kHeader), run_);
  for (const PendingLane& pending : pending_lanes_) write_lane(pending);
  pending_lanes_.clear();
}

TraceHead::TrackEvent* TraceHead::instant(std::uint64_t ns, std::uint64_t track,
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
void TraceHead::define_layers(std::uint64_t ns) {
  // Just before their first use, each at a time of its own: instants of one time are drawn on top
  // of each other.
  std::uint64_t at_ns = ns - (dictionary_.layers.size() - layers_defined_);
  for (; layers_defined_ < dictionary_.layers.size(); ++layers_defined_) {
    const LayerDef& layer = dictionary_.layers[layers_defined_];
    auto* event = instant(at_ns++, format::kLayerTrack, SliceStrings::label(layer));
    write_layer(*event, layer,
                layer.parent == kNoLayer ? nullptr : &dictionary_.layers[index(layer.parent)].path);
  }
}

// After the layers that have them, on a track that is only there where there are any.
void TraceHead::define_parameters(std::uint64_t ns) {
  const std::size_t count = dictionary_.parameters.size();
  if (parameters_defined_ == count) return;
  if (parameters_defined_ == 0)
    packets_.describe_track(format::kParameterTrack, format::kProcessTrack, "parameters");
  std::uint64_t at_ns = ns - std::min<std::uint64_t>(ns, count - parameters_defined_);
  for (; parameters_defined_ < count; ++parameters_defined_) {
    const ParameterDef& parameter = dictionary_.parameters[parameters_defined_];
    const std::string& path = dictionary_.layers[index(parameter.owner)].path;
    const std::string label = path.empty() ? parameter.name : path + "." + parameter.name;
    write_parameter(*instant(at_ns++, format::kParameterTrack, label), parameter, path);
  }
}

void TraceHead::describe_lane(Lane lane, std::uint64_t tid, const std::string& name) {
  if (is_written_) {
    write_lane({lane, tid, name});
  } else {
    pending_lanes_.push_back({lane, tid, name});
  }
}

void TraceHead::write_lane(const PendingLane& described) {
  const std::uint64_t thread_track = format::thread_track(described.lane);
  {
    auto* packet = packets_.add(format::kDefinitionSequence);
    auto* track = packet->set_track_descriptor();
    track->set_uuid(thread_track);
    track->set_parent_uuid(format::kProcessTrack);
    auto* thread = track->set_thread();
    thread->set_pid(static_cast<std::int32_t>(run_.pid));
    thread->set_tid(static_cast<std::int32_t>(described.tid));
    thread->set_thread_name(described.name);
  }
  packets_.describe_track(thread_track + 1, thread_track, "ops");
}

}  // namespace layertrace
