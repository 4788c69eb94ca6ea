// What devices did, as slices: a group of tracks for each device, and in it those of its streams
// and its counters. Below the threads, the calls that asked for it.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "attribute/span.h"
#include "perfetto/device_counters.h"
#include "perfetto/device_groups.h"
#include "perfetto/loose_tracks.h"
#include "perfetto/packet_block.h"

namespace layertrace {

class DeviceTracks {
 public:
  DeviceTracks(PacketBlock& packets, const Dictionary& dictionary)
      : packets_(packets),
        dictionary_(dictionary),
        groups_(packets),
        counters_(packets, groups_),
        activities_(packets, format::TrackKind::kActivities),
        calls_(packets, format::TrackKind::kCalls),
        layers_(packets, format::TrackKind::kLayers) {}

  // The system's number of the thread that has this track.
  void know_thread(std::uint64_t tid, std::uint64_t track) { thread_tracks_[tid] = track; }

  void device(const DeviceSpan& span);
  void launch(const LaunchSpan& span);
  void event_pair(const EventSpan& span);
  void counter(const CounterSpan& sample) { counters_.counter(sample); }
  void memory(const MemorySpan& span) { counters_.memory(span); }
  void finish() { counters_.finish(); }

 private:
  void describe_calls(std::uint64_t track, std::uint32_t tid);

  PacketBlock& packets_;
  const Dictionary& dictionary_;
  DeviceGroups groups_;
  DeviceCounters counters_;
  LooseTracks activities_;
  LooseTracks calls_;
  LooseTracks layers_;
  std::unordered_map<std::uint64_t, std::uint64_t> thread_tracks_;
};

}  // namespace layertrace
