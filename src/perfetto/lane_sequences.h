// The packet sequences of the program's threads: of each one for scopes and one for activities,
// with incremental clocks.
#pragma once

#include <perfetto.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "attribute/span.h"
#include "perfetto/packet_block.h"
#include "perfetto/sequence.h"
#include "perfetto/slice_event.h"
#include "perfetto/trace_head.h"

namespace layertrace {

class LaneSequences {
 public:
  using TrackEvent = perfetto::protos::pbzero::TrackEvent;

  LaneSequences(PacketBlock& packets, TraceHead& head) : packets_(packets), head_(head) {}

  void open_lane(Lane lane);
  // No more packets of it will come.
  void close_lane(Lane lane);

  // The lane's sequence, begun if this is its first packet.
  Sequence& sequence(Lane lane, Track track, std::uint64_t ns) {
    head_.begin(ns);
    Sequence& sequence = track == Track::kActivities ? activities_of(lane) : scopes_of(lane);
    if (!sequence.started) [[unlikely]]
      start(sequence, ns);
    return sequence;
  }
  // Goes on to that time; returns how far it is. Clocks never run backwards here: attribution gives
  // a lane's spans in time order, and a stray tick is held still.
  static std::uint64_t advance(Sequence& sequence, std::uint64_t ns) {
    const std::uint64_t at_ns = std::max(ns, sequence.last_ns);
    return at_ns - std::exchange(sequence.last_ns, at_ns);
  }
  TrackEvent* event(Sequence& sequence, std::uint64_t ns, TrackEvent::Type type) {
    auto* packet = packets_.add(sequence.id);
    packet->set_timestamp(advance(sequence, ns));
    auto* event = packet->set_track_event();
    event->set_type(type);
    return event;
  }
  SliceEvent slice(Sequence& sequence, std::uint64_t ns, TrackEvent::Type type) {
    return {packets_.room_for<SliceEvent>(), advance(sequence, ns), sequence.id, type};
  }

 private:
  Sequence& scopes_of(Lane lane) { return sequences_[2 * std::size_t{lane}]; }
  Sequence& activities_of(Lane lane) { return sequences_[2 * std::size_t{lane} + 1]; }
  void start(Sequence& sequence, std::uint64_t ns);

  PacketBlock& packets_;
  TraceHead& head_;
  std::vector<Sequence> sequences_;  // two for each lane
};

}  // namespace layertrace
