#include "perfetto/device_tracks.h"

#include <perfetto.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <string>

#include "perfetto/format.h"
#include "perfetto/slice_strings.h"

namespace layertrace {
namespace {

using perfetto::protos::pbzero::TrackEvent;

// A slice's annotations, added as SliceEvent adds them.
class Annotations {
 public:
  explicit Annotations(TrackEvent& event) : event_(event) {}

  void annotate_string(std::uint8_t name, std::uint32_t string_iid) {
    add(name)->set_string_value_iid(string_iid);
  }
  void annotate_text(std::uint8_t name, const std::string& value) {
    add(name)->set_string_value(value);
  }
  void annotate_uint(std::uint8_t name, std::uint64_t value) { add(name)->set_uint_value(value); }

 private:
  perfetto::protos::pbzero::DebugAnnotation* add(std::uint8_t name) {
    auto* annotation = event_.add_debug_annotations();
    annotation->set_name_iid(name);
    return annotation;
  }

  TrackEvent& event_;
};

std::string extent(const std::array<std::uint32_t, 3>& size) {
  return std::to_string(size[0]) + "x" + std::to_string(size[1]) + "x" + std::to_string(size[2]);
}

void describe(Annotations& event, const DeviceSpan& span) {
  const DeviceActivity& what = span.what;
  if (what.kind == DeviceKind::kKernel) {
    event.annotate_text(annotation::kGrid, extent(what.grid));
    event.annotate_text(annotation::kBlock, extent(what.block));
    event.annotate_uint(annotation::kRegisters, what.registers);
    if (what.shared_bytes != 0) event.annotate_uint(annotation::kSharedBytes, what.shared_bytes);
  } else {
    event.annotate_text(annotation::kKind, what.kind == DeviceKind::kCopy ? "copy" : "set");
    event.annotate_uint(annotation::kBytes, what.bytes);
  }
  event.annotate_uint(annotation::kCorrelation, what.correlation);
  if (span.launch_ns != 0) event.annotate_uint(annotation::kLaunch, span.launch_ns);
  if (what.graph_node != 0) event.annotate_uint(annotation::kGraphNode, what.graph_node);
}

}  // namespace

DeviceTracks::StreamTrack& DeviceTracks::stream_track(const DeviceSpan& span) {
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
  start(track, siblings);
  return track;
}

void DeviceTracks::start(StreamTrack& track, std::uint32_t sibling) {
  const std::uint64_t group = format::kDeviceGroups + track.device;
  if (devices_described_.size() <= track.device) devices_described_.resize(track.device + 1);
  if (!devices_described_[track.device]) {
    devices_described_[track.device] = true;
    packets_.describe_track(group, format::kProcessTrack, "GPU " + std::to_string(track.device));
  }
  std::string name = "stream " + std::to_string(track.stream);
  if (sibling != 0) name += ", overlapping";
  packets_.describe_track(track.sequence.track, group, name);
  track.sequence.started = true;
  auto* packet = packets_.add(track.sequence.id);
  packet->set_sequence_flags(PacketBlock::TracePacket::SEQ_INCREMENTAL_STATE_CLEARED);
  auto* defaults = packet->set_trace_packet_defaults();
  defaults->set_timestamp_clock_id(format::kBoottimeClock);
  defaults->set_track_event_defaults()->set_track_uuid(track.sequence.track);
  tell_annotation_names(*packet, std::size(kAnnotationNames));
}

void DeviceTracks::device(const DeviceSpan& span) {
  StreamTrack& track = stream_track(span);
  track.busy_until_ns = std::max(track.busy_until_ns, span.end_ns);
  SliceStrings strings(packets_, dictionary_, track.sequence);
  const std::uint32_t name = strings.name(span.what.name);
  const std::uint32_t category = strings.category(span.phase);
  const Owner owner = strings.owner(span.layer, span.layer == kNoLayer ? span.cause : Cause::kNone);

  auto* begin = packets_.add(track.sequence.id);
  begin->set_timestamp(span.start_ns);
  auto* event = begin->set_track_event();
  event->set_type(TrackEvent::TYPE_SLICE_BEGIN);
  event->add_category_iids(category);
  event->set_name_iid(name);
  if (span.call != 0) event->add_flow_ids(span.call);
  Annotations annotations(*event);
  owner.annotate(annotations);
  describe(annotations, span);

  auto* end = packets_.add(track.sequence.id);
  end->set_timestamp(span.end_ns);
  end->set_track_event()->set_type(TrackEvent::TYPE_SLICE_END);
}

}  // namespace layertrace
