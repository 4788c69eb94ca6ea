#include "perfetto/device_events.h"

namespace layertrace {

bool DeviceEvents::on_track(std::uint64_t uuid) {
  if (format::kind_of_track(uuid) != format::TrackKind::kActivities) return false;
  tracks_.push_back(
      {format::device_of_track(uuid), format::stream_of_track(uuid), {}, std::nullopt});
  return true;
}

bool DeviceEvents::on_packet(std::uint32_t sequence_id, std::uint64_t ns,
                             protozero::ConstBytes interned, protozero::ConstBytes bytes) {
  const std::uint32_t number = format::number_of_sequence(sequence_id);
  if (format::kind_of_sequence(sequence_id) != format::TrackKind::kActivities ||
      number >= tracks_.size())
    return false;
  DeviceTrack& track = tracks_[number];
  if (interned.data != nullptr) parser_.on_interned_data(track.sequence, interned);
  if (bytes.data == nullptr) return false;
  const Event event = parser_.parse(track.sequence, bytes);
  if (event.type != perfetto::protos::pbzero::TrackEvent::TYPE_SLICE_END) {
    track.open = span_of(track, ns, event);
  } else if (track.open) {
    track.open->end_ns = ns;
    sink_.device(*track.open);
    track.open.reset();
  }
  return true;
}

DeviceSpan DeviceEvents::span_of(DeviceTrack& track, std::uint64_t ns, const Event& event) {
  DeviceSpan span{.start_ns = ns,
                  .launch_ns = event.launch_ns,
                  .launch_tid = event.launch_tid,
                  .phase = event.phase(),
                  .cause = event.cause,
                  .layer = event.layer,
                  .call = event.flow,
                  .what = event.what};
  span.what.kind = format::device_kind(event.kind);
  span.what.device = track.device;
  span.what.stream = track.stream;
  span.what.name = parser_.name(track.sequence, event.name_iid);
  if (span.what.name == kNoName) span.what.name = parser_.name("");
  return span;
}

}  // namespace layertrace
