#include "perfetto/lane_sequences.h"

#include "perfetto/format.h"
#include "perfetto/slice_strings.h"

namespace layertrace {

namespace pb = perfetto::protos::pbzero;

void LaneSequences::open_lane(Lane lane) {
  if (sequences_.size() < 2 * (std::size_t{lane} + 1))
    sequences_.resize(2 * (std::size_t{lane} + 1));
  scopes_of(lane).id = format::scope_sequence(lane);
  scopes_of(lane).track = format::thread_track(lane);
  activities_of(lane).id = format::activity_sequence(lane);
  activities_of(lane).track = format::operator_track(lane);
}

void LaneSequences::close_lane(Lane lane) {
  scopes_of(lane).forget_strings();
  activities_of(lane).forget_strings();
}

void LaneSequences::start(Sequence& sequence, std::uint64_t ns) {
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

}  // namespace layertrace
