// Tracks for slices that come in no particular order, each slice whole. Their packets have times of
// the trace's own clock. What overlaps lies on sibling tracks: nothing is cut, nothing left out.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "perfetto/format.h"
#include "perfetto/packet_block.h"
#include "perfetto/sequence.h"
#include "perfetto/slice_event.h"
#include "perfetto/stretches.h"

namespace layertrace {

class LooseTracks {
 public:
  LooseTracks(PacketBlock& packets, format::TrackKind kind) : packets_(packets), kind_(kind) {}

  // Of the tracks of this `family`, one with nothing in this stretch of time. A new one is told to
  // `describe`, with its number among its siblings, and given a descriptor there.
  template <typename Describe>
  Sequence& track(std::uint64_t family, std::uint64_t start_ns, std::uint64_t end_ns,
                  const Describe& describe) {
    end_ns = std::max(start_ns, end_ns);
    Siblings& siblings = find(family);
    for (Track* track : siblings) {
      if (track->stretches.take(start_ns, end_ns)) return track->sequence;
    }
    if (siblings.size() == format::kMostSiblings) return siblings.back()->sequence;
    const auto number = static_cast<std::uint32_t>(siblings.size());
    Track& fresh = tracks_.emplace_back();
    siblings.push_back(&fresh);
    fresh.stretches.take(start_ns, end_ns);
    fresh.sequence.track = describe(number);
    start(fresh.sequence);
    return fresh.sequence;
  }

  // A slice: its first packet, into which its flows and annotations go, and, when these are there,
  // its end.
  WideSliceEvent begin(const Sequence& sequence, std::uint64_t ns, std::uint32_t category,
                       std::uint32_t name);
  void end(const Sequence& sequence, WideSliceEvent& begun, std::uint64_t ns);

 private:
  struct Track {
    Stretches stretches;
    Sequence sequence;
  };
  using Siblings = std::vector<Track*>;

  Siblings& find(std::uint64_t family) {
    if (last_ == nullptr || family != last_family_) {
      last_ = &families_[family];
      last_family_ = family;
    }
    return *last_;
  }
  void start(Sequence& sequence);

  PacketBlock& packets_;
  const format::TrackKind kind_;
  std::deque<Track> tracks_;
  std::unordered_map<std::uint64_t, Siblings> families_;
  std::uint64_t last_family_ = 0;
  Siblings* last_ = nullptr;
};

}  // namespace layertrace
