#include "perfetto/loose_tracks.h"

#include <iterator>

#include "perfetto/slice_strings.h"

namespace layertrace {

void LooseTracks::start(Sequence& sequence) {
  sequence.id = format::loose_sequence(kind_, static_cast<std::uint32_t>(tracks_.size() - 1));
  sequence.started = true;
  auto* packet = packets_.add(sequence.id);
  packet->set_sequence_flags(PacketBlock::TracePacket::SEQ_INCREMENTAL_STATE_CLEARED);
  auto* defaults = packet->set_trace_packet_defaults();
  defaults->set_timestamp_clock_id(format::kBoottimeClock);
  defaults->set_track_event_defaults()->set_track_uuid(sequence.track);
  tell_annotation_names(*packet, std::size(kAnnotationNames));
}

LooseTracks::TrackEvent* LooseTracks::begin(const Sequence& sequence, std::uint64_t ns,
                                            std::uint32_t category, std::uint32_t name) {
  auto* packet = packets_.add(sequence.id);
  packet->set_timestamp(ns);
  auto* event = packet->set_track_event();
  event->set_type(TrackEvent::TYPE_SLICE_BEGIN);
  event->add_category_iids(category);
  if (name != 0) event->set_name_iid(name);
  return event;
}

void LooseTracks::end(const Sequence& sequence, std::uint64_t ns) {
  auto* packet = packets_.add(sequence.id);
  packet->set_timestamp(ns);
  packet->set_track_event()->set_type(TrackEvent::TYPE_SLICE_END);
}

}  // namespace layertrace
