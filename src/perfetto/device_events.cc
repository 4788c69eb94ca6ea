#include "perfetto/device_events.h"

#include <utility>

namespace layertrace {

using format::TrackKind;

std::vector<DeviceEvents::LooseTrack>* DeviceEvents::tracks_of(TrackKind kind) {
  switch (kind) {
    case TrackKind::kActivities:
      return &activities_;
    case TrackKind::kCalls:
      return &calls_;
    case TrackKind::kLayers:
      return &layers_;
    default:
      return nullptr;
  }
}

bool DeviceEvents::on_track(std::uint64_t uuid) {
  std::vector<LooseTrack>* tracks = tracks_of(format::kind_of_track(uuid));
  if (tracks != nullptr) tracks->push_back({uuid, {}, {}});
  return tracks != nullptr;
}

bool DeviceEvents::on_packet(std::uint32_t sequence_id, std::uint64_t ns,
                             protozero::ConstBytes interned, protozero::ConstBytes bytes) {
  const TrackKind kind = format::kind_of_sequence(sequence_id);
  if (kind == TrackKind::kCounters)
    return bytes.data != nullptr && on_counter(ns, parser_.parse(counters_, bytes));
  std::vector<LooseTrack>* tracks = tracks_of(kind);
  const std::uint32_t number = format::number_of_sequence(sequence_id);
  if (tracks == nullptr || number >= tracks->size()) return false;
  LooseTrack& track = (*tracks)[number];
  if (interned.data != nullptr) parser_.on_interned_data(track.sequence, interned);
  if (bytes.data == nullptr) return false;
  const Event event = parser_.parse(track.sequence, bytes);
  if (event.type == perfetto::protos::pbzero::TrackEvent::TYPE_SLICE_END) {
    end(track, ns);
  } else {
    begin(track, ns, event);
  }
  return true;
}

bool DeviceEvents::on_counter(std::uint64_t ns, const Event& event) {
  const std::uint8_t number = format::number_of_counter(event.track);
  if (number > static_cast<std::uint8_t>(DeviceCounter::kMemoryReserved)) return false;
  sink_.counter({.ns = ns,
                 .value = event.counter_value,
                 .device = format::device_of_track(event.track),
                 .counter = static_cast<DeviceCounter>(number)});
  return true;
}

void DeviceEvents::begin(LooseTrack& track, std::uint64_t ns, const Event& event) {
  switch (format::kind_of_track(track.uuid)) {
    case TrackKind::kCalls:
      track.open = launch_span(track, ns, event);
      break;
    case TrackKind::kLayers:
      track.open = event_span(track, ns, event);
      break;
    default:
      track.open = device_span(track, ns, event);
      break;
  }
}

void DeviceEvents::end(LooseTrack& track, std::uint64_t ns) {
  auto open = std::exchange(track.open, std::monostate());
  if (auto* activity = std::get_if<DeviceSpan>(&open)) {
    activity->end_ns = ns;
    sink_.device(*activity);
  } else if (auto* call = std::get_if<LaunchSpan>(&open)) {
    call->end_ns = ns;
    sink_.launch(*call);
  } else if (auto* layer = std::get_if<EventSpan>(&open)) {
    layer->end_ns = ns;
    sink_.event_pair(*layer);
  }
}

DeviceSpan DeviceEvents::device_span(LooseTrack& track, std::uint64_t ns, const Event& event) {
  DeviceSpan span{.start_ns = ns,
                  .launch_ns = event.launch_ns,
                  .launch_tid = event.launch_tid,
                  .phase = event.phase(),
                  .cause = event.cause,
                  .layer = event.layer,
                  .call = event.call,
                  .what = event.what};
  span.what.kind = format::device_kind(event.kind);
  span.what.device = format::device_of_track(track.uuid);
  span.what.stream = format::stream_of_track(track.uuid);
  span.what.name = parser_.name(track.sequence, event.name_iid);
  if (span.what.name == kNoName) span.what.name = parser_.name("");
  return span;
}

LaunchSpan DeviceEvents::launch_span(LooseTrack& track, std::uint64_t ns, const Event& event) {
  return {.start_ns = ns,
          .tid = format::tid_of_track(track.uuid),
          .correlation = event.what.correlation,
          .name = event.name_iid != 0 ? parser_.name(track.sequence, event.name_iid) : kNoName,
          .kind = format::call_kind(event.kind),
          .phase = event.phase(),
          .layer = event.layer};
}

EventSpan DeviceEvents::event_span(const LooseTrack& track, std::uint64_t ns, const Event& event) {
  return {.start_ns = ns,
          .host_ns = event.host_ns,
          .phase = event.phase(),
          .layer = event.layer,
          .device = format::device_of_track(track.uuid),
          .stream = format::stream_of_track(track.uuid),
          .depth = event.depth};
}

}  // namespace layertrace
