// Reads what DeviceTracks has written.
#pragma once

#include <perfetto.h>

#include <cstdint>
#include <variant>
#include <vector>

#include "attribute/span.h"
#include "perfetto/event_parser.h"
#include "perfetto/format.h"

namespace layertrace {

class DeviceEvents {
 public:
  DeviceEvents(EventParser& parser, SpanSink& sink) : parser_(parser), sink_(sink) {}

  // The descriptor of a track, if it is one of ours.
  bool on_track(std::uint64_t uuid);
  // A packet of one of our sequences; either of its parts may be missing. Returns whether it tells
  // of something at that time.
  bool on_packet(std::uint32_t sequence_id, std::uint64_t ns, protozero::ConstBytes interned,
                 protozero::ConstBytes event);

 private:
  // A track, and what has begun there: its end follows at once.
  struct LooseTrack {
    std::uint64_t uuid;
    SequenceState sequence;
    std::variant<std::monostate, DeviceSpan, LaunchSpan, EventSpan> open;
  };

  bool on_counter(std::uint64_t ns, const Event& event);
  std::vector<LooseTrack>* tracks_of(format::TrackKind kind);
  void begin(LooseTrack& track, std::uint64_t ns, const Event& event);
  void end(LooseTrack& track, std::uint64_t ns);
  DeviceSpan device_span(LooseTrack& track, std::uint64_t ns, const Event& event);
  LaunchSpan launch_span(LooseTrack& track, std::uint64_t ns, const Event& event);
  static EventSpan event_span(const LooseTrack& track, std::uint64_t ns, const Event& event);

  EventParser& parser_;
  SpanSink& sink_;
  std::vector<LooseTrack> activities_;
  std::vector<LooseTrack> calls_;
  std::vector<LooseTrack> layers_;
  SequenceState counters_;
};

}  // namespace layertrace
