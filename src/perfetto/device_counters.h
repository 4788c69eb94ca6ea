// Figures of devices over time, as counter tracks in their groups: those that were measured, which
// are read back, and those that are made here from what the devices did.
#pragma once

#include <cstdint>
#include <set>
#include <string_view>
#include <unordered_map>

#include "attribute/span.h"
#include "perfetto/device_groups.h"
#include "perfetto/device_load.h"
#include "perfetto/held_memory.h"
#include "perfetto/packet_block.h"

namespace layertrace {

class DeviceCounters {
 public:
  DeviceCounters(PacketBlock& packets, DeviceGroups& groups) : packets_(packets), groups_(groups) {}

  void counter(const CounterSpan& sample);
  void activity(const DeviceSpan& span);
  void memory(const MemorySpan& span);
  // Nothing more will come: what was held back is written.
  void finish();

 private:
  struct Description {
    std::string_view name;
    std::string_view unit;  // "" for bytes
  };

  std::uint64_t track(std::uint32_t device, std::uint8_t number, const Description& description);
  void load_figure(std::uint32_t device, DeviceLoad::Figure figure, std::uint64_t ns, double value);
  PacketBlock::TracePacket* packet(std::uint64_t ns);

  PacketBlock& packets_;
  DeviceGroups& groups_;
  std::set<std::uint64_t> described_;
  std::unordered_map<std::uint32_t, DeviceLoad> loads_;  // by device
  std::unordered_map<std::uint32_t, HeldMemory> held_;   // likewise, and for the host
};

}  // namespace layertrace
