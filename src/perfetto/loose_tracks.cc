#include "perfetto/loose_tracks.h"

#include <perfetto.h>

#include <iterator>

#include "perfetto/slice_strings.h"

namespace layertrace {

using perfetto::protos::pbzero::TrackEvent;

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

WideSliceEvent LooseTracks::begin(const Sequence& sequence, std::uint64_t ns,
                                  std::uint32_t category, std::uint32_t name) {
  WideSliceEvent event(packets_.room_for<WideSliceEvent>(), ns, sequence.id,
                       TrackEvent::TYPE_SLICE_BEGIN);
  event.add_category_iid(category);
  if (name != 0) event.set_name_iid(name);
  return event;
}

void LooseTracks::end(const Sequence& sequence, WideSliceEvent& begun, std::uint64_t ns) {
  packets_.slice_done(begun.finish());
  SliceEvent event(packets_.room_for<SliceEvent>(), ns, sequence.id, TrackEvent::TYPE_SLICE_END);
  packets_.slice_done(event.finish());
}

}  // namespace layertrace
