// Reads what DeviceTracks has written.
#pragma once

#include <perfetto.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "attribute/span.h"
#include "perfetto/event_parser.h"

namespace layertrace {

class DeviceEvents {
 public:
  DeviceEvents(EventParser& parser, SpanSink& sink) : parser_(parser), sink_(sink) {}

  // The descriptor of a track, if it is one of a device's.
  bool on_track(std::uint64_t uuid);
  // A packet of a device's sequence; either of its parts may be missing. Returns whether it tells
  // of something at that time.
  bool on_packet(std::uint32_t sequence_id, std::uint64_t ns, protozero::ConstBytes interned,
                 protozero::ConstBytes event);

 private:
  // A track, and what has begun there: its end follows at once.
  struct DeviceTrack {
    std::uint32_t device;
    std::uint32_t stream;
    SequenceState sequence;
    std::optional<DeviceSpan> open;
  };

  DeviceSpan span_of(DeviceTrack& track, std::uint64_t ns, const Event& event);

  EventParser& parser_;
  SpanSink& sink_;
  std::vector<DeviceTrack> tracks_;
};

}  // namespace layertrace
