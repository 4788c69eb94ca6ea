// What devices did, as slices: a group of tracks for each device, and in it one for each stream.
// Spans come in no particular order, so their packets have times of the trace's own clock.
#pragma once

#include <cstdint>
#include <vector>

#include "attribute/span.h"
#include "perfetto/packet_block.h"
#include "perfetto/sequence.h"

namespace layertrace {

class DeviceTracks {
 public:
  DeviceTracks(PacketBlock& packets, const Dictionary& dictionary)
      : packets_(packets), dictionary_(dictionary) {}

  void device(const DeviceSpan& span);

 private:
  // A track of one of a device's streams. What overlaps is on another one.
  struct StreamTrack {
    std::uint32_t device;
    std::uint32_t stream;
    std::uint64_t busy_until_ns;
    Sequence sequence;
  };

  StreamTrack& stream_track(const DeviceSpan& span);
  void start(StreamTrack& track, std::uint32_t sibling);

  PacketBlock& packets_;
  const Dictionary& dictionary_;
  std::vector<StreamTrack> stream_tracks_;
  std::vector<bool> devices_described_;
};

}  // namespace layertrace
