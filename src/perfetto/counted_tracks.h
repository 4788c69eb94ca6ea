// What was counted, as instants: stretches of a step, blocks of memory, and what belongs to no
// slice, as the amounts of an operator that only calls others. They are drawn where they happened,
// but each lane has a sequence of its own for them, with times of the trace's clock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

#include "attribute/span.h"
#include "perfetto/format.h"
#include "perfetto/packet_block.h"
#include "perfetto/sequence.h"
#include "perfetto/slice_event.h"

namespace layertrace {

class CountedTracks {
 public:
  CountedTracks(PacketBlock& packets, const Dictionary& dictionary)
      : packets_(packets), dictionary_(dictionary) {}

  void amounts(Lane lane, const AmountsSpan& span);
  void shapes(Lane lane, const ShapesSpan& span);
  void counting(Lane lane, const CountingSpan& span);
  void memory(Lane lane, const MemorySpan& span);
  void close_lane(Lane lane);

  static void annotate(WideSliceEvent& event, const OpAmounts& amounts);

 private:
  Sequence& sequence(Lane lane);
  void describe_memory();
  WideSliceEvent instant(const Sequence& sequence, std::uint64_t ns, std::uint32_t name);

  PacketBlock& packets_;
  const Dictionary& dictionary_;
  std::deque<Sequence> sequences_;  // by lane
  bool has_memory_track_ = false;
  bool has_counting_track_ = false;
};

}  // namespace layertrace
