// What devices did, as slices: a group of tracks for each device, and in it one for each stream.
#pragma once

#include <cstdint>
#include <vector>

#include "attribute/span.h"
#include "perfetto/loose_tracks.h"
#include "perfetto/packet_block.h"

namespace layertrace {

class DeviceTracks {
 public:
  DeviceTracks(PacketBlock& packets, const Dictionary& dictionary)
      : packets_(packets),
        dictionary_(dictionary),
        activities_(packets, format::TrackKind::kActivities) {}

  void device(const DeviceSpan& span);

 private:
  // The device's group, described at its first use.
  std::uint64_t group(std::uint32_t device);

  PacketBlock& packets_;
  const Dictionary& dictionary_;
  LooseTracks activities_;
  std::vector<bool> groups_described_;
};

}  // namespace layertrace
