// The group of tracks that each device has, described at its first use.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "perfetto/format.h"
#include "perfetto/packet_block.h"

namespace layertrace {

class DeviceGroups {
 public:
  explicit DeviceGroups(PacketBlock& packets) : packets_(packets) {}

  std::uint64_t track(std::uint32_t device) {
    const std::uint64_t group = format::device_group(device);
    if (described_.size() <= device) described_.resize(device + 1);
    if (!described_[device]) {
      described_[device] = true;
      packets_.describe_track(group, format::kProcessTrack, "GPU " + std::to_string(device));
    }
    return group;
  }

 private:
  PacketBlock& packets_;
  std::vector<bool> described_;
};

}  // namespace layertrace
